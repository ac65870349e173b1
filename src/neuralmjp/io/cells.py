"""What the cells of a table say: numbers, dates, or nothing; of any type that Arrow knows."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute
from jaxtyping import Float64, Int64

from ..dates import MISSING

pc: Any = pyarrow.compute  # its functions are made at run time, which type checkers cannot see

_BLANK = pa.array(["", "NA", "N/A", "n/a", "null", "NULL", "None", "NaT"])
_NAMELESS = pa.array([*_BLANK.to_pylist(), "nan", "NaN", "<NA>"])  # of words
Kind = Literal["nothing", "number", "date", "date in a zone"]


def numbers(column: pa.Array) -> Float64[np.ndarray, " row"]:
    """Numbers of a column, NaN where they are missing; Arrow's errors for what is none."""
    column = _plain(column)
    try:
        found = column.cast(pa.float64(), safe=False)
    except pa.ArrowInvalid:
        # Most text is nothing but numbers, so the dearer reading of spaces and missing values comes second.
        found = _filled(column).cast(pa.float64())
    return found.to_numpy(zero_copy_only=False)


def places(column: pa.Array, labels: tuple[str, ...]) -> tuple[Float64[np.ndarray, " row"], int | None]:
    """Where each word stands in a list, NaN where it is missing; and the first row that is neither, if there is one."""
    column = _plain(column)
    if pa.types.is_floating(column.type):  # whole numbers, with some missing, as pandas keeps them
        column = pa.array([None if x is None or x != x else f"{x:.17g}" for x in column.to_pylist()], pa.string())
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    found = pc.index_in(text, value_set=pa.array(labels, pa.string()))
    missing = pc.or_(pc.is_null(text), pc.fill_null(pc.is_in(text, _NAMELESS), False))
    strange = pc.and_(pc.is_null(found), pc.invert(missing)).to_numpy(zero_copy_only=False)
    row = int(np.argmax(strange)) if strange.any() else None
    return found.cast(pa.float64()).to_numpy(zero_copy_only=False), row


def moments(column: pa.Array, zoned: bool) -> Int64[np.ndarray, " row"]:
    """Microseconds since 1970 of dates that all name a zone or all name none; Arrow's errors for what is no such."""
    column = _plain(column)
    if not holds_dates(column.type):
        column = _filled(column.cast(pa.string()))
    elif zoned != (getattr(column.type, "tz", None) is not None):
        raise pa.ArrowInvalid("some dates name a zone")
    found = column.cast(pa.timestamp("us", "UTC" if zoned else None)).cast(pa.int64())
    return found.fill_null(MISSING).to_numpy(zero_copy_only=False)


def as_dates(when: Int64[np.ndarray, " row"], type_: pa.DataType) -> pa.Array:
    """Microseconds since 1970 as a column of dates of some type; the way back from `moments`."""
    return pa.array(when).cast(pa.timestamp("us", getattr(type_, "tz", None))).cast(type_)


def kind_of(cell: pa.Array) -> Kind | None:
    """What a column of a single cell says; None for what is neither number nor date."""
    readings: list[tuple[Kind, Callable[[pa.Array], np.ndarray]]] = [
        ("number", numbers),
        ("date", partial(moments, zoned=False)),
        ("date in a zone", partial(moments, zoned=True)),
    ]
    for kind, read in readings:
        try:
            found = read(cell)[0]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        return "nothing" if np.isnan(found) or found == MISSING else kind
    return None


def is_number(text: str) -> bool:
    """Whether a word is a number, or stands for a missing one."""
    return kind_of(pa.array([text])) in ("number", "nothing")


def first_kind(column: pa.Array) -> Kind | None:
    """What the first cell says that is not empty; of dates, their type."""
    if holds_dates(column.type):
        return "date" if getattr(column.type, "tz", None) is None else "date in a zone"
    for row in range(len(column)):
        if (kind := kind_of(column[row : row + 1])) != "nothing":
            return kind
    return "nothing"


def holds_dates(type_: pa.DataType) -> bool:
    """Whether all of a column are dates, whatever they are."""
    return pa.types.is_date(type_) or pa.types.is_timestamp(type_)


def _plain(column: pa.Array) -> pa.Array:
    if isinstance(column.type, pa.BaseExtensionType):  # such as periods, of which Arrow would take the number
        raise pa.ArrowNotImplementedError(f"cannot read {column.type}")
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _filled(column: pa.Array) -> pa.Array:
    """Text without spaces around it, null where it stands for nothing."""
    text = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_in(text, _BLANK.cast(text.type)), None, text)
