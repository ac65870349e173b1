import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse.csgraph import connected_components, shortest_path

from neuralmjp.errors import InputError
from neuralmjp.mjp import closed_classes
from neuralmjp.mjp.structure import first_of_class, reachable, recurrent, require_one_class

graphs = st.integers(1, 7).flatmap(lambda k: arrays(bool, (k, k), elements=st.booleans()))


def rates_on(graph):
    return np.where(graph & ~np.eye(len(graph), dtype=bool), 1e-300, 0.0)  # size never matters


@settings(deadline=None, max_examples=100, derandomize=True)
@given(graphs)
def test_structure_against_graph_search(graph):
    rates = rates_on(graph)
    steps = shortest_path((rates > 0).astype(float), unweighted=True)
    np.testing.assert_array_equal(reachable(rates), np.isfinite(steps))

    n_classes, label = connected_components((rates > 0).astype(float), connection="strong")
    closed = [np.flatnonzero(label == c) for c in range(n_classes) if not (rates[label == c][:, label != c] > 0).any()]
    closed.sort(key=lambda states: states[0])
    found = closed_classes(rates)
    assert [list(states) for states in found] == [list(states) for states in closed]
    np.testing.assert_array_equal(np.flatnonzero(recurrent(rates)), np.sort(np.concatenate(closed)))
    np.testing.assert_array_equal(np.flatnonzero(first_of_class(rates)), [states[0] for states in closed])


@pytest.mark.parametrize("n_states", [2, 3, 4, 5, 64, 65, 100])
def test_one_way_chain_reaches_its_end(n_states):
    rates = np.diag(np.ones(n_states - 1), 1)
    np.testing.assert_array_equal(reachable(rates), np.triu(np.ones((n_states, n_states), bool)))
    assert [list(states) for states in closed_classes(rates)] == [[n_states - 1]]


def test_single_state():
    assert [list(states) for states in closed_classes(np.zeros((1, 1)))] == [[0]]


def test_batched_equals_looped():
    rates = np.stack([rates_on(g) for g in np.random.default_rng(0).random((20, 5, 5)) < 0.25])
    for function in (reachable, recurrent, first_of_class):
        looped = np.stack([function(one) for one in rates])
        np.testing.assert_array_equal(function(rates), looped)
        np.testing.assert_array_equal(function(rates.reshape(4, 5, 5, 5)), looped.reshape(4, 5, *looped.shape[1:]))


def test_error_names_the_classes_of_the_first_wrong_matrix():
    split = np.zeros((4, 4))
    split[0, 1] = split[1, 0] = split[3, 2] = 1.0
    require_one_class(1 - np.eye(4), "this")
    for rates in (split, np.stack([1 - np.eye(4), split])):
        with pytest.raises(InputError, match=r"this is not unique: the process has 2 closed classes, \{0, 1\}, \{2\};"):
            require_one_class(rates, "this")
