"""A quantity and how sure one can be of it."""

from dataclasses import dataclass
from typing import Any

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A quantity with the range that is made to hold the truth in `level` of all data sets."""

    mean: Any  # the estimate itself: an array or a number
    lower: Any
    upper: Any
    level: float = LEVEL
