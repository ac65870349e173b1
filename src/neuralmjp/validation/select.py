"""How many states? By what the model says of data it has not seen, and by two criteria that count parameters."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..digests import digest_of
from ..ensembles import Kept, Place, Progress
from ..errors import InputError
from ..estimators import ExactMJP
from ..fitted import FittedMJP
from ..mjp.precision import in_double_precision
from ..systems import SYSTEMS, System
from ..timeseries import TimeSeries
from .candidates import Candidate, candidates_of
from .folds import in_parts

RESTARTS = 3
UNSTABLE = 0.5  # noise widths by which levels differ between folds


@dataclass(frozen=True)
class Selection:
    """The number of states that was chosen, why, and what to be careful about."""

    n_states: int
    why: str
    warnings: tuple[str, ...]
    by: dict[str, int]  # what each criterion alone would choose
    candidates: tuple[Candidate, ...]
    n_held_out: int  # observations
    median_gap: float

    @property
    def chosen(self) -> Candidate:
        return next(one for one in self.candidates if one.n_states == self.n_states)

    @property
    def fitted(self) -> FittedMJP:
        """The chosen model; without intervals: fit again for these."""
        return self.chosen.fitted


@in_double_precision
def select(
    data: TimeSeries,
    states: Iterable[int] = range(2, 7),
    *,
    folds: int = 4,
    restarts: int = RESTARTS,
    seed: int = 0,
    cluster: str | Place | None = None,
    folder: Path | None = None,
    progress: Progress = lambda *_: None,
    **assumed: Any,
) -> Selection:
    """Fit every number of states and choose one.

    Held-out likelihood, by the smallest K within one standard error of the best; BIC; and ICL, which counts against a
    model that leaves open which state was when. Where they differ, the middle one is taken; but if two of its states
    lie less than a noise width apart and ICL takes fewer, ICL is followed: the others may see in such states the shape
    of the noise, or two dwell times behind one level.

    Args:
        states: the numbers to try.
        folds: parts that are held out in turn: whole series, or contiguous blocks if series are few.
        restarts: starts of every fit.
        cluster: None for this process, "local" for all cores of this machine, or the address of a `dask scheduler`;
            the numbers are the same.
        folder: keeps what each fit said, so that a selection that was interrupted goes on where it was.
        assumed: emission and whatever else `ExactMJP` assumes.
    """
    tried = sorted(set(states))
    if not tried or tried[0] < 2:
        raise InputError("numbers of states to choose from begin with 2, such as 2, 3, 4")
    if assumed.get("levels") is not None:
        raise InputError("levels fix the number of states: leave them out, and fit with them once it is chosen")
    prior = assumed.get("prior", "free")
    if isinstance(prior, System) or (isinstance(prior, str) and prior in SYSTEMS):
        name = prior.name if isinstance(prior, System) else prior
        raise InputError(
            f"{name} is a system with states of its own, so that there is no number of them to choose: fit it as it "
            f"is, by neuralmjp fit --prior {name}, or choose among rates that are free or reversible"
        )
    parts, fold = in_parts(data, folds, seed)
    estimators = {n: ExactMJP(n, restarts=restarts, seed=seed, **assumed) for n in tried}
    kept = None
    if folder is not None:
        about = {"data": digest_of(data), "folds": folds, "restarts": restarts, "seed": seed, "assumed": assumed}
        kept = Kept(folder, about)
    candidates = candidates_of(data, parts, fold, estimators, cluster=cluster, kept=kept, progress=progress)
    by = {
        "held-out likelihood": _within_one_error(candidates),
        "BIC": min(candidates, key=lambda one: one.bic).n_states,
        "ICL": min(candidates, key=lambda one: one.icl).n_states,
    }
    chosen = sorted(by.values())[1]
    if by["ICL"] < chosen and _closest(next(one for one in candidates if one.n_states == chosen)) < 1:
        chosen = by["ICL"]
    made = Selection(chosen, "", (), by, tuple(candidates), parts.n_observations, float(np.median(data.gaps)))
    return replace(made, why=_why(made), warnings=tuple(_warnings(made)))


def _closest(one: Candidate) -> float:
    """Distance of the two states that are hardest to tell apart, in noise widths."""
    return float(one.separation.distances[one.separation.closest])


def _within_one_error(candidates: list[Candidate]) -> int:
    """The smallest number of states whose held-out likelihood is not worse than the best by more than its error."""
    best = max(candidates, key=lambda one: one.held_out.sum())
    for one in candidates:
        lost = best.held_out - one.held_out
        if lost.sum() <= lost.std(ddof=1) * np.sqrt(len(lost)):
            return one.n_states
    return best.n_states


def _why(made: Selection) -> str:
    """What speaks for the chosen number, in one sentence."""
    n, every = made.n_states, made.candidates
    place = [one.n_states for one in every].index(n)
    total = [float(one.held_out.sum()) for one in every]
    each = 1 / made.n_held_out
    if place > 0:
        gain = total[place] - max(total[:place])
        rise = f"held-out likelihood rises by {gain:.4g} nats ({gain * each:.2g} per observation) up to {n}"
        more = ""  # of what was tried
        if place + 1 < len(every):
            within = " and by no more than its error after" if made.by["held-out likelihood"] == n else ""
            more = " and no further" if max(total[place + 1 :]) <= total[place] else within
    else:
        rise = f"no larger number of states foresees held-out data better than {n}"
        more = " by more than its error" if max(total) > total[0] else ""
    if set(made.by.values()) == {n}:
        return f"K = {n}: {rise}{more}; BIC and ICL agree"
    apart = ", ".join(f"{name} {k}" for name, k in made.by.items())
    middle = sorted(made.by.values())[1]
    if n == middle:
        return f"K = {n}: {rise}{more}; the criteria differ ({apart}), and the middle one is taken"
    near = _closest(next(one for one in every if one.n_states == middle))
    return (
        f"K = {n}: the criteria differ ({apart}), but two of {middle} states lie {near:.2g} noise widths apart, which "
        "may be the shape of the noise (try another emission) or two dwell times of one level (try levels)"
    )


def _warnings(made: Selection) -> list[str]:
    """What cannot be told, or only just."""
    chosen, told = made.chosen, []
    apart, unit = chosen.separation, chosen.fitted.time_unit
    i, j = apart.closest
    if apart.distances[i, j] < 1:
        told.append(
            f"states {i} and {j} cannot be told apart by what is observed: their levels are "
            f"{apart.distances[i, j]:.2g} noise widths from each other"
        )
    for k in apart.hardly_visited:
        told.append(
            f"state {k} is hardly visited ({apart.occupancy[k]:.2%} of the observations, {apart.visits[k]} visits): "
            "little is known of it"
        )
    slowest, gap = float(np.max(chosen.fitted.timescales.mean)), made.median_gap
    if slowest < gap:
        told.append(
            f"the states change within {slowest:.3g} {unit}, faster than they are observed (every {gap:.3g} {unit}): "
            "they may be the noise of a single state"
        )
    if chosen.wandering > UNSTABLE:
        told.append(
            f"the levels wander between folds by up to {chosen.wandering:.2g} noise widths: they are not settled"
        )
    for one in made.candidates:
        if abs(one.n_states - made.n_states) == 1:
            lost = chosen.held_out - one.held_out
            total, error = float(lost.sum()), float(lost.std(ddof=1) * np.sqrt(len(lost)))
            better = one.n_states > made.n_states and -2 * error < total < 0
            close = one.n_states < made.n_states and total < 2 * error
            if better or close:
                told.append(
                    f"{one.n_states} states can hardly be told from {made.n_states}: their held-out likelihood is "
                    f"{abs(total):.3g} nats {'lower' if total > 0 else 'higher'}, with a standard error of {error:.2g}"
                )
    if made.n_states == made.candidates[-1].n_states:
        told.append(f"{made.n_states} is the largest number tried: try more")
    return told
