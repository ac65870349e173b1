"""`neuralmjp predict`: what will be observed after the last observation of each series."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..dates import date_of, time_since
from ..emissions import Categorical
from ..errors import InputError
from ..fitted import FittedMJP
from ..fitted_network import FittedNetwork
from ..io import write
from ..io.columns import labels_of
from ..systems.system import randomness
from ..timeseries import TimeSeries
from ..units import converted
from .runs import load_any, read_for
from .show import console, number, table

SAMPLES = 1000
MOST_TIMES = 1_000_000  # in all series
SHOWN = 10  # rows on the terminal
PARTS = ("mean", "q05", "q50", "q95")
_YEAR = re.compile(r"1[5-9]\d\d|2[01]\d\d")


def run(
    folder: Path,
    path: Path,
    columns: dict[str, Any],
    *,
    until: str | None,
    steps: int | None,
    samples: int | None,
    seed: int,
    out: Path | None,
) -> None:
    randomness(seed)  # refused here, in words, if it is no seed
    if (until is None) == (steps is None):
        raise InputError("say how far to look ahead: --until T, or --steps N, and not both")
    fitted = load_any(folder)
    if samples is not None and isinstance(fitted, FittedNetwork):
        raise InputError("the forecast of a reaction network is computed, not sampled: leave --samples out")
    data = read_for(fitted, path, columns)
    until_time = None if until is None else time_of(until, data)
    if until_time is not None:
        data = still_ahead(data, until_time)
    times = times_ahead(data, until_time, steps)
    known = data.in_unit(fitted.time_unit)
    later = [converted(one, data.time_unit, fitted.time_unit) for one in times]
    if isinstance(fitted, FittedNetwork):
        forecast, chances, states = fitted.predict(known, later), {}, {}
    else:
        forecast = fitted.predict(known, later, samples=SAMPLES if samples is None else samples, seed=seed)
        chances = chances_of_labels(fitted, forecast.samples, labels_of(columns.get("labels")))
        states = {f"p_{k}": p for k, p in enumerate(forecast.probabilities.T)}  # of the hidden states, as decode has
    ahead = forecast.readings
    law = np.stack([ahead.mean, ahead.lower, ahead.median, ahead.upper], axis=-1)
    more = {f"{fitted.value_names[0]}_p_{label}": p for label, p in chances.items()} | states
    names = (*(f"{one}_{part}" for one in fitted.value_names for part in PARTS), *more)
    values = np.column_stack([law.reshape(len(law), -1), *more.values()])
    result = following(data, times, values, names)
    if out is not None:
        write(result, out)
    show(result, law, fitted.value_names, chances, path, out)


def time_of(text: str, data: TimeSeries) -> float:
    """A time as it was typed: a number, or a date where the data have dates; one without a zone is in theirs."""
    try:
        time = float(text)
    except ValueError:
        if data.origin is None:
            raise InputError(f"--until takes a time such as 10, since the data have no dates; got {text!r}") from None
        return time_since(text, data.origin, data.time_unit)
    if data.origin is not None and np.isfinite(time):
        counted = f"--until {text} is a number of {data.time_unit} since {data.origin}"
        if _YEAR.fullmatch(text):
            raise InputError(f"{counted}: if the year is meant, write {text}-01-01, else {text}.0")
        try:
            date_of(time, data.origin, data.time_unit)
        except InputError:
            raise InputError(f"{counted}, and leads beyond the year 9999; a date is written as 2024-01-31") from None
    return time


def still_ahead(data: TimeSeries, until: float) -> TimeSeries:
    """The series that end before that time; of the others nothing is left to forecast, which is told."""
    ends = data.times[data.offsets[1:] - 1]
    ahead = ends < until
    if np.isfinite(until) and ahead.any() and not ahead.all():
        first = int(np.argmin(ahead))
        console().print(
            f"{(~ahead).sum()} of {len(data)} series are left out: they go on to that time, as "
            f"{data.names[first]!r} does",
            soft_wrap=True,
        )
        return data[ahead]
    return data


def times_ahead(data: TimeSeries, until: float | None, steps: int | None) -> list[np.ndarray]:
    """Later times of each series, a median gap of its own apart; the last one is `until` where that is given."""
    if until is not None and not np.isfinite(until):
        raise InputError(f"--until must be a finite time, got {until}")
    times, n = [], 0
    for name, begin, stop in zip(data.names, data.offsets[:-1], data.offsets[1:], strict=True):
        last = float(data.times[stop - 1])
        gaps = np.diff(data.times[begin:stop]) if stop - begin > 1 else data.gaps
        if gaps.size == 0:
            raise InputError("no series has two observations: there is no gap to continue with")
        gap = float(np.median(gaps))
        if until is not None and until <= last:
            asked, seen = (told(time, data, "{:g}".format) for time in (until, last))
            raise InputError(f"--until {asked} is not after the last observation of series {name!r}, at {seen}")
        count = steps or max(int(np.ceil((until - last) / gap - 1e-9)), 1)  # type: ignore[operator]
        n += count
        if n > MOST_TIMES:
            raise InputError(f"more than {MOST_TIMES} times to forecast: ask for less")
        ahead = last + gap * np.arange(1, count + 1)
        if until is not None:
            ahead[-1] = until
        times.append(ahead)
    return times


def following(data: TimeSeries, times: list[np.ndarray], values: np.ndarray, names: tuple[str, ...]) -> TimeSeries:
    """A table of forecasts, of which a series may have one alone: made with the last observation, then without it."""
    lengths = np.array([len(one) for one in times])
    before = np.cumsum(lengths) - lengths
    last = data.times[data.offsets[1:] - 1]
    longer = replace(
        data,
        times=np.insert(np.concatenate(times), before, last),
        values=np.insert(values, before, 0.0, axis=0),
        offsets=np.concatenate([[0], np.cumsum(lengths + 1)]),
        value_names=names,
    )
    return longer.without_first()


def chances_of_labels(fitted: FittedMJP, samples: np.ndarray, words: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The share of each label among the samples, where labels are what is seen; by the word that stood in the data."""
    if not isinstance(fitted.emission, Categorical):
        return {}
    codes = fitted.emission.labels
    named = bool(words) and max(codes) < len(words)  # words of a fit to numbers may be fewer
    return {words[int(code)] if named else f"{code:g}": (samples[..., 0] == code).mean(0) for code in codes}


def show(
    result: TimeSeries,
    law: np.ndarray,
    names: tuple[str, ...],
    chances: dict[str, np.ndarray],
    path: Path,
    out: Path | None,
) -> None:
    """The end of each forecast, for the first few series: of labels the chance of each, of values their law."""
    screen, clock = console(), "date" if result.origin else f"time ({result.time_unit})"
    where = "" if out is None else f" -> {out}"
    screen.print(f"{path}: {result.n_observations} times ahead in {len(result)} series{where}", soft_wrap=True)
    ends = result.offsets[1:] - 1
    cells = [
        [number(float(p[end])) for p in chances.values()]
        if chances
        else [_cell(law[end, c]) for c in range(len(names))]
        for end in ends[:SHOWN]
    ]
    rows = [
        [result.names[k], told(float(result.times[end]), result), *each]
        for k, (end, each) in enumerate(zip(ends, cells, strict=False))
    ]
    title = f"Forecast at the end: chance of each {names[0]}" if chances else "Forecast at the end: mean [5 %, 95 %]"
    screen.print(table(title, ["series", clock, *(chances or names)], rows))
    if len(ends) > SHOWN:
        screen.print(f"and {len(ends) - SHOWN} more series")


def told(time: float, data: TimeSeries, plain: Callable[[float], str] = number) -> str:
    """A time as these data tell it: a date where they have dates."""
    return plain(time) if data.origin is None else date_of(time, data.origin, data.time_unit)


def _cell(law: np.ndarray) -> str:
    mean, low, _, high = (number(float(x)) for x in law)
    return f"{mean} [{low}, {high}]"
