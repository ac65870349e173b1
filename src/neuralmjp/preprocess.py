"""What is done to recordings before a fit: thinning, decimation, burn-in, sines of angles, values from 0 to 1."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from .errors import InputError
from .timeseries import TimeSeries


def thinned(data: TimeSeries, every: int) -> TimeSeries:
    """Every n-th observation of each series, the first included.

    Where a hidden process is not quite Markov at short times, observations farther apart see the slow jumps alone.

    >>> thinned(TimeSeries.from_arrays(np.arange(7.0), np.arange(7.0)), 3).times.tolist()
    [0.0, 3.0, 6.0]
    """
    if every < 1:
        raise InputError(f"thinning keeps every n-th observation, n at least 1; got {every}")
    return _kept(data, _position(data) % every == 0)


def decimated(data: TimeSeries, every: int) -> TimeSeries:
    """Every n-th sample of regular recordings, after a low-pass filter without delay: less noise, no aliasing.

    >>> decimated(TimeSeries.from_arrays(np.arange(7.0), np.ones(7)), 3).times.tolist()
    [0.0, 3.0, 6.0]
    """
    if every < 1:
        raise InputError(f"decimation keeps every n-th sample, n at least 1; got {every}")
    from scipy.signal import resample_poly

    if not data.mask.all():
        raise InputError("decimation filters the values, and some are missing; use thinning (--thin) instead")
    parts = []
    for series in data:
        gaps = np.diff(series.times)
        if len(gaps) and not np.allclose(gaps, gaps.mean(), rtol=1e-3, atol=0):
            raise InputError(
                f"decimation needs samples at equal distances, but those of series {series.names[0]!r} are not; "
                "use thinning (--thin) instead"
            )
        # A symmetric filter has no phase; mirrored ends keep the level where a recording begins and stops.
        parts.append(resample_poly(series.values, 1, every, axis=0, padtype="symmetric"))
    kept = _position(data) % every == 0
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    return replace(data, times=data.times[kept], values=np.concatenate(parts), offsets=offsets)


def without_burn_in(data: TimeSeries, n: int) -> TimeSeries:
    """Each series without its first n observations; series that end before are left out."""
    if n < 0:
        raise InputError(f"a burn-in is a number of observations, got {n}")
    if (data.lengths <= n).all():
        raise InputError(f"no series has more than {n} observations: nothing is left after the burn-in")
    long = data[np.flatnonzero(data.lengths > n)]
    return _kept(long, _position(long) >= n)


def shortened(data: TimeSeries, n: int) -> TimeSeries:
    """The first n observations of each series."""
    if n < 1:
        raise InputError(f"a series keeps at least 1 observation, got {n}")
    return _kept(data, _position(data) < n)


def sine_cosine(data: TimeSeries, *, degrees: bool = False) -> TimeSeries:
    """Angles as the sine and the cosine of each, so that -180 and 180 degrees are neighbours."""
    angles = np.deg2rad(data.values) if degrees else data.values
    values = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(angles), -1)
    names = tuple(f"{part}_{name}" for name in data.value_names for part in ("sin", "cos"))
    return replace(data, values=values, value_names=names)


class UnitScale(NamedTuple):
    """Where values lay before they were brought to the interval from 0 to 1."""

    low: Float[np.ndarray, "feature"]
    high: Float[np.ndarray, "feature"]

    def back(self, values: Float[np.ndarray, "*lead feature"]) -> Float[np.ndarray, "*lead feature"]:
        """In physical units again."""
        return self.low + values * (self.high - self.low)


def to_unit_interval(data: TimeSeries) -> tuple[TimeSeries, UnitScale]:
    """Values between 0 and 1, and the way back."""
    scale = UnitScale(np.nanmin(data.values, axis=0), np.nanmax(data.values, axis=0))
    if not (scale.high > scale.low).all():
        constant = data.value_names[int(np.argmin(scale.high > scale.low))]
        raise InputError(f"value {constant!r} never changes: it has no scale")
    values = (data.values - scale.low) / (scale.high - scale.low)
    return replace(data, values=values), scale


def _position(data: TimeSeries) -> Int[np.ndarray, "observation"]:
    """Of every observation in its series, from 0."""
    return np.arange(data.n_observations) - np.repeat(data.offsets[:-1], data.lengths)


def _kept(data: TimeSeries, keep: np.ndarray) -> TimeSeries:
    offsets = np.concatenate([[0], np.cumsum(np.add.reduceat(keep.astype(np.int64), data.offsets[:-1]))])
    return replace(data, times=data.times[keep], values=data.values[keep], offsets=offsets)
