"""The likelihood, posterior and forecasts of a reaction network by SciPy on the whole box, one series at a time."""

from itertools import pairwise

import jax.numpy as jnp
import numpy as np
from scipy.sparse.linalg import expm_multiply

from neuralmjp.systems import sparse_generator


def emissions(network, readings, noise, values) -> np.ndarray:
    """Density of each observation in every cell, flattened."""
    totals = readings.totals(np.moveaxis(np.indices(network.box), 0, -1))
    result = np.ones((len(values), int(np.prod(network.box))))
    for k in range(values.shape[1]):
        for i, value in enumerate(values[:, k]):
            if not np.isnan(value):
                log_density = np.asarray(readings.log_density(noise, k, value, jnp.asarray(totals[..., k].ravel())))
                result[i] *= np.exp(log_density)
    return result


def first_law(network, initial: str) -> np.ndarray:
    law = np.ones(network.box)
    if initial == "start":
        for s, (low, high) in enumerate(network.start):
            counts = np.indices(network.box)[s]
            law *= (counts >= low) & (counts <= high)
    return law.ravel() / law.sum()


def brute_force(network, readings, noise, data, initial="flat"):
    """Log-likelihood of each series, and the laws of each species and each sum that is read at each observation."""
    generator = sparse_generator(network)
    heights, posteriors = [], []
    for series in data:
        density = emissions(network, readings, noise, series.values)
        ahead, height = [], 0.0
        law = first_law(network, initial)
        clock = series.times[0] if initial == "flat" else 0.0
        for time, weight in zip(series.times, density, strict=True):
            law = expm_multiply(generator.T * (time - clock), law)
            clock = time
            law = law * weight
            height += np.log(law.sum())
            law = law / law.sum()
            ahead.append(law)
        behind = [np.ones(law.size)]
        for i, (before, after) in reversed(list(enumerate(pairwise(series.times)))):
            back = expm_multiply(generator * (after - before), behind[0] * density[i + 1])
            behind.insert(0, back / back.max())
        posterior = np.array(ahead) * np.array(behind)
        posteriors.append(posterior / posterior.sum(1, keepdims=True))
        heights.append(height)
    joint, laws = np.concatenate(posteriors), {}
    for total in {(s,) for s in range(len(network.box))} | set(readings.columns):
        cells = np.indices(network.box)[list(total)].sum(0).ravel()
        laws[total] = joint @ np.eye(cells.max() + 1)[cells]
    return np.array(heights), laws
