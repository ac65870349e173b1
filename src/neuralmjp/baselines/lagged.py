"""Pairs of observations a lag apart, and how memberships in states follow each other in them."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from ..errors import InputError
from ..timeseries import TimeSeries

LAG = 20  # median gaps: 20 ps for molecular dynamics that is saved every picosecond
LAG_PER_SERIES = 0.1  # at most this share of a typical series
NEAR_LAG = 0.25  # where gaps are uneven, a pair may miss the lag by this share of it, and by half a median gap
STRETCHES = 50  # of time into which the data are cut, to hold some out
SMALL = 1e-10  # covariance below which memberships say nothing new


class Pairs(NamedTuple):
    """Rows of the data, `lag` (mean, in the data's time unit) apart in the same series."""

    first: Int[np.ndarray, "pair"]
    second: Int[np.ndarray, "pair"]
    lag: float

    def some(self, which: Bool[np.ndarray, "pair"]) -> "Pairs":
        """Those that are chosen."""
        return Pairs(self.first[which], self.second[which], self.lag)


def chosen_lag(data: TimeSeries, lag: float | None) -> float:
    """The lag that was asked for; by default 20 median gaps, at most a tenth of a typical series, at least one gap."""
    gap = float(np.median(data.gaps))
    if lag is None:
        span = float(np.median(data.times[data.offsets[1:] - 1] - data.times[data.offsets[:-1]]))
        return max(round(min(LAG * gap, LAG_PER_SERIES * span) / gap), 1) * gap
    if not lag > 0:
        raise InputError(f"a lag is a time above 0, got {lag:g}")
    return float(lag)


def lagged_pairs(data: TimeSeries, lag: float) -> Pairs:
    """Every observation with the one that comes nearest to a lag later, if it comes near enough.

    >>> lagged_pairs(TimeSeries.from_arrays(np.arange(4.0), np.arange(4.0)), 2.0).second.tolist()
    [2, 3]
    """
    found = []
    near = min(NEAR_LAG * lag, 0.5 * float(np.median(data.gaps)) * (1 + 1e-6))
    for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        times = data.times[begin:end]
        if len(times) < 2:
            continue
        after = np.clip(np.searchsorted(times, times + lag), 1, len(times) - 1)
        after -= np.abs(times[after - 1] - times - lag) < np.abs(times[after] - times - lag)
        fits = (np.abs(times[after] - times - lag) <= near) & (after > np.arange(len(times)))
        found.append(begin + np.stack([np.flatnonzero(fits), after[fits]]))
    first, second = np.concatenate(found, axis=1) if found else np.zeros((2, 0), dtype=np.int64)
    if len(first) == 0:
        raise InputError(
            f"no two observations of a series are {lag:g} {data.time_unit} apart: "
            f"the median gap is {np.median(data.gaps):g}, choose a lag that the series can bear"
        )
    return Pairs(first, second, float(np.mean(data.times[second] - data.times[first])))


def held_out(data: TimeSeries, pairs: Pairs, share: float, rng: np.random.Generator) -> Bool[np.ndarray, "pair"]:
    """Which pairs to hold out: those that begin in a share of all stretches of time, drawn at random."""
    stretches = np.arange(data.n_observations) * STRETCHES // data.n_observations
    chosen = rng.permutation(STRETCHES)[: max(round(share * STRETCHES), 1)]
    return np.isin(stretches[pairs.first], chosen)


def propagator(
    memberships: Float[np.ndarray, "row state"], pairs: Pairs, *, reversible: bool
) -> Float[np.ndarray, "state state"]:
    """The matrix T with E[later | now] = now T nearest to the data: C00^-1 C01; rows sum to 1.

    For memberships that are 0 or 1 these are relative counts. `reversible` counts every pair both ways, as is fair for
    data from equilibrium. A state that nobody visits is left for the law of the others at once.
    """
    now, later = memberships[pairs.first], memberships[pairs.second]
    if reversible:
        now, later = np.concatenate([now, later]), np.concatenate([later, now])
    variance, covariance = now.T @ now / len(now), now.T @ later / len(now)
    missing = SMALL * np.eye(len(variance))
    return np.linalg.solve(variance + missing, covariance + SMALL * later.mean(0))


def vamp2(memberships: Float[np.ndarray, "row state"], pairs: Pairs) -> float:
    """How much of the slow motion memberships hold: the sum of their squared singular values, at most K.

    Wu & Noe 2020, https://doi.org/10.1007/s00332-019-09567-y
    """
    now, later = memberships[pairs.first], memberships[pairs.second]
    halves = [_inverse_root(part.T @ part / len(part)) for part in (now, later)]
    return float(np.sum((halves[0] @ (now.T @ later / len(now)) @ halves[1]) ** 2))


def _inverse_root(matrix: Float[np.ndarray, "state state"]) -> Float[np.ndarray, "state state"]:
    values, vectors = np.linalg.eigh(matrix)
    kept = values > SMALL
    return vectors[:, kept] / np.sqrt(values[kept]) @ vectors[:, kept].T
