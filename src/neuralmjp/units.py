"""Units of time, their lengths and spellings; data of one in another; frequencies as people write them."""

import math
import re
from numbers import Real

import numpy as np
from jaxtyping import Float64

from .errors import InputError

TIME_UNIT = "time unit"  # of data that name none
HERTZ = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}

# Lengths in femtoseconds, whole numbers, so that conversions are exact. A year is 365.25 days, a month its twelfth.
_SECOND = 10**15
_DAY = 86400 * _SECOND
_SPELLINGS = {
    1: "fs femtosecond femtoseconds",
    10**3: "ps picosecond picoseconds",
    10**6: "ns nanosecond nanoseconds",
    10**9: "us µs μs microsecond microseconds",
    10**12: "ms msec millisecond milliseconds",
    _SECOND: "s sec secs second seconds",
    60 * _SECOND: "min mins minute minutes",
    3600 * _SECOND: "h hr hrs hour hours",
    _DAY: "d day days",
    7 * _DAY: "w wk week weeks",
    _DAY * 1461 // 48: "mo month months",
    _DAY * 1461 // 4: "y yr yrs year years",
}
_LENGTHS = {word: length for length, words in _SPELLINGS.items() for word in words.split()}
_LONGEST_OF_HERTZ = 3600 * _SECOND


def length(unit: str) -> int | None:
    """How long a unit is, in femtoseconds; None for one that is not known. Words may be capitalised.

    >>> length("Years") == length("yr"), length("generation")
    (True, None)
    """
    return _LENGTHS.get(unit.lower() if len(unit) > 2 else unit)


def per(unit: str) -> str:
    """Of a rate: words that are known stand in the singular.

    >>> per("years"), per("ms"), per("generations")
    ('per year', 'per ms', 'per generations')
    """
    alone = unit.removesuffix("s")
    return f"per {alone if alone and length(unit) is not None and length(alone) == length(unit) else unit}"


def ratio(unit: str, other: str) -> tuple[int, int]:
    """How many of `other` make how many of `unit`, as the smallest whole numbers: 24 hours are 1 day.

    Data of no named unit take any; words that are not known are the same unit only if they are the same word.

    >>> ratio("days", "h"), ratio("min", "h"), ratio("day", "d")
    ((24, 1), (1, 60), (1, 1))
    """
    if unit == other or TIME_UNIT in (unit, other):
        return 1, 1
    one, two = length(unit), length(other)
    if one is None or two is None:
        raise InputError(
            f"times in {unit!r} cannot be told in {other!r}: units that are known are years, months, weeks, days, "
            "hours, min, s, ms, us, ns and ps; where both mean the same, use the same word"
        )
    common = math.gcd(one, two)
    return one // common, two // common


def converted(times: Float64[np.ndarray, " time"], unit: str, other: str) -> Float64[np.ndarray, " time"]:
    """Times in another unit; as they are where the units are the same.

    >>> converted(np.array([0.0, 36.0]), "h", "days")
    array([0. , 1.5])
    """
    many, of = ratio(unit, other)
    with np.errstate(over="ignore"):  # no times are so large; what is infinite is refused with the data
        return times if many == of else times * float(many) / float(of)


def frequency(text: str | float, time_unit: str, what: str = "hum") -> float:
    """`50Hz` in the data's unit of time: cycles per unit. A plain number is taken as it is.

    >>> frequency("50Hz", "ms"), frequency("0.5 kHz", "s"), frequency(0.05, "ms")
    (0.05, 500.0, 0.05)
    """
    if not isinstance(text, str):
        value, unit = float(text) if isinstance(text, Real) else math.nan, None
    else:
        found = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(?:([mkMGT]?)Hz)?\s*", text)
        try:
            value = float(found[1]) if found else math.nan
        except ValueError:
            value = math.nan
        unit = found[2] if found and in_hertz(text) else None
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{what} is a frequency such as 50Hz, got {text!r}")
    if unit is None:
        return value
    if (seconds := _seconds(time_unit)) is None:
        raise InputError(
            f"{what} is given in Hz, but the data's unit of time is {time_unit!r}: give it as --time-unit s"
        )
    return float(f"{value * HERTZ[unit] * seconds:.12g}")


def in_hertz(text: str | float) -> bool:
    """Whether a frequency names its unit, and so asks for times in seconds or the like."""
    return isinstance(text, str) and "Hz" in text


def sampling(rate: str | float, time_unit: str | None, default: str) -> tuple[float, str]:
    """Samples per time unit, and that unit: as asked for, else the default, or seconds where only these fit.

    >>> sampling("5kHz", None, "time unit"), sampling("2kHz", "ms", "s"), sampling(0.1, None, "ps")
    ((5000.0, 's'), (2.0, 'ms'), (0.1, 'ps'))
    """
    if time_unit is None:
        time_unit = "s" if in_hertz(rate) and _seconds(default) is None else default
    return frequency(rate, time_unit, "the rate"), time_unit


def _seconds(unit: str) -> float | None:
    """Length of a unit that people tell frequencies in: an hour at most."""
    known = length(unit)
    return None if known is None or known > _LONGEST_OF_HERTZ else known / _SECOND
