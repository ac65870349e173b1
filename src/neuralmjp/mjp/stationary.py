"""Long-run behaviour: stationary law, relaxation, dwell times, entropy production."""

import numpy as np
from jaxtyping import Complex, Float

from .elimination import eliminate, solve_left, solve_right
from .generators import check_one, check_rates, exit_rates, generator_from_rates
from .structure import closed_classes, first_of_class, require_one_class
from .types import ArrayLike, Number

# Each shift resolves relaxations six orders of magnitude slower than the one before.
MOST_SHIFTS = 50


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
    rates = check_one(rates)
    classes = closed_classes(rates)
    laws = np.zeros((len(classes), len(rates)))
    for law, states in zip(laws, classes, strict=True):
        law[states] = stationary_distribution(rates[np.ix_(states, states)])
    return laws


def eigenvalues(rates: ArrayLike) -> Complex[np.ndarray, "*batch state"]:
    """Eigenvalues of the generator, slowest decay first; each closed class gives one that is exactly 0."""
    rates = check_rates(rates)
    flat = rates.reshape(-1, *rates.shape[-2:])
    # Rounding hides relaxations much slower than the fastest jump. They are the large eigenvalues of the resolvent
    # (shift - F)^-1, which elimination gives exactly: lower the shift until it has met the slowest.
    values = _by_size(np.linalg.eigvals(generator_from_rates(flat)))
    decays = np.arange(flat.shape[-1]) >= first_of_class(flat).sum(-1)[:, None]
    shift = flat.sum(-1).max(-1, initial=0.0)
    for _ in range(MOST_SHIFTS):
        hidden = decays & (np.abs(values) < 1e-4 * shift[:, None])
        stiff = hidden.any(-1)
        if not stiff.any():
            break
        shift[stiff] *= 1e-6
        inverse = np.linalg.eigvals(_resolvent(flat[stiff], shift[stiff])).astype(complex)
        with np.errstate(divide="ignore", invalid="ignore"):
            values[stiff] = np.where(hidden[stiff], _by_size(shift[stiff, None] - 1 / inverse), values[stiff])
    values[~decays] = 0
    values = np.take_along_axis(values, np.argsort(-np.real(values), axis=-1, kind="stable"), axis=-1)
    return values.reshape(rates.shape[:-1])


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


def entropy_production(rates: ArrayLike) -> Number:
    """Entropy produced per time unit in the stationary state, in nats; 0 exactly at detailed balance.

    sum_{i<j} (p_i f_ij - p_j f_ji) log(p_i f_ij / p_j f_ji); infinite where a jump has no reverse.
    """
    rates = check_rates(rates)
    flow = stationary_distribution(rates)[..., None] * rates
    forward, backward = flow, flow.swapaxes(-1, -2)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = (forward - backward) * (np.log(forward) - np.log(backward)) / 2
    return np.where(forward == backward, 0.0, terms).sum((-2, -1))


def _by_size(values: np.ndarray) -> np.ndarray:
    return np.take_along_axis(values.astype(complex), np.argsort(np.abs(values), axis=-1, kind="stable"), axis=-1)


def _resolvent(rates: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """(shift - F)^-1, every entry with its relative accuracy."""
    factors = eliminate(rates, np.repeat(shift[:, None], rates.shape[-1], axis=1))
    columns = [solve_right(factors, np.tile(unit, (len(rates), 1))) for unit in np.eye(rates.shape[-1])]
    return np.stack(columns, axis=-1)
