"""Which states a jump process can reach: decided by which rates are zero, never by how small they are."""

import numpy as np
from jaxtyping import Bool, Float

from ..errors import InputError


def reachable(rates: Float[np.ndarray, "*batch state state"]) -> Bool[np.ndarray, "*batch state state"]:
    """Entry [i, j]: state j can be reached from state i in any number of jumps, none included."""
    n_states = rates.shape[-1]
    reach = (rates > 0) | np.eye(n_states, dtype=bool)
    for _ in range(max(n_states - 1, 1).bit_length()):  # doubling the path length each time
        step = reach.astype(np.float32)
        reach = step @ step > 0
    return reach


def recurrent(rates: Float[np.ndarray, "*batch state state"]) -> Bool[np.ndarray, "*batch state"]:
    """States the process returns to for ever: every state they reach leads back."""
    reach = reachable(rates)
    return np.all(~reach | reach.swapaxes(-1, -2), axis=-1)


def first_of_class(rates: Float[np.ndarray, "*batch state state"]) -> Bool[np.ndarray, "*batch state"]:
    """True for the first state of each closed class, so that the count of True is the number of classes."""
    reach = reachable(rates)
    closed = np.all(~reach | reach.swapaxes(-1, -2), axis=-1)
    return closed & (reach.argmax(-1) == np.arange(rates.shape[-1]))


def closed_classes(rates: Float[np.ndarray, "state state"]) -> list[np.ndarray]:
    """The sets of states that are never left once entered; one alone for an irreducible process.

    >>> [list(map(int, c)) for c in closed_classes(np.array([[0, 1.0, 1.0], [0, 0, 0], [0, 0, 0]]))]
    [[1], [2]]
    """
    reach = reachable(rates)
    return [np.flatnonzero(reach[first]) for first in np.flatnonzero(first_of_class(rates))]


def require_one_class(rates: Float[np.ndarray, "*batch state state"], quantity: str) -> None:
    """Raise one clear line where several closed classes leave `quantity` undefined."""
    several = first_of_class(rates).sum(-1) > 1
    if several.any():
        example = closed_classes(rates[tuple(np.argwhere(several)[0])])
        sets = ", ".join("{" + ", ".join(str(s) for s in states) + "}" for states in example)
        raise InputError(
            f"{quantity} is not unique: the process has {len(example)} closed classes, {sets}; "
            "treat each class on its own, or see stationary_distributions for one law per class"
        )
