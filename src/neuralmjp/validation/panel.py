"""Panel data: people seen in states now and then. Prevalence, and a goodness-of-fit test of Pearson's kind.

Gentleman, Lawless, Lindsey & Yan 1994, https://doi.org/10.1002/sim.4780130803 (prevalence);
Aguirre-Hernandez & Farewell 2002, https://doi.org/10.1002/sim.1152 (the test).
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from ..emissions import Categorical
from ..errors import InputError
from ..exact.alternatives import resimulated
from ..exact.evidence import state_of
from ..exact.fit import fit
from ..fitted import FittedMJP
from ..mjp import Interval, transition_matrix
from ..mjp.precision import in_double_precision
from ..mjp.structure import closed_classes
from ..priors import rates_of
from ..timeseries import TimeSeries
from .verdict import REJECTED, Verdict, require_enough

DRAWS = 200  # of the rates
GROUPS = 4  # of gaps, from short to long
FEWEST = 1.0  # expected transitions below which cells are left to their neighbours: they count together
FAR = 0.1  # of everybody: a difference in prevalence that people would care about
FOLLOWED = 0.75  # of the series: later, those who were lost would tell more than the model


@dataclass(frozen=True)
class Prevalence:
    """Share of the series in each state over the time since their first observation."""

    times: Float[np.ndarray, "time"]
    at_risk: Int[np.ndarray, "time"]  # series that are still followed
    observed: Float[np.ndarray, "time state"]
    expected: Interval  # (time, state): of exp(F t)
    expected_last: Float[np.ndarray, "time state"]  # of the state last seen, at a visit some time ago
    labels: tuple[str, ...]
    time_unit: str

    @property
    def verdict(self) -> Verdict:
        """Like with like: the state last seen, against the error of a share, while most are followed."""
        p, n = self.expected_last, self.at_risk[:, None]
        spread = np.nan_to_num((self.expected.upper - self.expected.lower) / 3.92)
        error = np.sqrt(np.maximum(p * (1 - p), 1e-4) / np.maximum(n, 1) + spread**2)
        off = np.where(n >= max(FOLLOWED * self.at_risk[0], 20), self.observed - p, 0.0)
        t, k = np.unravel_index(int((np.abs(off) / error).argmax()), off.shape)
        far = bool(abs(off[t, k]) > 3 * error[t, k] and abs(off[t, k]) > FAR)
        told = (
            f"{self.observed[t, k]:.0%} were last seen with label {self.labels[k]} after {self.times[t]:.3g} "
            f"{self.time_unit}, {p[t, k]:.0%} are expected"
        )
        return Verdict("prevalence", not far, f"{'furthest off' if not far else 'too far off'}: {told}")


@dataclass(frozen=True)
class Pearson:
    """Observed and expected transitions between neighbouring observations, by the length of the gap."""

    edges: Float[np.ndarray, "edge"]  # of the groups of gaps
    observed: Float[np.ndarray, "group state state"]
    expected: Float[np.ndarray, "group state state"]
    statistic: float
    p_value: float  # by parametric bootstrap: gaps are irregular, and the law of the statistic is no chi-square
    labels: tuple[str, ...]
    time_unit: str

    @property
    def verdict(self) -> Verdict:
        off = (self.observed - self.expected) / np.sqrt(np.maximum(self.expected, FEWEST))
        g, i, j = np.unravel_index(int(np.abs(off).argmax()), off.shape)
        told = (
            f"furthest off: labels {self.labels[i]} -> {self.labels[j]} over {self.edges[g]:.3g} to "
            f"{self.edges[g + 1]:.3g} {self.time_unit}, seen {self.observed[g, i, j]:.0f}, "
            f"expected {self.expected[g, i, j]:.1f}"
        )
        passed = self.p_value >= REJECTED
        says = "transitions are as frequent as the model says" if passed else "transitions are not those of the model"
        return Verdict("Pearson", passed, f"{says} (p = {self.p_value:.2g}; {told})")


def labels_of(fitted: FittedMJP) -> Categorical:
    """The emission, if its labels are the states."""
    emission = fitted.emission
    if not (isinstance(emission, Categorical) and emission.is_exact):
        raise InputError("prevalence and Pearson's test are for states that are seen exactly, as labels")
    return emission


@in_double_precision
def prevalence(fitted: FittedMJP, data: TimeSeries, times: Float[np.ndarray, "time"] | None = None) -> Prevalence:
    """Observed and expected share of each state over time.

    Somebody counts in the state last seen, from the first observation to the last; in an absorbing state for ever: late
    shares lean towards it, since others leave. The expected share is that of exp(F t) from the first states. As
    `prevalence.msm` of R's msm.

    Args:
        times: since the first observation of each series; ten steps from 0 to the longest if not given.
    """
    fitted.require_values(data)
    emission, n = labels_of(fitted), fitted.n_states
    codes = emission.codes(np.where(np.isin(data.values, emission.labels), data.values, np.nan))[:, 0]
    since = data.times - np.repeat(data.times[data.offsets[:-1]], data.lengths)
    times = np.linspace(0, since.max(), 11) if times is None else np.asarray(times, dtype=float)
    absorbing = [next(iter(one)) for one in closed_classes(fitted.rates) if len(one) == 1]
    counts, starts = np.zeros((len(times), n)), np.zeros((len(times), n))
    visits: list[np.ndarray] = []  # rows: which time, first state, time of the last visit
    for begin, stop in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        seen = ~np.isnan(codes[begin:stop])
        path, when = codes[begin:stop][seen].astype(int), since[begin:stop][seen]
        if len(path) == 0:
            continue
        last = np.searchsorted(when, times, side="right") - 1
        followed = (last >= 0) & ((times <= when[-1]) | (path[-1] in absorbing))
        np.add.at(counts, (np.flatnonzero(followed), path[last[followed]]), 1)
        starts[followed, path[0]] += 1
        # Somebody who was absorbed would have been visited again: nobody knows when, so at any time.
        gone = (path[-1] in absorbing) & (times >= when[-1])
        visit = np.where(gone, times, when[np.maximum(last, 0)])
        visits.append(np.stack([np.arange(len(times)), np.full(len(times), path[0]), visit])[:, followed])
    at_risk = counts.sum(1)
    share = np.maximum(at_risk, 1)[:, None]

    def expected(rates: np.ndarray) -> np.ndarray:
        return np.einsum("ti,tij->tj", starts / share, np.asarray(transition_matrix(rates, times)))

    interval = fitted.observable(expected, draws=DRAWS)
    names = tuple(f"{label:g}" for label in emission.labels)
    seen = _last_seen(fitted, times, np.concatenate(visits, axis=1)) / share
    return Prevalence(times, at_risk.astype(int), counts / share, interval, seen, names, data.time_unit)


def _last_seen(
    fitted: FittedMJP, times: Float[np.ndarray, "time"], visits: Float[np.ndarray, "3 row"]
) -> Float[np.ndarray, "time state"]:
    """Expected numbers in the state last seen: that of the last visit, or absorbed since if that is noticed at once."""
    which, first, visit = visits[0].astype(int), visits[1].astype(int), visits[2]
    laws = np.asarray(transition_matrix(fitted.rates, visit))[np.arange(len(visit)), first]
    if fitted.panel.exact_entry is not None:
        absorbed = state_of(fitted.emission, fitted.panel.exact_entry)
        since = np.asarray(transition_matrix(fitted.rates, times[which] - visit))[:, :, absorbed]
        since[:, absorbed] = 0.0
        noticed = (laws * since).sum(1)
        laws = laws * (1 - since)
        laws[:, absorbed] += noticed
    result = np.zeros((len(times), fitted.n_states))
    np.add.at(result, which, laws)
    return result


@in_double_precision
def pearson(fitted: FittedMJP, data: TimeSeries, *, simulations: int = 100, seed: int = 0) -> Pearson:
    """Compare the numbers of transitions with those expected, by state of origin and length of the gap.

    The sum of (observed - expected)^2 / expected is ranked among those of data sets that are simulated from the model
    at the same times and fitted again. A state that is entered at a known time is first given the visit at which it
    would have been found: a gap drawn from the longer ones of the data.
    """
    require_enough(simulations)
    fitted.require_values(data)
    emission = labels_of(fitted)
    rng = np.random.default_rng(seed)
    visits = _as_visits(fitted, data, rng)
    model = replace(fitted, panel=replace(fitted.panel, exact_entry=None))
    edges = np.quantile(visits.gaps, np.linspace(0, 1, GROUPS + 1))
    edges = np.unique(edges)
    if len(edges) == 1:
        edges = np.array([edges[0] * (1 - 1e-9), edges[0] * (1 + 1e-9)])

    def judged(some: TimeSeries) -> tuple[float, np.ndarray, np.ndarray]:
        top = fit(some, model.model, panel=model.panel, restarts=1, seed=seed, start=fitted.parameters)
        return _statistic(some, emission, np.asarray(rates_of(top.model.rate_model, top.parameters.rates)), edges)

    statistic, observed, expected = judged(visits)
    drawn = [judged(resimulated(model, visits, seed=seed + k + 1))[0] for k in range(simulations)]
    p = (1 + sum(one >= statistic for one in drawn)) / (1 + simulations)
    names = tuple(f"{label:g}" for label in emission.labels)
    return Pearson(edges, observed, expected, statistic, float(p), names, data.time_unit)


def _statistic(
    data: TimeSeries, emission: Categorical, rates: np.ndarray, edges: Float[np.ndarray, "edge"]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Pearson's sum, and observed and expected transitions by group of gaps."""
    codes = emission.codes(np.where(np.isin(data.values, emission.labels), data.values, np.nan))[:, 0]
    second = np.delete(np.arange(data.n_observations), data.offsets[:-1])
    known = ~np.isnan(codes[second]) & ~np.isnan(codes[second - 1])
    origin, end = codes[second - 1][known].astype(int), codes[second][known].astype(int)
    gaps = data.gaps[known]
    group = np.clip(np.searchsorted(edges, gaps, side="right") - 1, 0, len(edges) - 2)
    n = len(rates)
    observed, expected = np.zeros((2, len(edges) - 1, n, n))
    np.add.at(observed, (group, origin, end), 1)
    lengths, which = np.unique(gaps, return_inverse=True)
    np.add.at(expected, (group, origin), np.asarray(transition_matrix(rates, lengths))[which, origin])
    # Cells of one origin in which hardly anything is expected count as one.
    small = expected < FEWEST
    rest_seen, rest_expected = (np.where(small, each, 0).sum(-1) for each in (observed, expected))
    main = np.where(small, 0.0, (observed - expected) ** 2 / np.maximum(expected, FEWEST)).sum()
    rest = ((rest_seen - rest_expected) ** 2 / np.maximum(rest_expected, FEWEST)).sum()
    return float(main + rest), observed, expected


def _as_visits(fitted: FittedMJP, data: TimeSeries, rng: np.random.Generator) -> TimeSeries:
    """The data as if every state had been seen at a visit."""
    if fitted.panel.exact_entry is None:
        return data
    times, last = data.times.copy(), data.offsets[1:] - 1
    entered = last[(data.values[last, 0] == fitted.panel.exact_entry) & (data.lengths > 1)]
    others = np.setdiff1d(np.delete(np.arange(data.n_observations), data.offsets[:-1]), entered)
    usual = np.sort(times[others] - times[others - 1])
    for row in entered:
        gap = times[row] - times[row - 1]
        longer = usual[np.searchsorted(usual, gap) :]
        times[row] = times[row - 1] + (rng.choice(longer) if len(longer) else gap)
    return TimeSeries(times, data.values, data.offsets, data.names, data.value_names, data.time_unit)
