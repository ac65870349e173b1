import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import ks_2samp

import law
from neuralmjp.errors import InputError
from neuralmjp.mjp import sample_bridges, transition_matrix

RING = np.array([[0.0, 2.0, 0.3], [0.5, 0.0, 1.0], [1.5, 0.0, 0.0]])
ONE_WAY = np.array([[0.0, 1.0], [0.0, 0.0]])
DURATION = 1.5
N_PATHS = 20_000


def rejected_until_right(start, end, n_paths, seed):
    """Number of jumps, state at a third of the time, and time in state 1, of free paths that happen to end right."""
    rng = np.random.default_rng(seed)
    leaving = RING.sum(1)
    choices = np.cumsum(RING / leaving[:, None], axis=1)
    state, clock = np.full(n_paths, start), np.zeros(n_paths)
    n_jumps, in_second, at_third = np.zeros(n_paths, int), np.zeros(n_paths), np.full(n_paths, start)
    running = np.arange(n_paths)
    while len(running):
        here = state[running]
        until = clock[running] + rng.exponential(size=len(running)) / leaving[here]
        in_second[running] += (here == 1) * (np.minimum(until, DURATION) - clock[running])
        spans = (clock[running] <= DURATION / 3) & (until > DURATION / 3)
        at_third[running[spans]] = here[spans]
        jumped = until < DURATION
        running, until = running[jumped], until[jumped]
        state[running] = (rng.random((len(running), 1)) > choices[here[jumped]]).sum(1)
        clock[running] = until
        n_jumps[running] += 1
    right = state == end
    return n_jumps[right], at_third[right], in_second[right]


def summary(bridges):
    """The same three numbers for every bridge."""
    at_third = (bridges.event_times < bridges.durations[:, None] / 3).sum(1)
    edges = np.concatenate([np.zeros((len(bridges), 1)), bridges.event_times, bridges.durations[:, None]], axis=1)
    in_second = (np.diff(edges, axis=1) * (bridges.states == 1)).sum(1)
    n_jumps = (np.diff(bridges.states, axis=1) != 0).sum(1)
    return n_jumps, bridges.states[np.arange(len(bridges)), at_third], in_second


ENDS = [(0, 2), (1, 1), (2, 1)]


@pytest.fixture(scope="module", params=ENDS, ids=str)
def conditioned(request):
    """Bridges and, from an independent simulator, paths kept by rejection."""
    start, end = request.param
    bridges = sample_bridges(RING, np.full(N_PATHS, start), end, DURATION, key=jax.random.key(start))
    return start, end, bridges, rejected_until_right(start, end, 100_000, seed=end)


@pytest.mark.statistical
def test_number_of_jumps(conditioned):
    """Fails for FAILURE of all seeds."""
    *_, bridges, kept = conditioned
    first, second = summary(bridges)[0], kept[0]
    most = max(first.max(), second.max()) + 1
    law.assert_same_counts(np.bincount(first, minlength=most), np.bincount(second, minlength=most))


@pytest.mark.statistical
def test_time_in_a_state(conditioned):
    """Fails for FAILURE of all seeds."""
    *_, bridges, kept = conditioned
    assert ks_2samp(summary(bridges)[2], kept[2]).pvalue > law.FAILURE


@pytest.mark.statistical
def test_mean_time_in_a_state(conditioned):
    """The exact mean is an integral of P(a -> 1) P(1 -> b) / P(a -> b). Fails for FAILURE of all seeds."""
    start, end, bridges, _ = conditioned

    def there(t):
        return transition_matrix(RING, t)[start, 1] * transition_matrix(RING, DURATION - t)[1, end]

    expected = quad(there, 0, DURATION)[0] / transition_matrix(RING, DURATION)[start, end]
    law.assert_mean(summary(bridges)[2], expected)


@pytest.mark.statistical
def test_state_on_the_way(conditioned):
    """Fails for 2 FAILURE of all seeds."""
    start, end, bridges, kept = conditioned
    third, rest = transition_matrix(RING, DURATION / 3), transition_matrix(RING, 2 * DURATION / 3)
    expected = third[start] * rest[:, end] / transition_matrix(RING, DURATION)[start, end]
    np.testing.assert_allclose(expected.sum(), 1)
    for found in (summary(bridges)[1], kept[1]):
        law.assert_counts_follow(np.bincount(found, minlength=3), expected)


def test_bridges_are_well_formed(conditioned):
    start, end, bridges, _ = conditioned
    assert len(bridges) == N_PATHS
    np.testing.assert_array_equal(bridges.states[:, 0], start)
    np.testing.assert_array_equal(bridges.states[:, -1], end)
    assert (np.diff(bridges.event_times, axis=1) >= 0).all()
    before, after = bridges.states[:, :-1], bridges.states[:, 1:]
    assert (RING[before, after][before != after] > 0).all()


def test_a_bridge_as_a_path(conditioned):
    start, end, bridges, _ = conditioned
    n_jumps, at_third, in_second = summary(bridges)
    for i in range(20):
        path = bridges[i]
        assert path.duration == DURATION
        assert (path.states[0], path.states[-1]) == (start, end)
        assert len(path.jump_times) == n_jumps[i]
        assert (np.diff(path.states) != 0).all()
        assert path.at(np.array([DURATION / 3]))[0] == at_third[i]
        np.testing.assert_allclose(path.time_in_states(3)[1], in_second[i])


SEVERAL = [0, 1, 2, 0, 1], [2, 2, 0, 0, 1], [0.1, 3.0, 1.0, 2.0, 1e-12]


def test_many_ends_and_durations_at_once():
    starts, ends, durations = SEVERAL
    bridges = sample_bridges(RING, *SEVERAL, key=jax.random.key(0))
    for i, path in enumerate(bridges):
        assert (path.states[0], path.states[-1], path.duration) == (starts[i], ends[i], durations[i])
        assert (path.jump_times < durations[i]).all()
    assert len(bridges[4].jump_times) == 0  # hardly any time, and nowhere to go


@pytest.mark.statistical
def test_hardly_any_time_for_a_long_way():
    """A way of seven jumps takes seven, at uniform times, however unlikely it is. Fails for FAILURE of all seeds."""
    chain = np.diag(10.0 ** np.arange(-3, 4), 1) + np.diag(np.full(7, 0.5), -1)
    bridges = sample_bridges(chain, np.zeros(2000, int), 7, 1e-9, key=jax.random.key(1))
    jump_times = np.array([bridges[i].jump_times for i in range(2000)])
    assert jump_times.shape == (2000, 7)
    law.assert_mean(jump_times / 1e-9, np.arange(1, 8) / 8)


@pytest.mark.statistical
def test_long_durations():
    """Half-way through a long bridge the law is stationary; ends are right. Fails for FAILURE of all seeds."""
    bridges = sample_bridges(RING, np.zeros(1000, int), 2, 60.0, key=jax.random.key(3))
    np.testing.assert_array_equal(bridges.states[:, -1], 2)
    half = (bridges.event_times < 30.0).sum(1)
    found = bridges.states[np.arange(1000), half]
    law.assert_counts_follow(np.bincount(found, minlength=3), transition_matrix(RING, 1e6)[0])


@pytest.mark.statistical
def test_rates_far_apart():
    """Slow switching beside fast flicker: the one slow jump is uniform in time. Fails for FAILURE of all seeds."""
    rates = np.array([[0.0, 20.0, 0.0], [20.0, 0.0, 1e-9], [0.0, 0.0, 0.0]])
    bridges = sample_bridges(rates, np.zeros(1000, int), 2, 1.0, key=jax.random.key(4))
    switched = np.array([bridges[i].jump_times[-1] for i in range(1000)])
    # It comes from state 1, whose probability is (1 - exp(-40 t)) / 2: the mean is a ratio of two integrals.
    law.assert_mean(switched, (1 / 2 - 1 / 40**2) / (1 - 1 / 40))


@pytest.mark.parametrize("rates", [ONE_WAY, 0 * ONE_WAY], ids=["absorbing", "no jumps at all"])
def test_a_state_without_jumps(rates):
    for path in sample_bridges(rates, 1, 1, [1e-9, 1.0, 0.5], key=jax.random.key(5)):
        np.testing.assert_array_equal(path.states, [1])


def test_one_seed_means_one_set_of_bridges():
    first, again = (sample_bridges(RING, *SEVERAL, key=jax.random.key(6)) for _ in range(2))
    with jax.enable_x64(False):
        single = sample_bridges(RING, *SEVERAL, key=jax.random.key(6))
    for other in (again, single):
        np.testing.assert_array_equal(other.states, first.states)
        np.testing.assert_array_equal(other.event_times, first.event_times)


WRONG = {
    "impossible": (ONE_WAY, [0, 1], [1, 0], 1.0, r"no path leads from state 1 to state 0 \(bridge 1\)"),
    "start": (RING, 3, 0, 1.0, "start states of bridges must lie in 0..2"),
    "end": (RING, 0, -1, 1.0, "end states of bridges must lie in 0..2"),
    "no time": (RING, 0, 1, 0.0, "durations of bridges must be positive and finite"),
    "for ever": (RING, 0, 1, np.inf, "durations of bridges must be positive and finite"),
    "nan": (RING, 0, 1, np.nan, "durations of bridges must be positive and finite"),
    "batch": (np.stack([RING, RING]), 0, 1, 1.0, "one rate matrix is needed"),
}


@pytest.mark.parametrize(("rates", "starts", "ends", "durations", "message"), WRONG.values(), ids=WRONG)
def test_wrong_bridges(rates, starts, ends, durations, message):
    with pytest.raises(InputError, match=message):
        sample_bridges(rates, starts, ends, durations, key=jax.random.key(0))
