"""Data and hidden path, packed such that a page can browse them: numbers as base64, states as runs."""

import base64
from typing import Any

import numpy as np

from ..fitted import Decoded
from ..timeseries import TimeSeries

MOST_POINTS = 200_000  # in a page
MOST_SERIES = 50


def packed(data: TimeSeries, decoded: Decoded) -> dict[str, Any]:
    """The first series, the first value of each; long ones keep the least and the largest of every few points."""
    n_series = min(len(data), MOST_SERIES)
    total = int(data.offsets[n_series])
    every = max(2 * -(-total // MOST_POINTS), 1) if total > MOST_POINTS else 1
    names = data.names[:n_series]
    series = [_one(data, decoded, k, every) for k in range(n_series)]
    left_out = len(data) - n_series
    return {
        "names": list(names),
        "value": data.value_names[0],
        "unit": data.time_unit,
        "series": series,
        "left_out": left_out,
        "thinned": every > 1,
    }


def _one(data: TimeSeries, decoded: Decoded, k: int, every: int) -> dict[str, Any]:
    part = slice(int(data.offsets[k]), int(data.offsets[k + 1]))
    times, values, states = data.times[part], data.values[part, 0], decoded.states[part]
    sure = decoded.probabilities[part].max(1)
    kept = np.arange(len(times)) if every == 1 else extremes(values, every)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(states)) + 1])
    return {
        "start": float(times[0]),
        "end": float(times[-1]),
        "times": _floats(times[kept] - times[0]),
        "values": _floats(values[kept]),
        "sure": _floats(sure[kept]),
        "run_starts": _floats(times[edges] - times[0]),
        "run_states": states[edges].tolist(),
    }


def extremes(values: np.ndarray, every: int) -> np.ndarray:
    """Places of the least and the largest of every so many values, in order; missing values count as neither."""
    n = len(values) // every * every
    filled = np.where(np.isnan(values), 0.0, values)
    blocks = filled[:n].reshape(-1, every)
    start = np.arange(len(blocks)) * every
    both = np.stack([start + blocks.argmin(1), start + blocks.argmax(1)], 1)
    return np.concatenate([np.sort(both, axis=1).ravel(), np.arange(n, len(values))])


def _floats(values: np.ndarray) -> str:
    return base64.b64encode(np.asarray(values, "<f4").tobytes()).decode()
