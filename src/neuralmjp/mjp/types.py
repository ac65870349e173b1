"""The array types of the mathematics."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Array, Float, Shaped

# What people pass for an array: NumPy, JAX, nested lists, a number.
ArrayLike = Array | np.ndarray | Sequence | float | int

Square = Float[Array, "*batch state state"] | Float[np.ndarray, "*batch state state"]
Vector = Float[Array, "*batch state"] | Float[np.ndarray, "*batch state"]

# One number per rate matrix: an array over a batch of them, a plain number for one.
Number = Float[np.ndarray, "*batch"] | float

# One state, or a set of them.
States = Sequence[int] | np.ndarray | np.integer | int


def as_tuples(table: Shaped[np.ndarray, "row column"]) -> tuple[tuple[Any, ...], ...]:
    """A table as a tuple of rows, which can be hashed and compared."""
    return tuple(tuple(row) for row in table.tolist())
