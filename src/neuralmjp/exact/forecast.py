"""What will be observed of a hidden process at later times."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float, Int

from ..arguments import require_seed
from ..emissions.emission import Emission, Params
from ..mjp import transition_matrix
from ..timeseries import TimeSeries
from .lattice_decode import PREDICTED, Quantiles, later_times


@dataclass(frozen=True)
class StateForecast:
    """What is expected at later times, series after series."""

    series: Int[np.ndarray, "row"]  # position of the series of each row
    times: Float[np.ndarray, "row"]
    probabilities: Float[np.ndarray, "row state"]  # of the hidden states; computed, not sampled
    readings: Quantiles  # one column per value, from the samples
    samples: Float[np.ndarray, "sample row feature"]  # joint draws of what will be observed


def forecast_states(
    data: TimeSeries,
    smoothed: Float[np.ndarray, "observation state"],
    rates: Float[np.ndarray, "state state"],
    emission: Emission,
    params: Params,
    times,
    *,
    samples: int,
    seed: int,
) -> StateForecast:
    """The law at the last observation of each series, carried on by exp(F t), and draws of what it shows."""
    later = later_times(data, times)
    require_seed(seed)
    rng = np.random.default_rng(seed)
    params = jax.tree.map(np.asarray, params)
    laws, drawn = [], []
    for last, ahead in zip(data.offsets[1:] - 1, later, strict=True):
        law = smoothed[last] / smoothed[last].sum()
        laws.append(law @ transition_matrix(rates, ahead - data.times[last]))
        gaps = np.diff(ahead, prepend=data.times[last])
        states = _paths(law, np.asarray(transition_matrix(rates, gaps)), samples, rng)
        before = data.values[last] - np.asarray(emission.offset(params, data.times[last]))
        values = emission.continued(params, before, states, gaps, rng)
        drawn.append(values + np.asarray(emission.offset(params, ahead)))
    values = np.concatenate(drawn, axis=1)
    # Quantiles that were drawn: of labels and counts they are labels and counts.
    lower, median, upper = np.quantile(values, PREDICTED, axis=0, method="inverted_cdf")
    series = np.repeat(np.arange(len(data)), [len(one) for one in later])
    summary = Quantiles(values.mean(0), lower, median, upper)
    return StateForecast(series, np.concatenate(later), np.concatenate(laws), summary, values)


def _paths(
    law: Float[np.ndarray, "state"], steps: Float[np.ndarray, "time state state"], n: int, rng: np.random.Generator
) -> Int[np.ndarray, "sample time"]:
    """States after each step, from a first one that is drawn too but not returned."""
    state = draw(np.broadcast_to(law, (n, len(law))), rng)
    path = np.empty((n, len(steps)), dtype=int)
    for t, step in enumerate(steps):
        path[:, t] = state = draw(step[state], rng)
    return path


def draw(laws: Float[np.ndarray, "sample state"], rng: np.random.Generator) -> Int[np.ndarray, "sample"]:
    """A state from each law."""
    cumulative = np.cumsum(laws, axis=1)
    level = rng.random(len(laws)) * cumulative[:, -1]
    return (cumulative <= level[:, None]).sum(1)
