"""Are forecasts as sure as they should be, and how far off? Later observations against their 90 % intervals."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..errors import InputError
from ..fitted import FittedMJP
from ..fitted_network import FittedNetwork
from ..timeseries import TimeSeries
from .accuracy import Accuracy, accuracy
from .verdict import Verdict

MEANT = 0.9  # share that forecast intervals should hold
PAST = 50  # observations before each forecast, where a recording is cut into several
MOST_FORECASTS = 200


@dataclass(frozen=True)
class Coverage:
    """Of forecasts 1, 2, ... observations ahead."""

    inside: Float[np.ndarray, "step"]  # share of the observations inside, by how far ahead
    n_forecasts: int
    error: float  # standard error of the share in all, forecasts being independent
    accuracy: Accuracy  # distance of the expected values from what came
    discrete: bool = False  # few values: an interval cannot hold just 90 %, only at least so many

    @property
    def share(self) -> float:
        return float(self.inside.mean())

    @property
    def verdict(self) -> Verdict:
        told = f"{self.share:.1%} of the observations up to {len(self.inside)} ahead lie inside their 90 % intervals"
        off = MEANT - self.share if self.discrete else abs(self.share - MEANT)
        passed = off <= max(0.05, 3 * self.error)
        least = "at least " if self.discrete else ""
        says = "as they should" if passed else f"should be {least}90 %, standard error {self.error:.1%}"
        far = f"{self.accuracy.at[0]:.3g} one ahead, {self.accuracy.overall:.3g} over all"
        return Verdict("forecasts", passed, f"{told}: {says}; root mean square error {far}")


def coverage(
    fitted: FittedMJP | FittedNetwork, data: TimeSeries, horizon: int = 5, *, past: int | None = None, seed: int = 0
) -> Coverage:
    """Hold out the last observations of each series, or of each piece of a long recording, and forecast them.

    Args:
        horizon: observations ahead.
        past: observations before each forecast, where series are cut into pieces; without it series that are at most
            twice as long as that (50 and the horizon) stay whole.
    """
    if data.lengths.max() <= horizon:
        raise InputError(f"no series is longer than {horizon} observations: look less far ahead")
    length = (past or PAST) + horizon
    cut = past is not None or data.lengths.max() > 2 * length
    pieces = data.windows(length, drop_tail=True) if cut else data[np.flatnonzero(data.lengths > horizon)]
    chosen = np.linspace(0, len(pieces) - 1, min(len(pieces), MOST_FORECASTS)).round().astype(int)
    pieces = pieces[np.unique(chosen)]
    rows = pieces.offsets[1:, None] - np.arange(horizon, 0, -1)
    ahead = [pieces.times[each] for each in rows]
    known = np.ones(pieces.n_observations, dtype=bool)
    known[rows.ravel()] = False
    before = TimeSeries.from_arrays(
        [pieces.times[a:b][known[a:b]] for a, b in zip(pieces.offsets[:-1], pieces.offsets[1:], strict=True)],
        [pieces.values[a:b][known[a:b]] for a, b in zip(pieces.offsets[:-1], pieces.offsets[1:], strict=True)],
        time_unit=data.time_unit,
        value_names=data.value_names,
    )
    law = fitted.predict(before, ahead, seed=seed).readings
    seen = pieces.values[rows.ravel()]
    inside = np.where(np.isnan(seen), np.nan, (seen >= law.lower) & (seen <= law.upper))
    each = np.nanmean(inside.reshape(len(pieces), -1), axis=1)
    alone = np.sqrt(MEANT * (1 - MEANT) / max(np.isfinite(inside).sum(), 1))  # as if steps were independent
    error = float(each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else alone)
    shape = (len(pieces), horizon, -1)
    off = accuracy(law.mean.reshape(shape), seen.reshape(shape))
    whole = seen[~np.isnan(seen)]
    return Coverage(
        np.nanmean(inside.reshape(shape), axis=(0, 2)), len(pieces), error, off, bool((whole == whole.round()).all())
    )
