"""A Markov model of a few states at a lag: what every baseline of this folder that looks at pairs of times returns."""

import warnings as python_warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Inexact, Int
from scipy.linalg import logm

from .. import mjp
from ..errors import InputError
from ..timeseries import TimeSeries
from .lagged import lagged_pairs, propagator

Memberships = Callable[[TimeSeries], Float[np.ndarray, "row state"]]

NEGATIVE = 1e-3  # a probability this far below zero is worth a word
NEGLIGIBLE = 1e-6  # share of the largest rate that may be clipped without a word
REGULAR = 1e-9  # of the identity mixed in, so that a singular matrix has a logarithm


class ChapmanKolmogorov(NamedTuple):
    """Transition matrices after 1, 2, ... lags: powers of the first one, and what the data show."""

    lags: Float[np.ndarray, "step"]
    predicted: Float[np.ndarray, "step state state"]
    estimated: Float[np.ndarray, "step state state"]


class Intervals(NamedTuple):
    """What sampling from a posterior tells of the uncertainty."""

    stationary_distribution: mjp.Interval
    timescales: mjp.Interval


@dataclass(frozen=True, eq=False, repr=False)
class MarkovChain:
    """States, ordered by how often they are visited, and how they follow each other after a lag.

    A Markov state model lives on many microstates: then `timescales` are those of the microstates, and there are more
    of them than states; all else is about the metastable sets, to which an observation may belong in part.

    Attributes:
        method: who found it.
        transition: T, entry [i, j] from i to j after one lag; rows sum to 1.
        lag: in the data's time unit.
        time_unit: of `lag`, `timescales`, `mfpt`, and (inverted) `rates`.
        stationary_distribution: share of time in every state.
        timescales: -lag / log of the size of the eigenvalue, longest first.
        mfpt: mean first-passage times, entry [i, j] from i to j, 0 on the diagonal, as a chain that looks once a lag.
        rates: log(T) / lag off the diagonal, zeros on it; where T has no generator the nearest one, with a warning.
        memberships: probabilities of the states for every observation of a data set.
        scored: the number behind `score`.
        score_name: what it is.
        warnings: what a user should know, one line each.
        intervals: where the method gives them.
    """

    method: str
    transition: Float[np.ndarray, "state state"]
    lag: float
    time_unit: str
    stationary_distribution: Float[np.ndarray, "state"]
    timescales: Float[np.ndarray, "scale"]
    mfpt: Float[np.ndarray, "state state"]
    rates: Float[np.ndarray, "state state"]
    memberships: Memberships
    scored: Callable[[TimeSeries], float]
    score_name: str
    warnings: tuple[str, ...] = ()
    intervals: Intervals | None = None

    def __repr__(self) -> str:
        slowest = f"slowest timescale {self.timescales[0]:.4g} {self.time_unit}"
        return f"MarkovChain({self.method}, {self.n_states} states, lag {self.lag:g}, {slowest})"

    @property
    def n_states(self) -> int:
        """K."""
        return len(self.transition)

    def probabilities(self, data: TimeSeries) -> Float[np.ndarray, "row state"]:
        """How much every observation belongs to every state."""
        return self.memberships(data)

    def states(self, data: TimeSeries) -> Int[np.ndarray, "row"]:
        """The most probable state of every observation, from 0."""
        return self.memberships(data).argmax(1)

    def score(self, data: TimeSeries) -> float:
        """`score_name` on these data, say held-out ones: the higher the better."""
        return self.scored(data)

    def forecast(self, data: TimeSeries, steps: int) -> Float[np.ndarray, "series step state"]:
        """Probabilities of the states 1, 2, ... lags after the last observation of each series."""
        last = self.memberships(data)[data.offsets[1:] - 1]
        return np.stack([last @ power for power in self._powers(steps)], axis=1)

    def chapman_kolmogorov(self, data: TimeSeries, steps: int) -> ChapmanKolmogorov:
        """Whether the model is Markov at its lag: powers of `transition` beside estimates at 1, 2, ... lags."""
        predicted, memberships = self._powers(steps), self.memberships(data)
        pairs = [lagged_pairs(data, n * self.lag) for n in range(1, steps + 1)]
        estimated = np.stack([propagator(memberships, pair, reversible=False) for pair in pairs])
        return ChapmanKolmogorov(np.array([pair.lag for pair in pairs]), predicted, estimated)

    def _powers(self, steps: int) -> Float[np.ndarray, "step state state"]:
        if steps < 1:
            raise InputError(f"give at least 1 step, got {steps}")
        return np.stack([np.linalg.matrix_power(self.transition, n) for n in range(1, steps + 1)])


def make_chain(
    method: str,
    matrix: Float[np.ndarray, "state state"],
    lag: float,
    data: TimeSeries,
    memberships: Memberships,
    scored: Callable[[TimeSeries], float],
    score_name: str,
    *,
    law: Float[np.ndarray, "state"] | None = None,
    timescales: Float[np.ndarray, "scale"] | None = None,
) -> MarkovChain:
    """All that follows from a transition matrix, its states put in order.

    Args:
        matrix: rows sum to 1; entries below zero, which overlapping memberships bring about, are clipped.
        data: what it was fitted to.
        memberships: in the order of the matrix.
        law: stationary law, where it is known better than from the matrix.
        timescales: likewise.
    """
    transition, notes = _stochastic(matrix)
    law = mjp.stationary_distribution(jumps_of(transition)) if law is None else law
    notes += [f"state {len(law) - 1 - k} is never visited" for k in range(int((law < 1e-9).sum()))]
    order = np.argsort(-law, kind="stable")
    transition, law = transition[np.ix_(order, order)], law[order]
    rates, more = rates_of(transition, lag)
    return MarkovChain(
        method=method,
        transition=transition,
        lag=lag,
        time_unit=data.time_unit,
        stationary_distribution=law,
        timescales=timescales_of(matrix, lag) if timescales is None else timescales,
        mfpt=np.asarray(mjp.mfpt(jumps_of(transition) / lag)),
        rates=rates,
        memberships=lambda some: memberships(some)[:, order],
        scored=scored,
        score_name=score_name,
        warnings=(*notes, *more),
    )


def timescales_of(matrix: Float[np.ndarray, "state state"], lag: float) -> Float[np.ndarray, "scale"]:
    """-lag / log of the size of the eigenvalue of all but the first, longest first.

    >>> timescales_of(np.array([[0.75, 0.25], [0.25, 0.75]]), 1.0).round(4)
    array([1.4427])
    """
    return decay_times(np.linalg.eigvals(matrix), lag)


def decay_times(eigenvalues: Inexact[np.ndarray, "state"], lag: float) -> Float[np.ndarray, "scale"]:
    """The same from eigenvalues, in any order; infinite where one is not below 1."""
    size = np.sort(np.abs(eigenvalues))[::-1][1:]
    with np.errstate(divide="ignore"):
        return lag / np.abs(np.log(np.minimum(size, 1.0)))


def rates_of(
    transition: Float[np.ndarray, "state state"], lag: float
) -> tuple[Float[np.ndarray, "state state"], list[str]]:
    """Rates by the matrix logarithm, and a warning where they had to be repaired.

    Not every transition matrix comes from a jump process. Then what is negative off the diagonal of the logarithm is
    clipped, and the diagonal makes the rows sum to zero (Israel, Rosenthal & Wei 2001).
    """
    with python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore")  # of singular matrices: told below
        log = logm((1 - REGULAR) * transition + REGULAR * np.eye(len(transition)))
    raw = np.real(log) / lag * (1 - np.eye(len(transition)))
    largest = np.abs(raw).max()
    notes = []
    if np.abs(np.imag(log)).max() / lag > NEGLIGIBLE * largest:
        notes.append(
            f"no generator: after a lag of {lag:g} the logarithm is not real; rates are rough, shorten the lag"
        )
    elif raw.min() < -NEGLIGIBLE * largest:
        count = int((raw < -NEGLIGIBLE * largest).sum())
        notes.append(
            f"no generator: {count} of the rates would be negative, down to {raw.min():.2g}; "
            "the nearest generator has zeros there"
        )
    return np.maximum(raw, 0.0), notes


def _stochastic(matrix: Float[np.ndarray, "state state"]) -> tuple[Float[np.ndarray, "state state"], list[str]]:
    """Without what is below zero, which happens where memberships overlap."""
    lowest = float(matrix.min())
    notes = [f"states overlap: transition probabilities down to {lowest:.2g} are clipped"] if lowest < -NEGATIVE else []
    clipped = np.maximum(matrix, 0.0)
    return clipped / clipped.sum(1, keepdims=True), notes


def jumps_of(transition: Float[np.ndarray, "state state"]) -> Float[np.ndarray, "state state"]:
    """What leaves each state in one lag: divided by it, rates with the chain's own passage times."""
    return transition * (1 - np.eye(len(transition)))
