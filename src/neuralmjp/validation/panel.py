"""Panel data, people seen in states now and then: a goodness-of-fit test of Pearson's kind.

Aguirre-Hernandez & Farewell 2002, https://doi.org/10.1002/sim.1152
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from ..emissions import Categorical
from ..errors import InputError
from ..exact.alternatives import resimulated
from ..exact.fit import fit
from ..fitted import FittedMJP
from ..mjp import transition_matrix
from ..mjp.precision import in_double_precision
from ..priors import rates_of
from ..timeseries import TimeSeries
from .verdict import REJECTED, Verdict, require_enough, require_hidden_states

GROUPS = 4  # of gaps, from short to long
FEWEST = 1.0  # expected transitions below which cells are left to their neighbours: they count together


@dataclass(frozen=True)
class Pearson:
    """Observed and expected transitions between neighbouring observations, by the length of the gap."""

    edges: Float[np.ndarray, "edge"]  # of the groups of gaps
    observed: Float[np.ndarray, "group state state"]
    expected: Float[np.ndarray, "group state state"]
    statistic: float
    p_value: float  # by parametric bootstrap: gaps are irregular, and the law of the statistic is no chi-square
    labels: tuple[str, ...]
    names: tuple[str, ...]  # of the states, for sentences
    time_unit: str

    @property
    def verdict(self) -> Verdict:
        off = (self.observed - self.expected) / np.sqrt(np.maximum(self.expected, FEWEST))
        g, i, j = np.unravel_index(int(np.abs(off).argmax()), off.shape)
        told = (
            f"furthest off: {self.names[i]} -> {self.names[j]} over {self.edges[g]:.3g} to "
            f"{self.edges[g + 1]:.3g} {self.time_unit}, seen {self.observed[g, i, j]:.0f}, "
            f"expected {self.expected[g, i, j]:.1f}"
        )
        passed = self.p_value >= REJECTED
        says = "transitions are as frequent as the model says" if passed else "transitions are not those of the model"
        return Verdict("Pearson", passed, f"{says} (p = {self.p_value:.2g}; {told})")


def labels_of(fitted: FittedMJP) -> Categorical:
    """The emission, if its labels are the states."""
    require_hidden_states(fitted, "prevalence or Pearson's test")
    emission = fitted.emission
    if not (isinstance(emission, Categorical) and emission.is_exact):
        raise InputError("prevalence and Pearson's test are for states that are seen exactly, as labels")
    return emission


def names_of(fitted: FittedMJP) -> tuple[str, ...]:
    """What the states are called: by their names where they were given any, else by their labels."""
    if fitted.state_names != tuple(map(str, range(fitted.n_states))):
        return fitted.state_names
    return tuple(f"label {label:g}" for label in labels_of(fitted).labels)


@in_double_precision
def pearson(fitted: FittedMJP, data: TimeSeries, *, simulations: int = 100, seed: int = 0) -> Pearson:
    """Compare the numbers of transitions with those expected, by state of origin and length of the gap.

    The sum of (observed - expected)^2 / expected is ranked among those of data sets that are simulated from the model
    at the same times and fitted again. A state that is entered at a known time is first given the visit at which it
    would have been found: a gap drawn from the longer ones of the data.
    """
    require_enough(simulations)
    emission = labels_of(fitted)
    fitted.require_values(data)
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
    labels = tuple(f"{label:g}" for label in emission.labels)
    return Pearson(edges, observed, expected, statistic, float(p), labels, names_of(fitted), data.time_unit)


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
