"""What observations must be: finite increasing times, some value in every series, names one can read."""

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Literal, NoReturn

import numpy as np
from jaxtyping import Bool, Float64

from .dates import date_of
from .errors import InputError
from .units import ratio

if TYPE_CHECKING:
    from .timeseries import TimeSeries

# Names appear in one-line messages and in text tables: not empty, no control characters, no spaces around them.
_ODD_NAME = re.compile(r"^$|^\s|\s$|[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class ObservationError(InputError):
    """Something wrong at one observation.

    Carries the place as data, so that a file reader can say the same in terms of file, line and column.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        observation: int | None = None,
        column: int | Literal["time"] | None = None,
        order: bool = False,
    ):
        """`observation` indexes all series laid end to end, `column` is a feature; `order`: times do not increase."""
        super().__init__(f"{where}: {what}" if where else what)
        self.what = what
        self.observation = observation
        self.column: int | Literal["time"] | None = column
        self.order = order


def require_series(data: object) -> None:
    """Said before anything else is asked of data that are none."""
    if not hasattr(data, "time_unit"):
        kind = type(data).__name__
        way = "from_frame(frame)" if kind == "DataFrame" else "from_arrays(times, values)"
        raise InputError(f"a TimeSeries is needed, got {kind}: make one by TimeSeries.{way}, or read a file by io.read")


def require_unit(data: "TimeSeries", unit: str) -> None:
    """Raise unless the data count time as a model does; in a unit of another length every rate would be wrong."""
    many, of = ratio(data.time_unit, unit)
    if many != of:
        raise InputError(
            f"the data count time in {data.time_unit!r}, the model in {unit!r}: convert them by data.in_unit({unit!r})"
        )


def check_shapes(data: "TimeSeries") -> None:
    """Arrays that fit together."""
    times, values, offsets = data.times, data.values, data.offsets
    n_series = len(data.names)
    if times.ndim != 1 or values.ndim != 2 or len(times) != len(values):
        raise InputError(f"times {times.shape} and values {values.shape} must have shapes (n,) and (n, n_features)")
    if values.shape[1] != len(data.value_names) or not data.value_names:
        raise InputError(f"{values.shape[1]} features need as many value names, at least one: {data.value_names}")
    if n_series == 0:
        raise InputError("there are no series: give at least one")
    if offsets.shape != (n_series + 1,):
        raise InputError(f"{n_series} series need {n_series + 1} offsets, not {offsets.size}")
    if offsets[0] != 0 or offsets[-1] != len(times) or np.any(np.diff(offsets) < 0):
        raise InputError(f"offsets must rise from 0 to the number of observations, {len(times)}")


def check_names(what: str, names: tuple[str, ...]) -> None:
    """Names that are all different and one line each."""
    if len(set(names)) < len(names):
        repeated = next(name for name, count in Counter(names).items() if count > 1)
        raise InputError(f"two {what} are named {repeated!r}: rename one, say by dataclasses.replace")
    odd = next((name for name in names if _ODD_NAME.search(name)), None)
    if odd is not None:
        raise InputError(f"the name {odd!r} among {what} is not one line of text without spaces around it: rename it")


def check_observations(data: "TimeSeries") -> None:
    """Raise `ObservationError` at the first thing wrong, whole arrays at a time.

    Temporaries are arrays of booleans, an eighth of the data, because the data may fill most of the memory.
    """
    times, values, offsets = data.times, data.values, data.offsets
    if (empty := _first(np.diff(offsets) == 0)) is not None:
        raise ObservationError(f"series {data.names[empty]!r} has no observations; leave it out")

    def shown(time: float, form: str = "") -> str:
        if data.origin is None or not np.isfinite(time):
            return f"time {time:{form}}"
        try:
            return date_of(time, data.origin, data.time_unit)
        except InputError:  # beyond the calendar
            return f"time {time:{form}}"

    def fail(observation: int, what: str, column: int | Literal["time"] | None, order: bool = False) -> NoReturn:
        series = int(np.searchsorted(offsets, observation, side="right")) - 1
        position, time = observation - int(offsets[series]), times[observation]
        where = f"series {data.names[series]!r}, observation {position} ({shown(time, 'g')})"
        if isinstance(column, int):
            where += f", {data.value_names[column]!r}"
        raise ObservationError(what, where=where, observation=observation, column=column, order=order)

    if (bad := _first(~((times >= 0) & (times < np.inf)))) is not None:
        fail(bad, _what_is_wrong_with_time(times[bad]), "time")
    late = times[1:] <= times[:-1]
    late[offsets[1:-1] - 1] = False
    if (bad := _first(late)) is not None:
        before, after = times[bad], times[bad + 1]
        if before == after:
            what = f"{shown(after)} is repeated; keep one observation per time in each series"
        else:
            what = f"{shown(after)} comes after {shown(before).removeprefix('time ')}; sort each series by time"
        fail(bad + 1, what, "time", order=True)
    if (bad := _first(np.isinf(values).ravel())) is not None:
        observation, feature = divmod(bad, values.shape[1])
        what = f"the value is {values[observation, feature]}; leave it empty (NaN) if it is missing"
        fail(observation, what, feature)
    seen = np.logical_or.reduceat(~np.isnan(values).all(axis=1), offsets[:-1])
    if (bad := _first(~seen)) is not None:
        fail(int(offsets[bad]), f"every value of series {data.names[bad]!r} is missing; leave the series out", None)
    if len(times) == len(data):
        raise ObservationError("a rate needs at least two observations of a series, and no series has more than one")


def check_states(data: "TimeSeries", n_states: int) -> None:
    """Raise if a model with this many states asks more than these data can tell."""
    if n_states < 1:
        raise InputError(f"{n_states} states make no model: use at least 1")
    n_distinct = _count_distinct(data.values, n_states)
    if n_states > n_distinct:
        raise InputError(
            f"{n_states} states cannot be told apart by {n_distinct} distinct observed values: "
            f"use at most {n_distinct} states"
        )
    n_gaps = data.n_observations - len(data)
    if n_states * (n_states - 1) > n_gaps:
        most = (1 + math.isqrt(1 + 4 * n_gaps)) // 2
        raise InputError(
            f"{n_states} states have {n_states * (n_states - 1)} rates, but the data hold only {n_gaps} intervals "
            f"between observations: use at most {most} states"
        )


def _count_distinct(values: Float64[np.ndarray, "observation feature"], enough: int) -> int:
    """Count distinct observed rows, no further than `enough`; one pass over the data per row found."""
    found = []
    block = 1 << 16
    for start in range(0, len(values), block):
        rows = values[start : start + block]
        rows = rows[~np.isnan(rows).all(axis=1)]
        rows = np.where(np.isnan(rows), np.inf, rows)  # NaN differs from itself; infinity is no allowed value
        for row in found:
            rows = rows[(rows != row).any(axis=1)]
        while len(rows):
            found.append(rows[0])
            if len(found) == enough:
                return enough
            rows = rows[(rows != rows[0]).any(axis=1)]
    return len(found)


def _what_is_wrong_with_time(time: float) -> str:
    if np.isnan(time):
        return "the time is missing; every observation needs one"
    if np.isinf(time):
        return f"time {time} is not finite; every observation needs a time"
    return f"time {time} is negative; shift the times so that none is below 0"


def _first(bad: Bool[np.ndarray, " n"]) -> int | None:
    """Position of the first True, if any."""
    position = int(np.argmax(bad)) if bad.size else 0
    return position if bad.size and bad[position] else None
