"""The column of times of a table: numbers, or dates that are counted from the earliest of them."""

import math
import re
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float64, Int64

from ..dates import FIRST, LAST, MISSING, times_since, told, usual_unit
from ..units import length
from .cells import Kind, first_kind, holds_dates, kind_of, moments, numbers

_LIKE_A_DATE = re.compile(r"\s*\d{4}-\d\d-\d\d([T ]\d\d:\d\d|\s*$)")
EXAMPLES = "2024-01-31 or 2024-01-31T12:30:00Z"


class BadCell(ValueError):
    """What is wrong with a cell, by its row."""

    def __init__(self, row: int, what: str):
        super().__init__(what)
        self.row, self.what = row, what


class Clock:
    """Reads times batch by batch, and remembers what all of them are.

    Attributes:
        kind: of the first cell that was not empty; all others must be alike.
        earliest: date, in microseconds since 1970; None as long as there is none.
        grain: largest number of microseconds that all dates are whole numbers of apart.
    """

    def __init__(self):
        self.kind: Kind = "nothing"
        self.earliest: int | None = None
        self.grain = 0

    @property
    def dated(self) -> bool:
        return self.kind in ("date", "date in a zone")

    @property
    def origin(self) -> str | None:
        """From what the times are counted, where they are dates."""
        return None if self.earliest is None else told(self.earliest, self.kind == "date in a zone")

    def read(self, column: pa.Array) -> Float64[np.ndarray, " row"] | Int64[np.ndarray, " row"]:
        """Times of a batch: numbers as they are, dates in microseconds since 1970."""
        if self.kind == "nothing":
            self.kind = first_kind(column) or "number"
        try:
            return self._dates(column) if self.dated else numbers(column)
        except pa.ArrowInvalid:
            raise self._bad(column) from None

    def times(self, read: np.ndarray, unit: str) -> Float64[np.ndarray, " row"]:
        """Times in a unit, of what `read` gave."""
        return times_since(read, self.earliest or 0, unit) if self.dated else read

    def unit(self, named: str) -> str:
        """The unit that was named, or one that suits the dates, where that is none to count them in."""
        return named if self.earliest is None or length(named) is not None else usual_unit(self.grain)

    def _dates(self, column: pa.Array) -> Int64[np.ndarray, " row"]:
        found = moments(column, zoned=self.kind == "date in a zone")
        there = found[found != MISSING]
        if len(there):
            self._check_range(found)
            earliest = int(there.min())
            apart = 0 if self.earliest is None else abs(earliest - self.earliest)
            self.grain = math.gcd(self.grain, apart, int(np.gcd.reduce(there - earliest)))
            self.earliest = earliest if self.earliest is None else min(earliest, self.earliest)
        return found

    def _check_range(self, found: Int64[np.ndarray, " row"]) -> None:
        outside = (found != MISSING) & ((found < FIRST) | (found > LAST))
        if outside.any():
            raise BadCell(int(np.argmax(outside)), "is no date of the years 1 to 9999")

    def _bad(self, column: pa.Array) -> BadCell:
        """The first cell that is not like the others."""
        for row in range(len(column)):
            found = kind_of(column[row : row + 1])
            if found not in ("nothing", self.kind):
                return BadCell(row, self._difference(found, column.type, column[row].as_py()))
        raise AssertionError("Arrow refused a column of which it takes every cell")

    def _difference(self, found: Kind | None, type_: pa.DataType, cell: Any) -> str:
        if found is None and isinstance(cell, str) and _LIKE_A_DATE.match(cell):
            return f"is no date in ISO's form, of the calendar and to the microsecond, such as {EXAMPLES}"
        if not self.dated:
            if found is None:
                return f"is not a number; every observation needs a time: a number, or a date such as {EXAMPLES}"
            return "is a date, but the times before it are numbers; write all of them alike"
        if found is None and holds_dates(type_):
            return "is finer than a microsecond, or too far off; round it"
        if found is None:
            return f"is no date such as {EXAMPLES}, but the times before it are; write all of them alike"
        if found == "number":
            return "is a number, but the times before it are dates; write all of them alike"
        ways = ("a", "no") if found == "date in a zone" else ("no", "a")
        return "names {} zone, but the dates before it name {} zone; write all of them alike".format(*ways)


def may_hold_dates(type_: Any) -> bool:
    """Whether cells must be looked at, or their type says that they are numbers."""
    return holds_dates(type_) or not (pa.types.is_floating(type_) or pa.types.is_integer(type_))
