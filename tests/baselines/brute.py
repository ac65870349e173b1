"""The likelihood of small reaction networks by dense matrices: the witness of mean fields."""

import jax.numpy as jnp
import numpy as np
from scipy.linalg import expm

from neuralmjp.emissions.readings import Readings
from neuralmjp.systems import ReactionNetwork
from neuralmjp.timeseries import TimeSeries


def generator(network: ReactionNetwork, floor: float = 0.0) -> np.ndarray:
    """Over all cells of the box; bystanders count no less than the floor."""
    events = network.events().with_floor(floor) if floor > 0 else network.events()
    cells = np.indices(network.box).reshape(len(network.box), -1)
    scales = np.asarray(events.scales(jnp.asarray(list(network.parameters.values()))))
    result = np.zeros((cells.shape[1],) * 2)
    for e, change in enumerate(events.changes):
        rates = scales[e] * np.prod([np.asarray(events.factors)[e, s, n] for s, n in enumerate(cells)], 0)
        here = np.flatnonzero(rates)
        there = np.ravel_multi_index(tuple(cells[:, here] + np.array(change)[:, None]), network.box)
        np.add.at(result, (here, there), rates[here])
        np.add.at(result, (here, here), -rates[here])
    return result


def log_likelihoods(
    network: ReactionNetwork, data: TimeSeries, readings: Readings, noise: dict, floor: float = 0.0, first=None
) -> np.ndarray:
    """Of each series, from a flat law over the box or a given one."""
    steps = generator(network, floor)
    cells = np.indices(network.box).reshape(len(network.box), -1).T
    totals = readings.totals(cells)
    result = np.zeros(len(data))
    for i, series in enumerate(data):
        law = np.full(len(cells), 1 / len(cells)) if first is None else first
        for k, (time, row) in enumerate(zip(series.times, series.values, strict=True)):
            if k > 0:
                law = law @ expm(steps * (time - series.times[k - 1]))
            for column in np.flatnonzero(~np.isnan(row)).tolist():
                law = law * np.exp(np.asarray(readings.log_density(noise, column, row[column], totals[:, column])))
            result[i] += np.log(law.sum())
            law = law / law.sum()
    return result
