"""Frequencies as people write them, in the time unit of the data."""

import math
import re

from .errors import InputError

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12, "min": 60.0, "h": 3600.0}
HERTZ = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def frequency(text: str | float, time_unit: str, what: str = "hum") -> float:
    """`50Hz` in the data's unit of time: cycles per unit. A plain number is taken as it is.

    >>> frequency("50Hz", "ms"), frequency("0.5 kHz", "s"), frequency(0.05, "ms")
    (0.05, 500.0, 0.05)
    """
    if not isinstance(text, str):
        value, unit = float(text), None
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
    if time_unit not in SECONDS:
        raise InputError(
            f"{what} is given in Hz, but the data's unit of time is {time_unit!r}: give it as --time-unit s"
        )
    return float(f"{value * HERTZ[unit] * SECONDS[time_unit]:.12g}")


def in_hertz(text: str | float) -> bool:
    """Whether a frequency names its unit, and so asks for times in seconds or the like."""
    return isinstance(text, str) and "Hz" in text


def sampling(rate: str | float, time_unit: str | None, default: str) -> tuple[float, str]:
    """Samples per time unit, and that unit: as asked for, else the default, or seconds where only these fit.

    >>> sampling("5kHz", None, "time unit"), sampling("2kHz", "ms", "s"), sampling(0.1, None, "ps")
    ((5000.0, 's'), (2.0, 'ms'), (0.1, 'ps'))
    """
    if time_unit is None:
        time_unit = "s" if in_hertz(rate) and default not in SECONDS else default
    return frequency(rate, time_unit, "the rate"), time_unit
