"""exp(F t): how a homogeneous jump process moves probability.

Adding a constant to the diagonal makes a generator non-negative, F = P - q I, so exp(F t) = exp(-q t) exp(P t) is a
sum of products of non-negative numbers. Scaling and squaring then never subtracts: small probabilities keep their
relative accuracy and no entry is negative (Xue & Ye 2013, *Mathematics of Computation* 82, 1577).
"""

import math
from collections.abc import Callable
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import InputError
from .generators import check_rates, generator_from_rates
from .types import ArrayLike, Square

# Taylor terms for a scaled matrix of norm at most 1: the remainder is below 1 / 18! = 2e-16.
TAYLOR_TERMS = 18
# Jumps to the farthest state in one scaled piece, on average: with more, the terms left out would matter to it.
JUMPS_PER_PIECE = 3.0
# Inside a compiled function the size of F t is unknown: enough squarings for two billion jumps per interval.
COMPILED_SQUARINGS = 32


def transition_matrix(rates: ArrayLike, times: ArrayLike = 1.0) -> Square:
    """Probabilities exp(F t) to be in state j (column) a time t after state i (row).

    NumPy in, NumPy out (float64); JAX in, JAX out (differentiable, in the precision of the rates).

    Args:
        rates: (..., K, K).
        times: (...) non-negative durations that broadcast against the leading axes of `rates`.

    >>> transition_matrix([[0.0, 1.0], [1.0, 0.0]], 1e9)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    if not isinstance(rates, Array):
        rates, times = check_rates(rates), _durations(times)
    xp = rates.__array_namespace__()
    scaled = generator_from_rates(rates) * xp.asarray(times, dtype=rates.dtype)[..., None, None]
    return expm(scaled, rates.shape[-1])


def expm(matrix: Square, n_states: int) -> Square:
    """Exponential of a generator, or of one with extra columns that gather what its states yield.

    The rows of the first `n_states` states are kept at sum one over those states: rounding would otherwise grow with
    every squaring. Rows of the extra columns must be zero.

    Args:
        matrix: (..., K, K) with K >= n_states; off-diagonal entries are non-negative.
    """
    return _expm(matrix, n_states) if isinstance(matrix, np.ndarray) else _compiled_expm(matrix, n_states)


def _expm(matrix: Square, n_states: int) -> Square:
    xp = matrix.__array_namespace__()
    eye = xp.eye(matrix.shape[-1], dtype=matrix.dtype)
    shift = xp.max(-xp.diagonal(matrix, axis1=-2, axis2=-1), axis=-1)
    size = shift + xp.where(eye == 1, 0, matrix)[..., :n_states].sum(-1).max(-1)  # bounds matrix + shift
    needed = xp.ceil(xp.log2(xp.maximum(size, 1.0)))
    most = int(np.max(needed, initial=0)) if isinstance(matrix, np.ndarray) else COMPILED_SQUARINGS
    extra = math.ceil(math.log2(max((n_states - 1) / JUMPS_PER_PIECE, 1.0)))
    squarings = (extra + xp.minimum(needed, most))[..., None, None]
    positive = (matrix + shift[..., None, None] * eye) * xp.exp2(-squarings)
    total = xp.broadcast_to(eye, positive.shape)
    total = _fold(lambda total, k: eye + positive @ total / k, total, range(TAYLOR_TERMS, 0, -1))
    total = _mass_to_one(total, n_states)  # in place of the factor exp(-shift)

    def square(total, k):
        return xp.where(k < squarings, _mass_to_one(total @ total, n_states), total)

    return _fold(square, total, range(most + extra))


_compiled_expm = jax.jit(_expm, static_argnames="n_states")


def propagate(rates: ArrayLike, distribution: ArrayLike, times: ArrayLike) -> Float[np.ndarray, "*batch time state"]:
    """Marginals p(t) = p(0) exp(F t) at each of `times`.

    Args:
        rates: (..., K, K).
        distribution: (..., K), the law at time 0.
        times: (T,) non-negative, in any order.

    Returns:
        (..., T, K).
    """
    rates = check_rates(rates)
    start = np.asarray(distribution, dtype=np.float64)
    moved = transition_matrix(rates[..., None, :, :], times)
    return np.einsum("...i,...tij->...tj", start, moved)


def _fold(step: Callable, value: Square, numbers: range) -> Square:
    """value <- step(value, k) for each k; a loop that compiles quickly."""
    if isinstance(value, Array):
        return jax.lax.scan(lambda value, k: (step(value, k), None), value, jnp.asarray(numbers))[0]
    return reduce(step, numbers, value)


def _mass_to_one(matrix: Square, n_states: int) -> Square:
    xp = matrix.__array_namespace__()
    is_state = xp.arange(matrix.shape[-1])[:, None] < n_states
    mass = matrix[..., :n_states].sum(-1)[..., None]
    return xp.where(is_state, matrix / xp.where(is_state, mass, 1), xp.eye(matrix.shape[-1], dtype=matrix.dtype))


def _durations(times: ArrayLike) -> np.ndarray:
    durations = np.asarray(times, dtype=np.float64)
    if not (np.isfinite(durations) & (durations >= 0)).all():
        raise InputError(f"times must be finite and not negative, got {times!r}")
    return durations
