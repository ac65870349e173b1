"""A level that takes time to follow the hidden state, seen through noise: a switching diffusion."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .emission import Emission, Natural, Observations, Params, everything, per_state
from .gaussian import LOG_2PI, Gaussian

# Of the spread that a plain Gaussian sees half is taken for noise at first, and the level follows within few gaps.
HALF = -0.5 * float(np.log(2.0))
FOLLOWS_WITHIN = 2.0


class Diffusion(Emission):
    """dy = k (mean_z - y) dt + noise that spreads y by sd around its mean; seen as x = y + e, with e of sd `noise`.

    Relaxation k, sd and noise are shared by all states. The level y is hidden, too, so the likelihood is no longer that
    of a hidden chain; see `exact.switching`. `log_prob` is the density given the observation before alone.
    """

    @property
    def name(self) -> str:
        return "diffusion"

    @property
    def real_valued(self) -> bool:
        return True

    @property
    def hidden_level(self) -> bool:
        return True

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        return self.around(Gaussian().start(values, n_states, rng), 1.0)

    def around(self, plain: Params, gap: float) -> Params:
        """From the parameters of a plain Gaussian, and a typical gap."""
        spread = np.asarray(plain["log_sd"]).mean(0) + HALF
        return {
            "mean": np.asarray(plain["mean"]),
            "shared_log_sd": spread,
            "shared_log_noise": spread,
            "shared_log_relaxation": np.full_like(spread, -np.log(FOLLOWS_WITHIN * gap)),
        }

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        x, observed = per_state(seen)
        level, noise = jnp.exp(2 * params["shared_log_sd"]), jnp.exp(2 * params["shared_log_noise"])
        kept = jnp.exp(-jnp.exp(params["shared_log_relaxation"]) * seen.gap[..., None, None]) * level / (level + noise)
        kept = jnp.where(seen.has_previous[..., None, :], kept, 0.0)
        variance = (level + noise) * (1 - kept**2)
        away = x - params["mean"] - kept * (seen.previous[..., None, :] - params["mean"])
        return ((-0.5 * away**2 / variance - 0.5 * jnp.log(variance) - 0.5 * LOG_2PI) * observed).sum(-1)

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        return None

    def learned(self, params: Params) -> Params:
        return everything(params)

    def natural(self, params: Params) -> dict[str, Natural]:
        logs = {name: params[f"shared_log_{name}"] for name in ("sd", "noise", "relaxation")}
        shared = {f"shared_{name}": Natural(jnp.exp(value), "positive") for name, value in logs.items()}
        return {"mean": Natural(params["mean"], "real"), **shared}

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        wider = {name: params[name] + np.log(scale) for name in ("shared_log_sd", "shared_log_noise")}
        return {**params, "mean": shift + scale * params["mean"], **wider}

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
        """Observations that follow a value; the level follows the state at the end of each gap."""
        mean = np.asarray(params["mean"])[states]
        sd, noise, relaxation = (np.exp(np.asarray(params[f"shared_log_{n}"])) for n in ("sd", "noise", "relaxation"))
        kept = np.exp(-relaxation * gaps[:, None])
        # Of the last value, what its noise leaves is believed.
        belief = sd**2 / (sd**2 + noise**2)
        level = mean[:, 0] + np.where(np.isnan(before), 0.0, belief * (before - mean[:, 0]))
        known = np.where(np.isnan(before), 0.0, 1.0)
        level = level + rng.normal(size=level.shape) * np.where(known > 0, sd * np.sqrt(1 - belief), sd)
        values = np.empty_like(mean)
        for t in range(len(gaps)):
            spread = sd * np.sqrt(1 - kept[t] ** 2) * rng.normal(size=level.shape)
            level = mean[:, t] + (level - mean[:, t]) * kept[t] + spread
            values[:, t] = level
        return values + noise * rng.normal(size=values.shape)

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        return np.asarray(params["mean"])[:, 0]
