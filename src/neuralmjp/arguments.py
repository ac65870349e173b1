"""What people pass to functions: whole numbers, seeds, tables; refused in one line where they are none."""

from typing import Any

import numpy as np
from jaxtyping import Float

from .errors import InputError


def require_whole(value: object, least: int, what: str) -> None:
    """Raise unless this is a whole number from `least` on; `what` says so in words."""
    if not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{what}, a whole number; got {value!r}")


def require_seed(seed: object) -> None:
    """Raise unless NumPy and JAX can both begin from it."""
    if not isinstance(seed, int | np.integer):
        raise InputError(f"a seed is a whole number from 0, such as 1; got {seed!r}")
    if not 0 <= seed < 2**63:
        raise InputError(f"a seed must not be negative and must be below 2^63, got {seed}")


def numbers_of(given: Any, what: str) -> Float[np.ndarray, "..."]:
    """The numbers of a table or a list."""
    try:
        return np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what}: numbers are needed, as many in every row; got {given!r}") from None
