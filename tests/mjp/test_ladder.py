"""Events on a ladder of counts against the matrix exponential."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from neuralmjp.mjp.ladder import carried, expected, gained, looked_back, shifted

CHANGES = (1, -1, 2)


def some_jumps(n: int, size: float, seed: int = 0) -> np.ndarray:
    """Random jumps of two processes that stay on the ladder."""
    jumps = np.random.default_rng(seed).uniform(0, size, (len(CHANGES), 2, n))
    for one, change in zip(jumps, CHANGES, strict=True):
        after = np.arange(n) + change
        one[:, (after < 0) | (after >= n)] = 0.0
    return jumps


def as_matrix(jumps: np.ndarray) -> np.ndarray:
    n = jumps.shape[-1]
    matrix = np.zeros((n, n))
    for one, change in zip(jumps, CHANGES, strict=True):
        for k in np.flatnonzero(one):
            matrix[k, k + change] += one[k]
    return matrix - np.diag(matrix.sum(1))


@pytest.mark.parametrize("size", [1e-6, 0.1, 0.5])
def test_steps_are_exponentials(size):
    jumps = some_jumps(7, size)
    law = np.random.default_rng(1).dirichlet(np.ones(7), 2)
    for k in range(2):
        step = expm(as_matrix(jumps[:, k]))
        np.testing.assert_allclose(carried(jnp.asarray(law), jnp.asarray(jumps), CHANGES)[k], law[k] @ step, atol=1e-8)
        back = looked_back(jnp.asarray(law), jnp.asarray(jumps), CHANGES)[k]
        np.testing.assert_allclose(back, step @ law[k], atol=1e-8)


def test_fast_steps_stay_laws():
    law = carried(jnp.asarray(np.eye(9)[:2]), jnp.asarray(some_jumps(9, 30.0)), CHANGES)
    assert (np.asarray(law) >= 0).all()
    np.testing.assert_allclose(law.sum(-1), 1.0, atol=1e-12)


def test_forwards_and_backwards_are_transposes():
    jumps, rng = jnp.asarray(some_jumps(6, 0.4)), np.random.default_rng(2)
    a, b = jnp.asarray(rng.normal(size=(2, 6))), jnp.asarray(rng.normal(size=(2, 6)))
    np.testing.assert_allclose((gained(a, jumps, CHANGES) * b).sum(), (a * expected(b, jumps, CHANGES)).sum())
    np.testing.assert_allclose((carried(a, jumps, CHANGES) * b).sum(), (a * looked_back(b, jumps, CHANGES)).sum())


def test_shifts_leave_the_ladder():
    assert shifted(jnp.arange(1.0, 5.0), 2).tolist() == [0, 0, 1, 2]
    assert shifted(jnp.arange(1.0, 5.0), -1).tolist() == [2, 3, 4, 0]


def test_derivatives_by_the_jumps_are_finite_differences():
    jumps, law = jnp.asarray(some_jumps(5, 0.3)), jnp.asarray(np.eye(5)[2:4])
    way = jnp.asarray(np.random.default_rng(3).normal(size=jumps.shape)) * (jumps > 0)

    def value(h):
        return (carried(law, jumps + h * way, CHANGES) * jnp.arange(5.0)).sum()

    slope = jax.grad(value)(0.0)
    np.testing.assert_allclose(slope, (value(1e-5) - value(-1e-5)) / 2e-5, rtol=1e-7)
