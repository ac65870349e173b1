"""Hidden Markov models in discrete time against a jump process whose rates and path are known."""

import sys

import jax
import numpy as np
import pytest
from scipy.stats import norm

from neuralmjp import TimeSeries, mjp
from neuralmjp.baselines.hmm import GaussianHMM, dealt, regular_gap
from neuralmjp.errors import InputError
from neuralmjp.systems import BrownianFolding

RATES = np.array([[0.0, 0.05], [0.1, 0.0]])


def noisy(n_series=4, length=2000, seed=0, centres=(-1.0, 1.0), widths=(0.4, 0.4), n_values=1):
    """Two Gaussian states, two observations per second."""
    times = np.tile(0.5 * np.arange(length), (n_series, 1))
    states = mjp.simulate_states(RATES, times, initial=np.array([2, 1]) / 3, key=jax.random.key(seed))
    noise = np.random.default_rng(seed).normal(size=(n_series, length, n_values))
    values = np.take(centres, states)[..., None] + np.take(widths, states)[..., None] * noise
    return TimeSeries.from_arrays(times, values, time_unit="s"), np.asarray(states).reshape(-1)


@pytest.mark.statistical
@pytest.mark.parametrize("how", [{}, {"every": 3, "covariance": "diag"}])
def test_rates_law_and_path(how):
    """About 330 jumps, so that rates scatter by 8 %. A correct program fails for about 1 in 100 seeds."""
    data, states = noisy()
    chain = GaussianHMM(2, **how).fit(data)
    np.testing.assert_allclose(chain.rates, RATES, rtol=0.25)
    np.testing.assert_allclose(chain.stationary_distribution, [2 / 3, 1 / 3], atol=0.08)
    assert chain.lag == pytest.approx(0.5 * how.get("every", 1))
    assert (chain.states(data) == states).mean() > 0.97
    assert chain.warnings == ()


def test_held_out_score_is_a_log_density_per_observation():
    """In the units of the data, and far above that of one Gaussian without memory."""
    data, _ = noisy(2, 1000)
    other, _ = noisy(2, 1000, seed=1)
    score = GaussianHMM(2, starts=1).fit(data).score(other)
    assert score > norm.logpdf(other.values, data.values.mean(), data.values.std()).mean() + 0.2
    tenfold = [
        TimeSeries(part.times, 10 * part.values, part.offsets, part.names, part.value_names) for part in (data, other)
    ]
    scaled = GaussianHMM(2, starts=1).fit(tenfold[0]).score(tenfold[1])
    assert scaled == pytest.approx(score - np.log(10))


def test_states_that_differ_in_width_alone():
    data, states = noisy(centres=(0.0, 0.0), widths=(0.3, 1.5), n_values=3)
    chain = GaussianHMM(2, seed=1).fit(data)
    assert (chain.states(data) == states).mean() > 0.95


def test_a_forecast_starts_from_what_was_seen_last():
    data, _ = noisy(2, 300)
    chain = GaussianHMM(2, starts=1).fit(data)
    last = chain.probabilities(data)[data.offsets[1:] - 1]
    np.testing.assert_allclose(chain.forecast(data, 1)[:, 0], last @ chain.transition)


def test_irregular_times_are_refused():
    data = TimeSeries.from_arrays([0.0, 1.0, 2.5], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match=r"needs equal gaps.*use ExactMJP"):
        GaussianHMM(2).fit(data)
    assert regular_gap(TimeSeries.from_arrays(0.1 * np.arange(50), np.arange(50.0))) == pytest.approx(0.1)


def test_data_on_another_grid_are_refused():
    data, _ = noisy(1, 300)
    slower = TimeSeries.from_arrays(2 * data.times, data.values, time_unit="s")
    with pytest.raises(InputError, match=r"fitted to gaps of 0\.5"):
        GaussianHMM(2, starts=1).fit(data).score(slower)


def test_no_observation_is_left_out():
    data, _ = noisy(3, 11)
    hands = dealt(data, 4)
    assert sorted(hands.rows) == list(range(33))
    assert hands.lengths.sum() == 33
    with pytest.raises(InputError, match="at least 1 observation"):
        dealt(data, 0)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "hmmlearn.hmm", None)
    with pytest.raises(InputError, match=r"pip install 'neuralmjp\[compare\]'"):
        GaussianHMM(2).fit(noisy(1, 100)[0])


@pytest.mark.slow
@pytest.mark.statistical
def test_brownian_folding():
    """Mean of five data sets, each off by about 0.03. A correct program fails for about 1 in 30 seeds."""
    fits = [GaussianHMM(2).fit(BrownianFolding().simulate(1000, seed=k).data) for k in range(5)]
    assert np.mean([chain.stationary_distribution[0] for chain in fits]) == pytest.approx(0.727, abs=0.03)
