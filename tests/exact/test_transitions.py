"""Transition matrices of many gaps at once against SciPy's exponential, one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm, expm_frechet

from neuralmjp.exact.transitions import JUMPS, Halving, halving_needed, transition_table

GAPS = np.array([0.0, 1e-9, 1e-6, 1e-3, 0.02, 0.5, 1.0, 3.0, 10.0, 77.0, 1e3, 1e4])
RNG = np.random.default_rng(0)


def random_rates(n):
    rates = np.exp(RNG.normal(size=(n, n)))
    np.fill_diagonal(rates, 0.0)
    return rates


RATES = {
    "random": random_rates(4),
    "stiff": random_rates(4) * np.array([[1e-4], [1.0], [30.0], [1e-2]]),
    "progressive": np.diag([2.0, 2.0, 2.0], 1),  # equal rates: the generator cannot be diagonalised
    "ring": np.roll(np.eye(4), 1, axis=1) * 0.7,  # complex eigenvalues
    "slow": random_rates(4) * 1e-8,
    "none": np.zeros((4, 4)),
}
every_process = pytest.mark.parametrize("rates", RATES.values(), ids=RATES)


def generator(rates):
    return rates - np.diag(rates.sum(1))


table_of = jax.jit(transition_table, static_argnames="halving")


def table(rates, gaps=GAPS):
    return np.asarray(table_of(jnp.asarray(generator(rates)), jnp.asarray(gaps), halving_needed(rates, gaps)))


@every_process
def test_every_gap_from_tiny_to_endless(rates):
    expected = np.array([expm(generator(rates) * gap) for gap in GAPS])
    np.testing.assert_allclose(table(rates), expected, rtol=1e-9, atol=1e-13)


@every_process
def test_rows_are_laws(rates):
    found = table(rates)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(-1), 1.0, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(found[0], np.eye(4))


def test_small_probabilities_keep_their_digits():
    """Three jumps in 1e-6: a probability of 1e-18, where subtraction would leave noise."""
    rates, gap = RATES["progressive"], 1e-6
    np.testing.assert_allclose(table(rates)[2][0, 3], (2.0 * gap) ** 3 / 6, rtol=1e-5)


@pytest.mark.parametrize("name", ["progressive", "none"])
def test_zeros_stay_exactly_zero(name):
    found = table(RATES[name])
    below = np.tril(np.ones((4, 4)), -1) > 0
    assert (found[:, below] == 0).all()


@pytest.mark.parametrize("name", [name for name in RATES if name != "none"])
def test_derivative_in_every_entry_diagonal_included(name):
    """Along unit changes of each entry, also of a rate that is zero, against the exact directional derivative."""
    rates, gaps = RATES[name], np.array([1e-3, 0.5, 3.0, 10.0])
    weights = RNG.normal(size=(4, 4, 4))
    halving = halving_needed(rates, gaps)
    slope = jax.grad(lambda f: (transition_table(f, jnp.asarray(gaps), halving) * weights).sum())
    expected = np.zeros((4, 4))
    for entry in np.ndindex(4, 4):
        way = np.zeros((4, 4))
        way[entry] = 1.0
        parts = [expm_frechet(generator(rates) * t, way * t, compute_expm=False) for t in gaps]
        expected[entry] = (np.array(parts) * weights).sum()
    np.testing.assert_allclose(slope(jnp.asarray(generator(rates))), expected, rtol=1e-9, atol=1e-11)


def test_a_gap_at_the_edge_of_halving():
    """Rounding may put the fastest exit on either side of the edge: the result must not care."""
    rates, gaps = RATES["ring"], np.array([0.0, JUMPS / 0.7, 100.0])
    just_faster = rates * (1 + 1e-15)
    found = table_of(jnp.asarray(generator(just_faster)), jnp.asarray(gaps), halving_needed(rates, gaps))
    np.testing.assert_allclose(found[1], expm(generator(rates) * gaps[1]), rtol=1e-9)


class TestHalving:
    def test_short_gaps_need_none(self):
        assert halving_needed(RATES["ring"], np.array([0.0, JUMPS / 0.7])) == Halving(0, 0)

    @pytest.mark.parametrize("longest", [6.0, 50.0, 1e3, 1e6])
    def test_enough_and_not_much_more(self, longest):
        gaps = np.append(0.0, np.geomspace(1e-3, longest, 37))
        needed = halving_needed(RATES["ring"], gaps)
        jumps = 0.7 * gaps
        assert jumps[-1] / 2**needed.times <= JUMPS < jumps[-1] / 2 ** (needed.times - 2)
        assert (jumps > JUMPS).sum() <= needed.n_long < (jumps > JUMPS).sum() + 5
        assert needed.times % 2 == 0

    def test_few_different_programs(self):
        gaps = np.append(0.0, np.geomspace(1e-3, 10, 100))
        programs = {halving_needed(RATES["ring"] * speed, gaps) for speed in np.geomspace(0.5, 2.0, 200)}
        assert len(programs) <= 6
