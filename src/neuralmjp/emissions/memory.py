"""Emissions with memory: each state has an Ornstein-Uhlenbeck process of its own."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .emission import Emission, Natural, Observations, Params, everything, per_state
from .gaussian import LOG_2PI, Gaussian


class OrnsteinUhlenbeck(Emission):
    """Given the previous value y, the gap t and the state: N(mean + (y - mean) e^(-k t), sd^2 (1 - e^(-2 k t))).

    On a regular grid this is an AR(1) process. The first value of a series, and one whose predecessor is missing,
    follow the stationary law N(mean, sd^2). The state is taken as constant over the gap.
    """

    @property
    def name(self) -> str:
        return "ornstein-uhlenbeck"

    @property
    def real_valued(self) -> bool:
        return True

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        plain = Gaussian().start(values, n_states, rng)
        return {**plain, "log_relaxation": np.zeros_like(plain["mean"])}

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        x, observed = per_state(seen)
        before = seen.previous[..., None, :]
        relaxed = jnp.exp(params["log_relaxation"]) * seen.gap[..., None, None]
        known = seen.has_previous[..., None, :]
        kept = jnp.where(known, jnp.exp(-relaxed), 0.0)
        shrink = jnp.where(known, -jnp.expm1(-2 * jnp.maximum(relaxed, 1e-12)), 1.0)
        z = (x - params["mean"] - (before - params["mean"]) * kept) * jnp.exp(-params["log_sd"])
        return ((-0.5 * z**2 / shrink - params["log_sd"] - 0.5 * jnp.log(shrink) - 0.5 * LOG_2PI) * observed).sum(-1)

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        return None

    def learned(self, params: Params) -> Params:
        return everything(params)

    def natural(self, params: Params) -> dict[str, Natural]:
        return {
            "mean": Natural(params["mean"], "real"),
            "sd": Natural(jnp.exp(params["log_sd"]), "positive"),
            "relaxation": Natural(jnp.exp(params["log_relaxation"]), "positive"),
        }

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        return {**params, "mean": shift + scale * params["mean"], "log_sd": params["log_sd"] + np.log(scale)}

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        unknown = np.full(np.shape(params["mean"])[1], np.nan)
        return self.continued(params, unknown, states[None], gaps, rng)[0]

    def continued(
        self,
        params: Params,
        before: Float[np.ndarray, "feature"],
        states: Int[np.ndarray, "sample time"],
        gaps: Float[np.ndarray, "time"],
        rng: np.random.Generator,
    ) -> Float[np.ndarray, "sample time feature"]:
        """Observations that follow a value; where that is missing (NaN) the first comes from the stationary law."""
        mean, sd, relaxation = (np.asarray(n.value)[states] for n in self.natural(params).values())
        kept = np.exp(-relaxation * gaps[:, None])
        kept[:, 0] = np.where(np.isnan(before), 0.0, kept[:, 0])
        noise = sd * np.sqrt(1 - kept**2) * rng.normal(size=mean.shape)
        values = np.empty_like(mean)
        value = np.where(np.isnan(before), mean[:, 0], before)
        for t in range(len(gaps)):
            value = values[:, t] = mean[:, t] + (value - mean[:, t]) * kept[:, t] + noise[:, t]
        return values

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        return np.asarray(params["mean"])[:, 0]
