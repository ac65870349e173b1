"""Where a fit of a reaction network begins: moments of the increments, and data that no fit could explain."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import nnls
from scipy.stats import poisson

from ..emissions.emission import Params
from ..emissions.readings import Readings
from ..errors import InputError
from ..systems.events import Events
from ..timeseries import TimeSeries

# Noise parameters (standard deviations, decay lengths) outside the box that no reading in a thousand million comes to.
FAR = {"gaussian": 6.0, "two-sided-exponential": 20.0}
ROBUST = 1.4826  # standard deviation of a normal law per median of its sizes
LEAST_SHARE = 0.1  # of the most frequent reaction: a start for one that the moments do not show
LEAST_NOISE = 0.3
DETECTED = 0.5


def check_readable(data: TimeSeries, readings: Readings, box: tuple[int, ...]) -> None:
    """One line for data that tell nothing, and for a reading that no count in the box can give."""
    readings.check(data.values, data.value_names)
    inner = np.delete(np.arange(data.n_observations), data.offsets[:-1])
    steps = data.values[inner] - data.values[inner - 1]
    if not (np.nan_to_num(steps) != 0).any():
        raise InputError("no value changes between neighbouring observations: there is nothing to learn rates from")
    for column, (shown, name) in enumerate(zip(readings.columns, data.value_names, strict=True)):
        value, most = data.values[:, column], sum(box[s] - 1 for s in shown)
        beyond, below = value > most, np.zeros(len(value), dtype=bool)
        if readings.noise == "poisson":
            beyond &= poisson.sf(np.nan_to_num(value) - 1, most) < 1e-12
        elif readings.noise in FAR:
            above, under = _slack(value, steps[:, column], readings, column, most)
            beyond, below = value > most + above, value < -under
        for row in np.flatnonzero(beyond | below)[:1]:
            series = int(np.searchsorted(data.offsets, row, side="right")) - 1
            what = "counts are not negative"
            if beyond[row]:
                top = int(np.ceil(np.nanmax(value)))
                largest = tuple(top if s in shown else n - 1 for s, n in enumerate(box))
                lines = ", ".join(f"'box {one} {top}'" for one in name.split("+"))
                what = (
                    f"its box ends at {most}: enlarge the box, in a network file by {lines}, in Python by "
                    f"dataclasses.replace(network, largest={largest})"
                )
                if readings.noise in FAR and readings.fixed is None:
                    what += "; if it is noise, say how much there is by the noise scale"
            raise InputError(
                f"series {data.names[series]}, time {data.times[row]:g}: {name} reads {value[row]:g}, but {what}"
            )


def _slack(
    value: Float[np.ndarray, "row"], steps: Float[np.ndarray, "step"], readings: Readings, column: int, most: int
) -> tuple[float, float]:
    """How far above its box and below zero a reading may lie by noise.

    Known noise says it. Else the noise is no larger than steps between neighbours tell, of which counts make a part;
    and where that would reach beyond the box by more than half of it, readings below zero must show such noise too.
    """
    far = FAR[readings.noise]
    if readings.fixed is not None:
        return far * readings.fixed[column], far * readings.fixed[column]
    largest = far * max(ROBUST * float(np.nanmedian(np.abs(steps))) / np.sqrt(2), 1.0)
    shown = -3 * float(np.nanmin(value))  # three times as far above the box as below zero
    return max(min(largest, max(most / 2, shown)), far), largest


def crude_start(data: TimeSeries, events: Events, readings: Readings) -> tuple[Float[np.ndarray, "constant"], Params]:
    """Logarithms of the constants and the noise, from the means and squares of what changes between observations.

    A mean is the sum of changes x rate x time, a square that of changes^2 x rate x time and twice the noise: least
    squares for constants that are not negative.
    """
    detection = _detection(data, readings, events.box)
    rows = np.delete(np.arange(data.n_observations), data.offsets[:-1])
    ways = _ways(data, events, readings, detection)
    per_gap = data.gaps * (ways[:, rows] + ways[:, rows - 1]) / 2
    changes, owner = np.array(events.changes), np.array(events.constant_of)
    n, n_columns = len(events.names), len(readings.columns)
    design, target = [], []
    for k, shown in enumerate(readings.columns):
        step = data.values[rows, k] - data.values[rows - 1, k]
        seen = ~np.isnan(step)
        if not seen.any():
            continue
        change = detection[k] * changes[:, list(shown)].sum(1)
        spread = 0.1 + np.abs(step[seen])
        typical = np.sqrt(np.median(spread**2) * (1 + data.gaps[seen] / np.median(data.gaps)) / 2)
        for power, weight in ((1, 1 / typical), (2, 0.7 / typical**2)):
            columns = [per_gap[owner == j][:, seen].T @ change[owner == j] ** power for j in range(n)]
            noise = [np.full(seen.sum(), 2.0 * (power == 2 and j == k)) for j in range(n_columns)]
            design.append(np.stack([*columns, *noise], axis=1) * weight[:, None])
            target.append(step[seen] ** power * weight)
    whole = np.concatenate(design)
    size = np.sqrt((whole**2).sum(0))
    size[size == 0] = 1.0
    found = nnls(whole / size, np.concatenate(target))[0] / size
    exposure = np.array([ways[owner == j].sum(0).mean() for j in range(n)])
    exposure[exposure == 0] = 1.0
    often = found[:n] * exposure
    least = LEAST_SHARE * often.max() if often.max() > 0 else len(data) / data.gaps.sum()
    noise_scale = np.maximum(np.sqrt(found[n:]), LEAST_NOISE)
    noise = readings.start(noise_scale)
    if readings.noise == "binomial" and readings.fixed is None:
        noise = {"logit_detection": np.log(detection) - np.log1p(-detection)}
    return np.log(np.maximum(often, least) / exposure), noise


def _detection(data: TimeSeries, readings: Readings, box: tuple[int, ...]) -> Float[np.ndarray, "column"]:
    """How many of the individuals a reading shows, roughly."""
    if readings.noise != "binomial":
        return np.ones(len(readings.columns))
    if readings.fixed is not None:
        return np.clip(np.array(readings.fixed), 1e-3, 1 - 1e-9)
    most = np.array([sum(box[s] - 1 for s in shown) for shown in readings.columns])
    return np.clip(1.1 * np.nanmax(data.values, axis=0) / most, DETECTED, 0.95)


def _ways(
    data: TimeSeries, events: Events, readings: Readings, detection: Float[np.ndarray, "column"]
) -> Float[np.ndarray, "event row"]:
    """Rate of each event per constant where the readings say counts are; averaged over species that are not seen."""
    counts: dict[int, Int[np.ndarray, "row"]] = {}
    for k, shown in sorted(enumerate(readings.columns), key=lambda each: len(each[1])):
        rest = _filled(data, k) / detection[k] - sum(counts.get(s, 0) for s in shown)
        new = [s for s in shown if s not in counts]
        for s in new:
            counts[s] = np.clip(np.rint(rest / len(new)), 0, events.box[s] - 1).astype(int)
    middle = [n // 2 for n in events.box]
    factors = np.asarray(events.factors)
    ways = np.ones((events.n_events, data.n_observations))
    for s, n in enumerate(events.box):
        ways *= factors[:, s][:, counts[s]] if s in counts else factors[:, s, :n].mean(1, keepdims=True)
    places = {one: jnp.asarray(counts.get(s, middle[s])) for s, one in enumerate(events.species)}
    for e, function in enumerate(events.functions):
        if function is not None:
            ways[e] *= np.asarray(function(places))
    return ways


def _filled(data: TimeSeries, column: int) -> Float[np.ndarray, "row"]:
    """One column with missing values interpolated in time, or its mean where a series has none."""
    result = data.values[:, column].copy()
    mean = float(np.nanmean(result)) if (~np.isnan(result)).any() else 0.0
    for begin, stop in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        part, times = result[begin:stop], data.times[begin:stop]
        seen = ~np.isnan(part)
        if not seen.all():
            part[:] = np.interp(times, times[seen], part[seen]) if seen.any() else mean
    return result
