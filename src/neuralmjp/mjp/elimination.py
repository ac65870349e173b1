"""Linear systems of jump processes, solved without a single subtraction.

Passage times, committors and stationary laws all solve (diag(exit) - rates) x = b with non-negative data. Gaussian
elimination that recomputes each pivot as a sum of rates (Grassmann, Taksar & Heyman 1985, *Operations Research* 33,
1107) only adds, multiplies and divides non-negative numbers, so every entry of the answer keeps its relative
accuracy, however many orders of magnitude separate fast and slow jumps.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Factors(NamedTuple):
    """diag(rates.sum(-1) + leaks) - rates = (unit upper triangle) x (lower triangle)."""

    matrix: Float[np.ndarray, "batch state state"]  # above the diagonal: multipliers; below: rates left over
    pivots: Float[np.ndarray, "batch state"]


def eliminate(rates: Float[np.ndarray, "batch state state"], leaks: Float[np.ndarray, "batch state"]) -> Factors:
    """Factorise the system of a process that also disappears from state i with rate `leaks[i]`.

    Every state must be able to leak, at once or by jumps; then no pivot is zero.
    """
    matrix, leaks = rates.copy(), leaks.copy()
    pivots = np.empty_like(leaks)
    for k in range(leaks.shape[-1] - 1, -1, -1):
        pivots[:, k] = matrix[:, k, :k].sum(-1) + leaks[:, k]
        weights = matrix[:, :k, k] / pivots[:, k, None]
        matrix[:, :k, :k] += weights[:, :, None] * matrix[:, k, None, :k]
        leaks[:, :k] += weights * leaks[:, k, None]
        matrix[:, :k, k] = weights
    return Factors(matrix, pivots)


def solve_right(factors: Factors, b: Float[np.ndarray, "batch state"]) -> Float[np.ndarray, "batch state"]:
    """Solve M x = b for b >= 0: expectations as functions of the starting state."""
    x = b.copy()
    for k in range(b.shape[-1] - 1, 0, -1):
        x[:, :k] += factors.matrix[:, :k, k] * x[:, k, None]
    for k in range(b.shape[-1]):
        x[:, k] = (x[:, k] + (factors.matrix[:, k, :k] * x[:, :k]).sum(-1)) / factors.pivots[:, k]
    return x


def solve_left(factors: Factors, b: Float[np.ndarray, "batch state"]) -> Float[np.ndarray, "batch state"]:
    """Solve x M = b for b >= 0: expected time in each state before the process disappears."""
    x = b.copy()
    for k in range(b.shape[-1] - 1, -1, -1):
        x[:, k] /= factors.pivots[:, k]
        x[:, :k] += x[:, k, None] * factors.matrix[:, k, :k]
    for k in range(1, b.shape[-1]):
        x[:, k] += (x[:, :k] * factors.matrix[:, :k, k]).sum(-1)
    return x
