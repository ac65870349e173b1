"""Markov state models of wells whose jumps are known, and of real molecular dynamics."""

import sys

import jax
import numpy as np
import pytest

from neuralmjp import TimeSeries, io, mjp
from neuralmjp.baselines.msm import MarkovStateModel, occupied, reversible_timescales
from neuralmjp.errors import InputError
from neuralmjp.systems import BrownianFolding

RATES = np.array([[0.0, 0.02], [0.05, 0.0]])


def wells(n_series=20, length=1000, seed=0):
    """Two states at -2 and 2 with noise that hardly overlaps, one observation per time unit."""
    times = np.tile(np.arange(float(length)), (n_series, 1))
    initial = mjp.stationary_distribution(RATES)
    states = mjp.simulate_states(RATES, times, initial=initial, key=jax.random.key(seed))
    values = np.random.default_rng(seed).normal(4.0 * states - 2, 0.5)
    return TimeSeries.from_arrays(times, values, time_unit="ms"), np.asarray(states).reshape(-1)


def angles(n=20000, seed=1):
    """Two wells on the circle, one of them around the seam at 180 degrees."""
    states = (np.random.default_rng(seed).random(n) < 0.01).cumsum() % 2
    raw = np.random.default_rng(seed).normal(np.pi * states, 0.4)
    return TimeSeries.from_arrays(np.arange(float(n)), (raw + np.pi) % (2 * np.pi) - np.pi), states


@pytest.mark.statistical
@pytest.mark.parametrize("how", [{"cells": 20}, {"grid": 30}])
def test_two_wells(how):
    """Intervals of one data set; fixed seed. A correct program would fail for about 1 in 100 seeds."""
    data, states = wells()
    chain = MarkovStateModel(2, lag=5.0, samples=50, **how).fit(data)
    assert (chain.states(data) == states).mean() > 0.99
    np.testing.assert_allclose(chain.stationary_distribution, [5 / 7, 2 / 7], atol=0.05)
    np.testing.assert_allclose(chain.rates, RATES, rtol=0.15)
    np.testing.assert_allclose(chain.timescales[0], 1 / 0.07, rtol=0.1)
    law, scales = chain.intervals
    assert (law.lower < [5 / 7, 2 / 7]).all()
    assert (law.upper > [5 / 7, 2 / 7]).all()
    assert scales.lower[0] < 1 / 0.07 < scales.upper[0]
    assert chain.score(data) == pytest.approx(1 + np.exp(-0.07 * 5) ** 2, abs=0.1)
    assert chain.time_unit == "ms"


def test_one_seed_one_model():
    data, _ = wells(3)
    first, second = (MarkovStateModel(2, lag=5.0, cells=10, samples=5).fit(data) for _ in range(2))
    np.testing.assert_array_equal(first.transition, second.transition)
    np.testing.assert_array_equal(first.intervals.timescales.upper, second.intervals.timescales.upper)


@pytest.mark.parametrize("how", [{"cells": 15}, {"grid": 24}])
def test_a_well_across_the_seam_of_the_circle(how):
    data, states = angles()
    chain = MarkovStateModel(2, lag=2.0, angles=True, samples=0, **how).fit(data)
    agree = (chain.states(data) == states).mean()
    assert max(agree, 1 - agree) > 0.99
    assert chain.intervals is None


def test_cells_of_a_grid_hold_data():
    values = np.array([[0.0, 0.0], [0.1, 0.1], [1.0, 2.0]])
    np.testing.assert_allclose(occupied(values, 2, False), [[0.25, 0.5], [0.75, 1.5]])
    np.testing.assert_allclose(occupied(np.array([[np.pi]]), 4, True), [[-0.75 * np.pi]])


def test_time_scales_of_a_balanced_matrix():
    matrix = np.array([[0.9, 0.1], [0.2, 0.8]])
    np.testing.assert_allclose(reversible_timescales(matrix, np.array([2, 1]) / 3, 3.0), -3 / np.log(0.7))


def test_cells_that_nobody_returns_to_are_left_out():
    """The trace starts far away and never comes back."""
    data, _ = wells(2)
    values = data.values.copy()
    values[:3] = 50.0
    away = TimeSeries(data.times, values, data.offsets, data.names, data.value_names, data.time_unit)
    chain = MarkovStateModel(2, lag=5.0, cells=10, samples=0).fit(away)
    np.testing.assert_allclose(chain.stationary_distribution, [5 / 7, 2 / 7], atol=0.15)


def test_too_few_cells_is_an_error():
    data, _ = wells(2, 100)
    with pytest.raises(InputError, match="5 states need as many cells"):
        MarkovStateModel(5, cells=3, samples=0).fit(data)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "deeptime.markov.msm", None)
    with pytest.raises(InputError, match=r"pip install 'neuralmjp\[compare\]'"):
        MarkovStateModel(2).fit(wells(2, 100)[0])


@pytest.mark.slow
def test_alanine_dipeptide(shared_data):
    """Slow time scales of a reversible Markov model at a lag of 20 ps, as others found them."""
    data = io.read(shared_data / "adp" / "alanine-dipeptide-backbone-dihedrals.npz", time_unit="ps")
    chain = MarkovStateModel(6, angles=True).fit(data)
    assert chain.lag == 20.0
    np.testing.assert_allclose(chain.timescales[:3], [1439.0, 68.3, 41.0], rtol=0.05)
    assert chain.stationary_distribution[4] == pytest.approx(0.024, abs=0.005)  # phi > 0
    assert chain.intervals.timescales.lower[0] < 1439.0 < chain.intervals.timescales.upper[0]


@pytest.mark.slow
@pytest.mark.statistical
def test_brownian_folding():
    """Mean of three data sets, whose own scatter is 0.012 each. A correct program fails for about 1 in 50 seeds."""
    fits = [MarkovStateModel(2, samples=0).fit(BrownianFolding().simulate(1000, seed=k).data) for k in range(3)]
    laws = [chain.stationary_distribution[0] for chain in fits]
    assert np.mean(laws) == pytest.approx(0.727, abs=0.03)
