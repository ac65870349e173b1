"""Recordings that were clipped: a value at the rail says that the signal was there or beyond."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from .emission import Emission, Natural, Observations, Params, per_state
from .gaussian import Gaussian, Independent
from .wrapped import Wrapped

# A recording counts as clipped if so large a share of its values equals the largest or the smallest one exactly.
SHARE_AT_RAIL = 0.005
AT_RAIL = 3  # and so many values: of a few hundred, one alone is a large share, and something is always the largest
DISTINCT = 100  # values that a signal has at least: labels and counts are not clipped
OWN = ("shared_low", "shared_high")


class Clipped(Wrapped):
    """A Gaussian whose values are cut at two rails. What lies at a rail counts with all that could be beyond it.

    Without this, a state would shrink onto the rail, where the density of its values is without bound.

    Args:
        low, high: rails of each value, in the data's units; infinite where there is none.
        base: the Gaussian before it was cut.
    """

    base: Independent
    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, low: tuple[float, ...], high: tuple[float, ...], base: Independent | None = None):
        self.base, self.low, self.high = base or Gaussian(), low, high

    def inner(self, params: Params) -> Params:
        return {name: value for name, value in params.items() if name not in OWN}

    def outer(self, inner: Params, params: Params) -> Params:
        return {**inner, **{name: params[name] for name in OWN}}

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        # The values may be standardised already: a rail is where the extreme is.
        low = np.where(np.isfinite(self.low), np.nanmin(values, axis=0), -np.inf)
        high = np.where(np.isfinite(self.high), np.nanmax(values, axis=0), np.inf)
        return {**self.base.start(values, n_states, rng), "shared_low": low, "shared_high": high}

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        x, observed = per_state(seen)
        mean, log_sd = params["mean"], self.base.log_sd(params)
        sd = jnp.exp(log_sd)
        low, high = params["shared_low"], params["shared_high"]
        density = norm.logpdf((x - mean) / sd) - log_sd
        above, below = norm.logsf((_finite(high, mean) - mean) / sd), norm.logcdf((_finite(low, mean) - mean) / sd)
        return (jnp.where(x >= high, above, jnp.where(x <= low, below, density)) * observed).sum(-1)

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        """Moments of the values as they were before clipping: at a rail, those expected beyond it."""
        x, observed = per_state(seen)
        mean, sd = params["mean"], jnp.exp(self.base.log_sd(params))
        low, high = params["shared_low"], params["shared_high"]
        first, second = jnp.broadcast_to(x, jnp.broadcast_shapes(x.shape, mean.shape)), x**2
        for rail, sign in ((high, 1.0), (low, -1.0)):
            at = (x - rail) * sign >= 0
            near = _finite(rail, mean)
            beyond = sign * (near - mean) / sd
            hazard = jnp.exp(norm.logpdf(beyond) - norm.logsf(beyond))
            there = mean + sign * sd * hazard
            wide = sd**2 * jnp.maximum(1 + beyond * hazard - hazard**2, 0.0)
            first, second = jnp.where(at, there, first), jnp.where(at, there**2 + wide, second)
        lead = tuple(range(seen.values.ndim - 1))
        weight = weights[..., None] * observed
        total = weight.sum(lead)
        new = (weight * first).sum(lead) / total
        variance = (weight * second).sum(lead) / total - new**2
        return self.base.with_moments(params, new, variance, total)

    def learned(self, params: Params) -> Params:
        return {name: np.full(np.shape(value), name not in OWN) for name, value in params.items()}

    def natural(self, params: Params) -> dict[str, Natural]:
        return self.base.natural(self.inner(params))

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        return {**super().rescaled(params, shift, scale), **{name: shift + scale * params[name] for name in OWN}}

    def outside(self, params: Params, values: Float[np.ndarray, "*lead"]) -> Float[np.ndarray, "*lead"]:
        return np.clip(values, np.asarray(params["shared_low"]), np.asarray(params["shared_high"]))


def _finite(rail: Any, instead: Any) -> Array:
    """A rail, or something harmless where there is none: it is looked at, too, where it does not count."""
    return jnp.where(jnp.isfinite(rail), rail, instead)


def rails_of(values: Float[np.ndarray, "row feature"]) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Where a recording was clipped, or None if it was not."""
    low, high = [], []
    for column in values.T:
        seen = column[~np.isnan(column)]
        ends = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 0.0)
        many = len(np.unique(seen[:10_000])) >= DISTINCT
        clipped = [many and (seen == end).sum() >= max(AT_RAIL, SHARE_AT_RAIL * seen.size) for end in ends]
        low.append(ends[0] if clipped[0] else -np.inf)
        high.append(ends[1] if clipped[1] else np.inf)
    return (tuple(low), tuple(high)) if np.isfinite(low).any() or np.isfinite(high).any() else None


def clipping_told(emission: Emission, values: Float[np.ndarray, "row feature"]) -> tuple[str, ...]:
    """What a careful reader should know of a recording that was clipped."""
    while isinstance(emission, Wrapped) and not isinstance(emission, Clipped):
        emission = emission.base
    if not isinstance(emission, Clipped):
        return ()
    words = []
    for low, high, column in zip(emission.low, emission.high, values.T, strict=True):
        for rail in (low, high):
            if np.isfinite(rail):
                share = 100 * float((column == rail).mean())
                words.append(f"{share:.2g} % of the values are exactly {rail:g}: taken as clipped there")
    return tuple(words)
