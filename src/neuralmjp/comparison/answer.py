"""What one fit of one method says, in plain numbers that travel between processes as JSON."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from ..fitted_files import plain


@dataclass(frozen=True)
class Answer:
    """One fit.

    Attributes:
        states: of every observation, also of those that were held out.
        timescales: longest first.
        mfpt: mean first-passage times, entry [i, j] from i to j.
        held_out: log-likelihood per observation that the fit did not see; NaN where the method has none.
        seconds: of the fit.
        megabytes: the most memory that its process held.
    """

    states: Int[np.ndarray, "row"]
    stationary_distribution: Float[np.ndarray, "state"]
    timescales: Float[np.ndarray, "scale"]
    mfpt: Float[np.ndarray, "state state"]
    held_out: float = float("nan")
    seconds: float = float("nan")
    megabytes: float = float("nan")
    warnings: tuple[str, ...] = ()

    @property
    def n_states(self) -> int:
        return len(self.stationary_distribution)

    def renamed(self, order: Int[np.ndarray, "state"]) -> "Answer":
        """State order[k] becomes state k."""
        return replace(
            self,
            states=np.argsort(order)[self.states],
            stationary_distribution=self.stationary_distribution[order],
            mfpt=self.mfpt[np.ix_(order, order)],
        )

    def to_json(self) -> dict[str, Any]:
        return plain(asdict(self))

    @classmethod
    def from_json(cls, known: dict[str, Any]) -> "Answer":
        numbers = {name: _numbers(known[name]) for name in ("stationary_distribution", "timescales", "mfpt")}
        single: dict[str, Any] = {name: float(_numbers(known[name])) for name in ("held_out", "seconds", "megabytes")}
        return cls(np.asarray(known["states"], int), **numbers, **single, warnings=tuple(known["warnings"]))


def _numbers(values: Any) -> np.ndarray:
    """What JSON could not hold was not a number."""
    return np.array(values, dtype=object).astype(float) if values is not None else np.array(np.nan)
