"""Rounds of variational EM for switching diffusions, each an E step and an M step, sped up by extrapolation."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .koehs_maximise import LEAST_NOISE, maximised
from .koehs_model import LEAST_DISPERSION, Parameters, moves, slowed
from .koehs_steps import Steps
from .koehs_sweep import Swept, first_jumps, sweep

Progress = Callable[[str, float], None]
GAIN = 1e-4  # nats: three rounds that gain less are the last
SETTLED = 1e-5  # nats that a sweep may still gain where only the posterior is asked for
MOST_SWEEPS = 200
FURTHEST = 1.0  # that an extrapolation may take a parameter


class At(NamedTuple):
    """Parameters, the jumps believed under them, and the bound that both reach."""

    theta: Parameters
    log_q: Array
    bound: float


class Climbed(NamedTuple):
    at: At
    trace: list[float]
    converged: bool


@jax.jit
def swept_all(theta: Parameters, log_q: Array, steps: Steps) -> Swept:
    of_all = jax.vmap(sweep, in_axes=(None, None, 0, 0, 0, 0))
    return of_all(theta, moves(theta, steps.lengths), log_q, steps.kind, steps.values, steps.mask)


@jax.jit
def first_all(theta: Parameters, steps: Steps) -> Array:
    of_all = jax.vmap(first_jumps, in_axes=(None, None, 0, 0, 0))
    return of_all(theta, moves(theta, steps.lengths), steps.kind, steps.values, steps.mask)


def em_round(theta: Parameters, log_q: Array, steps: Steps) -> tuple[Parameters, Array, Array]:
    """An E step, an M step, and the bound between them."""
    swept = swept_all(theta, log_q, steps)
    return maximised(theta, swept, steps), swept.log_q, swept.bound.sum()


def begin(theta: Parameters, steps: Steps) -> At:
    return At(theta, first_all(theta, steps), -np.inf)


def climb(at: At, steps: Steps, most: int, progress: Progress, trace: list[float] | None = None) -> Climbed:
    """Rounds of EM, every third from an extrapolated point if that is better (Varadhan & Roland 2008)."""
    trace, converged = list(trace or []), False
    theta, log_q = at.theta, at.log_q
    while len(trace) < most and not converged:
        once, q_once, first = em_round(theta, log_q, steps)
        twice, q_twice, second = em_round(once, q_once, steps)
        ahead = _extrapolated(theta, once, twice)
        beyond, q_beyond, third = em_round(ahead, q_twice, steps)
        if third >= second:
            at = At(ahead, q_beyond, float(third))
            theta, log_q = beyond, q_beyond
        else:
            at = At(once, q_twice, float(second))
            theta, log_q = twice, q_twice
        gained = at.bound - (trace[-1] if trace else -np.inf)
        trace += [float(first), float(second), at.bound]
        converged = bool(gained < GAIN)
        progress(f"EM, bound {at.bound:.2f}", len(trace) / most)
    return Climbed(at, trace, converged)


@jax.jit
def _extrapolated(theta: Parameters, once: Parameters, twice: Parameters) -> Parameters:
    """Where two steps in a row lead, if each is the same part of what remains."""
    first, second, third = (_free(one) for one in (theta, once, twice))
    step = jax.tree.map(jnp.subtract, second, first)
    bend = jax.tree.map(lambda a, b, c: a - 2 * b + c, first, second, third)
    length = jnp.maximum(1.0, _norm(step) / jnp.maximum(_norm(bend), 1e-12))
    ahead = jax.tree.map(
        lambda x, s, b, end: jnp.clip(x + 2 * length * s + length**2 * b, end - FURTHEST, end + FURTHEST),
        first,
        step,
        bend,
        third,
    )
    return _limited(ahead)


def _free(theta: Parameters) -> Parameters:
    """The same in coordinates that may be any numbers."""
    return theta._replace(
        rates=jnp.log(theta.rates + jnp.eye(len(theta.rates))),
        initial=jnp.log(theta.initial),
        dispersion=_root(theta.dispersion, LEAST_DISPERSION),
        noise=_root(theta.noise, LEAST_NOISE),
    )


def _limited(free: Parameters) -> Parameters:
    theta = free._replace(
        rates=jnp.exp(free.rates) * (1 - jnp.eye(len(free.rates))),
        initial=jax.nn.softmax(free.initial),
        dispersion=_squared(free.dispersion, LEAST_DISPERSION),
        noise=_squared(free.noise, LEAST_NOISE),
    )
    return slowed(theta)


def _root(square: Array, least: float) -> Array:
    """Cholesky factor of what a covariance has above its floor, with the logarithm of its diagonal."""
    eye = jnp.eye(square.shape[-1])
    root = jnp.linalg.cholesky(square - least * (1 - 1e-6) * eye)
    return jnp.where(eye > 0, jnp.log(jnp.where(eye > 0, root, 1.0)), root)


def _squared(free: Array, least: float) -> Array:
    eye = jnp.eye(free.shape[-1])
    root = jnp.where(eye > 0, jnp.exp(free), jnp.tril(free))
    return root @ jnp.swapaxes(root, -1, -2) + least * eye


def _norm(theta: Parameters) -> Array:
    return jnp.sqrt(sum((leaf**2).sum() for leaf in theta))


def settled(theta: Parameters, steps: Steps) -> Swept:
    """Sweeps until the bound stays, from a first guess."""
    swept = swept_all(theta, first_all(theta, steps), steps)
    for _ in range(MOST_SWEEPS):
        if swept.gained.sum() < SETTLED:
            break
        swept = swept_all(theta, swept.log_q, steps)
    return swept
