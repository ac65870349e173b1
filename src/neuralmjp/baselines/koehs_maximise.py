"""The M step: parameters that the expected log-likelihood of whole paths prefers, given what a sweep believes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..mjp import generator_from_rates
from .koehs_model import (
    LEAST_DISPERSION,
    Parameters,
    applied,
    diffused,
    inverse,
    jump_logs,
    outer,
    product,
    slowed,
    transposed,
)
from .koehs_steps import Steps
from .koehs_sweep import Belief, Swept, seen_precision

LEAST_INITIAL = 1e-3
LEAST_NOISE = 1e-4  # variance, in units of the variance of all values: a noise of 1 % of their spread
LEAST_JUMPS = 1e-3  # expected in all data: a rate that nothing speaks for is not quite zero
NEWTON_STEPS = 2
FACTORS = 0.5 ** np.arange(8)
FURTHEST = 2.0  # that one Newton step may take a parameter
STIFFEST = 1e-8  # least curvature, relative to the largest


class Paths(NamedTuple):
    """Sums over all steps of one length: of the weight of a mode, and of moments of the level before and after."""

    weight: Float[Array, "kind state"]
    before: Float[Array, "kind state feature"]
    after: Float[Array, "kind state feature"]
    before_before: Float[Array, "kind state feature feature"]
    after_before: Float[Array, "kind state feature feature"]
    after_after: Float[Array, "kind state feature feature"]
    jumps: Float[Array, "kind state state"]


def gathered_paths(swept: Swept, steps: Steps) -> Paths:
    """From sweeps of all series."""
    laws = jnp.exp(swept.jumped.log_law)
    mean = swept.jumped.mean
    second = swept.jumped.spread + outer(mean, mean)
    ahead = applied(swept.keep, mean) + swept.shift
    crossed = product(swept.keep, second) + outer(swept.shift, mean)
    onward = product(crossed, transposed(swept.keep)) + outer(ahead, swept.shift) + swept.fresh
    jumps = jnp.exp(swept.nodes.log_law[:, :-1, :, None] + swept.log_q)
    parts = (
        laws,
        laws[..., None] * mean,
        laws[..., None] * ahead,
        laws[..., None, None] * second,
        laws[..., None, None] * crossed,
        laws[..., None, None] * onward,
        jumps,
    )

    def by_kind(part):
        flat = part.reshape(-1, *part.shape[2:])
        return jax.ops.segment_sum(flat, steps.kind.reshape(-1), len(steps.lengths)).at[0].set(0.0)

    return Paths(*(by_kind(part) for part in parts))


@jax.jit
def maximised(theta: Parameters, swept: Swept, steps: Steps) -> Parameters:
    """New parameters, none of which is worse: closed forms, and Newton steps for the drift and its dispersion."""
    paths = gathered_paths(swept, steps)
    lengths = jnp.where(jnp.arange(len(steps.lengths)) == 0, 1.0, steps.lengths)  # those of no length count nothing
    diffusion = jax.vmap(_best_diffusion, in_axes=(0, 0, 0, 1, None))
    drift, offset, dispersion = diffusion(theta.drift, theta.offset, theta.dispersion, paths[:-1], lengths)
    law = jnp.exp(swept.nodes.log_law[:, 0]).mean(0)
    law = jnp.maximum(law, LEAST_INITIAL)
    best = Parameters(
        rates=_best_rates(theta.rates, paths.jumps, lengths),
        initial=law / law.sum(),
        drift=drift,
        offset=offset,
        dispersion=dispersion,
        noise=_best_noise(theta.noise, swept.nodes, steps),
    )
    return slowed(best)


def _best_rates(rates: Array, jumps: Array, lengths: Array) -> Array:
    """One step of EM for rates from expected moves over steps: jumps over time spent, both read off a slope."""
    if len(rates) == 1:
        return rates
    slope = jax.grad(lambda generator: (jumps * jump_logs(generator, lengths)).sum())(generator_from_rates(rates))
    time = jnp.maximum(jnp.diag(slope), 1e-12)
    total = (jumps.sum((1, 2)) * lengths).sum()
    best = rates * slope / time[:, None]
    return jnp.where(jnp.eye(len(rates)) > 0, 0.0, jnp.maximum(best, LEAST_JUMPS / total))


def _best_noise(noise: Array, nodes: Belief, steps: Steps) -> Array:
    """Mean square of what is seen less the level; features not seen are filled in as the noise so far has it."""
    laws = jnp.exp(nodes.log_law)[..., None]
    away = steps.values[:, :, None] - nodes.mean
    square = (laws[..., None] * (outer(away, away) + nodes.spread)).sum(2)
    precision, _ = seen_precision(noise, steps.mask)
    fill = product(noise * jnp.ones_like(precision), precision)
    square = product(product(fill, square), transposed(fill)) + noise - product(fill, noise * jnp.ones_like(fill))
    real = (steps.mask.sum(-1) > 0)[..., None, None]
    mean = (square * real).sum((0, 1)) / real.sum()
    return _floored(mean, LEAST_NOISE)


def _floored(square: Array, least: float) -> Array:
    """Eigenvalues at least this."""
    if square.shape[-1] == 1:
        return jnp.maximum(square, least)
    values, vectors = jnp.linalg.eigh(0.5 * (square + square.T))
    return (vectors * jnp.maximum(values, least)) @ vectors.T


def _best_diffusion(drift: Array, offset: Array, dispersion: Array, paths, lengths: Array):
    """Newton steps, each no longer than helps, on the drift, offset and root of the dispersion of one mode."""
    n = len(offset)
    lower = jnp.tril_indices(n)

    def unpacked(packed):
        root = jnp.zeros((n, n)).at[lower].set(packed[n * n + n :])
        return packed[: n * n].reshape(n, n), packed[n * n : n * n + n], product(root, root.T) + floor

    floor = LEAST_DISPERSION * jnp.eye(n)
    weight, before, after, before_before, after_before, after_after = paths

    def loss(packed):
        keep, shift, spread = diffused(*unpacked(packed), lengths)
        precision, log_det = inverse(spread)
        crossed = product(after_before, transposed(keep)) + outer(after, shift)
        moved = product(product(keep, before_before), transposed(keep))
        aside = outer(applied(keep, before), shift)
        square = after_after - crossed - transposed(crossed) + moved + aside + transposed(aside)
        square = square + weight[:, None, None] * outer(shift, shift)
        return 0.5 * (weight * log_det + (precision * square).sum((-1, -2))).sum() / jnp.maximum(weight.sum(), 1e-9)

    def slope_twice(packed):
        slope = jax.jacfwd(loss)(packed)
        return slope, slope

    def newton(packed, _):
        bend, slope = jax.jacfwd(slope_twice, has_aux=True)(packed)
        values, vectors = jnp.linalg.eigh(bend)
        size = jnp.maximum(jnp.abs(values), STIFFEST * jnp.abs(values).max() + 1e-12)
        step = jnp.clip(-vectors @ ((vectors.T @ slope) / size), -FURTHEST, FURTHEST)
        tried = packed + jnp.append(FACTORS, 0.0)[:, None] * step
        losses = jax.lax.map(loss, tried)
        return tried[jnp.argmin(jnp.where(jnp.isfinite(losses), losses, jnp.inf))], None

    root = jnp.linalg.cholesky(dispersion - floor + 1e-9 * floor)
    packed = jnp.concatenate([drift.reshape(-1), offset, root[lower]])
    return unpacked(jax.lax.scan(newton, packed, None, length=NEWTON_STEPS)[0])
