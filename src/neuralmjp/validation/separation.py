"""How far apart the states of a fitted model lie, as the data show them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from ..fitted import FittedMJP
from ..timeseries import TimeSeries

HARDLY = 0.01  # of the time, or
FEW_VISITS = 5
COLLAPSED = 0.02  # spread of a state, relative to that of the others, that no noise has


@dataclass(frozen=True)
class Separation:
    """States as the data show them; any emission."""

    means: Float[np.ndarray, "state feature"]
    noise: float  # standard deviation of the first value inside a state
    narrowest: float  # smallest spread of a state in any value, relative to the whole noise of that value
    distances: Float[np.ndarray, "state state"]  # between means, in noise widths over all values
    occupancy: Float[np.ndarray, "state"]
    visits: Int[np.ndarray, "state"]  # of the most likely path

    @property
    def closest(self) -> tuple[int, int]:
        """The two states that are hardest to tell apart."""
        apart = self.distances + np.diag(np.full(len(self.means), np.inf))
        i, j = np.unravel_index(int(apart.argmin()), apart.shape)
        return int(min(i, j)), int(max(i, j))

    @property
    def collapsed(self) -> bool:
        """A state has shrunk onto a few equal values, where the likelihood has no bound."""
        return self.narrowest < COLLAPSED

    @property
    def hardly_visited(self) -> list[int]:
        rare = (self.occupancy < HARDLY) | (self.visits < FEW_VISITS)
        return [int(k) for k in np.flatnonzero(rare)]


def separation(fitted: FittedMJP, data: TimeSeries) -> Separation:
    """Means and spread of the values under each state's smoothed probabilities, and the distances between them.

    The distance of two states is sqrt(d' S^-1 d), with d between their means and S the covariance inside both.
    """
    decoded = fitted.decode(data)
    smoothed, path = decoded.probabilities, decoded.states
    complete = ~np.isnan(data.values).any(1)
    values, weights = data.values[complete], smoothed[complete]
    total = np.maximum(weights.sum(0), np.finfo(float).tiny)
    means = (weights.T @ values) / total[:, None]
    centred = values[:, None, :] - means
    inside = np.einsum("tk,tkd,tke->kde", weights, centred, centred)
    n = len(means)
    distances = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            pooled = (inside[i] + inside[j]) / (total[i] + total[j])
            d = means[i] - means[j]
            distances[i, j] = distances[j, i] = np.sqrt(max(d @ np.linalg.pinv(pooled) @ d, 0.0))
    entered = np.ones(len(path), dtype=bool)
    entered[1:] = path[1:] != path[:-1]
    entered[data.offsets[:-1]] = True
    spread = np.sqrt(np.diagonal(inside, axis1=1, axis2=2) / total[:, None])
    noise = np.sqrt(np.diagonal(inside.sum(0)) / total.sum())
    narrowest = float((spread / np.maximum(noise, np.finfo(float).tiny)).min())
    visits = np.bincount(path[entered], minlength=n)
    return Separation(means, float(noise[0]), narrowest, distances, smoothed.mean(0), visits)
