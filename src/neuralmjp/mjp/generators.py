"""Rates and generators: two views of one jump process.

`rates` holds the jump rate from state i (row) to state j (column) and zeros on the diagonal (the paper's f);
`generator` is the same matrix with rows that sum to zero (the paper's F). Both functions between them work on NumPy
and on JAX arrays, with any leading batch axes.
"""

import numpy as np

from ..errors import InputError
from .types import ArrayLike, Square, Vector

# A generator computed in floating point has row sums of this size relative to its exit rates.
ROW_SUM_TOLERANCE = 1e-6


def exit_rates(rates: Square) -> Vector:
    """Total rate at which each state is left: the sum of its row."""
    return rates.sum(-1)


def generator_from_rates(rates: Square) -> Square:
    """F = f - diag(sum_j f_ij): rows sum to zero.

    >>> generator_from_rates(np.array([[0.0, 2.0], [1.0, 0.0]]))
    array([[-2.,  2.],
           [ 1., -1.]])
    """
    xp = rates.__array_namespace__()
    return rates - exit_rates(rates)[..., None] * xp.eye(rates.shape[-1], dtype=rates.dtype)


def rates_from_generator(generator: Square) -> Square:
    """The off-diagonal part of a generator, zeros on the diagonal."""
    xp = generator.__array_namespace__()
    return xp.where(xp.eye(generator.shape[-1], dtype=bool), 0, generator)


def masked(rates: Square, mask: ArrayLike) -> Square:
    """Rates with structural zeros: a jump that `mask` does not allow has rate exactly 0, and no gradient."""
    xp = rates.__array_namespace__()
    return xp.where(xp.asarray(mask) & ~xp.eye(rates.shape[-1], dtype=bool), rates, 0)


def check_rates(rates: ArrayLike, mask: ArrayLike | None = None) -> np.ndarray:
    """Return `rates` as float64, or raise one line that says which entry is wrong.

    Args:
        rates: (..., K, K), non-negative, zeros on the diagonal.
        mask: (K, K), true where a jump may happen; elsewhere the rate must be exactly zero.
    """
    checked = _square(rates, "rates")
    eye = np.eye(checked.shape[-1], dtype=bool)
    if (checked[..., eye] != 0).any():
        hint = "; this looks like a generator: pass rates_from_generator(...)" if (checked[..., eye] <= 0).all() else ""
        raise InputError(f"rates must have zeros on the diagonal{hint}")
    _refuse(checked < 0, checked, "rates must not be negative")
    if mask is not None:
        _refuse((checked != 0) & ~np.asarray(mask, bool), checked, "the mask does not allow this jump")
    return checked


def check_one(rates: ArrayLike) -> np.ndarray:
    """As `check_rates`, for what takes one rate matrix, not a batch of them."""
    checked = check_rates(rates)
    if checked.ndim != 2:
        raise InputError(f"one rate matrix is needed here, K x K; got a batch of shape {checked.shape}")
    return checked


def check_generator(generator: ArrayLike) -> np.ndarray:
    """Return `generator` as float64, or raise one line: off-diagonal entries >= 0, rows summing to zero."""
    checked = _square(generator, "generator")
    rates = np.asarray(rates_from_generator(checked))
    _refuse(rates < 0, checked, "off-diagonal entries of a generator must not be negative")
    excess = np.abs(checked.sum(-1)) > ROW_SUM_TOLERANCE * np.maximum(exit_rates(rates), np.finfo(float).tiny)
    if excess.any():
        row = np.argwhere(excess)[0][-1]
        raise InputError(
            f"rows of a generator must sum to zero; row {row} does not: its diagonal must be minus the rest"
        )
    return checked


def _square(matrix: ArrayLike, name: str) -> np.ndarray:
    try:
        checked = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a table of numbers: {error}") from None
    if checked.ndim < 2 or checked.shape[-1] != checked.shape[-2] or checked.shape[-1] == 0:
        raise InputError(f"{name} must be square, K x K for K states; got shape {checked.shape}")
    _refuse(~np.isfinite(checked), checked, f"{name} must be finite")
    return checked


def _refuse(wrong: np.ndarray, matrix: np.ndarray, rule: str) -> None:
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise InputError(f"{rule}: from state {where[-2]} to state {where[-1]} it is {matrix[where]:g}")
