"""How far forecasts, or reconstructions, are from what was observed: the paper's three metrics (Appendix H)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..errors import InputError


@dataclass(frozen=True)
class Accuracy:
    """Root mean squared distance, squares being added over the values of an observation and averaged over series."""

    at: Float[np.ndarray, "step"]  # of each step; NaN where nothing was observed
    weights: Float[np.ndarray, "step"]  # observations at each step

    @property
    def overall(self) -> float:
        seen = self.weights > 0
        return float(np.sqrt(np.average(self.at[seen] ** 2, weights=self.weights[seen])))

    def first(self, m: int) -> float:
        """Mean over the first `m` steps."""
        if not 1 <= m <= len(self.at):
            raise InputError(f"there are {len(self.at)} steps: the first {m} cannot be judged")
        return float(np.nanmean(self.at[:m]))


def accuracy(
    expected: Float[np.ndarray, "series step feature"], observed: Float[np.ndarray, "series step feature"]
) -> Accuracy:
    """Of expected values; observations with a missing value do not count."""
    squares = ((np.asarray(expected, float) - observed) ** 2).sum(-1)
    weights = (~np.isnan(squares)).sum(0).astype(float)
    if not weights.any():
        raise InputError("nothing was observed that a forecast could be compared with")
    at = np.sqrt(np.nansum(squares, axis=0) / np.where(weights > 0, weights, np.nan))
    return Accuracy(at, weights)
