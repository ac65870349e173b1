import numpy as np
import pytest

from neuralmjp.errors import InputError
from neuralmjp.mjp import JumpPath
from neuralmjp.mjp.paths import joined

PATH = JumpPath(np.array([1.0, 1.5, 4.0]), np.array([0, 2, 0, 1]), 5.0)


def test_state_at_given_times():
    np.testing.assert_array_equal(PATH.at(np.array([0.0, 0.99, 1.2, 2.0, 4.5, 5.0])), [0, 0, 2, 0, 1, 1])


def test_at_a_jump_the_new_state_holds():
    np.testing.assert_array_equal(PATH.at(PATH.jump_times), [2, 0, 1])


@pytest.mark.parametrize("time", [-0.1, 5.1])
def test_no_state_outside(time):
    with pytest.raises(InputError, match="this path runs from 0 to 5: no state is known outside"):
        PATH.at(np.array([1.0, time]))


def test_no_times_no_states():
    assert PATH.at(np.array([])).shape == (0,)


def test_dwell_times_and_occupation():
    np.testing.assert_allclose(PATH.dwell_times, [1.0, 0.5, 2.5, 1.0])
    np.testing.assert_allclose(PATH.time_in_states(4), [3.5, 1.0, 0.5, 0.0])


def test_jump_counts():
    expected = np.zeros((3, 3))
    expected[0, 2] = expected[2, 0] = expected[0, 1] = 1
    np.testing.assert_array_equal(PATH.jump_counts(3), expected)


def test_a_path_without_jumps():
    still = JumpPath(np.array([]), np.array([1]), 2.0)
    np.testing.assert_array_equal(still.at(np.array([0.0, 2.0])), [1, 1])
    np.testing.assert_array_equal(still.time_in_states(2), [0, 2])
    np.testing.assert_array_equal(still.jump_counts(2), np.zeros((2, 2)))


def test_vectors_of_counts():
    path = JumpPath(np.array([1.0]), np.array([[3, 0], [2, 1]]), 2.0)
    np.testing.assert_array_equal(path.at(np.array([0.5, 1.5])), [[3, 0], [2, 1]])


def test_candidates_that_change_nothing_are_dropped():
    path = joined(np.array([1.0, 1.5, 2.0, 4.0]), np.array([0, 2, 2, 0, 1]), 5.0)
    np.testing.assert_array_equal(path.jump_times, [1.0, 2.0, 4.0])
    np.testing.assert_array_equal(path.states, [0, 2, 0, 1])


@pytest.mark.parametrize("states", [np.array([1]), np.array([[1, 2]])], ids=["number", "vector"])
def test_no_candidates_at_all(states):
    path = joined(np.array([]), states, 5.0)
    np.testing.assert_array_equal(path.states, states)
    assert path.jump_times.shape == (0,)


def test_vectors_change_when_any_count_does():
    path = joined(np.array([1.0, 2.0]), np.array([[3, 0], [3, 0], [3, 1]]), 5.0)
    np.testing.assert_array_equal(path.jump_times, [2.0])
    np.testing.assert_array_equal(path.states, [[3, 0], [3, 1]])
