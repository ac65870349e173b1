"""Checks of a fit pass where the model is right, and fail where it is wrong in the way that they ask about."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from neuralmjp import ExactMJP, InputError, TimeSeries, mjp
from neuralmjp.mjp import Interval
from neuralmjp.validation import (
    chapman_kolmogorov,
    coverage,
    implied_timescales,
    pearson,
    plateau,
    predictive,
    residuals,
    thin_to_plateau,
)
from neuralmjp.validation.implied_timescales import ImpliedTimescales
from neuralmjp.validation.verdict import band
from validation.worlds import AGGREGATED, PLAIN, channel, fitted_to


@pytest.mark.statistical
def test_a_right_model_passes_every_check():
    """Each check errs in at most 2 % of right models."""
    fitted, data = fitted_to("right")
    found = predictive(fitted, data, simulations=50)
    verdicts = [*found.verdicts, chapman_kolmogorov(fitted, data, simulations=50).verdict]
    verdicts.append(residuals(fitted, data).verdict)
    assert [one.sentence for one in verdicts if not one.passed] == []
    assert found.survival.outside < 0.3


def test_chapman_kolmogorov_sees_a_missing_state():
    fitted, data = fitted_to("aggregated")
    found = chapman_kolmogorov(fitted, data, simulations=50)
    assert found.verdict.passed is False
    assert found.p_value < 0.02
    assert found.outside > 0.2
    assert "do not foresee" in found.verdict.sentence


def test_chapman_kolmogorov_of_states_that_look_alike():
    """The right model of the same data, its closed states taken together."""
    data = channel(AGGREGATED)
    fitted = ExactMJP(3, emission="gaussian", levels=(0, 0, 1), restarts=2).fit(data)
    found = chapman_kolmogorov(fitted, data, simulations=50)
    assert found.predicted.mean.shape[1:] == (2, 2)
    np.testing.assert_allclose(found.predicted.mean.sum(-1), 1.0)
    assert found.verdict.passed


def test_chapman_kolmogorov_of_states_that_are_seen_counts_them():
    """Where observations are states, the estimate from pairs is the share of what follows, at irregular times too."""
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.exponential(size=(1, 1000)), axis=1)
    states = mjp.simulate_states(PLAIN[0], times - times[:, :1], initial=[1.0, 0.0], key=jax.random.key(0))
    data = TimeSeries.from_arrays(times, states.astype(float))
    fitted = ExactMJP(2).fit(data)
    found = chapman_kolmogorov(fitted, data, lag=1.0, n_lags=2)
    apart = times[0][None] - times[0][:, None]
    for k, lag in enumerate(found.lags):
        nearest = np.abs(apart - lag).argmin(1)
        near = (np.abs(times[0][nearest] - times[0] - lag) <= 0.2 * lag) & (nearest > np.arange(1000))
        came, went = states[0][near], states[0][nearest[near]]
        share = [[(went[came == i] == j).mean() for j in range(2)] for i in range(2)]
        np.testing.assert_allclose(found.observed.mean[k], share, atol=1e-6)
    with pytest.raises(InputError, match="no two observations"):
        chapman_kolmogorov(fitted, data, lag=1e6)


def test_dwell_times_see_a_missing_state():
    fitted, data = fitted_to("aggregated")
    dwell, correlation, _ = predictive(fitted, data, simulations=50).verdicts
    assert dwell.passed is False
    assert "dwells in state 0" in dwell.sentence
    assert correlation.passed is False


def test_density_and_residuals_see_heavy_noise():
    fitted, data = fitted_to("heavy")
    assert predictive(fitted, data, simulations=50).verdicts[2].passed is False
    found = residuals(fitted, data)
    assert found.verdict.passed is False
    assert found.p_values[0] < 1e-4


def test_residuals_see_a_memory():
    """Noise that is a moving average of two has the right law and the wrong neighbours."""

    def smooth(size):
        white = np.random.default_rng(3).normal(size=size + 1)
        return (white[1:] + white[:-1]) / np.sqrt(2)

    data = channel(n=1500, noise=smooth)
    found = residuals(ExactMJP(2, emission="gaussian", restarts=1).fit(data), data)
    assert found.verdict.passed is False
    assert "memory" in found.verdict.sentence


@pytest.mark.statistical
def test_residuals_of_counts_and_missing_values():
    """Randomised ranks are uniform for a law of whole numbers, too; fails once in a thousand."""
    hidden = channel(n=1500)
    rng = np.random.default_rng(5)
    values = rng.poisson(np.where(hidden.values > 2, 12.0, 3.0)).astype(float)
    values[::50] = np.nan
    data = TimeSeries.from_arrays(hidden.times, values)
    found = residuals(ExactMJP(2, emission="poisson", restarts=1).fit(data), data)
    assert np.isnan(found.ranks).sum() == np.isnan(values[1:]).sum()
    assert found.verdict.passed


def test_one_step_ahead_adds_up_to_the_likelihood():
    fitted, data = fitted_to("right")
    ahead = fitted.one_step_ahead(data)
    assert ahead.log_density.sum() == pytest.approx(fitted.score(data), abs=1e-7)
    np.testing.assert_allclose(ahead.states.sum(1), 1.0)
    pieces = data.windows(500)
    assert fitted.one_step_ahead(pieces).log_density.sum() == pytest.approx(fitted.score(pieces), abs=1e-7)


def test_plateau():
    thinnings = np.array([1, 2, 5, 10])
    assert plateau(thinnings, np.array([3.0, 5.0, 8.0, 8.4])) == 5
    assert plateau(thinnings, np.array([8.0, 8.1, 8.0, 8.4])) == 1
    assert plateau(thinnings, np.array([1.0, 2.0, 4.0, 8.0])) is None
    assert plateau(np.array([1]), np.array([1.0])) is None


def test_timescales_against_thinning():
    estimator = ExactMJP(2, emission="gaussian", restarts=1)
    right = implied_timescales(channel(), estimator, (1, 2, 5))
    assert right.thinnings.tolist() == [1, 2, 5]
    assert (right.timescales.lower < 1 / 0.15).all()
    assert (right.timescales.upper > 1 / 0.15).all()
    assert right.verdict.passed
    kept, thinning = thin_to_plateau(channel(), estimator, (1, 2))
    assert thinning == 1
    assert kept.n_observations == 2000


def test_timescales_that_grow_with_thinning():
    found = implied_timescales(channel(AGGREGATED, n=4000), ExactMJP(2, emission="gaussian", restarts=1), (1, 10))
    assert found.timescales.mean[1, 0] > 1.3 * found.timescales.mean[0, 0]
    assert found.verdict.passed is False


@pytest.mark.parametrize(("last", "passed"), [(0.034, False), (0.046, True), (0.063, False)])
def test_timescales_that_drift_away_from_the_first(last, passed):
    """Each step is small, and all of them together are not; known to 10 %, so that chance does not explain it."""
    slowest = np.geomspace(0.0486, last, 5)[:, None]
    found = ImpliedTimescales(np.array([1, 2, 5, 10, 20]), Interval(slowest, 0.9 * slowest, 1.1 * slowest), "s")
    assert found.plateau == 1
    assert found.verdict.passed is passed
    unsure = replace(found, timescales=Interval(slowest, 0.5 * slowest, 2 * slowest))
    assert unsure.verdict.passed is True


def test_band():
    """Rank of the largest deviation; places that no simulation knows are passed over."""
    rng = np.random.default_rng(0)
    simulated = rng.normal(size=(99, 1, 3))
    simulated[..., 2] = np.nan
    inside = band(np.array([[0.0, 0.1, np.nan]]), simulated)
    assert inside.p_value > 0.5
    assert inside.outside == 0
    beyond = band(np.array([[0.0, 9.0, 1.0]]), simulated)
    assert beyond.p_value == pytest.approx(0.01)
    assert beyond.outside == 0.5


def test_what_cannot_be_checked_is_said():
    fitted, data = fitted_to("right")
    for check in (predictive, chapman_kolmogorov, pearson):
        with pytest.raises(InputError, match=r"49 simulations cannot reject a model.* at least 50"):
            check(fitted, data, simulations=49)


def test_data_that_never_change():
    """Nothing to compare: no check fails, and the fit says that it made the states up."""
    data = TimeSeries.from_arrays(np.arange(60.0), np.full(60, 5.0))
    fitted = ExactMJP(2).fit(data)
    assert "the values never change: no jump can be seen, and the states are made up" in fitted.warnings
    told = [*predictive(fitted, data, simulations=50).verdicts, coverage(fitted, data).verdict]
    assert not any(one.passed is False for one in told)
    assert not any("nan" in one.sentence for one in told)


def test_a_band_where_nothing_is_known():
    nothing = band(np.full((2, 3), np.nan), np.full((60, 2, 3), np.nan))
    assert nothing.p_value == 1.0
    assert np.isnan(nothing.lower).all()
