"""Emissions by a network from the state to the parameters, as in the paper; and densities that users bring."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..errors import InputError
from .emission import Emission, Natural, Observations, Params, everything
from .gaussian import FullGaussian, Gaussian


class NeuralGaussian(Emission):
    """Gaussian whose mean and log standard deviation are outputs of an MLP of the one-hot state.

    Args:
        hidden: widths of the hidden layers; the paper's are 128, 128, with ReLU.
    """

    hidden: tuple[int, ...] = eqx.field(static=True, default=(128, 128))

    @property
    def name(self) -> str:
        return "neural"

    @property
    def form(self) -> Emission:
        """What the network gives the parameters of."""
        return Gaussian()

    def outputs(self, n_features: int) -> dict[str, int]:
        """Parameters of a state, and how many numbers each has."""
        return {"mean": n_features, "log_sd": n_features}

    @property
    def real_valued(self) -> bool:
        return True

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        return self.around(self.form.start(values, n_states, rng), rng)

    def around(self, plain: Params, rng: np.random.Generator | None) -> Params:
        """Random hidden layers, and a last layer that reproduces the given Gaussian parameters."""
        draw = rng or np.random.default_rng(0)
        n_states = len(plain["mean"])
        params: Params = {"first": draw.normal(size=(n_states, self.hidden[0]))}
        layer = np.maximum(params["first"], 0.0)
        for k, (fan_in, fan_out) in enumerate(zip(self.hidden[:-1], self.hidden[1:], strict=True)):
            weight = draw.normal(size=(fan_in, fan_out)) * np.sqrt(2 / fan_in)
            params |= {f"shared_weight_{k}": weight, f"shared_bias_{k}": np.zeros(fan_out)}
            layer = np.maximum(layer @ weight, 0.0)
        wanted = np.concatenate([plain[name] for name in self.outputs(plain["mean"].shape[-1])], axis=-1)
        bias = wanted.mean(0)
        last, *_ = np.linalg.lstsq(layer, wanted - bias, rcond=None)
        return {**params, "shared_last": last, "shared_last_bias": bias}

    def plain(self, params: Params, states: Float[Array, "row state"] | None = None) -> Params:
        """The Gaussian parameters that the network stands for: of each state, or of rows that lie between states."""
        layer = jax.nn.relu(params["first"] if states is None else states @ params["first"])
        for k in range(len(self.hidden) - 1):
            layer = jax.nn.relu(layer @ params[f"shared_weight_{k}"] + params[f"shared_bias_{k}"])
        out = layer @ params["shared_last"] + params["shared_last_bias"]
        sizes = self.outputs(self.n_features(out.shape[-1]))
        parts = jnp.split(out, np.cumsum(list(sizes.values()))[:-1], axis=-1)
        return dict(zip(sizes, parts, strict=True))

    def n_features(self, width: int) -> int:
        """Of the values, given that of the last layer."""
        return next(n for n in range(1, width + 1) if sum(self.outputs(n).values()) == width)

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        return jnp.asarray(self.form.log_prob(self.plain(params), seen))

    def relaxed(
        self, params: Params, seen: Observations, sampled: Float[Array, "*lead state"]
    ) -> Float[Array, "*lead"]:
        """Log density of each observation in a relaxed sample of its state, which the network reads as it is."""
        lead = sampled.shape[:-1]
        rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[len(lead) :]), seen)
        each = self.plain(params, sampled.reshape(-1, sampled.shape[-1]))

        def one(own: Params, row: Observations) -> Array:
            return jnp.asarray(self.form.log_prob({name: value[None] for name, value in own.items()}, row))[0]

        return jax.vmap(one)(each, rows).reshape(lead)

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        return None

    def learned(self, params: Params) -> Params:
        return everything(params)

    def natural(self, params: Params) -> dict[str, Natural]:
        return self.form.natural(self.plain(params))

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        factor, more = (np.concatenate(parts) for parts in self.in_units(shift, scale))
        bias = params["shared_last_bias"] * factor + more
        return {**params, "shared_last": params["shared_last"] * factor, "shared_last_bias": bias}

    def in_units(self, shift: np.ndarray, scale: np.ndarray) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """What the outputs are multiplied by, and what is added."""
        return (scale, np.ones_like(scale)), (shift, np.log(scale))

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        return self.form.sample(self.plain(params), states, gaps, rng)

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        return np.asarray(self.plain(params)["mean"])[:, 0]


class FullNeuralGaussian(NeuralGaussian):
    """The same with a covariance for each state, whose triangle is an output, too."""

    @property
    def name(self) -> str:
        return "neural-full"

    @property
    def form(self) -> Emission:
        return FullGaussian()

    def outputs(self, n_features: int) -> dict[str, int]:
        return {"mean": n_features, "log_diagonal": n_features, "lower": n_features * (n_features - 1) // 2}

    def in_units(self, shift: np.ndarray, scale: np.ndarray) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        rows, _ = np.tril_indices(len(scale), -1)
        factor, more = super().in_units(shift, scale)
        return (*factor, scale[rows]), (*more, np.zeros(len(rows)))


class CustomEmission(Emission):
    """A density of your own.

    Args:
        log_density: (params, values) -> (K,), the log density of one observation (D,) in every state; traceable by JAX.
        initial: params to start from; each array has the states as its first axis.

    >>> laplace = CustomEmission(lambda p, x: -jnp.abs(x[0] - p["centre"]) - jnp.log(2.0), {"centre": [-1.0, 1.0]})
    >>> laplace.start(np.zeros((3, 1)), 2, None)["centre"]
    array([-1.,  1.])
    """

    log_density: Callable[[Params, Array], Array] = eqx.field(static=True)
    initial: tuple[tuple[str, tuple], ...] = eqx.field(static=True)

    def __init__(self, log_density: Callable[[Params, Array], Array], initial: dict):
        self.log_density = log_density
        self.initial = tuple((name, _frozen(np.asarray(value, float).tolist())) for name, value in initial.items())

    @property
    def name(self) -> str:
        return "custom"

    @property
    def real_valued(self) -> bool:
        return False  # nobody knows how to rescale somebody else's density

    @property
    def named_states(self) -> bool:
        """The density may treat each state in its own way, so that their order has a meaning."""
        return True

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        params = {name: np.array(value) for name, value in self.initial}
        for name, value in params.items():
            if value.ndim == 0 or len(value) != n_states:
                raise InputError(
                    f"the parameter {name!r} of a custom emission must begin with an axis of {n_states} states"
                )
        if rng is not None:
            params = {
                name: value + 0.1 * rng.normal(size=value.shape) * (1 + np.abs(value)) for name, value in params.items()
            }
        return params

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        rows = seen.values.reshape(-1, seen.values.shape[-1])
        # Only the whole observation can be skipped: what one component means is known to the density alone.
        whole = jnp.ones(len(rows), bool) if seen.mask is None else seen.mask.reshape(rows.shape).all(-1)
        # In place of a missing one the density is shown a real one: at zero it may have no derivative.
        shown = jnp.where(whole[:, None], rows, rows[whole.argmax()])
        logs = jax.vmap(lambda x: self.log_density(params, x))(shown)
        return jnp.where(whole[:, None], logs, 0.0).reshape(*seen.values.shape[:-1], -1)

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        return None

    def learned(self, params: Params) -> Params:
        return everything(params)

    def natural(self, params: Params) -> dict[str, Natural]:
        return {name: Natural(jnp.asarray(value), "real") for name, value in params.items()}

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        return params

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        raise InputError("a custom emission has a density but no way to draw from it: simulation is not available")

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        return None


def _frozen(value):
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
