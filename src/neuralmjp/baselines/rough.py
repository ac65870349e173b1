"""Rough answers from readings alone: counts, rate constants by moments, and how finely to cut time."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import nnls

from ..emissions.emission import Params
from ..emissions.readings import Readings
from ..systems.events import Events
from ..timeseries import TimeSeries

LEAST_SHARE = 0.02  # of all events, that every constant is given a share of at the start

BUSIEST = 2.0  # most events in a substep at any count of one species


class Guess(NamedTuple):
    """Rate constants, and the standard deviation of each value's noise."""

    constants: Float[np.ndarray, "constant"]
    noise: Float[np.ndarray, "column"]


def rough_counts(
    data: TimeSeries, readings: Readings, noise: Params, middle: Float[np.ndarray, "species"], box: tuple[int, ...]
) -> Float[np.ndarray, "observation species"]:
    """What the readings show, shared out where they show a sum; a species that is not seen stays in the middle."""
    values = data.values.copy()
    if readings.noise == "binomial":
        values = values * (1 + np.exp(-np.asarray(noise["logit_detection"])))
    counts = np.full((data.n_observations, len(box)), np.nan)
    for column, shown in sorted(enumerate(readings.columns), key=lambda one: -len(one[1])):
        for s in shown:
            share = values[:, column] * middle[s] / max(middle[list(shown)].sum(), 1e-9)
            counts[:, s] = np.where(np.isnan(share), counts[:, s], share)
    for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        for s in range(len(box)):
            part = counts[first:last, s]
            there = ~np.isnan(part)
            times = data.times[first:last]
            part[:] = np.interp(times, times[there], part[there]) if there.any() else middle[s]
    return np.clip(counts, 0.0, np.array(box) - 1.0)


def ways_at(events: Events, counts: Float[np.ndarray, "*lead species"]) -> Float[np.ndarray, "event *lead"]:
    """Product of the factors of each event at counts that need not be whole."""
    factors = np.asarray(events.factors)
    result = np.ones((events.n_events, *counts.shape[:-1]))
    for s, n in enumerate(events.box):
        place = np.arange(n)
        for e in range(events.n_events):
            result[e] *= np.interp(counts[..., s], place, factors[e, s, :n])
    return result


def guess_constants(
    data: TimeSeries, events: Events, readings: Readings, counts: Float[np.ndarray, "observation species"]
) -> Guess:
    """Constants and noise from increments: their means are drift, their squares are jumps and noise.

    dy = sum_e change k ways dt and dy^2 = sum_e change^2 k ways dt + 2 sd^2, both by least squares with none negative.
    """
    left = np.delete(np.arange(data.n_observations), data.offsets[1:] - 1)
    gaps = data.times[left + 1] - data.times[left]
    ways = 0.5 * (ways_at(events, counts[left]) + ways_at(events, counts[left + 1])) * gaps
    owner = np.array(events.constant_of)
    changes = np.array(events.changes)
    n = len(events.names)
    exposure = np.stack([ways[owner == k].sum(0) for k in range(n)]).mean(1)
    rows, sides = [], []
    for column, shown in enumerate(readings.columns):
        step = changes[:, list(shown)].sum(1)[:, None]
        rise = (counts[left + 1] - counts[left])[:, list(shown)].sum(1)
        drift = np.stack([(step * ways)[owner == k].sum(0) for k in range(n)], 1)
        spread = np.stack([(step**2 * ways)[owner == k].sum(0) for k in range(n)], 1)
        extra = np.eye(len(readings.columns))[column] * 2.0
        for design, side, noise in ((drift, rise, 0.0), (spread, rise**2, 1.0)):
            weight = 1 / max(side.std(), 1e-9)
            rows.append(weight * np.concatenate([design, np.tile(noise * extra, (len(gaps), 1))], 1))
            sides.append(weight * side)
    design, side = np.concatenate(rows), np.concatenate(sides)
    size = np.maximum(np.sqrt((design**2).sum(0)), 1e-300)
    found = nnls(design / size, side)[0] / size
    constants, variances = found[:n], found[n:]
    happened = max((constants * exposure).sum(), 0.1)  # events in a gap
    least = LEAST_SHARE * happened / np.maximum(exposure, 1e-300)
    return Guess(np.where(exposure > 0, np.maximum(constants, least), 1.0), np.sqrt(np.maximum(variances, 1e-2)))


def substeps_needed(
    data: TimeSeries,
    events: Events,
    constants: Float[np.ndarray, "constant"],
    counts: Float[np.ndarray, "observation species"],
    jumps: float,
) -> Int[np.ndarray, "gap"]:
    """Substeps of each gap between neighbouring observations, with no more than `jumps` events expected in each.

    Nor may any count of one species be left more than about twice, which keeps exponential series short.
    """
    left = np.delete(np.arange(data.n_observations), data.offsets[1:] - 1)
    gaps = data.times[left + 1] - data.times[left]
    owner = np.array(events.constant_of)
    scales = np.where(owner < 0, np.asarray(events.given), np.append(constants, 0.0)[owner])
    tables = np.asarray(events.factors)
    rates = [scales @ ways_at(events, counts) / jumps]
    for s, n in enumerate(events.box):
        busiest = counts.copy()
        busiest[:, s] = (scales @ tables[:, s, :n]).argmax()
        rates.append(scales @ ways_at(events, busiest) / BUSIEST)
    fastest = np.max(rates, 0)
    moved = np.abs(counts[left + 1] - counts[left]).sum(1)
    steps = np.maximum(gaps * np.maximum(fastest[left], fastest[left + 1]), moved / 4)
    return np.maximum(np.ceil(steps), 1).astype(int)
