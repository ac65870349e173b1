"""exp(F t): how a homogeneous jump process moves probability.

Adding a constant to the diagonal makes a generator non-negative, F = P - q I, so exp(F t) = exp(-q t) exp(P t) is a
sum of products of non-negative numbers. Scaling and squaring then never subtracts: small probabilities keep their
relative accuracy and no entry is negative (Xue & Ye 2013, *Mathematics of Computation* 82, 1577).
"""

import math

import numpy as np
from jaxtyping import Array, Float

from .generators import check_rates, exit_rates, generator_from_rates
from .types import ArrayLike, Square

# Taylor terms for a scaled matrix of norm at most 1: the remainder is below 1 / 18! = 2e-16.
TAYLOR_TERMS = 18
# Inside a compiled function the size of F t is unknown: enough squarings for 16 million jumps per interval.
TRACED_SQUARINGS = 24


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
        rates = check_rates(rates)
    xp = rates.__array_namespace__()
    scaled = generator_from_rates(rates) * xp.asarray(times, dtype=rates.dtype)[..., None, None]
    return expm(scaled, stochastic=True)


def expm(matrix: Square, *, stochastic: bool = False) -> Square:
    """Exponential of a matrix whose off-diagonal entries are non-negative.

    Args:
        matrix: (..., K, K).
        stochastic: rows of `matrix` sum to zero, so rows of the result are kept at sum one.
    """
    xp = matrix.__array_namespace__()
    n_states = matrix.shape[-1]
    eye = xp.eye(n_states, dtype=matrix.dtype)
    shift = xp.max(-xp.diagonal(matrix, axis1=-2, axis2=-1), axis=-1)
    size = shift + exit_rates(xp.where(eye == 1, 0, matrix)).max(-1)  # bounds the norm of matrix + shift
    most = TRACED_SQUARINGS
    if isinstance(matrix, np.ndarray):
        most = max(math.ceil(math.log2(max(float(size.max(initial=0.0)), 1.0))), 0)
    squarings = xp.clip(xp.ceil(xp.log2(xp.maximum(size, 1.0))), 0, most)[..., None, None]
    scale = xp.exp2(-squarings)
    positive = (matrix + shift[..., None, None] * eye) * scale
    total = eye + positive / TAYLOR_TERMS
    for k in range(TAYLOR_TERMS - 1, 0, -1):
        total = eye + positive @ total / k
    total = total * xp.exp(-shift[..., None, None] * scale)
    total = _rows_to_one(total) if stochastic else total
    for k in range(most):
        squared = total @ total
        squared = _rows_to_one(squared) if stochastic else squared
        total = xp.where(k < squarings, squared, total)
    return total


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
    moved = transition_matrix(rates[..., None, :, :], np.asarray(times, dtype=np.float64))
    return np.einsum("...i,...tij->...tj", start, moved)


def _rows_to_one(matrix: Square) -> Square:
    return matrix / matrix.sum(-1)[..., None]
