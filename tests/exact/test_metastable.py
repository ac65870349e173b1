"""States that last, found from a fine Markov model; and real molecular dynamics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralmjp import ExactMJP, TimeSeries, io, mjp
from neuralmjp.emissions import GaussianDictionary
from neuralmjp.exact.em import balanced
from neuralmjp.exact.metastable import (
    chosen_lag,
    inner_simplex,
    lagged_counts,
    metastable_start,
    rates_between,
    reversible,
    slow_vectors,
)
from neuralmjp.priors import ReversibleRates

BLOCKS = np.repeat([0, 1, 2], [4, 3, 5])


def planted():
    """Symmetric counts: many inside three blocks of kernels, few between."""
    rng = np.random.default_rng(0)
    counts = np.where(BLOCKS[:, None] == BLOCKS, 1000.0, 2.0) * rng.uniform(0.5, 1.5, (12, 12))
    return counts + counts.T


def test_planted_blocks_are_found():
    vectors, decay = slow_vectors(*reversible(planted()), 3)
    corners = inner_simplex(vectors)
    assert sorted(BLOCKS[corners]) == [0, 1, 2]
    memberships = vectors @ np.linalg.inv(vectors[corners])
    np.testing.assert_allclose(memberships.sum(1), 1.0)
    assert (BLOCKS[corners][memberships.argmax(1)] == BLOCKS).all()
    assert decay[0] == pytest.approx(1.0)


def test_rates_between_blocks_keep_the_time_scales():
    vectors, decay = slow_vectors(*reversible(planted()), 3)
    rates = rates_between(vectors[inner_simplex(vectors)], decay, lag=0.5)
    np.testing.assert_allclose(mjp.timescales(rates), -0.5 / np.log(decay[1:]), rtol=1e-8)


def test_pairs_on_uneven_gaps_come_near_the_lag():
    times = np.array([0.0, 1.0, 2.1, 5.0, 6.0])
    data = TimeSeries.from_arrays([times, times[:2]], [times, times[:2]])
    counts = lagged_counts(data, np.array([0, 1, 2, 3, 4, 0, 1]), lag=2.0, n_kernels=5)
    # Only 0 -> 2.1 lies within a quarter of the lag; nothing leads from one series to the next.
    assert counts.sum() == 1.0
    assert counts[0, 2] == counts[2, 0] == 0.5


def test_rows_with_holes_make_no_pair():
    data = TimeSeries.from_arrays(np.arange(4.0), np.arange(4.0))
    assert lagged_counts(data, np.array([0, -1, 1, 0]), lag=1.0, n_kernels=2).sum() == 1.0


@pytest.mark.parametrize(("n", "lag"), [(1000, 2.0), (8, 1.0)])
def test_the_lag_suits_the_series(n, lag):
    assert chosen_lag(TimeSeries.from_arrays(np.arange(float(n)), np.zeros(n) + np.arange(n))) == lag


@pytest.mark.parametrize("seed", [None, 1])
def test_states_that_overlap_in_value_are_told_apart_by_time(seed):
    states = (np.arange(6000) // 100) % 2
    values = np.random.default_rng(0).normal(1.5 * states, 0.5)[:, None]
    data, emission = TimeSeries.from_arrays(np.arange(6000.0), values), GaussianDictionary()
    params = emission.start(values, 2, None)
    rng = None if seed is None else np.random.default_rng(seed)
    start = metastable_start(data, emission, params, values, ~np.eye(2, dtype=bool), rng)
    means = np.sort(np.asarray(emission.natural(start.params)["mean"].value).ravel())
    assert means[0] < 0.4
    assert means[1] > 1.1
    assert (start.rates[~np.eye(2, dtype=bool)] > 0).all()


def test_fewer_kernels_than_states_is_no_accident():
    values = np.tile([[0.0], [1.0]], (50, 1))
    data, emission = TimeSeries.from_arrays(np.arange(100.0), values), GaussianDictionary()
    params = emission.start(values, 3, None)
    start = metastable_start(data, emission, params, values, ~np.eye(3, dtype=bool), None)
    assert np.isfinite(start.params["logits"]).all()
    assert start.params["logits"].shape[0] == 3


def test_rates_in_detailed_balance_are_the_best():
    """The closed steps lead to where the expected log density of jumps has no slope."""
    model = ReversibleRates(3)
    jumps = np.array([[0.0, 30.0, 4.0], [20.0, 0.0, 9.0], [7.0, 11.0, 0.0]])
    time = np.array([50.0, 20.0, 35.0])
    theta = jnp.asarray(model.nearest(jumps / time[:, None]))
    for _ in range(20):
        theta = balanced(model, theta, jnp.asarray(jumps), jnp.asarray(time))

    def expected(theta):
        rates = model.rates(theta)
        off = ~np.eye(3, dtype=bool)
        return (jumps[off] * jnp.log(rates[off])).sum() - (time[:, None] * rates).sum()

    np.testing.assert_allclose(jax.grad(expected)(theta), 0.0, atol=1e-6)


@pytest.mark.slow
def test_alanine_dipeptide(shared_data):
    """Six states of real molecular dynamics; slow time scales of a reversible Markov model at a lag of 20 ps."""
    data = io.read(shared_data / "adp" / "alanine-dipeptide-backbone-dihedrals.npz", time_unit="ps")
    fitted = ExactMJP(6, emission="torus", prior="reversible", intervals=False).fit(data)
    slowest = fitted.timescales.mean[:3]
    assert (np.abs(slowest / [1440.0, 68.0, 41.0] - 1) < [0.1, 0.1, 0.25]).all()
    phi = np.asarray(fitted.emission.natural(fitted.parameters.emission)["mean"].value)[:, 0]
    assert (phi > 0).sum() == 2
    assert fitted.converged
