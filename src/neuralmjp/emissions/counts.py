"""Emissions for counts: Poisson, and the wider negative binomial."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..errors import InputError
from .emission import Emission, Natural, Observations, Params, everything, per_state, starting_centres
from .gaussian import weighted_moments

SMALLEST_MEAN = 1e-8


class Poisson(Emission):
    """x ~ Poisson(mean_z), components independent."""

    @property
    def name(self) -> str:
        return "poisson"

    @property
    def real_valued(self) -> bool:
        return False

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        check_counts(values)
        return {"log_mean": np.log(np.maximum(starting_centres(values, n_states, rng), 0.1))}

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        x, observed = per_state(seen)
        log_density = x * params["log_mean"] - jnp.exp(params["log_mean"]) - jax.scipy.special.gammaln(x + 1)
        return (log_density * observed).sum(-1)

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        mean, _ = weighted_moments(seen, weights)
        log_mean = jnp.log(jnp.maximum(mean, SMALLEST_MEAN))
        return {"log_mean": jnp.where(jnp.isfinite(mean), log_mean, params["log_mean"])}

    def learned(self, params: Params) -> Params:
        return everything(params)

    def natural(self, params: Params) -> dict[str, Natural]:
        return {"mean": Natural(jnp.exp(params["log_mean"]), "positive")}

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        return params

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        return rng.poisson(np.exp(np.asarray(params["log_mean"]))[states]).astype(float)

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        return np.asarray(params["log_mean"])[:, 0]


class NegativeBinomial(Emission):
    """Counts with mean_z and variance mean + mean^2 / size_z: a Poisson whose mean itself varies."""

    @property
    def name(self) -> str:
        return "negative-binomial"

    @property
    def real_valued(self) -> bool:
        return False

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        plain = Poisson().start(values, n_states, rng)
        return {**plain, "log_size": np.full_like(plain["log_mean"], np.log(5.0))}

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        x, observed = per_state(seen)
        size, log_mean = jnp.exp(params["log_size"]), params["log_mean"]
        log_total = jnp.logaddexp(params["log_size"], log_mean)
        gammaln = jax.scipy.special.gammaln
        log_density = gammaln(x + size) - gammaln(size) - gammaln(x + 1)
        log_density = log_density + size * (params["log_size"] - log_total) + x * (log_mean - log_total)
        return (log_density * observed).sum(-1)

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        """Moments: not the maximum, but close enough to start a gradient from."""
        mean, variance = weighted_moments(seen, weights)
        size = mean**2 / jnp.maximum(variance - mean, 1e-3 * mean)
        new = {
            "log_mean": jnp.log(jnp.maximum(mean, SMALLEST_MEAN)),
            "log_size": jnp.log(jnp.clip(size, 1e-2, 1e4)),
        }
        return {name: jnp.where(jnp.isfinite(mean), new[name], params[name]) for name in new}

    def learned(self, params: Params) -> Params:
        return everything(params)

    def natural(self, params: Params) -> dict[str, Natural]:
        return {
            "mean": Natural(jnp.exp(params["log_mean"]), "positive"),
            "size": Natural(jnp.exp(params["log_size"]), "positive"),
        }

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        return params

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        size, mean = (np.exp(np.asarray(params[name]))[states] for name in ("log_size", "log_mean"))
        return rng.negative_binomial(size, size / (size + mean)).astype(float)

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        return np.asarray(params["log_mean"])[:, 0]


def check_counts(values: Float[np.ndarray, "row feature"]) -> None:
    """One line for data that are not counts."""
    wrong = (values < 0) | (values != np.round(values))
    wrong &= ~np.isnan(values)
    if wrong.any():
        raise InputError(f"counts must be whole numbers from 0, but the data hold {values[wrong][0]:g}")
