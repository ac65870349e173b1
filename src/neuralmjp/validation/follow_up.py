"""Panel data, people seen in states now and then: how many are in which state, and who is still followed.

Gentleman, Lawless, Lindsey & Yan 1994, https://doi.org/10.1002/sim.4780130803
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int

from ..errors import InputError
from ..exact.evidence import state_of
from ..fitted import FittedMJP
from ..mjp import Interval, transition_matrix
from ..mjp.precision import in_double_precision
from ..mjp.structure import closed_classes
from ..timeseries import TimeSeries
from .panel import labels_of, names_of
from .verdict import Verdict

DRAWS = 200  # of the rates
FAR = 0.1  # of everybody: a difference in prevalence that people would care about
FOLLOWED = 0.5  # of the series: later, why the others were lost would tell more than the model
ENOUGH = 20  # series, for a share to mean anything


@dataclass(frozen=True)
class Prevalence:
    """Share of the series in each state over the time since their first observation."""

    times: Float[np.ndarray, "time"]
    at_risk: Float[np.ndarray, "time"]  # series still followed; who was absorbed counts for the chance to be
    observed: Float[np.ndarray, "time state"]  # by the state last seen
    expected: Interval  # (time, state): of exp(F t)
    expected_last: Float[np.ndarray, "time state"]  # of the state last seen, at a visit some time ago
    compared: Bool[np.ndarray, "time"]  # by the verdict: enough are followed
    labels: tuple[str, ...]
    names: tuple[str, ...]  # of the states, for sentences and figures
    time_unit: str

    @property
    def error(self) -> Float[np.ndarray, "time state"]:
        """Standard error of observed less expected_last: of a share, and of the fitted rates."""
        p, n = self.expected_last, self.at_risk[:, None]
        spread = np.nan_to_num((self.expected.upper - self.expected.lower) / 3.92)
        return np.sqrt(np.maximum(p * (1 - p), 1e-4) / np.maximum(n, 1) + spread**2)

    @property
    def verdict(self) -> Verdict:
        """Like with like: shares by the state last seen, against their error, while most are followed."""
        if not self.compared.any():
            return Verdict("prevalence", None, f"at none of the times are {ENOUGH} series followed, and most of them")
        p, error = self.expected_last, self.error
        off = np.where(self.compared[:, None], self.observed - p, 0.0)
        t, k = np.unravel_index(int((np.abs(off) / error).argmax()), off.shape)
        far = bool(abs(off[t, k]) > 3 * error[t, k] and abs(off[t, k]) > FAR)
        told = (
            f"{self.observed[t, k]:.0%} were last seen as {self.names[k]} after {self.times[t]:.3g} "
            f"{self.time_unit}, {p[t, k]:.0%} are expected"
        )
        return Verdict("prevalence", not far, f"{'furthest off' if not far else 'too far off'}: {told}")


@in_double_precision
def prevalence(
    fitted: FittedMJP,
    data: TimeSeries,
    times: Float[np.ndarray, "time"] | None = None,
    *,
    ends: Float[np.ndarray, "series"] | float | None = None,
) -> Prevalence:
    """Observed and expected share of each state over time.

    Somebody counts in the state last seen, from the first observation to the last. But whoever is absorbed is visited
    no more, so that the last observation is not where follow-up would have ended. If the dead counted for ever, while
    the living leave, those who are left would be dead ever more often under a right model too. So they count for the
    chance that they would still be followed had they lived: G(t) / G(T) for somebody absorbed at T, where G(t) is the
    Kaplan-Meier estimate of the chance that somebody is followed for t (weights of Fine & Gray 1999,
    https://doi.org/10.1080/01621459.1999.10474144). Shares are then right wherever follow-up does not depend on the
    states. Whoever is seen again in an absorbing state is visited on, and leaves as the living do.

    `expected` is that of exp(F t) from the first states. The verdict compares with `expected_last`, the state last
    seen, at visits as long ago as those of the living. As `prevalence.msm` of R's msm, which counts the dead for ever
    (here `ends=np.inf`) or until an end of follow-up that one knows (`censtime`).

    Args:
        times: since the first observation of each series; ten steps from 0 to the longest if not given.
        ends: until when each series would have been followed had nobody been absorbed, since its first observation.
    """
    emission, n = labels_of(fitted), fitted.n_states
    fitted.require_values(data)
    codes = emission.codes(np.where(np.isin(data.values, emission.labels), data.values, np.nan))[:, 0]
    since = data.times - np.repeat(data.times[data.offsets[:-1]], data.lengths)
    times = np.linspace(0, since.max(), 11) if times is None else np.asarray(times, dtype=float)
    people = _people(fitted, data, codes, since, times)
    weights = people.weights(times, None if ends is None else np.broadcast_to(np.asarray(ends, float), len(data)))
    at_risk = weights.sum(0)
    share = np.maximum(at_risk, np.finfo(float).tiny)[:, None]
    starts = np.einsum("pt,pk->tk", weights, np.eye(n)[people.first]) / share

    def expected(rates: np.ndarray) -> np.ndarray:
        return np.einsum("ti,tij->tj", starts, np.asarray(transition_matrix(rates, times)))

    return Prevalence(
        times,
        at_risk,
        np.einsum("pt,ptk->tk", weights, np.eye(n)[people.last]) / share,
        fitted.observable(expected, draws=DRAWS),
        _last_seen(fitted, times, starts, people, weights),
        at_risk >= max(FOLLOWED * len(weights), ENOUGH),
        tuple(f"{label:g}" for label in emission.labels),
        names_of(fitted),
        data.time_unit,
    )


@dataclass(frozen=True)
class _People:
    """Series of which something was seen, at the times that are asked for."""

    which: Int[np.ndarray, "person"]  # of the series
    first: Int[np.ndarray, "person"]  # state
    until: Float[np.ndarray, "person"]  # the last observation; where absorption is found later, half-way to that
    gone: Bool[np.ndarray, "person"]  # absorbed, and not visited since
    begun: Bool[np.ndarray, "person time"]
    last: Int[np.ndarray, "person time"]  # state seen
    visit: Float[np.ndarray, "person time"]  # when that was

    def weights(
        self, times: Float[np.ndarray, "time"], ends: Float[np.ndarray, "series"] | None
    ) -> Float[np.ndarray, "person time"]:
        """How much each counts: 1 while followed, then 0, or if gone the chance of a follow-up that long."""
        if ends is None:
            chance = self._followed(times) / self._followed(self.until)[:, None]
        else:
            chance = (times <= ends[self.which, None]).astype(float)
        return self.begun * np.where(times <= self.until[:, None], 1.0, chance * self.gone[:, None])

    def _followed(self, times: Float[np.ndarray, "any"]) -> Float[np.ndarray, "any"]:
        """Chance to be followed up to a time, by Kaplan and Meier: only who is not gone shows when it ends."""
        ends, leaving = np.unique(self.until[~self.gone], return_counts=True)
        there = (self.until >= ends[:, None]).sum(1)
        return np.append(1.0, np.cumprod(1 - leaving / there))[np.searchsorted(ends, times)]


def _people(
    fitted: FittedMJP,
    data: TimeSeries,
    codes: Float[np.ndarray, "row"],
    since: Float[np.ndarray, "row"],
    times: Float[np.ndarray, "time"],
) -> _People:
    exact, absorbing, found = fitted.panel.exact_entry, _absorbing(fitted), []
    noticed = None if exact is None else state_of(fitted.emission, exact)
    for k, (begin, stop) in enumerate(pairwise(data.offsets)):
        seen = ~np.isnan(codes[begin:stop])
        path, when = codes[begin:stop][seen].astype(int), since[begin:stop][seen]
        if len(path) == 0:
            continue
        row = np.searchsorted(when, times, side="right") - 1
        gone = path[-1] in absorbing and path[-1] not in path[:-1]
        # A visit says more about the next ones than the moment of absorption does, which lies somewhere before it.
        until = when[-2:].mean() if gone and path[-1] != noticed else when[-1]
        found.append((k, path[0], until, gone, row >= 0, path[np.maximum(row, 0)], when[np.maximum(row, 0)]))
    if not found:
        raise InputError("the data hold no label that the model knows")
    return _People(*(np.array(column) for column in zip(*found, strict=True)))


def _absorbing(fitted: FittedMJP) -> list[int]:
    return [int(one[0]) for one in closed_classes(fitted.rates) if len(one) == 1]


def _last_seen(
    fitted: FittedMJP,
    times: Float[np.ndarray, "time"],
    starts: Float[np.ndarray, "time state"],
    people: _People,
    weights: Float[np.ndarray, "person time"],
) -> Float[np.ndarray, "time state"]:
    """Expected shares of the state last seen: that of the last visit, or absorbed since if that is noticed at once.

    Nobody knows when the dead would have been visited, so visits are those of the living who began in the same state.
    Each of them stands for 1 / (its chance to be alive by that visit) people with such visits, alive or dead.
    """
    absorbing = _absorbing(fitted)
    who, which = np.nonzero((weights > 0) & ~np.isin(people.last, absorbing))
    first, visit = people.first[who], people.visit[who, which]
    laws = np.asarray(transition_matrix(fitted.rates, visit))[np.arange(len(visit)), first]
    if fitted.panel.exact_entry is not None:
        absorbed = state_of(fitted.emission, fitted.panel.exact_entry)
        since = np.asarray(transition_matrix(fitted.rates, times[which] - visit))[:, :, absorbed]
        since[:, absorbed] = 0.0
        noticed = (laws * since).sum(1)
        laws = laws * (1 - since)
        laws[:, absorbed] += noticed
    stands_for = weights[who, which] / np.maximum(1 - laws[:, absorbing].sum(1), 1e-9)
    total, sums = np.zeros(starts.shape), np.zeros((*starts.shape, starts.shape[1]))
    np.add.at(total, (which, first), stands_for)
    np.add.at(sums, (which, first), stands_for[:, None] * laws)
    by_start = np.array(transition_matrix(fitted.rates, times))  # where nobody of such a start is alive
    by_start[total > 0] = sums[total > 0] / total[total > 0][:, None]
    return np.einsum("ti,tij->tj", starts, by_start)
