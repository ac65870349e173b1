"""Slow timescales against the distance of the observations: what is really slow does not depend on it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError
from ..estimators import ExactMJP
from ..estimators.assumptions import Assumptions
from ..mjp import Interval
from ..preprocess import thinned
from ..timeseries import TimeSeries
from .verdict import Verdict

THINNINGS = (1, 2, 5, 10, 20)
FLAT = 0.1  # a timescale that changes by less than this share is on its plateau
FEWEST_PER_STATE = 50  # observations that a thinned data set keeps


@dataclass(frozen=True)
class ImpliedTimescales:
    """Relaxation times of the same model fitted to every n-th observation."""

    thinnings: Int[np.ndarray, "thinning"]
    timescales: Interval  # (thinning, K - 1), slowest first
    time_unit: str

    @property
    def plateau(self) -> int | None:
        return plateau(self.thinnings, self.timescales.mean[:, 0])

    @property
    def verdict(self) -> Verdict:
        chosen, slowest = self.plateau, self.timescales.mean[:, 0]
        steps = ", ".join(f"{t:.3g}" for t in slowest)
        of = ", ".join(str(n) for n in self.thinnings)
        told = f"the slowest timescale is {steps} {self.time_unit} from data thinned by {of}"
        if len(slowest) < 2:
            return Verdict("timescales", None, "the data are too short to be thinned")
        if chosen is None:
            return Verdict("timescales", False, f"{told}: it never settles, so that no rate is to be trusted")
        if chosen > 1:
            advice = f"it settles at {chosen} only: fit to data thinned so far"
            return Verdict("timescales", False, f"{told}: {advice}")
        grown = self.timescales.lower[:, 0] > (1 + FLAT) * slowest[0]
        if grown.any():
            advice = "it grows where one looks less closely, as if a slow state were missing"
            return Verdict("timescales", False, f"{told}: {advice}")
        fallen = self.timescales.upper[:, 0] < (1 - FLAT) * slowest[0]
        if fallen.any():
            advice = "it falls where one looks less closely, so that no jump process with these states explains all"
            return Verdict("timescales", False, f"{told}: {advice}")
        return Verdict("timescales", True, f"{told}: it does not depend on how closely one looks")


def implied_timescales(
    data: TimeSeries, estimator: ExactMJP, thinnings: Sequence[int] = THINNINGS
) -> ImpliedTimescales:
    """Fit to every n-th observation, n from `thinnings`; those that would leave too little are left out."""
    if not isinstance(estimator, Assumptions):
        raise InputError(f"timescales are of fits by an estimator such as ExactMJP(2), got {type(estimator).__name__}")
    if estimator.panel.exact_entry is not None:
        raise InputError("thinned data lack exact times of entry, on which such a model rests")
    fewest = FEWEST_PER_STATE * estimator.n_states
    used = [n for n in thinnings if n == 1 or (data.n_observations / n >= fewest and data.lengths.max() >= 2 * n)]
    if not used:
        raise InputError("name at least one thinning that the data can bear, such as 1")
    fits = [estimator.fit(_with_gaps(thinned(data, n))) for n in used]
    each = [fitted.timescales for fitted in fits]
    mean, lower, upper = (np.stack([getattr(one, end) for one in each]) for end in ("mean", "lower", "upper"))
    return ImpliedTimescales(np.array(used), Interval(mean, lower, upper), data.time_unit)


def plateau(
    thinnings: Int[np.ndarray, "thinning"], slowest: Float[np.ndarray, "thinning"], within: float = FLAT
) -> int | None:
    """The smallest thinning whose slowest timescale is within a tenth of the next one's; None if there is none.

    >>> plateau(np.array([1, 2, 5, 10]), np.array([3.0, 5.0, 8.0, 8.4]))
    5
    """
    for n, here, after in zip(thinnings[:-1], slowest[:-1], slowest[1:], strict=True):
        if abs(after - here) <= within * here:
            return int(n)
    return None


def thin_to_plateau(
    data: TimeSeries, estimator: ExactMJP, thinnings: Sequence[int] = THINNINGS
) -> tuple[TimeSeries, int]:
    """The data thinned until the slowest timescale no longer depends on it, and how far that was.

    Where it never settles, the data thinned most.
    """
    found = implied_timescales(data, replace(estimator, intervals=False), thinnings)
    chosen = found.plateau or int(found.thinnings[-1])
    return thinned(data, chosen), chosen


def _with_gaps(data: TimeSeries) -> TimeSeries:
    """Without series of a single observation, which say nothing about rates."""
    return data[np.flatnonzero(data.lengths > 1)]
