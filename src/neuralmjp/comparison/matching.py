"""States of different methods named alike, by the observations that they share."""

import numpy as np
from jaxtyping import Int
from scipy.optimize import linear_sum_assignment


def overlap(
    first: Int[np.ndarray, "row"], second: Int[np.ndarray, "row"], n_states: int
) -> Int[np.ndarray, "state state"]:
    """How many observations are i in the first and j in the second.

    >>> overlap(np.array([0, 0, 1]), np.array([1, 1, 0]), 2)
    array([[0, 2],
           [1, 0]])
    """
    return np.bincount(first * n_states + second, minlength=n_states**2).reshape(n_states, n_states)


def matched(
    reference: Int[np.ndarray, "row"], states: Int[np.ndarray, "row"], n_states: int
) -> Int[np.ndarray, "state"]:
    """Which of the states is the reference's first, second, ..., such that most observations agree (Hungarian).

    >>> matched(np.array([0, 0, 1]), np.array([1, 1, 0]), 2)
    array([1, 0])
    """
    return np.asarray(linear_sum_assignment(overlap(reference, states, n_states), maximize=True)[1])


def agreement(reference: Int[np.ndarray, "row"], states: Int[np.ndarray, "row"]) -> float:
    """Share of the observations in the same state."""
    return float((reference == states).mean())
