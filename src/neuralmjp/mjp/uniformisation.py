"""exp(F t) acting on a vector, for generators too large to write down as a dense matrix."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.stats import poisson

from ..errors import InputError

# Expected jumps per substep: fewer terms are wasted in long substeps, but exp(-jumps) must not underflow.
JUMPS_PER_SUBSTEP = 8.0


class Propagated(NamedTuple):
    """A vector moved through time, and how far from exact it can be."""

    vector: Float[Array, "..."]
    error: float  # bound on the lost mass, relative to the mass of the start


def uniformised_action(
    flow: Callable[[Array], Array],
    vector: Float[Array, "..."],
    time: float,
    *,
    fastest: float,
    tolerance: float = 1e-10,
) -> Propagated:
    """Move `vector` through `time`: v exp(F t) = sum_n Poisson(n; q t) v (I + F / q)^n.

    All terms are non-negative when the vector is; what the series leaves out is known exactly, and is the error.

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
    substeps = max(math.ceil(fastest * time / JUMPS_PER_SUBSTEP), 1)
    jumps = fastest * time / substeps
    n_terms = int(poisson.isf(tolerance / substeps, jumps)) + 1
    weights = poisson.pmf(np.arange(n_terms + 1), jumps)
    vector = jnp.asarray(vector)
    moved = _march(flow, vector, jnp.asarray(weights, vector.dtype), jnp.asarray(1 / fastest, vector.dtype), substeps)
    return Propagated(moved, float(substeps * poisson.sf(n_terms, jumps)))


@partial(jax.jit, static_argnames="flow")
def _march(flow: Callable[[Array], Array], vector: Array, weights: Array, period: Array, substeps: int) -> Array:
    def term(carry, weight):
        power, total = carry
        power = power + period * flow(power)
        return (power, total + weight * power), None

    def substep(_, v):
        (_, total), _ = jax.lax.scan(term, (v, weights[0] * v), weights[1:])
        return total

    return jax.lax.fori_loop(0, substeps, substep, vector)
