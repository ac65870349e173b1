"""Long-run behaviour: stationary law, relaxation, dwell times, entropy production."""

import numpy as np
from jaxtyping import Complex, Float

from ..errors import InputError
from .elimination import eliminate, solve_left
from .generators import check_rates, exit_rates, generator_from_rates
from .structure import closed_classes, first_of_class, require_one_class
from .types import ArrayLike


def stationary_distribution(rates: ArrayLike) -> Float[np.ndarray, "*batch state"]:
    """The law p* with p* F = 0, for one rate matrix or a batch of them.

    Transient states get probability 0; several closed classes are an error (see `stationary_distributions`).

    Args:
        rates: (..., K, K).

    >>> stationary_distribution([[0.0, 2.0], [1.0, 0.0]])
    array([0.33333333, 0.66666667])
    """
    rates = check_rates(rates)
    require_one_class(rates, "the stationary law")
    flat = rates.reshape(-1, *rates.shape[-2:])
    # Count from a state that every other one reaches: expected time in each state between two visits to it.
    reference = first_of_class(flat).argmax(-1)
    items = np.arange(len(flat))
    leaks = flat[items, :, reference].copy()
    leaks[items, reference] = 1.0
    entries = flat[items, reference, :]
    cut = flat.copy()
    cut[items, :, reference] = 0.0
    cut[items, reference, :] = 0.0
    times = solve_left(eliminate(cut, leaks), entries)
    times[items, reference] = 1.0
    return (times / times.sum(-1, keepdims=True)).reshape(rates.shape[:-1])


def stationary_distributions(rates: ArrayLike) -> Float[np.ndarray, "closed_class state"]:
    """One stationary law per closed class, in the order of their first states."""
    rates = check_rates(rates)
    if rates.ndim != 2:
        raise InputError(f"stationary_distributions takes one rate matrix, got shape {rates.shape}")
    classes = closed_classes(rates)
    laws = np.zeros((len(classes), len(rates)))
    for law, states in zip(laws, classes, strict=True):
        law[states] = stationary_distribution(rates[np.ix_(states, states)])
    return laws


def eigenvalues(rates: ArrayLike) -> Complex[np.ndarray, "*batch state"]:
    """Eigenvalues of the generator, slowest decay first; each closed class gives one that is exactly 0.

    One clear error where a relaxation is too slow, relative to the fastest jump, for double precision to see.
    """
    rates = check_rates(rates)
    values = np.linalg.eigvals(generator_from_rates(rates)).astype(complex)
    values = np.take_along_axis(values, np.argsort(np.abs(values), axis=-1), axis=-1)
    n_states = rates.shape[-1]
    zero = np.arange(n_states) < first_of_class(rates).sum(-1)[..., None]
    resolution = 10 * n_states * np.finfo(float).eps * exit_rates(rates).max(-1, initial=0.0)
    if (~zero & (np.abs(values) <= resolution[..., None])).any():
        raise InputError(
            "relaxation times span more than double precision can resolve (about 14 orders of magnitude): "
            "set the slowest rates to zero, or lump states that exchange very fast"
        )
    values = np.where(zero, 0, values)
    return np.take_along_axis(values, np.argsort(-np.real(values), axis=-1, kind="stable"), axis=-1)


def timescales(rates: ArrayLike, k: int | None = None) -> Float[np.ndarray, "*batch scale"]:
    """Relaxation times 1 / abs(Re eigenvalue), longest first: K - 1 of them, or the first `k`.

    A second closed class never relaxes into the first: its timescale is infinite.
    """
    decay = np.abs(np.real(eigenvalues(rates)[..., 1:]))
    with np.errstate(divide="ignore"):
        return (1.0 / decay)[..., :k]


def sojourn_times(rates: ArrayLike) -> Float[np.ndarray, "*batch state"]:
    """Mean dwell time in each state per visit; infinite for an absorbing state."""
    with np.errstate(divide="ignore"):
        return 1.0 / np.asarray(exit_rates(check_rates(rates)))


def entropy_production(rates: ArrayLike) -> Float[np.ndarray, "*batch"]:
    """Entropy produced per time unit in the stationary state, in nats; 0 exactly at detailed balance.

    sum_{i<j} (p_i f_ij - p_j f_ji) log(p_i f_ij / p_j f_ji); infinite where a jump has no reverse.
    """
    rates = check_rates(rates)
    flow = stationary_distribution(rates)[..., None] * rates
    forward, backward = flow, flow.swapaxes(-1, -2)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = (forward - backward) * (np.log(forward) - np.log(backward)) / 2
    return np.where(forward == backward, 0.0, terms).sum((-2, -1))
