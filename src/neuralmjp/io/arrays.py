"""Arrays of many shapes into the one that `TimeSeries` keeps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from ..errors import InputError
from ..timeseries import TIME_UNIT, TimeSeries

Flat = tuple[
    Float64[np.ndarray, " observation"], Float64[np.ndarray, "observation feature"], Int64[np.ndarray, " series"]
]
DATES = "dates: say in what they count, such as (t - t[0]) / np.timedelta64(1, 'D')"
# Kinds of arrays that NumPy would turn into floats, though something is lost.
NOT_REAL = {"M": DATES, "m": DATES, "c": "complex numbers: give their real and imaginary parts as two values"}


def from_arrays(
    times: Any,
    values: Any,
    *,
    time_unit: str = TIME_UNIT,
    value_names: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    origin: str | None = None,
    copy: bool = True,
) -> TimeSeries:
    """See `TimeSeries.from_arrays`; without `copy` the arrays are taken over where their shapes allow it."""
    ragged = isinstance(times, list | tuple) and len({np.shape(series) for series in times}) > 1
    flat_times, flat_values, lengths = _join(times, values) if ragged else _flatten(times, values, copy)
    n_features = flat_values.shape[1]
    if value_names is None:
        value_names = default_value_names(n_features)
    if names is None:
        names = [str(i) for i in range(len(lengths))]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return TimeSeries(flat_times, flat_values, offsets, tuple(names), tuple(value_names), time_unit, origin)


def from_dtrajs(dtrajs: Any, lag: float, time_unit: str) -> TimeSeries:
    """Discrete trajectories with a frame every `lag`; a negative state was not seen.

    >>> from_dtrajs([[0, 0, 1], [1, -1]], 2.0, "ps").values[:, 0]
    array([ 0.,  0.,  1.,  1., nan])
    """
    single = isinstance(dtrajs, np.ndarray) and dtrajs.ndim == 1
    found = [_floats(one, "discrete trajectories") for one in ([dtrajs] if single else dtrajs)]
    for one in found:
        if one.ndim != 1 or (one != np.round(one)).any():
            raise InputError("a discrete trajectory is a list of whole numbers, one state per frame")
    if not lag > 0:
        raise InputError(f"the lag between frames must be positive, got {lag}")
    times = [lag * np.arange(len(one)) for one in found]
    return from_arrays(
        times, [np.where(one < 0, np.nan, one) for one in found], time_unit=time_unit, value_names=["state"]
    )


def _join(times: Sequence[Any], values: Sequence[Any]) -> Flat:
    """Lay series of different lengths end to end."""
    if len(times) != len(values):
        raise InputError(f"{len(times)} arrays of times but {len(values)} of values; give one of each per series")
    parts = [_flatten(t, x, copy=False) for t, x in zip(times, values, strict=True)]
    if len({x.shape[1] for _, x, _ in parts}) > 1:
        raise InputError("the arrays differ in the number of values per observation; make it the same for all series")
    flat_times, flat_values, lengths = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return flat_times, flat_values, lengths


def _flatten(times: Any, values: Any, copy: bool) -> Flat:
    """Lay the rows of rectangular arrays end to end, without the padding at their ends."""
    times, values = _floats(times, "times"), _floats(values, "values")
    shapes = f"times {times.shape} and values {values.shape}"
    if times.ndim == 1 and values.ndim in (1, 2):
        times, values = times[None], values[None]
    elif times.ndim == 1 and values.ndim == 3 and values.shape[1] == len(times):
        times = np.broadcast_to(times, values.shape[:2])
    if times.ndim == 2 and values.ndim == 2:
        values = values[:, :, None]
    if times.ndim != 2 or values.ndim != 3 or times.shape != values.shape[:2]:
        raise InputError(
            f"{shapes} do not fit; use (N, L) with (N, L) or (N, L, D), (L,) with (L,) or (L, D) for one series, "
            "or (L,) with (N, L, D) for series that share their times"
        )
    ended = np.logical_and.accumulate(np.isnan(times)[:, ::-1], axis=1)[:, ::-1]
    lengths = np.sum(~ended, axis=1)
    if not copy and not ended.any():
        return times.reshape(-1), values.reshape(-1, values.shape[2]), lengths
    return times[~ended], values[~ended], lengths


def _floats(numbers: Any, what: str) -> Float64[np.ndarray, "..."]:
    try:
        given = np.asarray(numbers)
        found = None if given.dtype.kind in NOT_REAL else given.astype(np.float64, copy=False)
    except (ValueError, TypeError):
        raise InputError(f"{what} are not numbers, or not of one length; use one array of floats per series") from None
    if found is None:
        raise InputError(f"{what} are {NOT_REAL[given.dtype.kind]}")
    return found


def default_value_names(n_features: int) -> list[str]:
    """Where nobody named them."""
    return ["value"] if n_features == 1 else [f"value_{i}" for i in range(n_features)]
