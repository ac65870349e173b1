"""Dates as times since an origin: whole microseconds since 1970 in between, which no float could hold."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime

import numpy as np
from jaxtyping import Bool, Float64, Int64

from .errors import InputError
from .units import converted, length

MISSING = np.iinfo(np.int64).min  # instead of a date; NumPy's NaT
FIRST, LAST = (int(np.datetime64(date, "us").astype(np.int64)) for date in ("0001-01-01", "9999-12-31T23:59:59.999999"))
DAY, SECOND = 86400 * 10**6, 10**6
_GRAINS = {"days": DAY, "h": 3600 * SECOND, "min": 60 * SECOND}
_TOO_FINE = re.compile(r"[.,]\d{6}0*[1-9]")
_ROUNDINGS = 8  # of a number on its way between two units
_EXACT = 1 << 50  # microseconds, some 35 years: times in any unit are told from their neighbours up to here


Date = str | date | np.datetime64  # a datetime and a Timestamp of pandas are dates, too


def text_of(when: Date) -> str:
    """A date in ISO's form, whatever holds it.

    >>> text_of(date(2024, 1, 31)), text_of(np.datetime64("2024-01-31T12:30"))
    ('2024-01-31', '2024-01-31T12:30')
    """
    if not isinstance(when, Date):
        raise InputError(f"{when!r} is no date such as '2024-01-31' or '2024-01-31T12:30'")
    return when if isinstance(when, str) else str(when) if isinstance(when, np.datetime64) else when.isoformat()


def moment(text: str) -> tuple[int, bool]:
    """Microseconds since 1970 of a date in ISO's form, and whether it names a zone; one without counts as if in UTC.

    >>> moment("1970-01-02"), moment("1970-01-01T01:00:00+01:00")
    ((86400000000, False), (0, True))
    """
    if _TOO_FINE.search(text):
        raise InputError(f"{text!r} is finer than a microsecond: round it")
    try:
        found = datetime.fromisoformat(text.strip())
        zoned = found.tzinfo is not None
        plain = found.astimezone(UTC).replace(tzinfo=None) if zoned else found
    except (ValueError, OverflowError, AttributeError):  # where a zone leads out of the calendar; of what is no text
        raise InputError(f"{text!r} is no date such as 2024-01-31, 2024-01-31T12:30 or 2024-01-31T12:30Z") from None
    return int(np.datetime64(plain, "us").astype(np.int64)), zoned


def told(when: int, zoned: bool) -> str:
    """The date as text, no longer than it must be.

    >>> told(86400000000, False), told(1500000, True)
    ('1970-01-02', '1970-01-01T00:00:01.500000Z')
    """
    unit = "D" if when % DAY == 0 and not zoned else "s" if when % SECOND == 0 else "us"
    return f"{np.datetime64(when, 'us').astype(f'datetime64[{unit}]')}{'Z' if zoned else ''}"


def usual_unit(grain: int) -> str:
    """The largest of days, hours and minutes that moments so far apart are whole numbers of, else seconds.

    >>> usual_unit(7 * DAY), usual_unit(5400 * SECOND), usual_unit(1)
    ('days', 'min', 's')
    """
    return next((unit for unit, size in _GRAINS.items() if grain % size == 0), "s")


def times_since(when: Int64[np.ndarray, " time"], start: int, unit: str) -> Float64[np.ndarray, " time"]:
    """Moments as times since a first one, NaN where they are missing."""
    times = np.where(when == MISSING, np.nan, (when - start).astype(np.float64))
    return converted(times, "us", unit)


def moments_of(times: Float64[np.ndarray, " time"], origin: str, unit: str) -> Int64[np.ndarray, " time"]:
    """Moments of times since an origin: to the microsecond, beyond 35 years to the millisecond."""
    since, start = converted(np.asarray(times, np.float64), unit, "us"), moment(origin)[0]
    longest = np.abs(since).max(initial=0.0)
    if longest > LAST - start:
        raise InputError(f"times that count from {origin} lead beyond the year 9999, where there are no dates")
    found = start + np.rint(since).astype(np.int64)
    return found if longest < _EXACT else (found + 500) // 1000 * 1000


def recounted(
    times: Float64[np.ndarray, " time"], origin: str | None, unit: str, start: str | None, other: str
) -> Float64[np.ndarray, " time"]:
    """Times since one date as times since another (or times without dates), in another unit.

    What stands on a microsecond is counted from there, as if it had been read so: a date is the same number by
    whichever way it came. What lies between (times that never were dates) is only shifted and scaled.
    """
    if (origin, unit) == (start, other):
        return times
    if origin is None or start is None:
        return converted(times, unit, other)
    later = times_since(np.array([moment(origin)[0]]), moment(start)[0], other)[0]
    plain = converted(times, unit, other) + later
    try:
        exact = times_since(moments_of(times, origin, unit), moment(start)[0], other)
    except InputError:  # beyond the calendar
        return plain
    near = _ROUNDINGS * np.finfo(np.float64).eps * np.maximum(np.abs(plain), abs(later))
    return np.where(np.abs(exact - plain) <= near, exact, plain)


def date_of(time: float, origin: str, unit: str) -> str:
    """The date of a time, as text.

    >>> date_of(1.5, "2024-01-31", "days")
    '2024-02-01T12:00:00'
    """
    return told(int(moments_of(np.array([time]), origin, unit)[0]), moment(origin)[1])


def earliest_origin(origins: Sequence[str | None]) -> str | None:
    """The earliest of several dates that times count from.

    >>> earliest_origin(["2024-01-31", "2024-01-30"])
    '2024-01-30'
    """
    dated = [origin for origin in origins if origin is not None]
    if not dated:
        return None
    starts, zoned = zip(*map(moment, dated), strict=True)
    if len(dated) < len(origins) or len(set(zoned)) > 1:
        raise InputError("some times count from a date, or from one in a zone, and others do not: make all alike")
    return dated[starts.index(min(starts))]


def moment_among(when: Date, origin: str | None) -> int:
    """The moment of a date, to be compared with those that count from an origin; without a zone it is in the origin's.

    >>> moment_among("1970-01-02", "2024-01-31")
    86400000000
    """
    text = text_of(when)
    found, zoned = moment(text)
    if origin is None:
        raise InputError(f"the data have no dates: give a time such as 10 in place of {text}")
    if zoned and not moment(origin)[1]:
        raise InputError(f"{text} names a zone, but the dates in the data name none: leave it out")
    return found


def comes_before(
    times: Float64[np.ndarray, " time"], origin: str | None, unit: str, end: float | Date
) -> Bool[np.ndarray, " time"]:
    """Which times come before an end. A date is compared with dates: as times they may differ by a rounding.

    >>> comes_before(np.array([0.0, 1.0]), "2024-01-31", "days", "2024-02-01")
    array([ True, False])
    """
    if not isinstance(end, Date):
        return times < float(end)
    found = moment_among(end, origin)
    assert origin is not None
    return moments_of(times, origin, unit) < found


def nothing_between(
    start: float | Date, stop: float | Date, times: Float64[np.ndarray, " time"], origin: str | None, unit: str
) -> str:
    """That no time lies there, and where the times lie; of dates in dates."""
    a, b = (text_of(end) if isinstance(end, Date) else f"time {end:g}" for end in (start, stop))
    ends, what = [f"{end:g}" for end in (times.min(), times.max())], "times"
    if isinstance(start, Date) and origin is not None:
        ends, what = [date_of(end, origin, unit) for end in (times.min(), times.max())], "data"
    return f"no value lies between {a} and {b}; the {what} run from {ends[0]} to {ends[1]}"


def time_since(when: Date, origin: str | None, unit: str) -> float:
    """A date as a time since an origin.

    >>> time_since("2024-02-01T12:00", "2024-01-31", "days")
    1.5
    """
    found = moment_among(when, origin)
    assert origin is not None
    return float(times_since(np.array([found]), moment(origin)[0], unit)[0])


def usual_origin(origin: str, unit: str) -> str:
    """A date that times in this unit can be counted from, as it is always written.

    >>> usual_origin("20240131", "days"), usual_origin("2024-01-31T10:00+02:00", "h")
    ('2024-01-31', '2024-01-31T08:00:00Z')
    """
    found = told(*moment(origin))
    if length(unit) is None:
        raise InputError(f"times in {unit!r} cannot count from the date {origin}: use days, years, h, s or the like")
    return found
