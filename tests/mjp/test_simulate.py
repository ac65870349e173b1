import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest, poisson

import law
from neuralmjp.errors import InputError
from neuralmjp.mjp import (
    propagate,
    simulate_inhomogeneous,
    simulate_path,
    simulate_states,
    solve_master_equation,
    transition_matrix,
)
from neuralmjp.mjp.processes import JumpProcess
from neuralmjp.systems import FlashingRatchet

RATCHET = np.asarray(FlashingRatchet().rates)
START = np.array([0.5, 0.0, 0.2, 0.3, 0.0, 0.0])
TIMES = np.array([0.0, 0.1, 0.4, 2.0])
SYMMETRIC = np.array([[0.0, 1.0], [1.0, 0.0]])
ABSORBING = RATCHET * (np.arange(6) != 2)[:, None]  # state 2 is never left
N_SERIES = 20_000


def counts(states, n_states=6):
    return np.bincount(states, minlength=n_states)


# Many series at given times


@pytest.fixture(scope="module")
def series():
    return simulate_states(RATCHET, TIMES, initial=START, key=jax.random.key(0), n_series=N_SERIES)


@pytest.mark.statistical
@pytest.mark.parametrize("index", range(4))
def test_marginals(series, index):
    """Fails for FAILURE of all seeds."""
    law.assert_counts_follow(counts(series[:, index]), propagate(RATCHET, START, TIMES)[index])


@pytest.mark.statistical
@pytest.mark.parametrize("index", range(3))
def test_successive_observations(series, index):
    """Fails for FAILURE of all seeds."""
    before = propagate(RATCHET, START, TIMES)[index]
    expected = before[:, None] * transition_matrix(RATCHET, TIMES[index + 1] - TIMES[index])
    law.assert_counts_follow(counts(6 * series[:, index] + series[:, index + 1], 36), expected)


@pytest.mark.statistical
def test_what_came_before_does_not_matter(series):
    """Fails for 2 FAILURE of all seeds."""
    onward = transition_matrix(RATCHET, TIMES[3] - TIMES[2])[0]
    here = series[series[:, 2] == 0]
    for earlier in (here[:, 0] == 0, here[:, 0] != 0):
        law.assert_counts_follow(counts(here[earlier, 3]), onward)


@pytest.mark.statistical
def test_irregular_times():
    """Fails for 2 FAILURE of all seeds."""
    rng = np.random.default_rng(1)
    times = np.sort(rng.choice([0.05, 0.3, 1.0, 4.0], (N_SERIES, 4)), axis=-1)
    states = simulate_states(RATCHET, times, initial=START, key=jax.random.key(1))
    for time in (0.3, 4.0):
        series, column = np.nonzero(times == time)
        _, first = np.unique(series, return_index=True)  # one observation per series: independent
        law.assert_counts_follow(counts(states[series[first], column[first]]), propagate(RATCHET, START, [time])[0])
    same = np.diff(times, axis=-1) == 0
    assert same.any()
    assert (np.diff(states, axis=-1)[same] == 0).all()


@pytest.mark.statistical
def test_given_starting_states():
    """Fails for 6 FAILURE of all seeds."""
    start = np.arange(N_SERIES) % 6
    states = simulate_states(RATCHET, [0.0, 0.1, 0.1, 0.4], initial=start, key=jax.random.key(2), n_series=N_SERIES)
    np.testing.assert_array_equal(states[:, 0], start)
    np.testing.assert_array_equal(states[:, 1], states[:, 2])
    for state in range(6):
        law.assert_counts_follow(counts(states[start == state, 3]), transition_matrix(RATCHET, 0.4)[state])


@pytest.mark.statistical
def test_absorbed_for_ever():
    """Fails for FAILURE of all seeds."""
    times = np.array([0.0, 1.0, 2.0, 1e12])
    states = simulate_states(ABSORBING, times, initial=START, key=jax.random.key(3), n_series=N_SERIES)
    law.assert_counts_follow(counts(states[:, 1]), propagate(ABSORBING, START, times)[1])
    assert (states[:, 1:][states[:, :-1] == 2] == 2).all()
    assert (states[:, 3] == 2).all()


def test_one_seed_means_one_data_set(series):
    again = simulate_states(RATCHET, TIMES, initial=START, key=jax.random.key(0), n_series=N_SERIES)
    other = simulate_states(RATCHET, TIMES, initial=START, key=jax.random.key(1), n_series=N_SERIES)
    np.testing.assert_array_equal(again, series)
    assert (other != series).any()


def test_precision_of_the_caller_does_not_matter(series):
    path = simulate_path(RATCHET, 5.0, initial=0, key=jax.random.key(0))
    with jax.enable_x64(False):
        single = simulate_states(RATCHET, TIMES, initial=START, key=jax.random.key(0), n_series=N_SERIES)
        single_path = simulate_path(RATCHET, 5.0, initial=0, key=jax.random.key(0))
        assert jnp.ones(()).dtype == jnp.float32  # the setting is left as it was
    np.testing.assert_array_equal(single, series)
    np.testing.assert_array_equal(single_path.jump_times, path.jump_times)


WRONG = {
    "n_series": ({"times": [0.0, 1.0], "n_series": None}, "times shared by all series need n_series"),
    "decreasing": ({"times": [1.0, 0.5]}, "observation times must be finite, non-negative and in increasing order"),
    "negative": ({"times": [-1.0, 0.5]}, "observation times must be finite"),
    "nan": ({"times": [0.0, np.nan]}, "observation times must be finite"),
    "infinite": ({"times": [0.0, np.inf]}, "observation times must be finite"),
    "number": ({"times": 1.0}, r"times must be \(series, time\), or \(time,\) with n_series; got shape \(\)"),
    "three axes": ({"times": np.zeros((3, 2, 2))}, r"got shape \(3, 2, 2\)"),
    "other n_series": ({"times": np.zeros((4, 2))}, r"got shape \(4, 2\)"),
    "law too short": ({"initial": [1.0]}, "an initial law holds 6 probabilities that sum to one"),
    "law sum": ({"initial": np.full(6, 0.2)}, "an initial law holds 6 probabilities"),
    "law sign": ({"initial": np.array([1.5, -0.5, 0, 0, 0, 0])}, "an initial law holds 6 probabilities"),
    "law nan": ({"initial": np.array([np.nan, 1, 0, 0, 0, 0])}, "an initial law holds 6 probabilities"),
    "states": ({"initial": np.array([0, 6, 1])}, r"initial must name one state in 0..5 per series \(3\)"),
    "state count": ({"initial": np.array([0, 1])}, "initial must name one state"),
    "rates": ({"rates": np.array([[0.0, -1.0], [1.0, 0.0]])}, "rates must not be negative"),
    "batch": ({"rates": np.stack([RATCHET, RATCHET])}, "one rate matrix is needed"),
}


@pytest.mark.parametrize(("changes", "message"), WRONG.values(), ids=WRONG)
def test_wrong_requests(changes, message):
    request = {"rates": RATCHET, "times": TIMES, "initial": START, "n_series": 3, **changes}
    with pytest.raises(InputError, match=message):
        simulate_states(request.pop("rates"), request.pop("times"), key=jax.random.key(0), **request)


# One whole path


@pytest.fixture(scope="module")
def path():
    return simulate_path(RATCHET, 5_000.0, initial=START, key=jax.random.key(5))


def test_path_is_well_formed(path):
    assert path.duration == 5_000.0
    assert len(path.states) == len(path.jump_times) + 1
    assert (np.diff(path.jump_times) > 0).all()
    assert 0 < path.jump_times[0] < path.jump_times[-1] < path.duration
    assert (RATCHET[path.states[:-1], path.states[1:]] > 0).all()
    np.testing.assert_allclose(path.time_in_states(6).sum(), path.duration)


@pytest.mark.statistical
@pytest.mark.parametrize("state", range(6))
def test_dwell_times_are_exponential(path, state):
    """Fails for FAILURE of all seeds."""
    dwells = path.dwell_times[:-1][path.states[:-1] == state]
    assert kstest(dwells * RATCHET[state].sum(), "expon").pvalue > law.FAILURE


@pytest.mark.statistical
@pytest.mark.parametrize("state", range(6))
def test_jumps_are_chosen_by_their_rates(path, state):
    """Fails for FAILURE of all seeds."""
    law.assert_counts_follow(path.jump_counts(6)[state], RATCHET[state])


@pytest.mark.statistical
def test_jumps_of_a_symmetric_process_are_poisson():
    """Fails for FAILURE of all seeds."""
    path = simulate_path(SYMMETRIC, 10_000.0, initial=0, key=jax.random.key(6))
    per_unit, _ = np.histogram(path.jump_times, np.arange(10_001.0))
    seen = np.bincount(per_unit)
    expected = poisson.pmf(np.arange(len(seen)), 1.0)
    law.assert_counts_follow(seen, expected / expected.sum())


class Arrivals(JumpProcess):
    """Two counters; the second ticks three times as fast."""

    def intensities(self, state):
        return jnp.array([1.0, 3.0])

    def jump(self, state, event, key):
        return state.at[event].add(1)

    def flow(self, state, duration, key):
        return state


@pytest.mark.statistical
def test_paths_of_other_processes():
    """Counts of a vector-valued process. Fails for 2 FAILURE of all seeds."""
    path = simulate_path(Arrivals(), 2_000.0, initial=np.array([5, 0]), key=jax.random.key(12))
    np.testing.assert_array_equal(path.states[0], [5, 0])
    np.testing.assert_array_equal(np.diff(path.states, axis=0).sum(1), 1)
    ticks = np.diff(path.at(np.arange(2_001.0)), axis=0)
    for counter, rate in enumerate([1.0, 3.0]):
        seen = np.bincount(ticks[:, counter])
        expected = poisson.pmf(np.arange(len(seen)), rate)
        law.assert_counts_follow(seen, expected / expected.sum())


@pytest.mark.statistical
def test_initial_law_of_paths():
    """Fails for FAILURE of all seeds."""
    keys = jax.random.split(jax.random.key(7), 100)
    first = np.array([simulate_path(RATCHET, 1e-9, initial=START, key=key).states[0] for key in keys])
    law.assert_counts_follow(counts(first), START)


@pytest.mark.parametrize("initial", [2, np.array([2]), np.eye(6)[2]], ids=["number", "array", "law"])
def test_a_path_that_starts_absorbed_never_jumps(initial):
    path = simulate_path(ABSORBING, 7.0, initial=initial, key=jax.random.key(8))
    np.testing.assert_array_equal(path.states, [2])
    assert path.jump_times.shape == (0,)


def test_a_path_stays_where_it_is_absorbed():
    path = simulate_path(ABSORBING, 1e9, initial=0, key=jax.random.key(9))
    assert path.states[-1] == 2
    assert (path.states[:-1] != 2).all()


@pytest.mark.parametrize("duration", [0.0, -1.0, np.inf, np.nan])
def test_wrong_durations(duration):
    with pytest.raises(InputError, match="the duration of a path must be positive and finite"):
        simulate_path(RATCHET, duration, initial=0, key=jax.random.key(0))


@pytest.mark.parametrize("initial", [6, -1, np.array([0, 1]), np.array([0.5, 0.5])])
def test_wrong_start_of_a_path(initial):
    with pytest.raises(InputError, match="initial"):
        simulate_path(RATCHET, 1.0, initial=initial, key=jax.random.key(0))


# Rates that change


def swinging(t):
    return jnp.array([[0.0, 2 + 2 * jnp.sin(3 * t), 0.5], [1.0, 0.0, 1 + jnp.cos(5 * t)], [0.0, 3.0, 0.0]])


def spike(t):
    """Above the bound only between two of the times that are checked beforehand."""
    inside = (t > 0.5 + 0.1 / 256) & (t < 0.5 + 0.9 / 256)
    return jnp.asarray(SYMMETRIC) * jnp.where(inside, 10.0, 1.0)


@pytest.mark.statistical
@pytest.mark.parametrize("bound", [4.5, 20.0])
def test_changing_rates(bound):
    """The lower bound is attained. Fails for 4 FAILURE of all seeds."""
    start = np.array([0.2, 0.3, 0.5])
    states = simulate_inhomogeneous(
        swinging, [0.3, 1.0], bound=bound, initial=start, key=jax.random.key(10), n_series=N_SERIES
    )
    first, second = (
        np.stack([solve_master_equation(swinging, row, times, substeps=32).marginals[-1] for row in np.eye(3)])
        for times in ([0.0, 0.3], [0.3, 1.0])
    )
    law.assert_counts_follow(counts(states[:, 0], 3), start @ first)
    for state in range(3):
        law.assert_counts_follow(counts(states[states[:, 0] == state, 1], 3), second[state])


@pytest.mark.parametrize(
    ("rates", "bound"),
    [(swinging, 4.0), (swinging, 1e-6), (spike, 2.0), (swinging, 0.0), (swinging, -1.0), (swinging, np.nan)],
    ids=["low", "very low", "brief", "zero", "negative", "nan"],
)
def test_rates_above_their_bound(rates, bound):
    n_states = rates(0.0).shape[0]
    start = np.zeros(2000, dtype=int)
    with pytest.raises(InputError, match="simulate again with a larger bound"):
        simulate_inhomogeneous(
            rates, [1.0], bound=bound, initial=start, key=jax.random.key(n_states), n_series=len(start)
        )


def test_changing_rates_are_reproducible():
    def draw():
        return simulate_inhomogeneous(
            swinging, [0.3, 1.0], bound=4.5, initial=[1.0, 0, 0], key=jax.random.key(0), n_series=N_SERIES
        )

    first = draw()
    np.testing.assert_array_equal(draw(), first)
    with jax.enable_x64(False):
        np.testing.assert_array_equal(draw(), first)
