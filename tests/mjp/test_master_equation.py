import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralmjp.errors import InputError
from neuralmjp.mjp import propagate, solve_adaptively, solve_master_equation

SWING, SPEED = 0.9, 3.0


def swinging(t):
    """Two states; both rates swing, and their sum is constant: solvable, and the generators do not commute."""
    a, b = 1 + SWING * jnp.sin(SPEED * t), 1 - SWING * jnp.sin(SPEED * t)
    return jnp.array([[0.0, 1.0], [0.0, 0.0]]) * a + jnp.array([[0.0, 0.0], [1.0, 0.0]]) * b


def swinging_exactly(t, start=0.0):
    """Probability of state 1 a time t after 0, when it was `start` there."""
    decay = np.exp(-2 * t)
    driven = 2 * np.sin(SPEED * t) - SPEED * np.cos(SPEED * t) + SPEED * decay
    return start * decay + (1 - decay) / 2 + SWING * driven / (4 + SPEED**2)


def three_states(t):
    """A ring whose rates rise, fall and swing."""
    return jnp.array([[0.0, 2.0 + jnp.sin(4 * t), 0.3], [jnp.exp(-t), 0.0, 1.0 + jnp.cos(5 * t)], [1.5, 0.2 * t, 0.0]])


def wild(t):
    """Rates that change by thousands within any step."""
    return jnp.array([[0.0, 1e3], [10.0, 0.0]]) * (1 + jnp.cos(1e5 * t))


def random_rates(n_states, seed=0):
    return np.random.default_rng(seed).exponential(size=(n_states, n_states)) * (1 - np.eye(n_states))


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("speed", [1.0, 1e5], ids=["slow", "fast"])
def test_constant_rates_give_the_matrix_exponential(order, speed):
    rates, start, times = speed * random_rates(4), np.array([0.7, 0.3, 0.0, 0.0]), np.array([0.5, 0.6, 2.0, 9.0])
    solution = solve_master_equation(lambda t: jnp.asarray(rates), start, times, substeps=2, order=order)
    np.testing.assert_allclose(solution.marginals, propagate(rates, start, times - times[0]), atol=1e-12)
    assert solution.error < 1e-12


def test_adaptive_solution_in_closed_form():
    start = 0.4
    times = np.array([0.0, 0.1, 1.0, 3.0])
    marginals = solve_adaptively(swinging, [1 - start, start], times, tolerance=1e-12)
    np.testing.assert_allclose(marginals[:, 1], swinging_exactly(times, start), atol=1e-11)
    np.testing.assert_allclose(marginals.sum(1), 1, atol=1e-13)


@pytest.fixture(scope="module")
def convergence():
    """Errors and their estimates on [0, 2], for long and short steps."""
    steps, found = np.array([1 / 4, 1 / 16]), {}
    for order in (2, 4):
        solutions = [
            solve_master_equation(swinging, [1.0, 0.0], [0.0, 2.0], substeps=round(1 / h), order=order) for h in steps
        ]
        errors = [np.abs(s.marginals[-1, 1] - swinging_exactly(2.0)) for s in solutions]
        found[order] = steps, np.array(errors), np.array([s.error for s in solutions])
    return found


@pytest.mark.parametrize("order", [2, 4])
def test_order_of_convergence(convergence, order):
    steps, errors, _ = convergence[order]
    slope = np.diff(np.log(errors)) / np.diff(np.log(steps))
    assert abs(slope - order) < 0.2


@pytest.mark.parametrize("order", [2, 4])
def test_error_estimate_is_near_the_error(convergence, order):
    _, errors, estimates = convergence[order]
    assert (estimates < 2 * errors).all()
    assert (errors < 2 * estimates).all()


def test_irregular_times_against_the_adaptive_solution():
    times, start = np.array([-0.3, 0.0, 0.1, 1.7, 2.0]), [0.2, 0.3, 0.5]
    expected = solve_adaptively(three_states, start, times, tolerance=1e-12)
    solution = solve_master_equation(three_states, start, times, substeps=16)
    np.testing.assert_array_equal(solution.marginals[0], start)
    error = np.abs(solution.marginals - expected).max()
    assert error < 1e-6
    assert error / 10 < solution.error < error * 10
    np.testing.assert_allclose(solution.marginals.sum(1), 1, atol=1e-14)
    assert (np.asarray(solution.marginals) >= 0).all()


def test_order_two_stays_a_probability_for_wild_rates():
    marginals = solve_master_equation(wild, [0.0, 1.0], np.linspace(0, 1, 6), substeps=2, order=2).marginals
    assert (np.asarray(marginals) >= 0).all()
    np.testing.assert_allclose(marginals.sum(1), 1, atol=1e-14)


def test_gradient_against_finite_differences():
    @jax.jit
    @jax.value_and_grad
    def final(speed):
        return solve_master_equation(lambda t: speed * three_states(t), [1.0, 0, 0], [0.0, 1.0]).marginals[-1, 0]

    expected = (final(1 + 1e-5)[0] - final(1 - 1e-5)[0]) / 2e-5
    np.testing.assert_allclose(final(1.0)[1], expected, rtol=1e-7)


@pytest.mark.parametrize(
    "times",
    [[0.0], [1.0, 0.0], [0.0, 0.0], [0.0, np.nan], [0.0, np.inf], [-np.inf, 0.0], [[0.0, 1.0]], 1.0],
    ids=["one", "decreasing", "repeated", "nan", "infinite", "since ever", "two axes", "a number"],
)
@pytest.mark.parametrize("solve", [solve_master_equation, solve_adaptively])
def test_wrong_times(solve, times):
    with pytest.raises(InputError, match="times must be a list of at least two increasing numbers"):
        solve(swinging, [1.0, 0.0], times)


def test_wrong_substeps():
    with pytest.raises(InputError, match="substeps must be at least 1, got 0"):
        solve_master_equation(swinging, [1.0, 0.0], [0.0, 1.0], substeps=0)
