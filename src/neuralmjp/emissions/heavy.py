"""Emissions with wider shapes than a Gaussian: Student-t, and a mixture of Gaussians per state."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..errors import InputError
from .emission import Emission, Natural, Observations, Params, everything, per_state
from .gaussian import LOG_2PI, NARROWEST, Gaussian, weighted_moments

SERIES_FROM = 1e3  # degrees of freedom from which 1 / (24 df^3) is nothing


class StudentT(Emission):
    """x = location_z + scale_z t, with t of df_z degrees of freedom; components independent. Bears outliers."""

    @property
    def name(self) -> str:
        return "student-t"

    @property
    def real_valued(self) -> bool:
        return True

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        plain = Gaussian().start(values, n_states, rng)
        return {
            "location": plain["mean"],
            "log_scale": plain["log_sd"],
            "log_df": np.full_like(plain["mean"], np.log(8.0)),
        }

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        x, observed = per_state(seen)
        df = jnp.exp(params["log_df"])
        z = (x - params["location"]) * jnp.exp(-params["log_scale"])
        gammaln = jax.scipy.special.gammaln
        # For many degrees of freedom the two gamma functions cancel: their series does not.
        few = jnp.minimum(df, SERIES_FROM)
        ratio = jnp.where(
            df < SERIES_FROM, gammaln((few + 1) / 2) - gammaln(few / 2), 0.5 * jnp.log(df / 2) - 1 / (4 * df)
        )
        constant = ratio - 0.5 * jnp.log(jnp.pi * df) - params["log_scale"]
        return ((constant - (df + 1) / 2 * jnp.log1p(z**2 / df)) * observed).sum(-1)

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        """Location and scale by the latent precisions of a t; the degrees of freedom are left to the gradient."""
        x, observed = per_state(seen)
        df = jnp.exp(params["log_df"])
        z = (x - params["location"]) * jnp.exp(-params["log_scale"])
        lead = tuple(range(seen.values.ndim - 1))
        plain = weights[..., None] * observed
        precise = plain * (df + 1) / (df + z**2)
        location = (precise * x).sum(lead) / precise.sum(lead)
        square = (precise * (x - location) ** 2).sum(lead) / plain.sum(lead)
        kept = jnp.isfinite(location)
        log_scale = 0.5 * jnp.log(jnp.maximum(square, NARROWEST**2))
        return {
            "location": jnp.where(kept, location, params["location"]),
            "log_scale": jnp.where(kept, log_scale, params["log_scale"]),
            "log_df": params["log_df"],
        }

    def learned(self, params: Params) -> Params:
        return everything(params)

    def natural(self, params: Params) -> dict[str, Natural]:
        return {
            "location": Natural(params["location"], "real"),
            "scale": Natural(jnp.exp(params["log_scale"]), "positive"),
            "df": Natural(jnp.exp(params["log_df"]), "positive"),
        }

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        return {
            **params,
            "location": shift + scale * params["location"],
            "log_scale": params["log_scale"] + np.log(scale),
        }

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        location, scale, df = (np.asarray(n.value)[states] for n in self.natural(params).values())
        return location + scale * rng.standard_t(df)

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        return np.asarray(params["location"])[:, 0]


class GaussianMixture(Emission):
    """p(x | z) = sum_m weight_zm N(x; mean_zm, diag(sd_zm^2)): a state whose values have a shape of their own."""

    n_components: int = eqx.field(static=True, default=2)

    def __check_init__(self):
        if self.n_components < 2:
            raise InputError(f"a mixture needs at least 2 components, got {self.n_components}")

    @property
    def name(self) -> str:
        return "mixture"

    @property
    def real_valued(self) -> bool:
        return True

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        plain = Gaussian().start(values, n_states, rng)
        offsets = np.linspace(-0.5, 0.5, self.n_components)[None, :, None] * np.exp(plain["log_sd"])[:, None, :]
        mean = plain["mean"][:, None, :] + offsets
        return {
            "logits": np.zeros((n_states, self.n_components)),
            "mean": mean,
            "log_sd": np.broadcast_to(plain["log_sd"][:, None, :], mean.shape).copy(),
        }

    def _components(self, params: Params, seen: Observations) -> Float[Array, "*lead state component"]:
        x = seen.values[..., None, None, :]
        observed = 1.0 if seen.mask is None else seen.mask[..., None, None, :]
        z = (x - params["mean"]) * jnp.exp(-params["log_sd"])
        log_density = ((-0.5 * z**2 - params["log_sd"] - 0.5 * LOG_2PI) * observed).sum(-1)
        return log_density + jax.nn.log_softmax(params["logits"], axis=-1)

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        return jax.nn.logsumexp(self._components(params, seen), axis=-1)

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        share = jax.nn.softmax(self._components(params, seen), axis=-1) * weights[..., None]
        n_states, n_components = share.shape[-2:]
        mean, variance = weighted_moments(seen, share.reshape(*share.shape[:-2], n_states * n_components))
        shape = params["mean"].shape
        mean, variance = mean.reshape(shape), variance.reshape(shape)
        total = share.sum(tuple(range(share.ndim - 2)))
        log_total = jnp.log(jnp.maximum(total, 1e-8))
        kept = jnp.isfinite(mean)
        log_sd = 0.5 * jnp.log(jnp.maximum(variance, NARROWEST**2))
        return {
            "logits": log_total - log_total[:, :1],
            "mean": jnp.where(kept, mean, params["mean"]),
            "log_sd": jnp.where(kept, log_sd, params["log_sd"]),
        }

    def learned(self, params: Params) -> Params:
        return {**everything(params), "logits": np.arange(self.n_components) + np.zeros((len(params["logits"]), 1)) > 0}

    def natural(self, params: Params) -> dict[str, Natural]:
        return {
            "weight": Natural(jax.nn.softmax(jnp.asarray(params["logits"]), axis=-1), "probability"),
            "mean": Natural(params["mean"], "real"),
            "sd": Natural(jnp.exp(params["log_sd"]), "positive"),
        }

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        return {**params, "mean": shift + scale * params["mean"], "log_sd": params["log_sd"] + np.log(scale)}

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        weight, mean, sd = (np.asarray(n.value) for n in self.natural(params).values())
        level = rng.random(len(states))[:, None]
        part = np.minimum((np.cumsum(weight[states], axis=-1) < level).sum(-1), self.n_components - 1)
        return rng.normal(mean[states, part], sd[states, part])

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        weight, mean, _ = (np.asarray(n.value) for n in self.natural(params).values())
        return (weight[..., None] * mean).sum(1)[:, 0]
