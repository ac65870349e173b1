"""The last steps of a mean field: all series at once, to the top of the bound, and how sharp that top is.

Given the posterior, the bound's slope by the few parameters of the model costs little more than the bound itself. Where
training by batches has come near the top, a quasi-Newton method on all series ends there without its noise.
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..emissions.emission import Params
from ..exact.climb import climb_hill
from ..objective import Terms
from ..priors.generator import ExplicitParameters
from .coupled_blocks import CountBlock
from .coupled_networks import CoupledSetup
from .networks import Networks

FARTHEST = 1.0  # that a logarithm may move: training has come near already
ENOUGH = 20  # series per parameter
# In nats per standard error. No less: sweeps that have not settled make slopes that are a little off.
GOAL = 0.1


class Polished(NamedTuple):
    """Networks with the model's parameters at the top of the bound."""

    networks: Networks
    terms: Terms  # of every series, there
    information: Float[np.ndarray, "parameter parameter"]  # sum of outer products of the slopes of each series
    at_top: bool


def polished(setup: CoupledSetup, networks: Networks, block: CountBlock, batch: int) -> Polished:
    """Uphill from where training ended, with the posterior's networks as they are."""
    theta = np.asarray(networks.prior.draw(None), np.float64)
    noise = {name: np.asarray(value, np.float64) for name, value in networks.emission.items()}
    free = {name: np.asarray(value) for name, value in setup.readings.learned(noise).items()}

    def split(x: Float[np.ndarray, "parameter"]) -> tuple[np.ndarray, Params]:
        found, at = {}, len(theta)
        for name, value in noise.items():
            n = int(free[name].sum())
            found[name] = value.copy()
            found[name][free[name]] = x[at : at + n]
            at += n
        return x[: len(theta)], found

    def joined(by_theta: np.ndarray, by_noise: Params) -> np.ndarray:
        return np.concatenate([by_theta, *(by_noise[name][..., free[name]] for name in noise)], axis=-1)

    def each(x: np.ndarray) -> tuple[Terms, Float[np.ndarray, "series parameter"]]:
        terms, slopes = _slopes(setup, networks, *split(x), block, batch)
        return terms, joined(*jax.tree.map(np.asarray, slopes))

    def uphill(x: np.ndarray) -> tuple[float, np.ndarray]:
        terms, slopes = each(x)
        return float(terms.elbo.sum()), slopes.sum(0)

    start = joined(theta, noise)
    curvature = None
    if block.n_series >= ENOUGH * len(start):  # then the slopes of the series tell it, without differences
        _, slopes = each(start)
        curvature = slopes.T @ slopes
    best, steepest = climb_hill(uphill, start, start[:, None] + np.array([-FARTHEST, FARTHEST]), curvature, GOAL)
    there, at = split(best)
    terms, slopes = each(best)
    made = ExplicitParameters(jnp.asarray(there))
    emission = {name: jnp.asarray(value) for name, value in at.items()}
    networks = eqx.tree_at(lambda n: (n.prior, n.emission), networks, (made, emission))
    return Polished(networks, terms, slopes.T @ slopes, steepest < GOAL)


@partial(jax.jit, static_argnames=("setup", "batch"))
def _slopes(
    setup: CoupledSetup, networks: Networks, theta: Array, noise: dict[str, Array], block: CountBlock, batch: int
) -> tuple[Terms, tuple[Array, dict[str, Array]]]:
    """The terms of the bound of every series, and its slope by the model's parameters."""

    def bound(shift, rows):
        """With a shift of the parameters for each series of its own: their slopes are then those of each."""
        taken = block.take(rows)

        def one(shift, row):
            at = (ExplicitParameters(theta + shift[0]), jax.tree.map(jnp.add, noise, shift[1]))
            alone = jax.tree.map(lambda x: x if x.ndim == 0 else x[None], row)
            there = eqx.tree_at(lambda n: (n.prior, n.emission), networks, at)
            return jax.tree.map(lambda x: x[0], setup.evaluate(there, alone, key=None).terms)

        axes = jax.tree.map(lambda x: None if x.ndim == 0 else 0, taken)
        return jax.vmap(one, in_axes=(0, axes))(shift, taken)

    def some(rows):
        zero = jax.tree.map(lambda x: jnp.zeros((len(rows), *x.shape)), (theta, noise))

        def total(shift):
            terms = bound(shift, rows)
            return terms.elbo.sum(), terms

        slopes, terms = jax.grad(total, has_aux=True)(zero)
        return terms, slopes

    n = block.n_series
    rows = jnp.minimum(jnp.arange(-(-n // batch) * batch), n - 1).reshape(-1, batch)
    found = jax.lax.map(some, rows)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:n], found)
