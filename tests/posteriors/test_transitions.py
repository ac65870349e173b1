"""exp(F t) for many gaps against SciPy's, and what a capacity promises."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from exact.test_enumeration import generator
from neuralmjp.posteriors import Capacity, transition_matrices
from neuralmjp.posteriors.transitions import MOST_JUMPS

compiled = jax.jit(transition_matrices, static_argnames="capacity")
RATES = np.array([[0, 1.0, 0], [0.3, 0, 2.0], [0.7, 0, 0]])


def jumps(rates, gaps):
    return float(rates.sum(1).max() * np.max(gaps))


class TestCapacity:
    @given(st.floats(0.0, 1e9))
    def test_holds_what_was_asked_for(self, asked):
        capacity = Capacity.of(asked)
        assert capacity.jumps >= asked
        assert capacity.jumps <= max(8 * asked, 16)

    @given(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9))
    def test_more_jumps_never_need_less(self, one, two):
        small, large = sorted([one, two])
        assert Capacity.of(small).terms <= Capacity.of(large).terms
        assert Capacity.of(small).halvings <= Capacity.of(large).halvings

    def test_rates_that_have_diverged(self):
        assert Capacity.of(float("inf")) == Capacity.of(1e300) == Capacity.of(2.0**30)
        found = compiled(1e30 * generator(RATES), jnp.array([1.0, 0.0]), Capacity.of(float("inf")))
        assert np.isfinite(found).all()

    def test_few_programs(self):
        assert len({Capacity.of(x) for x in np.geomspace(1e-3, 1e6, 5000)}) <= 20

    def test_halvings_begin_where_the_series_ends(self):
        assert Capacity.of(MOST_JUMPS).halvings == 0
        assert Capacity.of(MOST_JUMPS + 1).halvings == 1


class TestTransitionMatrices:
    @pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0, 1e3, 1e5])
    def test_against_scipy(self, scale):
        gaps = scale * np.array([[0.0, 1e-9, 0.1], [0.5, 0.9, 1.0]])
        found = compiled(generator(RATES), jnp.asarray(gaps), Capacity.of(jumps(RATES, gaps)))
        assert found.shape == (2, 3, 3, 3)
        expected = np.array([[expm(generator(RATES) * gap) for gap in row] for row in gaps])
        np.testing.assert_allclose(found, expected, atol=1e-11 * max(scale, 1))
        np.testing.assert_array_equal(found[0, 0], np.eye(3))

    def test_small_entries_keep_their_digits(self):
        """From 1 by way of 2 to 0 and on: third order in the gap; SciPy's subtraction would lose it."""
        chain = np.diag([1.0, 1.0, 1.0], 1)
        found = compiled(jnp.asarray(generator(chain)), jnp.array([1e-4]), Capacity.of(1.0))[0]
        assert found[0, 3] == pytest.approx(1e-12 / 6, rel=1e-3)
        assert (np.tril(found, -1) == 0).all()

    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 2**32), st.floats(0.01, 1e4))
    def test_never_gains_mass(self, seed, longest):
        """Far beyond its capacity too."""
        rng = np.random.default_rng(seed)
        rates = rng.exponential(size=(3, 3)) * (1 - np.eye(3)) * (rng.random((3, 3)) < 0.7)
        found = np.asarray(
            compiled(jnp.asarray(generator(rates)), jnp.asarray(longest * rng.random(4)), Capacity.of(4.0))
        )
        assert (found >= 0).all()
        assert (found.sum(-1) <= 1 + 1e-12).all()

    def test_beyond_its_capacity_mass_is_lost(self):
        assert compiled(generator(RATES), jnp.array([1e3]), Capacity.of(4.0)).sum() < 0.1

    @pytest.mark.parametrize("scale", [1.0, 50.0, 1e3, 1e5])
    def test_rows_in_single_precision(self, scale):
        """A bound stays a bound to a thousandth of a nat over a hundred gaps."""
        gaps = jnp.asarray(scale * np.linspace(0.01, 1.0, 50), jnp.float32)
        found = transition_matrices(jnp.asarray(generator(RATES), jnp.float32), gaps, Capacity.of(jumps(RATES, gaps)))
        assert found.dtype == jnp.float32
        assert np.abs(np.asarray(found, np.float64).sum(-1) - 1).max() < 1e-5

    def test_no_rates_at_all(self):
        found = compiled(jnp.zeros((2, 2)), jnp.array([0.0, 5.0]), Capacity.of(1.0))
        np.testing.assert_array_equal(found, np.broadcast_to(np.eye(2), (2, 2, 2)))

    @pytest.mark.parametrize("scale", [1.0, 500.0])
    def test_gradient_against_differences(self, scale):
        gaps, weights = jnp.array([0.4, 1.0]) * scale, np.random.default_rng(0).normal(size=(2, 3, 3))
        capacity = Capacity.of(2 * jumps(RATES, gaps))

        def value(matrix):
            return (weights * compiled(matrix, gaps, capacity)).sum()

        slope = np.asarray(jax.grad(value)(jnp.asarray(generator(RATES))))
        for jump in [(0, 1), (1, 2), (2, 0)]:
            h = 1e-5
            changed = [RATES + d * (np.arange(9).reshape(3, 3) == 3 * jump[0] + jump[1]) for d in (h, -h)]
            difference = (value(generator(changed[0])) - value(generator(changed[1]))) / (2 * h)
            assert slope[jump] - slope[jump[0], jump[0]] == pytest.approx(float(difference), rel=1e-5, abs=1e-7)
