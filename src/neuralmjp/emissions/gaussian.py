"""Gaussian emissions: independent components, one noise for all states, or a full covariance per state."""

from abc import abstractmethod

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .emission import Emission, Natural, Observations, Params, everything, per_state, starting_centres

LOG_2PI = float(np.log(2 * np.pi))
# A state that explains one point alone would have no spread: none gets narrower than this, relative to the data.
NARROWEST = 1e-4


class Independent(Emission):
    """x ~ N(mean_z, diag(sd^2)), whether every state has an sd of its own or not."""

    @abstractmethod
    def log_sd(self, params: Params) -> Float[Array, "*state feature"]:
        """Of each state, or of all."""

    @abstractmethod
    def with_moments(
        self,
        params: Params,
        mean: Float[Array, "state feature"],
        variance: Float[Array, "state feature"],
        held: Float[Array, "state *feature"],
    ) -> Params:
        """Parameters with these means and variances, of `held` observations each; what explains nothing stays."""

    @property
    def real_valued(self) -> bool:
        return True

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        x, observed = per_state(seen)
        log_sd = self.log_sd(params)
        z = (x - params["mean"]) * jnp.exp(-log_sd)
        return ((-0.5 * z**2 - log_sd - 0.5 * LOG_2PI) * observed).sum(-1)

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        return self.with_moments(params, *weighted_moments(seen, weights), weights_held(seen, weights))

    def learned(self, params: Params) -> Params:
        return everything(params)

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        return np.asarray(params["mean"])[:, 0]


class Gaussian(Independent):
    """x ~ N(mean_z, diag(sd_z^2))."""

    @property
    def name(self) -> str:
        return "gaussian"

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        centres = starting_centres(values, n_states, rng)
        spread = np.nanstd(values, axis=0) / n_states if values.shape[1] == 1 else np.nanstd(values, axis=0) / 2
        log_sd = np.log(np.maximum(spread, np.finfo(float).tiny))
        return {"mean": centres, "log_sd": np.tile(log_sd, (n_states, 1))}

    def log_sd(self, params: Params) -> Float[Array, "state feature"]:
        return jnp.asarray(params["log_sd"])

    def with_moments(
        self,
        params: Params,
        mean: Float[Array, "state feature"],
        variance: Float[Array, "state feature"],
        held: Float[Array, "state *feature"],
    ) -> Params:
        """Parameters with these means and variances; a state that explains nothing stays where it was."""
        return with_moments(params, mean, variance)

    def natural(self, params: Params) -> dict[str, Natural]:
        return {"mean": Natural(params["mean"], "real"), "sd": Natural(jnp.exp(params["log_sd"]), "positive")}

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        return {"mean": shift + scale * params["mean"], "log_sd": params["log_sd"] + np.log(scale)}

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        mean, sd = np.asarray(params["mean"])[states], np.exp(np.asarray(params["log_sd"]))[states]
        return rng.normal(mean, sd)


class SharedGaussian(Independent):
    """x ~ N(mean_z, diag(sd^2)): one noise for all states, as an instrument adds it."""

    @property
    def name(self) -> str:
        return "gaussian-shared"

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        plain = Gaussian().start(values, n_states, rng)
        return {"mean": plain["mean"], "shared_log_sd": plain["log_sd"].mean(0)}

    def log_sd(self, params: Params) -> Float[Array, "feature"]:
        return jnp.asarray(params["shared_log_sd"])

    def with_moments(
        self,
        params: Params,
        mean: Float[Array, "state feature"],
        variance: Float[Array, "state feature"],
        held: Float[Array, "state *feature"],
    ) -> Params:
        """Parameters with these means, and the variances pooled by how much each state explains."""
        pooled = jnp.where(held > 0, held * variance, 0.0).sum(0) / held.sum(0)
        log_sd = 0.5 * jnp.log(jnp.maximum(pooled, NARROWEST**2))
        return {
            **params,
            "mean": jnp.where(held > 0, mean, params["mean"]),
            "shared_log_sd": jnp.where(jnp.isfinite(pooled), log_sd, params["shared_log_sd"]),
        }

    def natural(self, params: Params) -> dict[str, Natural]:
        sd = Natural(jnp.exp(params["shared_log_sd"]), "positive")
        return {"mean": Natural(params["mean"], "real"), "shared_sd": sd}

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        return {"mean": shift + scale * params["mean"], "shared_log_sd": params["shared_log_sd"] + np.log(scale)}

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        return rng.normal(np.asarray(params["mean"])[states], np.exp(np.asarray(params["shared_log_sd"])))


class FullGaussian(Emission):
    """x ~ N(mean_z, covariance_z), with the covariance as L L' for a lower triangle L of positive diagonal."""

    @property
    def name(self) -> str:
        return "gaussian-full"

    @property
    def real_valued(self) -> bool:
        return True

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        plain = Gaussian().start(values, n_states, rng)
        n = values.shape[1]
        return {"mean": plain["mean"], "log_diagonal": plain["log_sd"], "lower": np.zeros((n_states, n * (n - 1) // 2))}

    def triangles(self, params: Params) -> Float[Array, "state feature feature"]:
        """The lower triangles L."""
        diagonal = jnp.exp(params["log_diagonal"])
        n = diagonal.shape[-1]
        rows, columns = np.tril_indices(n, -1)
        lower = jnp.zeros((*diagonal.shape, n)).at[:, rows, columns].set(params["lower"])
        return lower + diagonal[..., None] * jnp.eye(n)

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        triangles = self.triangles(params)
        deviation = seen.values[..., None, :] - params["mean"]
        n = deviation.shape[-1]
        if seen.mask is None:
            whitened = jnp.einsum("kij,...kj->...ki", jnp.linalg.inv(triangles), deviation)
            return -0.5 * (whitened**2).sum(-1) - params["log_diagonal"].sum(-1) - 0.5 * n * LOG_2PI
        # Of the covariance only the observed block counts: a missing component becomes a unit, with no deviation.
        observed = seen.mask[..., None, :] * 1.0
        covariance = jnp.einsum("kij,klj->kil", triangles, triangles)
        both = observed[..., :, None] * observed[..., None, :]
        block = covariance * both + jnp.eye(n) * (1 - observed)[..., None]
        root = jnp.linalg.cholesky(block)
        whitened = jax.scipy.linalg.solve_triangular(root, (deviation * observed)[..., None], lower=True)[..., 0]
        log_det = jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
        return -0.5 * (whitened**2).sum(-1) - log_det - 0.5 * observed.sum(-1) * LOG_2PI

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        if seen.mask is not None:
            return None
        flat, w = seen.values.reshape(-1, seen.values.shape[-1]), weights.reshape(-1, weights.shape[-1])
        total = w.sum(0)
        mean = jnp.einsum("nk,nd->kd", w, flat) / total[:, None]
        second = jnp.einsum("nk,nd,ne->kde", w, flat, flat) / total[:, None, None]
        covariance = second - mean[:, :, None] * mean[:, None, :] + NARROWEST**2 * jnp.eye(flat.shape[-1])
        root = jnp.linalg.cholesky(covariance)
        rows, columns = np.tril_indices(flat.shape[-1], -1)
        new = {
            "mean": mean,
            "log_diagonal": jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)),
            "lower": root[:, rows, columns],
        }
        kept = (total > 0)[:, None] & jnp.isfinite(root).all((-2, -1))[:, None]
        return {name: jnp.where(kept, new[name], params[name]) for name in new}

    def learned(self, params: Params) -> Params:
        return everything(params)

    def natural(self, params: Params) -> dict[str, Natural]:
        triangles = self.triangles(params)
        covariance = jnp.einsum("kij,klj->kil", triangles, triangles)
        return {"mean": Natural(params["mean"], "real"), "covariance": Natural(covariance, "real")}

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        rows, _ = np.tril_indices(len(scale), -1)
        return {
            "mean": shift + scale * params["mean"],
            "log_diagonal": params["log_diagonal"] + np.log(scale),
            "lower": params["lower"] * scale[rows],
        }

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        triangles = np.asarray(self.triangles(params))[states]
        return np.asarray(params["mean"])[states] + np.einsum(
            "tij,tj->ti", triangles, rng.normal(size=triangles.shape[:2])
        )

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        return np.asarray(params["mean"])[:, 0]


def with_moments(
    params: Params, mean: Float[Array, "state feature"], variance: Float[Array, "state feature"]
) -> Params:
    """Parameters with these means and variances; a state that explains nothing stays where it was."""
    kept = jnp.isfinite(mean)
    log_sd = 0.5 * jnp.log(jnp.maximum(variance, NARROWEST**2))
    return {
        **params,
        "mean": jnp.where(kept, mean, params["mean"]),
        "log_sd": jnp.where(kept, log_sd, params["log_sd"]),
    }


def weights_held(
    seen: Observations, weights: Float[Array, "*lead state"]
) -> Float[Array, "state feature"] | Float[Array, "state 1"]:
    """How much of what was seen of each component each state explains."""
    w = weights.reshape(-1, weights.shape[-1])
    return w.sum(0)[:, None] if seen.mask is None else w.T @ (seen.mask.reshape(-1, seen.mask.shape[-1]) * 1.0)


def weighted_moments(
    seen: Observations, weights: Float[Array, "*lead state"]
) -> tuple[Float[Array, "state feature"], Float[Array, "state feature"]]:
    """Mean and variance of the observed components under each state's weights."""
    flat, w = seen.values.reshape(-1, seen.values.shape[-1]), weights.reshape(-1, weights.shape[-1])
    total = weights_held(seen, weights)
    mean = (w.T @ flat) / total  # missing values are 0 and count in no total
    second = (w.T @ flat**2) / total
    return mean, second - mean**2
