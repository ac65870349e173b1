import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import expm_multiply
from scipy.stats import poisson

from neuralmjp.errors import InputError
from neuralmjp.mjp import transition_matrix, uniformised_action
from neuralmjp.mjp.uniformisation import most_jumps

N_STATES = 200
BIRTHS = 20.0
DEATHS = 0.4 * np.arange(N_STATES)  # immigration and death: Poisson of mean 50 in the long run
FASTEST = BIRTHS + DEATHS[-1]


def birth_and_death(v):
    """v -> v F by shifted adds, immigration stopped at the last state."""
    up = jnp.where(jnp.arange(N_STATES) < N_STATES - 1, BIRTHS, 0.0) * v
    down = jnp.asarray(DEATHS) * v
    return jnp.roll(up, 1) + jnp.roll(down, -1) - up - down


def sparse_generator():
    up = np.full(N_STATES - 1, BIRTHS)
    generator = scipy.sparse.diags_array([up, DEATHS[1:]], offsets=[1, -1])
    return (generator - scipy.sparse.diags_array(generator.sum(1))).tocsr()


def two_states(v):
    return jnp.stack([v[1] - 2 * v[0], 2 * v[0] - v[1]])


@pytest.mark.parametrize("time", [0.01, 1.0, 10.0])
def test_birth_and_death_against_scipy(time):
    start = np.zeros(N_STATES)
    start[[3, 150]] = 0.25, 0.75
    expected = expm_multiply(sparse_generator().T * time, start)
    moved = uniformised_action(birth_and_death, jnp.asarray(start), time, fastest=FASTEST, tolerance=1e-12)
    np.testing.assert_allclose(moved.vector, expected, atol=1e-11)
    assert (np.asarray(moved.vector) >= 0).all()
    assert np.abs(moved.vector - expected).sum() < 1e-10


def test_long_time_gives_the_stationary_law():
    start = jnp.zeros(N_STATES).at[0].set(1.0)
    moved = uniformised_action(birth_and_death, start, 100.0, fastest=FASTEST)
    np.testing.assert_allclose(moved.vector, poisson.pmf(np.arange(N_STATES), 50.0), atol=1e-10)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("time", [0.0, 0.3, 10.0, 1e3, 1e5])
def test_error_is_a_true_bound_and_small(time, tolerance):
    start = jnp.array([1.0, 0.0])
    moved = uniformised_action(two_states, start, time, fastest=3.0, tolerance=tolerance)
    exact = transition_matrix([[0.0, 2.0], [1.0, 0.0]], time)[0]
    rounding = 1e-14 * max(3 * time, 1)
    assert np.abs(moved.vector - exact).sum() <= moved.error
    assert abs(1 - moved.vector.sum()) <= moved.error
    assert moved.error <= tolerance + rounding


def test_single_precision_says_so():
    start = jnp.array([1.0, 0.0], jnp.float32)
    moved = uniformised_action(two_states, start, 1e3, fastest=2.0)
    assert moved.vector.dtype == jnp.float32
    assert np.abs(moved.vector - np.array([1, 2]) / 3).sum() <= moved.error


def test_mass_may_be_anything():
    start = jnp.array([3.0, 5.0])
    moved = uniformised_action(two_states, start, 0.7, fastest=2.0, tolerance=1e-13)
    np.testing.assert_allclose(
        moved.vector, np.asarray(start) @ transition_matrix([[0.0, 2.0], [1.0, 0.0]], 0.7), rtol=1e-12
    )


@pytest.mark.parametrize("mean", [0.0, 1e-6, 0.5, 8.0, 1e3, 1e6])
@pytest.mark.parametrize("tail", [0.5, 1e-3, 1e-10])
def test_most_jumps_against_scipy(mean, tail):
    assert most_jumps(tail, mean) == poisson.isf(tail, mean)


@pytest.mark.parametrize("mean", [1e-6, 8.0, 1e3])
@pytest.mark.parametrize("tail", [1e-20, 1e-100, 1e-300])
def test_most_jumps_far_in_the_tail(mean, tail):
    n = int(most_jumps(tail, mean))
    assert poisson.sf(n, mean) <= tail < poisson.sf(n - 1, mean)


def test_most_jumps_of_many_laws():
    means = np.array([0.1, 1.0, 100.0])
    tails = np.array([1e-5, 1e-30, 1e-10])
    np.testing.assert_array_equal(
        most_jumps(tails, means), [most_jumps(t, m) for t, m in zip(tails, means, strict=True)]
    )


@pytest.mark.parametrize(("time", "fastest"), [(-1.0, 2.0), (np.inf, 2.0), (np.nan, 2.0), (1.0, 0.0), (1.0, np.inf)])
def test_wrong_times_and_rates(time, fastest):
    with pytest.raises(InputError, match="time must be >= 0 and the fastest rate > 0, both finite"):
        uniformised_action(two_states, jnp.ones(2), time, fastest=fastest)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, 1.0, np.nan])
def test_wrong_tolerance(tolerance):
    with pytest.raises(InputError, match="tolerance of uniformisation must lie between 0 and 1"):
        uniformised_action(two_states, jnp.ones(2), 1.0, fastest=2.0, tolerance=tolerance)
