"""exp(F t) acting on a vector, for generators too large to write down as a dense matrix."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.stats import poisson

from ..errors import InputError
from .types import ArrayLike

# Expected jumps per substep: fewer terms are wasted in long substeps, but exp(-jumps) must not underflow.
JUMPS_PER_SUBSTEP = 8.0


class Propagated(NamedTuple):
    """A vector moved through time, and how far from exact it can be."""

    vector: Float[Array, "..."]
    error: float  # bound on the lost mass and on rounding, relative to the mass of the start


def uniformised_action(
    flow: Callable[[Array], Array],
    vector: Float[Array, "..."],
    time: float,
    *,
    fastest: float,
    tolerance: float = 1e-10,
) -> Propagated:
    """Move `vector` through `time`: v exp(F t) = sum_n Poisson(n; q t) v (I + F / q)^n.

    All terms are non-negative when the vector is; what the series leaves out is known exactly.

    Args:
        flow: v -> v F, linear; a sparse product or a handful of shifted adds. The shape of v is free. Pass the same
            function object again to reuse what was compiled.
        vector: mass on each state.
        time: duration, non-negative.
        fastest: q, at least the largest exit rate.
        tolerance: largest lost mass to accept.

    >>> flow = lambda v: jnp.stack([v[1] - 2 * v[0], 2 * v[0] - v[1]])
    >>> moved = uniformised_action(flow, jnp.array([1.0, 0.0]), 50.0, fastest=2.0)
    >>> bool(jnp.allclose(moved.vector, jnp.array([1, 2]) / 3, atol=1e-5))
    True
    """
    if not (time >= 0 and math.isfinite(time) and fastest > 0 and math.isfinite(fastest)):
        raise InputError(f"time must be >= 0 and the fastest rate > 0, both finite; got {time} and {fastest}")
    if not 0 < tolerance < 1:
        raise InputError(f"the tolerance of uniformisation must lie between 0 and 1, got {tolerance}")
    substeps = max(math.ceil(fastest * time / JUMPS_PER_SUBSTEP), 1)
    jumps = fastest * time / substeps
    n_terms = int(most_jumps(tolerance / substeps, jumps)) + 1
    weights = poisson.pmf(np.arange(n_terms + 1), jumps)
    vector = jnp.asarray(vector)
    moved = _march(flow, vector, jnp.asarray(weights, vector.dtype), jnp.asarray(1 / fastest, vector.dtype), substeps)
    rounding = n_terms * float(jnp.finfo(vector.dtype).eps)
    return Propagated(moved, float(substeps * (poisson.sf(n_terms, jumps) + rounding)))


def most_jumps(tail: ArrayLike, mean: ArrayLike) -> Int[np.ndarray, "..."]:
    """The fewest n with Poisson(N > n) <= tail, for tails far below what SciPy's inverse can resolve."""
    tail, mean = np.broadcast_arrays(np.asarray(tail, float), np.asarray(mean, float))
    low, high = np.full(mean.shape, -1), np.ceil(mean).astype(int) + 1
    while (poisson.sf(high, mean) > tail).any():
        high = 2 * high
    while (high - low > 1).any():
        middle = (low + high) // 2
        enough = poisson.sf(middle, mean) <= tail
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


@partial(jax.jit, static_argnames="flow")
def _march(
    flow: Callable[[Array], Array], vector: Array, weights: Array, period: Array, substeps: int | Array
) -> Array:
    def term(carry, weight):
        power, total = carry
        power = power + period * flow(power)
        return (power, total + weight * power), None

    def substep(_, v):
        (_, total), _ = jax.lax.scan(term, (v, weights[0] * v), weights[1:])
        return total

    return jax.lax.fori_loop(0, substeps, substep, vector)
