"""A quantity and how sure one can be of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

LEVEL = 0.95
Z = float(-ndtri((1 - LEVEL) / 2))  # standard errors from the middle of an interval to its end


@dataclass(frozen=True)
class Interval:
    """A quantity with the range that is made to hold the truth in `level` of all data sets."""

    mean: Any  # the estimate itself: an array or a number
    lower: Any
    upper: Any
    level: float = LEVEL


def interval_or_unknown(intervals: Mapping[str, Interval], name: str, value: np.ndarray) -> Interval:
    """As a fit gives it, or the value alone where it gives none."""
    unknown = np.full(np.shape(value), np.nan)
    return intervals.get(name, Interval(value, unknown, unknown))
