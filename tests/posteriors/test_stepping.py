"""Small matrices as long vectors: products, exponentials and prefixes against plain linear algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from exact.test_enumeration import generator
from neuralmjp.posteriors import stepping
from neuralmjp.posteriors.stepping import piece_times, propagated, quadrature, short_expm, small_product


def random_generators(n, many, seed=0, jumps=3.0):
    rng = np.random.default_rng(seed)
    rates = rng.exponential(size=(many, n, n)) * (1 - np.eye(n))
    rates *= jumps / rates.sum(-1).max(-1)[:, None, None]
    return np.array([generator(one) for one in rates])


def in_front(x):
    return jnp.asarray(np.moveaxis(x, 0, -1))


class TestSmallProduct:
    @pytest.mark.parametrize("n", [2, stepping.WIDEST_UNROLLED + 1])
    def test_values_and_gradients_against_einsum(self, n):
        """Written out, and beyond the widest that is."""
        rng = np.random.default_rng(0)
        a, b, weights = (jnp.asarray(rng.normal(size=shape)) for shape in [(3, n, 5, 2), (n, 4, 5, 2), (3, 4, 5, 2)])

        def plain(a, b):
            return (weights * jnp.einsum("ij...,jk...->ik...", a, b)).sum()

        def ours(a, b):
            return (weights * small_product(a, b)).sum()

        np.testing.assert_allclose(small_product(a, b), jnp.einsum("ij...,jk...->ik...", a, b), rtol=1e-12, atol=1e-12)
        for mine, theirs in zip(jax.grad(ours, (0, 1))(a, b), jax.grad(plain, (0, 1))(a, b), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


class TestShortExpm:
    @pytest.mark.parametrize("n", [2, 5])
    def test_up_to_four_jumps(self, n):
        matrices = random_generators(n, 6, jumps=4.0) * np.array([0, 1e-6, 0.1, 0.5, 0.9, 1.0])[:, None, None]
        found = np.moveaxis(np.asarray(short_expm(in_front(matrices), n)), -1, 0)
        np.testing.assert_allclose(found, [expm(m) for m in matrices], atol=1e-13)
        np.testing.assert_allclose(found.sum(-1), 1.0, rtol=1e-14)

    def test_single_precision(self):
        matrices = random_generators(3, 6, jumps=4.0)
        found = short_expm(in_front(matrices).astype(jnp.float32), 3)
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(np.moveaxis(np.asarray(found), -1, 0), [expm(m) for m in matrices], atol=3e-6)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_a_transition_matrix_whatever_the_rates(self, dtype):
        matrices = random_generators(3, 5) * np.array([1e-6, 1.0, 1e2, 1e3, 1e4])[:, None, None]
        found = np.moveaxis(np.asarray(short_expm(in_front(matrices).astype(dtype), 3)), -1, 0)
        assert (found >= 0).all()
        np.testing.assert_allclose(found.sum(-1), 1.0, rtol=1e-5)

    def test_an_extra_column_gathers_along_the_way(self):
        """The integral of p(t) c, as the last column of the exponential of a wider matrix."""
        states, gathered = random_generators(3, 4), np.random.default_rng(1).exponential(size=(4, 3, 1))
        wide = np.concatenate([np.concatenate([states, gathered], axis=2), np.zeros((4, 1, 4))], axis=1)
        found = np.moveaxis(np.asarray(short_expm(in_front(wide), 3)), -1, 0)
        np.testing.assert_allclose(found, [expm(m) for m in wide], atol=1e-13)

    def test_gradient_against_differences(self):
        matrices, way = random_generators(3, 2), random_generators(3, 2, seed=1)
        weights = np.random.default_rng(2).normal(size=(3, 3, 2))

        @jax.jit
        def value(m):
            return (weights * short_expm(m, 3)).sum()

        slope = float((jax.grad(value)(in_front(matrices)) * in_front(way)).sum())
        ends = [value(in_front(matrices + h * way)) for h in (1e-5, -1e-5)]
        assert slope == pytest.approx(float(ends[0] - ends[1]) / 2e-5, rel=1e-7)


class TestPropagated:
    def rows(self, initial, steps):
        found = [initial]
        for k in range(steps.shape[2]):
            found.append(np.einsum("sn,nms->sm", found[-1], steps[:, :, k]))
        return np.stack(found, axis=1)

    @pytest.mark.parametrize("n_steps", [1, 6])
    def test_in_parallel_as_one_after_the_other(self, n_steps, monkeypatch):
        rng = np.random.default_rng(0)
        initial, steps = rng.random((4, 3)), rng.random((3, 3, n_steps, 4))
        parallel = propagated(jnp.asarray(initial), jnp.asarray(steps))
        monkeypatch.setattr(stepping, "WIDEST_PARALLEL", 0)
        sequential = propagated(jnp.asarray(initial), jnp.asarray(steps))
        np.testing.assert_allclose(parallel, self.rows(initial, steps), rtol=1e-12)
        np.testing.assert_allclose(sequential, self.rows(initial, steps), rtol=1e-12)

    def test_gradients_agree(self, monkeypatch):
        rng = np.random.default_rng(0)
        arrays = jnp.asarray(rng.random((4, 3))), jnp.asarray(rng.random((3, 3, 5, 4)))
        weights = rng.normal(size=(4, 6, 3))

        def slopes():
            return jax.grad(lambda *x: (weights * propagated(*x)).sum(), (0, 1))(*arrays)

        parallel = slopes()
        monkeypatch.setattr(stepping, "WIDEST_PARALLEL", 0)
        for one, two in zip(parallel, slopes(), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-10)


def test_quadrature_is_exact_for_polynomials():
    nodes, weights = quadrature(1.1, 5)
    for power in range(10):
        assert weights @ nodes**power == pytest.approx(1.1 ** (power + 1) / (power + 1), rel=1e-12)


def test_times_lie_inside_their_pieces():
    nodes = jnp.array([[0.0, 1.0, 1.0, 4.0]])
    for order, n_points in ((2, 1), (4, 2)):
        times = np.asarray(piece_times(nodes, 2, order))
        assert times.shape == (1, 6, n_points)
        np.testing.assert_allclose(times.mean(-1), [[0.25, 0.75, 1.0, 1.0, 1.75, 3.25]], rtol=1e-15)
