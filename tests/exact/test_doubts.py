"""What a fit cannot know is said: rates faster than the samples, states that are hardly there."""

import jax
import numpy as np
import pytest

from exact.test_information import TWO, simulated
from neuralmjp import ExactMJP, TimeSeries, mjp

ONE_WILL_DO = "one state explains the data as well"


def told(fitted, words):
    return [word for word in fitted.warnings if words in word]


def test_rates_faster_than_the_samples():
    """200 and 300 jumps per unit of time, seen ten times in it."""
    times = 0.1 * np.arange(2000)
    key = jax.random.key(0)
    states = mjp.simulate_states([[0, 200.0], [300.0, 0]], times, initial=[1.0, 0], key=key, n_series=1)[0]
    values = 3.0 * states + 0.3 * np.random.default_rng(0).normal(size=2000)
    fitted = ExactMJP(2, restarts=1).fit(TimeSeries.from_arrays(times, values))
    found = fitted.intervals["rates"]
    assert found.upper[0, 1] / found.lower[0, 1] > 1e3
    assert len(told(fitted, "the data hardly determine 0->1, 1->0: the interval spans")) == 1


@pytest.mark.parametrize("seed", range(6))
def test_a_recording_that_never_leaves_its_state(seed):
    """Two states find something in any noise; some word says that they are one, or one of them nothing."""
    values = 1 + 0.1 * np.random.default_rng(seed).normal(size=25)
    fitted = ExactMJP(2).fit(TimeSeries.from_arrays(np.arange(25.0), values))
    assert told(fitted, ONE_WILL_DO) or told(fitted, "has shrunk onto a few nearly equal values")


@pytest.mark.parametrize("emission", ["gaussian", "gaussian-shared"])
def test_levels_closer_than_the_noise(emission):
    noisy = simulated(TWO, 1, 2000, 0.1, seed=0, levels=[0.0, 0.5], noise=1.0)
    fitted = ExactMJP(2, emission, restarts=1).fit(noisy)
    assert len(told(fitted, "noise widths apart")) == 1


def test_a_single_jump():
    values = np.where(np.arange(100) < 50, 0.0, 1.0) + 0.1 * np.random.default_rng(0).normal(size=100)
    fitted = ExactMJP(2, restarts=1).fit(TimeSeries.from_arrays(np.arange(100.0), values))
    assert len(told(fitted, "fewer than 2 jumps are expected in all the data (1")) == 1
    assert not told(fitted, ONE_WILL_DO)


@pytest.mark.parametrize("emission", ["gaussian", "student-t", "gaussian-full", "gaussian-shared"])
def test_nothing_is_said_of_a_good_recording(emission):
    data = simulated(TWO, 5, 200, 0.2, seed=0, levels=[0.0, 4.0], noise=1.0)
    assert ExactMJP(2, emission, restarts=1).fit(data).warnings == ()


def test_states_that_differ_in_their_noise_alone():
    data = simulated(TWO, 5, 200, 0.2, seed=0, levels=[0.0, 1.0], noise=0.0)
    values = np.where(data.values > 0.5, 1.0, 0.2) * np.random.default_rng(0).normal(size=data.values.shape)
    data = TimeSeries(data.times, values, data.offsets, data.names, data.value_names)
    assert not told(ExactMJP(2, "gaussian", restarts=1).fit(data), "apart")


def test_a_column_of_labels_beside_the_signal():
    """What a table without a header hands over where it also holds the true path."""
    data = simulated(TWO, 5, 200, 0.2, seed=0, levels=[0.0, 1.0], noise=0.0)
    signal = data.values + 0.1 * np.random.default_rng(0).normal(size=data.values.shape)
    both = TimeSeries(data.times, np.hstack([signal, data.values]), data.offsets, data.names, ("1", "2"))
    fitted = ExactMJP(2, "gaussian", restarts=1).fit(both)
    assert told(fitted, "value 1 (counted from 0) is constant in every state")


def test_labels_that_are_read_as_measurements():
    """Four labels and three states: a Gaussian each, unless somebody says what the numbers are."""
    chain = np.array([[0, 1.0, 0, 0], [1.0, 0, 1.0, 0], [0, 1.0, 0, 1.0], [0, 0, 1.0, 0]])
    data = simulated(chain, 10, 60, 0.5, seed=0)
    assert told(ExactMJP(3, restarts=1).fit(data), "the values are 4 whole numbers, read as measurements")
    for emission in ("categorical", "poisson"):
        assert not told(ExactMJP(3, emission, restarts=1).fit(data), "read as measurements")
    assert not told(ExactMJP(4).fit(data), "read as measurements")
