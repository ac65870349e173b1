"""Chapman-Kolmogorov: do the fitted rates, carried on for several lags, foresee what the data show there?

The data's own estimate must not use the rates that are being tested: paths decoded or smoothed with the model lean
towards it, and hard assignments count every misread observation as a jump. So pairs of observations a lag apart are
described by the emission alone: a pair (x, y) has density sum_ij C_ij b_i(x) b_j(y), and the joint law C of the states
is its maximum-likelihood estimate. That problem is concave, EM climbs it to the top, and the estimate is consistent for
any stationary process behind the emission, Markov or not. Rows, divided by their sums, are transition probabilities.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from ..emissions.wrapped import levels_of
from ..errors import InputError
from ..exact.alternatives import resimulated
from ..fitted import FittedMJP
from ..mjp import Interval, stationary_distribution, transition_matrix
from ..mjp.precision import in_double_precision
from ..timeseries import TimeSeries
from .verdict import REJECTED, Verdict, band, require_enough, require_hidden_states

MOST_PAIRS = 20_000
NEAR = 0.2  # pairs whose distance differs from a lag by less than this share of it belong to it
EM_STEPS = 60
FARTHEST = 3.0  # lag, in slowest timescales
DRAWS = 200  # of the rates, behind the intervals


@dataclass(frozen=True)
class ChapmanKolmogorov:
    """Probabilities to be in state j a time after i: foreseen by the rates, and seen in the data.

    States that look alike (levels) are taken together: data cannot tell them apart at a single time.
    """

    lags: Float[np.ndarray, "lag"]
    predicted: Interval  # (lag, state, state), from the uncertainty of the rates
    observed: Interval  # (lag, state, state), from simulations of the fitted process at the times of the data
    deviations: Float[np.ndarray, "lag state state"]  # of the observed from the mean of simulations, standard errors
    p_value: float  # rank of the largest deviation among simulated data sets
    names: tuple[str, ...]  # of the states, for sentences and figures
    time_unit: str

    @property
    def outside(self) -> float:
        """Share of the probabilities that deviate by more than 1.96 standard errors; about 5 % if all is well."""
        known = self.deviations[~np.isnan(self.deviations)]
        return float((np.abs(known) > 1.96).mean()) if known.size else 0.0

    @property
    def verdict(self) -> Verdict:
        off = np.nan_to_num(np.abs(self.deviations))
        lag, i, j = np.unravel_index(int(off.argmax()), off.shape)
        jump = f"{self.names[i]} -> {self.names[j]}"
        where = f"furthest off: {jump} after {self.lags[lag]:.3g}, by {off.max():.1f} standard errors"
        passed = self.p_value >= REJECTED
        says = "foresee what the data show at" if passed else "do not foresee what the data show at"
        return Verdict(
            "Chapman-Kolmogorov",
            passed,
            f"the rates {says} {len(self.lags)} lags up to {self.lags[-1]:.3g} {self.time_unit} "
            f"({where}; p = {self.p_value:.2g})",
        )


@in_double_precision
def chapman_kolmogorov(
    fitted: FittedMJP,
    data: TimeSeries,
    *,
    lag: float | None = None,
    n_lags: int = 5,
    simulations: int = 50,
    seed: int = 0,
) -> ChapmanKolmogorov:
    """Test the fitted rates at lag, 2 lag, ..., n_lags lag.

    What the data show is compared with what data simulated from the model show, by one estimator at the same times.
    The fit is efficient, so that observed minus foreseen varies no more than the observed alone (Hausman 1978,
    https://doi.org/10.2307/1913827): deviations in its standard errors err towards passing.

    Args:
        lag: if not given, so many median gaps that the last lag is about three times the slowest timescale.
        simulations: data sets from the fitted process, behind standard errors and p-value; at least 50.
    """
    require_hidden_states(fitted, "chapman_kolmogorov")
    if fitted.panel.exact_entry is not None or fitted.emission.hidden_level:
        raise InputError("the test needs observation times that do not depend on the states, and an emission of states")
    require_enough(simulations, seed)
    if lag is None:
        gap, slowest = float(np.median(data.gaps)), float(np.max(fitted.timescales.mean))
        times = FARTHEST * slowest / n_lags / gap if np.isfinite(slowest) else 1.0
        lag = gap * max(round(times), 1)
    lags = lag * np.arange(1, n_lags + 1)
    pairs = [_pairs(data, each, seed) for each in lags]
    kept = [k for k, (first, _) in enumerate(pairs) if len(first) > 0]
    if not kept:
        raise InputError(f"no two observations of a series are about {lag:g} apart: choose another lag")
    lags, pairs = lags[kept], [pairs[k] for k in kept]
    groups = _groups(fitted)

    def estimated(values: TimeSeries) -> Float[np.ndarray, "lag state state"]:
        densities = _densities(fitted, values, groups)
        return np.stack([_transitions(densities[first], densities[second]) for first, second in pairs])

    observed = estimated(data)
    drawn = np.stack([estimated(resimulated(fitted, data, seed=seed + k + 1)) for k in range(simulations)])
    n = len(lags)
    judged = band(observed.reshape(n, -1), drawn.reshape(simulations, n, -1))
    gaps = [np.unique((data.times[b] - data.times[a]).round(12), return_counts=True) for a, b in pairs]
    width = 1.96 * judged.spread.reshape(observed.shape)
    return ChapmanKolmogorov(
        lags,
        fitted.observable(lambda rates: _foreseen(rates, gaps, groups), draws=DRAWS),
        Interval(observed, np.clip(observed - width, 0, 1), np.clip(observed + width, 0, 1)),
        judged.deviations.reshape(observed.shape),
        judged.p_value,
        _names(fitted, groups),
        fitted.time_unit,
    )


def _groups(fitted: FittedMJP) -> Bool[np.ndarray, "state group"]:
    """Which states are one to the eye."""
    shared = levels_of(fitted.emission)
    which = np.arange(fitted.n_states) if shared is None else np.asarray(shared.levels)
    return np.eye(which.max() + 1, dtype=bool)[which]


def _names(fitted: FittedMJP, groups: Bool[np.ndarray, "state group"]) -> tuple[str, ...]:
    """Of the groups: the names of their states, or the numbers of the levels where states have no names."""
    if fitted.state_names == tuple(map(str, range(fitted.n_states))):
        return tuple(map(str, range(groups.shape[1])))
    return tuple(" or ".join(fitted.state_names[k] for k in np.flatnonzero(each)) for each in groups.T)


def _pairs(data: TimeSeries, lag: float, seed: int) -> tuple[Int[np.ndarray, "pair"], Int[np.ndarray, "pair"]]:
    """Observations of one series that are about a lag apart: for each the one nearest to a lag later."""
    first, second = [], []
    for begin, stop in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        times = data.times[begin:stop]
        after = np.clip(np.searchsorted(times, times + lag), 1, len(times) - 1) if stop - begin > 1 else None
        if after is None:
            continue
        nearer = after - (times + lag - times[after - 1] < times[after] - times - lag)
        near = (np.abs(times[nearer] - times - lag) <= NEAR * lag) & (nearer > np.arange(len(times)))
        first.append(begin + np.flatnonzero(near))
        second.append(begin + nearer[near])
    a, b = (np.concatenate([*each, np.empty(0, dtype=int)]).astype(int) for each in (first, second))
    seen = np.flatnonzero(~np.isnan(data.values).all(1))
    both = np.isin(a, seen) & np.isin(b, seen)
    a, b = a[both], b[both]
    some = np.sort(np.random.default_rng(seed).permutation(len(a))[:MOST_PAIRS])
    return a[some], b[some]


def _densities(fitted: FittedMJP, data: TimeSeries, groups: Bool[np.ndarray, "state group"]) -> np.ndarray:
    """Density of each observation in each group of states, up to a factor per observation."""
    logs = fitted.log_emissions(data)[:, groups.argmax(0)]  # alike inside a group
    return np.exp(logs - logs.max(1, keepdims=True))


def _transitions(
    first: Float[np.ndarray, "pair state"], second: Float[np.ndarray, "pair state"]
) -> Float[np.ndarray, "state state"]:
    """Maximum-likelihood transition probabilities from pairs of observations; NaN from a state that is never there."""
    n = first.shape[1]
    joint = np.full((n, n), 1.0 / n**2)
    for _ in range(EM_STEPS):
        density = ((first @ joint) * second).sum(1)
        weights = first / np.maximum(density, np.finfo(float).tiny)[:, None]
        joint = joint * (weights.T @ second) / len(first)
    total = joint.sum(1, keepdims=True)
    return np.where(total > 1e-6, joint / np.maximum(total, 1e-300), np.nan)


def _foreseen(rates: np.ndarray, gaps: list, groups: Bool[np.ndarray, "state group"]) -> np.ndarray:
    """exp(F t), averaged over the distances of the pairs, between groups of states in their stationary proportions."""
    moves = np.stack([np.average(transition_matrix(rates, times), axis=0, weights=counts) for times, counts in gaps])
    if groups.shape[0] == groups.shape[1]:
        return moves
    weights = stationary_distribution(rates)[:, None] * groups
    return np.einsum("ig,lij,jh->lgh", weights / weights.sum(0), moves, groups.astype(float))
