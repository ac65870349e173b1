"""The likelihood of a switching diffusion: a hidden level that follows the hidden state, seen through noise.

Given the path of the states the level is Gaussian, but there are too many paths. So, at every observation, what is
known of the level is kept as one Gaussian per state (Kim's filter): pairs of states before and after a gap are
weighed, and those that end alike are merged. A jump within the gap is taken to happen at any time of it alike.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..emissions.emission import Observations, Params
from ..emissions.gaussian import LOG_2PI
from .chain import Chain


class Belief(NamedTuple):
    """What is known after an observation, for every lane: of the state, and of the level in each."""

    law: Float[Array, "lane state"]
    level: Float[Array, "lane state feature"]
    variance: Float[Array, "lane state feature"]


def log_mass(
    params: Params,
    table: Float[Array, "gap state state"],
    extra: Float[Array, "step lane state"],
    initial: Float[Array, "state"],
    seen: Observations,
    valid: Any,
    chain: Chain,
    gaps: Float[Array, "gap"],
) -> Float[Array, ""]:
    """Log-likelihood of all series together; every lane begins with a series.

    Args:
        params: of a `Diffusion`.
        table: transition matrix of each distinct gap.
        extra: added to the log density of each observation in each state: by it, the slope is the smoothed law.
    """
    mean = jnp.asarray(params["mean"])
    spread, noise = jnp.exp(2 * params["shared_log_sd"]), jnp.exp(2 * params["shared_log_noise"])
    relaxation = jnp.exp(params["shared_log_relaxation"])
    apart = mean[:, None] - mean[None]  # (from, to, feature)
    n_lanes, n_states = extra.shape[1:]
    observed = jnp.ones_like(seen.values) if seen.mask is None else seen.mask * 1.0

    def step(before: Belief, inputs):
        value, there, real, start, gap_index, more = inputs
        relaxed = relaxation * gaps[gap_index][:, None]  # (lane, feature)
        kept, late, square = (
            x[:, None, None] for x in (jnp.exp(-relaxed), _mean_decay(relaxed), _mean_decay(2 * relaxed))
        )
        level = mean + apart * late + (before.level - mean)[:, :, None] * kept
        variance = before.variance[:, :, None] * kept**2 + spread * (1 - kept**2) + apart**2 * (square - late**2)
        weight = before.law[:, :, None] * table[gap_index]
        begin = start[:, None, None]
        level = jnp.where(begin[..., None], mean, level)
        variance = jnp.where(begin[..., None], spread, variance)
        weight = jnp.where(begin, initial / n_states, weight)
        total = variance + noise
        away, there = value[:, None, None] - level, there[:, None, None]
        density = ((-0.5 * away**2 / total - 0.5 * jnp.log(total) - 0.5 * LOG_2PI) * there).sum(-1)
        gain = there * variance / total
        level, variance = level + gain * away, variance * (1 - gain)
        logs = jnp.where(weight > 0, jnp.log(jnp.where(weight > 0, weight, 1.0)), -jnp.inf) + density + more[:, None]
        top = jax.lax.stop_gradient(logs.max((1, 2), keepdims=True))
        joint = jnp.exp(logs - top)
        mass = joint.sum((1, 2), keepdims=True)
        joint = joint / mass
        law = joint.sum(1)
        share = (joint / jnp.where(law > 0, law, 1.0)[:, None])[..., None]
        merged = (share * level).sum(1)
        wide = (share * (variance + (level - merged[:, None]) ** 2)).sum(1)
        height = jnp.where(real, (jnp.log(mass) + top)[:, 0, 0], 0.0)
        return Belief(law, merged, wide), height

    first = Belief(
        jnp.full((n_lanes, n_states), 1.0 / n_states),
        jnp.broadcast_to(mean, (n_lanes, *mean.shape)),
        jnp.broadcast_to(spread, (n_lanes, *mean.shape)),
    )
    inputs = (seen.values, observed, valid, chain.starts, chain.gap_index, extra)
    _, heights = jax.lax.scan(step, first, inputs)
    return heights.sum()


def _mean_decay(relaxed: Float[Array, "..."]) -> Float[Array, "..."]:
    """Mean of exp(-r u) over u from 0 to 1: what is left of a distance if it begins to close at any time alike."""
    safe = jnp.maximum(relaxed, 1e-9)
    return -jnp.expm1(-safe) / safe
