"""A path of a jump process: piecewise constant, right-continuous."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError


@dataclass(frozen=True)
class JumpPath:
    """One path on [0, duration): states[0] until jump_times[0], states[1] until jump_times[1], and so on.

    Args:
        jump_times: (J,), increasing, inside (0, duration).
        states: (J + 1, ...): a number per state, or a vector of counts for a reaction network.
        duration: end of the path.
    """

    jump_times: Float[np.ndarray, "jump"]
    states: Int[np.ndarray, "visit ..."]
    duration: float

    def at(self, times: Float[np.ndarray, "time"]) -> Int[np.ndarray, "time ..."]:
        """States at the given times; at a jump, the state that was jumped to."""
        times = np.asarray(times, dtype=float)
        if times.size and (times.min() < 0 or times.max() > self.duration):
            raise InputError(f"this path runs from 0 to {self.duration:g}: no state is known outside")
        return self.states[np.searchsorted(self.jump_times, times, side="right")]

    @property
    def dwell_times(self) -> Float[np.ndarray, "visit"]:
        """How long each visit lasted; the last one is cut short by the end of the path."""
        return np.diff(self.jump_times, prepend=0.0, append=self.duration)

    def time_in_states(self, n_states: int) -> Float[np.ndarray, "state"]:
        """Total time spent in each state."""
        return np.bincount(self.states, weights=self.dwell_times, minlength=n_states)

    def jump_counts(self, n_states: int) -> Int[np.ndarray, "state state"]:
        """Number of jumps from state i (row) to state j (column)."""
        counts = np.zeros((n_states, n_states), dtype=int)
        np.add.at(counts, (self.states[:-1], self.states[1:]), 1)
        return counts


def joined(jump_times: np.ndarray, states: np.ndarray, duration: float) -> JumpPath:
    """A path from candidate events, of which those that change nothing are dropped."""
    changed = states[1:] != states[:-1]
    real = changed.any(tuple(range(1, changed.ndim)))
    return JumpPath(jump_times[real], states[np.concatenate([[True], real])], duration)
