"""The paper's posterior: rates of an inhomogeneous jump process, free at every time, from one summary of the series."""

from typing import Literal, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..encoders import MLP, Encoder
from ..mjp.generators import generator_from_rates
from ..mjp.path_kl import kl_rate
from .embedding import MercerEmbedding
from .stepping import march_pieces, piece_times, quadrature

Solver = Literal["linear", "dormand-prince"]


class Solved(NamedTuple):
    """The posterior process on [0, horizon]."""

    marginals: Float[Array, "series time state"]  # at the observations
    path_kl: Float[Array, "series"]


class FreePosterior(eqx.Module):
    """q(z, 0) and g(z'|z, t) from the summary of the whole series.

    Args:
        allowed: (K, K), which jumps the posterior may make; all of them if not given.
        embedded: whether time enters through a Mercer embedding, or as it is.
    """

    encoder: Encoder
    initial: MLP
    embedding: MercerEmbedding | None
    rates: MLP
    allowed: tuple[tuple[bool, ...], ...] = eqx.field(static=True)

    def __init__(
        self,
        encoder: Encoder,
        allowed: Bool[np.ndarray, "state state"],
        *,
        initial_hidden: tuple[int, ...] = (128, 128),
        rates_hidden: tuple[int, ...] = (256, 256, 128),
        dropout: float = 0.2,
        embedded: bool = True,
        key: Array,
    ):
        keys = jax.random.split(key, 3)
        n_states = len(allowed)
        self.encoder = encoder
        self.initial = MLP(
            (encoder.width, *initial_hidden, n_states), activation="relu", start="kaiming", dropout=dropout, key=keys[0]
        )
        self.embedding = MercerEmbedding(key=keys[1]) if embedded else None
        n_time = self.embedding.width if self.embedding else 1
        sizes = (encoder.width + n_time, *rates_hidden, int(np.sum(allowed)))
        self.rates = MLP(sizes, activation="tanh", start="normal", key=keys[2])
        self.allowed = tuple(tuple(map(bool, row)) for row in allowed)

    def initial_law(self, whole: Float[Array, "series hidden"], *, key: Array | None) -> Float[Array, "series state"]:
        return jax.nn.softmax(self.initial(whole, key=key), axis=-1)

    def rates_at(
        self, whole: Float[Array, "series hidden"], times: Float[Array, "#series *time"]
    ) -> Float[Array, "series *time state state"]:
        """Rates at all times in one batched call; per horizon. Times that all series share are embedded once."""
        embedded = times[..., None] if self.embedding is None else self.embedding(times)
        summary = whole.reshape(len(whole), *([1] * (times.ndim - 1)), -1)
        raw = self.rates.after_first(self.rates.first([summary, embedded]))
        flat = jax.nn.softplus(raw)
        # A product with zeros and ones: its derivative is another, where that of an assignment would be a scatter.
        n_states = len(self.allowed)
        place = np.eye(n_states**2)[np.flatnonzero(np.array(self.allowed))]
        return (flat @ jnp.asarray(place, flat.dtype)).reshape(*flat.shape[:-1], n_states, n_states)

    def solve(
        self,
        whole: Float[Array, "series hidden"],
        initial: Float[Array, "series state"],
        times: Float[Array, "#series time"],
        prior_rates: Float[Array, "state state"],
        *,
        horizon: float,
        substeps: int,
        order: int,
        n_quadrature: int,
        solver: Solver,
        tolerance: float,
        fixed: bool,
    ) -> Solved:
        """Marginals at the observations, and the path divergence from 0 to the horizon.

        Args:
            times: not decreasing, from 0 on; padded ones repeat the last. One row, if all series share them.
            n_quadrature: Gauss-Legendre points for the divergence; 0 gathers it along the grid of the observations.
            fixed: the divergence has a derivative by the prior alone; needs quadrature.
        """
        n_states = initial.shape[-1]
        start, end = jnp.zeros_like(times[:, :1]), jnp.full_like(times[:, :1], horizon)
        nodes = jnp.concatenate([start, times, end], axis=1)
        if n_quadrature:
            points, weights = (jnp.asarray(x, times.dtype) for x in quadrature(horizon, n_quadrature))
            nodes = jnp.concatenate([nodes, jnp.tile(points, (len(nodes), 1))], axis=1)
            sorting = jnp.argsort(nodes, axis=1)
            place = jnp.argsort(sorting, axis=1)
            merged = jnp.take_along_axis(nodes, sorting, axis=1)
            solution = self._marginals(whole, initial, merged, substeps, order, solver, tolerance)
            at_nodes = jnp.take_along_axis(solution, place[..., None], axis=1)
            at_points = at_nodes[:, -n_quadrature:]
            at_rates = self.rates_at(whole, points[None])
            if fixed:
                at_points, at_rates = jax.lax.stop_gradient((at_points, at_rates))
            gathered = kl_rate(at_rates, prior_rates)
            path_kl = jnp.einsum("j,sjz,sjz->s", weights, at_points, gathered)
            return Solved(at_nodes[:, 1 : times.shape[1] + 1], path_kl)
        if solver != "linear" or fixed:
            raise ValueError("on the grid, the divergence goes with linear steps and a derivative by everything")
        posterior = self.rates_at(whole, piece_times(nodes, substeps, order))
        column = kl_rate(posterior, prior_rates)[..., None]
        matrices = jnp.concatenate([jnp.asarray(generator_from_rates(posterior)), column], axis=-1)
        matrices = jnp.concatenate([matrices, jnp.zeros_like(matrices[..., :1, :])], axis=-2)
        rows = march_pieces(matrices, jnp.pad(initial, ((0, 0), (0, 1))), nodes, substeps, n_states)
        return Solved(rows[:, 1:-1, :n_states], rows[:, -1, n_states])

    def _marginals(
        self, whole: Array, initial: Array, nodes: Array, substeps: int, order: int, solver: Solver, tolerance: float
    ) -> Float[Array, "series node state"]:
        if solver == "linear":
            posterior = jnp.asarray(generator_from_rates(self.rates_at(whole, piece_times(nodes, substeps, order))))
            return march_pieces(posterior, initial, nodes, substeps, initial.shape[-1])

        def one(whole, initial, nodes):
            def slope(t, law, _):
                return law @ jnp.asarray(generator_from_rates(self.rates_at(whole[None], t[None, None])[0, 0]))

            return diffrax.diffeqsolve(
                diffrax.ODETerm(slope),  # type: ignore[arg-type]
                diffrax.Dopri5(),
                t0=nodes[0],
                t1=nodes[-1],
                dt0=None,
                y0=initial,
                saveat=diffrax.SaveAt(ts=nodes),
                stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
                max_steps=16_384,
            ).ys

        return jax.vmap(one)(whole, initial, jnp.broadcast_to(nodes, (len(whole), nodes.shape[1])))  # type: ignore[return-value]
