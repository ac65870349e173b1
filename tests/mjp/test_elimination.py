from fractions import Fraction

import numpy as np
import pytest

from neuralmjp.mjp.elimination import eliminate, solve_left, solve_right


def exact_solution(matrix, b):
    """Gaussian elimination in rational arithmetic."""
    rows = [[*row, value] for row, value in zip(matrix, b, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return np.array([float(row[-1]) for row in rows])


def exact_system(rates, leaks):
    exact = [[-Fraction(x) for x in row] for row in rates]
    for i, leak in enumerate(leaks):
        exact[i][i] = Fraction(leak) - sum(exact[i][j] for j in range(len(leaks)) if j != i)
    return exact


def stiff_systems(n_systems, n_states, seed):
    """Rates over 20 orders of magnitude, some zero; only the first state leaks, and every other can jump to it."""
    rng = np.random.default_rng(seed)
    rates = 10.0 ** rng.uniform(-10, 10, (n_systems, n_states, n_states))
    rates *= rng.random(rates.shape) < 0.7
    rates[:, 1:, 0] = 10.0 ** rng.uniform(-10, 10, (n_systems, n_states - 1))
    rates[:, np.eye(n_states, dtype=bool)] = 0
    leaks = np.zeros((n_systems, n_states))
    leaks[:, 0] = 10.0 ** rng.uniform(-10, 10, n_systems)
    return rates, leaks


@pytest.mark.parametrize("n_states", [1, 2, 3, 5, 7])
def test_every_entry_is_accurate_on_stiff_systems(n_states):
    rates, leaks = stiff_systems(20, n_states, seed=n_states)
    b = 10.0 ** np.random.default_rng(0).uniform(-10, 10, leaks.shape)
    factors = eliminate(rates, leaks)
    right, left = solve_right(factors, b), solve_left(factors, b)
    for i in range(len(rates)):
        system = exact_system(rates[i], leaks[i])
        known = [Fraction(x) for x in b[i]]
        np.testing.assert_allclose(right[i], exact_solution(system, known), rtol=1e-13)
        np.testing.assert_allclose(left[i], exact_solution(list(zip(*system, strict=True)), known), rtol=1e-13)


def test_factors_multiply_to_the_system():
    rates, leaks = np.random.default_rng(1).random((2, 3, 4, 4))
    rates[:, np.eye(4, dtype=bool)] = 0
    leaks = leaks[:, 0]
    matrix, pivots = eliminate(rates, leaks)
    upper = np.eye(4) - np.triu(matrix, 1)
    lower = np.eye(4) * pivots[:, :, None] - np.tril(matrix, -1)
    np.testing.assert_allclose(upper @ lower, np.eye(4) * (rates.sum(-1) + leaks)[:, :, None] - rates, atol=1e-14)


def test_inputs_are_left_alone():
    rates, leaks = stiff_systems(3, 4, seed=0)
    before, b = rates.copy(), np.ones_like(leaks)
    factors = eliminate(rates, leaks)
    solve_left(factors, b)
    solve_right(factors, b)
    np.testing.assert_array_equal(rates, before)
    np.testing.assert_array_equal(b, 1.0)
