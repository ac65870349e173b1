"""Forecasts are as sure as they should be: nine of ten later observations lie inside their 90 % intervals."""

from dataclasses import replace

import numpy as np
import pytest

from neuralmjp import ExactMJP, InputError, NetworkMJP, TimeSeries
from neuralmjp.systems import named
from neuralmjp.validation import Accuracy, Coverage, coverage
from validation.worlds import channel, fitted_to


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(4))
def test_forecasts_of_a_channel(seed):
    """The share over 70 forecasts has a standard error of about 2 %: one seed in a hundred would leave 85 to 95 %."""
    fitted, _ = fitted_to("right")
    found = coverage(fitted, channel(n=4000, seed=100 + seed))
    assert found.inside.shape == (5,)
    assert 0.85 <= found.share <= 0.95
    assert found.verdict.passed


def test_a_model_that_is_too_sure():
    """Twice the noise that the model knows: too few observations lie inside."""
    fitted, _ = fitted_to("right")
    found = coverage(fitted, channel(noise=lambda size: np.random.default_rng(0).normal(scale=2.0, size=size)))
    assert found.share < 0.85
    assert found.verdict.passed is False


def test_an_interval_of_labels_may_hold_more():
    """Of few values it cannot hold just nine of ten; too few would still speak against the model."""
    sure = Coverage(np.array([0.99, 1.0]), 100, 0.001, Accuracy(np.ones(2), np.ones(2)), discrete=True)
    assert sure.verdict.passed
    assert replace(sure, discrete=False).verdict.passed is False
    assert replace(sure, inside=np.array([0.7, 0.8])).verdict.passed is False
    states = np.random.default_rng(0).integers(0, 2, (30, 12))
    data = TimeSeries.from_arrays(np.tile(np.arange(12.0), (30, 1)), states)
    assert coverage(ExactMJP(2, "categorical").fit(data), data, horizon=2).discrete


def test_nothing_to_forecast():
    fitted, data = fitted_to("right")
    with pytest.raises(InputError, match="look less far ahead"):
        coverage(fitted, data, horizon=3000)


@pytest.mark.slow
@pytest.mark.statistical
def test_forecasts_of_a_reaction_network():
    """Predators and prey; 30 series, so that the standard error is about 2 %."""
    system = named("lotka-volterra")
    data = system.simulate(n_series=60, length=30, seed=1).data
    fitted = NetworkMJP(system).fit(data[:30])
    found = coverage(fitted, data[30:], horizon=3)
    assert 0.85 <= found.share <= 0.95
