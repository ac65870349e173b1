"""Mains hum and drift for a recording: what people type becomes a frequency, tuned to what is in the data."""

import numpy as np
from jaxtyping import Float

from ..arguments import require_whole
from ..errors import InputError
from ..timeseries import TimeSeries
from ..units import frequency
from .emission import Emission, starting_centres
from .wrapped import Nuisance, levels_of

MAINS_OFF = 0.003  # the share by which the mains may be off their nominal frequency
STEPS_PER_WIDTH = 8  # frequencies tried per width of a spectral line
MOST_ROWS = 500_000  # observations that are looked at for the frequency


def with_nuisance(
    emission: Emission, data: TimeSeries, n_states: int, *, hum: str | float | None, harmonics: int, drift: int
) -> Nuisance:
    """An emission with the hum and the drift of these data, about which only the nominal frequency is known."""
    first, last = float(data.times.min()), float(data.times.max())
    require_whole(drift, 0, "drift is a number of half-waves from 0")
    require_whole(harmonics, 1, "harmonics are counted from 1")
    if drift and not _one_after_the_other(data):
        raise InputError("drift is for one recording: here series overlap in time; fit them one by one")
    if hum is None:
        return Nuisance(emission, 0.0, 1, drift, (first, last))
    nominal, gap = frequency(hum, data.time_unit), float(np.median(data.gaps))
    if nominal * gap > 0.5:
        raise InputError(
            f"hum of {hum} cannot be told in observations {gap:g} {data.time_unit} apart: they are too far apart"
        )
    heard = min(harmonics, int(0.5 / (nominal * gap)))
    levels = levels_of(emission)
    n_levels = n_states if levels is None else levels.n_levels
    return Nuisance(emission, tuned(data, nominal, n_levels), heard, drift, (first, last))


def tuned(data: TimeSeries, nominal: float, n_levels: int) -> float:
    """The frequency near the nominal one that is strongest in what levels leave of the signal."""
    stop = int(data.offsets[1]) if len(data) == 1 else data.n_observations
    rows = slice(0, min(stop, MOST_ROWS))
    times, values = data.times[rows], data.values[rows, 0]
    here = ~np.isnan(values)
    times, rest = times[here], _less_levels(values[here], n_levels)
    width = 1 / max(float(np.ptp(times)), 1 / nominal)
    reach = MAINS_OFF * nominal
    if reach < width:  # too short a record to tell it from the nominal one
        return nominal
    tried = np.arange(nominal - reach, nominal + reach, width / STEPS_PER_WIDTH)
    power = [np.abs(rest @ np.exp(-2j * np.pi * f * times)) for f in tried]
    return float(tried[int(np.argmax(power))])


def _less_levels(values: Float[np.ndarray, "row"], n_levels: int) -> Float[np.ndarray, "row"]:
    """What is left of a signal without its rough levels: each value less the mean of those near the same level."""
    centres = starting_centres(values[:, None], n_levels, None)[:, 0]
    nearest = np.abs(values[:, None] - centres).argmin(1)
    count = np.bincount(nearest, minlength=n_levels)
    mean = np.bincount(nearest, weights=values, minlength=n_levels) / np.maximum(count, 1)
    return values - mean[nearest]


def _one_after_the_other(data: TimeSeries) -> bool:
    order = np.argsort(data.times[data.offsets[:-1]])
    begins, ends = data.times[data.offsets[:-1]][order], data.times[data.offsets[1:] - 1][order]
    return bool((begins[1:] >= ends[:-1]).all())
