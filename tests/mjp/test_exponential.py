from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from neuralmjp.errors import InputError
from neuralmjp.mjp import generator_from_rates, propagate, stationary_distribution, transition_matrix
from neuralmjp.mjp.exponential import expm

STIFF = np.array([[0.0, 1e9, 0.0], [1e9, 0.0, 1.0], [0.0, 2.0, 0.0]])


def random_rates(shape, seed=0):
    rates = np.random.default_rng(seed).exponential(size=shape)
    return rates * (1 - np.eye(shape[-1]))


def exact_transitions(rates, time):
    """Scaling and squaring with 120 digits, which no cancellation can use up."""
    with localcontext() as context:
        context.prec = 120
        f = np.array([[Decimal(float(x)) for x in row] for row in rates])
        generator = (f - np.diag(f.sum(-1))) * Decimal(time)
        squarings = max(int(np.ceil(np.log2(float(abs(generator).max()) + 1))), 0) + 3
        scaled = generator / Decimal(2) ** squarings
        total = term = np.diag([Decimal(1)] * len(rates))
        for k in range(1, 60):
            term = term @ scaled / k
            total = total + term
        for _ in range(squarings):
            total = total @ total
        return total.astype(float)


@pytest.mark.parametrize("time", [0.0, 1e-8, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("n_states", [1, 2, 3, 6, 15])
def test_against_scipy(n_states, time):
    rates = random_rates((n_states, n_states))
    expected = scipy.linalg.expm(generator_from_rates(rates) * time)
    np.testing.assert_allclose(transition_matrix(rates, time), expected, atol=1e-13)


@pytest.mark.parametrize("time", [1e-6, 0.3, 1.0, 50.0, 1e9])
def test_two_states_in_closed_form(time):
    a, b = 0.7, 0.1
    left = -np.expm1(-(a + b) * time) / (a + b)
    np.testing.assert_allclose(
        transition_matrix([[0.0, a], [b, 0.0]], time), [[1 - a * left, a * left], [b * left, 1 - b * left]], rtol=1e-14
    )


@pytest.mark.parametrize("time", [1e-3, 1.0, 20.0])
@pytest.mark.parametrize("seed", range(5))
def test_every_entry_is_accurate_on_stiff_rates(seed, time):
    rng = np.random.default_rng(seed)
    rates = 10.0 ** rng.uniform(-8, 4, (5, 5)) * (rng.random((5, 5)) < 0.7) * (1 - np.eye(5))
    np.testing.assert_allclose(transition_matrix(rates, time), exact_transitions(rates, time), rtol=1e-12)


@pytest.mark.parametrize("time", [1e-6, 0.01, 1.0, 3.0])
@pytest.mark.parametrize("n_states", [8, 20, 40])
def test_far_states_are_reached_with_the_right_tiny_probability(n_states, time):
    rates = np.diag(np.full(n_states - 1, 1.0), 1) + np.diag(np.full(n_states - 1, 0.5), -1)
    np.testing.assert_allclose(transition_matrix(rates, time), exact_transitions(rates, time), rtol=1e-11)


@pytest.mark.parametrize("fast", [1e9, 1e15])
def test_billions_of_jumps(fast):
    rates = np.where(STIFF == 1e9, fast, STIFF)
    np.testing.assert_allclose(transition_matrix(rates, 1.0), exact_transitions(rates, 1.0), rtol=1e-12)


def test_for_ever():
    np.testing.assert_allclose(
        transition_matrix(STIFF, 1e6), np.tile(stationary_distribution(STIFF), (3, 1)), rtol=1e-12
    )


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_billions_of_jumps_in_a_compiled_function(dtype, tolerance):
    moved = jax.jit(transition_matrix)(jnp.asarray(STIFF, dtype), jnp.asarray(1.0, dtype))
    assert moved.dtype == dtype
    np.testing.assert_allclose(moved, exact_transitions(STIFF, 1.0), rtol=tolerance)


def test_no_time_moves_nothing():
    np.testing.assert_array_equal(transition_matrix(random_rates((4, 4)), 0.0), np.eye(4))
    np.testing.assert_array_equal(transition_matrix(jnp.asarray(random_rates((4, 4))), 0.0), np.eye(4))


rate = st.one_of(st.just(0.0), st.floats(-9, 9).map(lambda exponent: 10.0**exponent))
sparse_rates = arrays(float, (4, 4), elements=rate).map(lambda f: f * (1 - np.eye(4)))
duration = st.floats(-6, 6).map(lambda exponent: 10.0**exponent)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(sparse_rates, duration, duration)
def test_transition_matrices_form_a_semigroup(rates, s, t):
    first, second, both = transition_matrix(rates, np.array([s, t, s + t]))
    assert (both >= 0).all()
    np.testing.assert_allclose(both.sum(-1), 1, rtol=1e-14)
    np.testing.assert_allclose(first @ second, both, rtol=1e-11, atol=1e-300)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(sparse_rates, st.floats(1e-9, 1e2))
def test_reachable_states_and_no_others_have_probability(rates, jumps):
    reach = np.linalg.matrix_power((rates > 0) | np.eye(4, dtype=bool), 3)
    np.testing.assert_array_equal(transition_matrix(rates, jumps / max(rates.max(), 1.0)) > 0, reach)


def test_times_broadcast_against_batches():
    rates = random_rates((4, 1, 3, 3))
    times = np.array([0.0, 0.5, 2.0, 1e4, 1e-3])
    moved = transition_matrix(rates, times)
    assert moved.shape == (4, 5, 3, 3)
    for i in range(4):
        for j in range(5):
            np.testing.assert_allclose(moved[i, j], transition_matrix(rates[i, 0], times[j]), rtol=1e-13)
    assert transition_matrix(rates[0, 0], np.ones((2, 5))).shape == (2, 5, 3, 3)
    assert transition_matrix(rates[:, 0], np.ones(4)).shape == (4, 3, 3)
    assert transition_matrix(rates[:, 0]).shape == (4, 3, 3)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-14), ("float32", 1e-6)])
def test_jax_agrees_with_numpy(dtype, tolerance):
    rates, times = random_rates((2, 4, 4)), np.array([0.3, 40.0])
    given_rates = jnp.asarray(rates, dtype)
    expected = transition_matrix(rates, times)
    for function in (transition_matrix, jax.jit(transition_matrix)):
        moved = function(given_rates, jnp.asarray(times, dtype))
        assert moved.dtype == dtype
        np.testing.assert_allclose(moved, expected, atol=tolerance)


WEIGHTS = np.random.default_rng(1).normal(size=(4, 4))


def weighted(rates, time):
    return (WEIGHTS * transition_matrix(rates, time)).sum()


@pytest.fixture(scope="module")
def gradients():
    return jax.jit(jax.grad(weighted, (0, 1)))


@pytest.mark.parametrize("time", [0.3, 40.0])
def test_gradient_against_finite_differences(gradients, time):
    rates = random_rates((4, 4))
    by_rates, by_time = gradients(jnp.asarray(rates), time)
    for i, j in [(0, 1), (2, 3), (3, 0)]:
        step = np.zeros((4, 4))
        step[i, j] = 1e-5
        expected = (weighted(rates + step, time) - weighted(rates - step, time)) / 2e-5
        np.testing.assert_allclose(by_rates[i, j], expected, rtol=1e-6, atol=1e-9)
    expected = (weighted(rates, time + 1e-5) - weighted(rates, time - 1e-5)) / 2e-5
    np.testing.assert_allclose(by_time, expected, atol=1e-8)


def test_gradient_where_no_jump_is_possible(gradients):
    """To first order a rate f moves probability f t from one state to the other."""
    by_rates, by_time = gradients(jnp.zeros((4, 4)), 2.0)
    np.testing.assert_allclose(by_rates, 2.0 * (WEIGHTS - np.diag(WEIGHTS)[:, None]), atol=1e-14)
    assert by_time == 0


def test_extra_columns_gather_what_the_states_yield():
    rates, yields = random_rates((3, 3)), np.array([[0.0, 1e3], [2.0, 0.0], [1e-5, 1.0]])
    matrix = np.pad(np.concatenate([generator_from_rates(rates), yields], axis=1), ((0, 2), (0, 0)))
    for time in (0.1, 3.0, 100.0):
        expected = scipy.linalg.expm(matrix * time)
        np.testing.assert_allclose(expm(matrix * time, 3), expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("time", [-1.0, np.nan, np.inf])
def test_wrong_times(time):
    with pytest.raises(InputError, match="times must be finite and not negative"):
        transition_matrix(random_rates((3, 3)), time)
    with pytest.raises(InputError, match="times must be finite and not negative"):
        propagate(random_rates((3, 3)), [1.0, 0.0, 0.0], [0.0, time])


def test_wrong_rates():
    with pytest.raises(InputError, match="rates must not be negative: from state 0 to state 1 it is -1"):
        transition_matrix([[0.0, -1.0], [1.0, 0.0]], 1.0)


def test_propagate():
    rates, start, times = random_rates((4, 4)), np.array([0.1, 0.2, 0.3, 0.4]), [3.0, 0.0, 0.5]
    moved = propagate(rates, start, times)
    for row, time in zip(moved, times, strict=True):
        np.testing.assert_allclose(row, start @ scipy.linalg.expm(generator_from_rates(rates) * time), atol=1e-14)


def test_propagate_batches():
    rates, starts = random_rates((2, 3, 4, 4)), np.eye(4)[:3]
    moved = propagate(rates, starts, [0.5, 2.0])
    assert moved.shape == (2, 3, 2, 4)
    np.testing.assert_allclose(moved[1, 2], propagate(rates[1, 2], starts[2], [0.5, 2.0]), rtol=1e-14)
