"""Forecasts of hidden states and their observations, against the matrix exponential and direct simulation."""

import jax
import numpy as np
import pytest
from scipy.linalg import expm

from neuralmjp import ExactMJP, FittedMJP, InputError, mjp, systems

LATER = [np.array([30.0, 30.5, 33.0]), np.array([40.0]), np.array([31.0, 60.0])]


@pytest.fixture(scope="module")
def data():
    return systems.TwoMode().simulate(3, 60, seed=2).data


@pytest.fixture(scope="module")
def fitted(data) -> FittedMJP:
    return ExactMJP(2, emission="gaussian", restarts=1, intervals=False).fit(data)


@pytest.mark.statistical
def test_against_direct_simulation(fitted, data):
    """Laws by expm; means and spreads by paths that another simulator draws, 5 standard errors: 1e-5 of seeds fail."""
    forecast = fitted.predict(data, LATER, samples=4000, seed=3)
    np.testing.assert_array_equal(forecast.series, [0, 0, 0, 1, 2, 2])
    np.testing.assert_array_equal(forecast.times, np.concatenate(LATER))
    params = jax.tree.map(np.asarray, fitted.parameters.emission)
    row = 0
    for k, times in enumerate(LATER):
        last = int(data.offsets[k + 1]) - 1
        law = fitted.predict_proba(data)[last]
        begun = np.tile(np.concatenate([[0.0], times - data.times[last]]), (4000, 1))
        states = mjp.simulate_states(fitted.rates, begun, initial=law, key=jax.random.key(k))[:, 1:]
        for t, time in enumerate(times):
            expected = law @ expm(fitted.generator * (time - data.times[last]))
            np.testing.assert_allclose(forecast.probabilities[row], expected, atol=1e-10)
            direct = fitted.emission.sample(params, states[:, t], np.zeros(4000), np.random.default_rng(9))[:, 0]
            drawn = forecast.samples[:, row, 0]
            assert forecast.readings.mean[row, 0] == pytest.approx(drawn.mean())
            assert abs(drawn.mean() - direct.mean()) < 5 * np.sqrt((drawn.var() + direct.var()) / 4000)
            assert drawn.std() == pytest.approx(direct.std(), rel=0.1)
            row += 1


def test_successive_states_hang_together(fitted, data):
    """Two times that almost coincide show the same state: draws are joint."""
    forecast = fitted.predict(data[:1], [40.0, 40.0 + 1e-9], samples=500)
    above = forecast.samples[..., 0] > fitted.emission.locations(fitted.parameters.emission).mean()
    assert (above[:, 0] == above[:, 1]).mean() > 0.9


def test_quantiles_and_seeds(fitted, data):
    forecast, again = (fitted.predict(data, LATER, samples=200, seed=5) for _ in range(2))
    np.testing.assert_array_equal(forecast.samples, again.samples)
    assert not np.array_equal(forecast.samples, fitted.predict(data, LATER, samples=200, seed=6).samples)
    share = (forecast.samples <= forecast.readings.upper).mean(0)
    np.testing.assert_allclose(share, 0.95, atol=0.01)
    assert (forecast.readings.lower <= forecast.readings.median).all()


def test_labels_that_are_states():
    """Labels are seen as they are: their shares among the samples are the probabilities of the states."""
    ratchet = systems.FlashingRatchet()
    data = ratchet.simulate(20, 20, seed=1).data
    fitted = ExactMJP(6, prior=ratchet, intervals=False).fit(data)
    forecast = fitted.predict(data[:1], [3.0, 9.0], samples=4000)
    shares = np.stack([(forecast.samples[..., 0] == label).mean(0) for label in range(6)], axis=1)
    np.testing.assert_allclose(shares, forecast.probabilities, atol=0.04)  # 5 standard errors
    assert set(np.unique(forecast.readings.median)) <= set(range(6))


def test_memory_goes_on_from_the_last_value(data):
    """Just after the last observation an Ornstein-Uhlenbeck emission is still there; much later it has forgotten."""
    fitted = ExactMJP(2, emission="ornstein-uhlenbeck", restarts=1, intervals=False).fit(data)
    last = data.times[data.offsets[1] - 1]
    forecast = fitted.predict(data[:1], [last + 1e-9, last + 1e3], samples=2000)
    np.testing.assert_allclose(forecast.samples[:, 0, 0], data.values[data.offsets[1] - 1, 0], atol=1e-2)
    assert forecast.samples[:, 1, 0].std() > 0.1


def test_times_must_come_later(fitted, data):
    with pytest.raises(InputError, match="later times must increase and begin after its last"):
        fitted.predict(data, [1.0])
    with pytest.raises(InputError, match="3 series need as many lists of later times, got 1"):
        fitted.predict(data, [[99.0]])
