"""Signals whose noise is known for every observation: each value comes with the standard deviation of its error."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..errors import InputError
from .emission import Emission, Natural, Observations, Params
from .gaussian import LOG_2PI, Gaussian, with_moments


class Measured(Emission):
    """x ~ N(mean_z, sd_z^2 + e^2), with e known: of 2 D columns the first D are signals, the others their errors e.

    `sd` is what states spread beyond the errors.
    """

    @property
    def name(self) -> str:
        return "measured"

    @property
    def real_valued(self) -> bool:
        return True

    def signals(self, n_columns: int) -> Bool[np.ndarray, "column"]:
        if n_columns % 2:
            raise InputError(f"with known errors every signal has a column of them: {n_columns} columns do not pair up")
        return np.arange(n_columns) < n_columns // 2

    def counted(self, seen: Bool[np.ndarray, "row column"]) -> Bool[np.ndarray, "row column"]:
        """Signals that come with their error."""
        n = seen.shape[1] // 2
        both = seen[:, :n] & seen[:, n:]
        return np.concatenate([both, np.zeros_like(both)], axis=1)

    def scaled(
        self, shift: Float[np.ndarray, "column"], scale: Float[np.ndarray, "column"]
    ) -> tuple[Float[np.ndarray, "column"], Float[np.ndarray, "column"]]:
        """Errors are scaled with their signals, and shifted by nothing."""
        n = len(shift) // 2
        return np.append(shift[:n], np.zeros(n)), np.tile(scale[:n], 2)

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        n = values.shape[1] // 2
        if (values[:, n:] < 0).any():
            raise InputError("the errors of the observations hold negative numbers: they are standard deviations")
        return {**Gaussian().start(values[:, :n], n_states, rng), "shared_error": np.nanmedian(values[:, n:], axis=0)}

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        x, error, observed = _parts(seen)
        variance = jnp.exp(2 * params["log_sd"]) + error**2
        return ((-0.5 * (x - params["mean"]) ** 2 / variance - 0.5 * jnp.log(variance) - 0.5 * LOG_2PI) * observed).sum(
            -1
        )

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        """Moments of what would have been seen without the errors, given what was."""
        x, error, observed = _parts(seen)
        wide = jnp.exp(2 * params["log_sd"])
        believed = wide / (wide + error**2)
        clean, left = params["mean"] + believed * (x - params["mean"]), wide * (1 - believed)
        lead = tuple(range(seen.values.ndim - 1))
        weight = weights[..., None] * observed
        total = weight.sum(lead)
        mean = (weight * clean).sum(lead) / total
        variance = (weight * (left + (clean - mean) ** 2)).sum(lead) / total
        return with_moments(params, mean, variance)

    def learned(self, params: Params) -> Params:
        return {name: np.full(np.shape(value), name != "shared_error") for name, value in params.items()}

    def natural(self, params: Params) -> dict[str, Natural]:
        return Gaussian().natural(params)

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        n = len(shift) // 2
        return {
            "mean": shift[:n] + scale[:n] * params["mean"],
            "log_sd": params["log_sd"] + np.log(scale[:n]),
            "shared_error": params["shared_error"] * scale[:n],
        }

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        """With the median error: nobody knows those to come."""
        error = np.broadcast_to(np.asarray(params["shared_error"]), (len(states), len(params["shared_error"])))
        clean = Gaussian().sample(params, states, gaps, rng)
        return np.concatenate([clean + rng.normal(size=clean.shape) * error, error], axis=1)

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        return np.asarray(params["mean"])[:, 0]


def _parts(seen: Observations) -> tuple[Array, Array, Array | float]:
    """Signals, their errors, and which count, with an axis for states; a signal without its error is missing."""
    n = seen.values.shape[-1] // 2
    x, error = seen.values[..., None, :n], seen.values[..., None, n:]
    if seen.mask is None:
        return x, error, 1.0
    return x, error, (seen.mask[..., :n] & seen.mask[..., n:])[..., None, :]
