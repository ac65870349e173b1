"""Getting from here to there: passage times, committors, reactive flux."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from ..errors import InputError
from .elimination import eliminate, solve_right
from .generators import check_rates
from .stationary import stationary_distribution
from .structure import reachable
from .types import ArrayLike, Number, States

# Systems solved at once: keeps the working set near 64 MB whatever the batch.
CHUNK_ENTRIES = 4_000_000


def mfpt(
    rates: ArrayLike, source: States | None = None, target: States | None = None
) -> Float[np.ndarray, "..."] | float:
    """Mean first-passage times, infinite where the target may never be reached.

    Args:
        rates: (..., K, K).
        source: set A of states. The mean over A is weighted by the stationary law.
        target: set B of states.

    Returns:
        (..., K, K) with entry [i, j] from i to j when neither set is given; (..., K), one per starting state, when
        only the target is; (...) from A to B when both are.

    >>> mfpt([[0.0, 2.0], [1.0, 0.0]])
    array([[0. , 0.5],
           [1. , 0. ]])
    """
    rates = check_rates(rates)
    n_states = rates.shape[-1]
    if target is None:
        if source is not None:
            raise InputError("mfpt needs a target when it is given a source")
        targets = np.eye(n_states, dtype=bool)
        shape = (*rates.shape[:-2], n_states, n_states)
        each = np.broadcast_to(rates[..., None, :, :], (*shape, n_states))
        times = _passage_times(
            each.reshape(-1, n_states, n_states), np.broadcast_to(targets, shape).reshape(-1, n_states)
        )
        return times.reshape(shape).swapaxes(-1, -2)
    flat = rates.reshape(-1, n_states, n_states)
    goal = np.broadcast_to(_members(target, n_states, "target"), flat.shape[:-1])
    times = _passage_times(flat, goal).reshape(rates.shape[:-1])
    if source is None:
        return times
    return _mean_over(times, rates, _members(source, n_states, "source"))


def committor_forward(rates: ArrayLike, source: States, target: States) -> Float[np.ndarray, "*batch state"]:
    """Probability to reach `target` before `source`: 0 on the source, 1 on the target.

    States that never reach either set commit to neither: 0.
    """
    rates = check_rates(rates)
    start, goal = _two_sets(source, target, rates.shape[-1])
    return _committor(rates, start, goal)


def committor_backward(rates: ArrayLike, source: States, target: States) -> Float[np.ndarray, "*batch state"]:
    """Probability, in the stationary state, to have come from `source` last rather than from `target`."""
    rates = check_rates(rates)
    start, goal = _two_sets(source, target, rates.shape[-1])
    return _committor(_time_reversed(rates), goal, start)


@dataclass(frozen=True)
class ReactiveFlux:
    """Stationary traffic of trajectories that leave the source for the target (transition path theory).

    Rates and fluxes are per time unit of the rates that were given.
    """

    gross: Float[np.ndarray, "*batch state state"]  # p_i q-_i f_ij q+_j
    net: Float[np.ndarray, "*batch state state"]
    total: Number  # trajectories per time unit
    rate: Number  # the same per time spent on the source's side

    @property
    def mfpt(self) -> Number:
        """Mean time between leaving for the target anew: 1 / rate."""
        with np.errstate(divide="ignore"):
            return 1.0 / self.rate


def reactive_flux(rates: ArrayLike, source: States, target: States) -> ReactiveFlux:
    """Reactive flux from `source` to `target` (Metzner, Schuette & Vanden-Eijnden 2009).

    >>> float(reactive_flux([[0.0, 2.0], [1.0, 0.0]], 0, 1).rate)
    2.0
    """
    rates = check_rates(rates)
    start, _ = _two_sets(source, target, rates.shape[-1])
    law = stationary_distribution(rates)
    forward = committor_forward(rates, source, target)
    from_source = law * committor_backward(rates, source, target)
    gross = from_source[..., :, None] * rates * forward[..., None, :]
    total = gross[..., start, :].sum((-2, -1))
    return ReactiveFlux(gross, np.maximum(gross - gross.swapaxes(-1, -2), 0.0), total, total / from_source.sum(-1))


def _passage_times(rates: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Mean time to the target set, one system per row of the batch: (N, K, K), (N, K) -> (N, K)."""
    size = max(CHUNK_ENTRIES // rates.shape[-1] ** 2, 1)
    times = np.empty(rates.shape[:-1])
    for start in range(0, len(rates), size):
        part = slice(start, start + size)
        cut = np.where(target[part][..., None], 0.0, rates[part])
        reach = reachable(cut)
        arrives = np.any(reach & target[part][:, None, :], axis=-1)
        surely = np.all(~reach | arrives[:, None, :], axis=-1)
        times[part] = np.where(surely, _absorbed(cut, target[part] | ~surely, (~target[part]).astype(float)), np.inf)
    return times


def _committor(rates: np.ndarray, start: np.ndarray, goal: np.ndarray) -> np.ndarray:
    flat = rates.reshape(-1, *rates.shape[-2:])
    cut = np.where((start | goal)[:, None], 0.0, flat)
    lost = ~(reachable(cut) & (start | goal)).any(-1)
    probability = _absorbed(cut, start | goal | lost, np.zeros(flat.shape[:-1]), goal)
    return probability.reshape(rates.shape[:-1])


def _absorbed(
    rates: np.ndarray, absorbing: np.ndarray, income: np.ndarray, reward: np.ndarray | None = None
) -> np.ndarray:
    """Expected income per time unit until absorption plus the reward there, for each starting state."""
    open_rates = np.where(absorbing[..., None], 0.0, rates)
    at_end = np.zeros_like(income) if reward is None else np.broadcast_to(reward, income.shape).astype(float)
    return solve_right(eliminate(open_rates, absorbing.astype(float)), np.where(absorbing, at_end, income))


def _time_reversed(rates: np.ndarray) -> np.ndarray:
    law = stationary_distribution(rates)
    if (law == 0).any():
        state = np.argwhere(law == 0)[0][-1]
        raise InputError(
            f"the backward committor needs a process that visits every state for ever; state {state} is transient: "
            "remove it"
        )
    return law[..., None, :] * rates.swapaxes(-1, -2) / law[..., :, None]


def _mean_over(times: np.ndarray, rates: np.ndarray, members: np.ndarray) -> Number:
    if members.sum() == 1:
        return times[..., members][..., 0]
    weights = stationary_distribution(rates)[..., members]
    if (weights.sum(-1) == 0).any():
        raise InputError("the source holds transient states alone, so the stationary law cannot weight them: name one")
    visited = np.where(weights > 0, times[..., members], 0.0)
    return (weights * visited).sum(-1) / weights.sum(-1)


def _two_sets(
    source: States, target: States, n_states: int
) -> tuple[Bool[np.ndarray, "state"], Bool[np.ndarray, "state"]]:
    start, goal = _members(source, n_states, "source"), _members(target, n_states, "target")
    if (start & goal).any():
        raise InputError(f"source and target share state {np.flatnonzero(start & goal)[0]}: they must be disjoint")
    return start, goal


def _members(states: States, n_states: int, name: str) -> Bool[np.ndarray, "state"]:
    chosen = np.atleast_1d(np.asarray(states))
    if chosen.size == 0 or chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= n_states:
        raise InputError(f"{name} must name states from 0 to {n_states - 1}, got {states!r}")
    return np.isin(np.arange(n_states), chosen)
