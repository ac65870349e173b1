"""Known truths are found again, to the precision claimed; and fits follow their data through any change of units."""

import numpy as np
import pytest
from scipy.stats import norm

from exact.test_information import TWO, covers, log_errors, simulated
from neuralmjp import ExactMJP, TimeSeries
from neuralmjp.systems import FlashingRatchet, IonChannel

Z = norm.isf(0.025)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "grid",
    ["shared", pytest.param("irregular", marks=pytest.mark.slow), pytest.param("regular", marks=pytest.mark.slow)],
)
def test_flashing_ratchet(grid):
    """4480 series of 50: within 3 standard errors, which a correct program misses in 0.8 % of all seeds."""
    fitted = ExactMJP(6, prior=FlashingRatchet()).fit(FlashingRatchet().simulate(4480, 50, grid=grid, seed=3).data)
    found = fitted.intervals["parameters"]
    errors = (found.upper - found.lower) / (2 * Z)
    assert fitted.converged
    assert fitted.warnings == ()
    assert (np.abs(found.mean - 1) < 3 * errors).all()
    np.testing.assert_allclose(errors, [0.015, 0.010, 0.011], rtol=0.15)


@pytest.mark.statistical
def test_three_levels_of_a_channel():
    """Of six 95 % intervals two may miss: a correct program fails in 0.3 % of all seeds."""
    channel = IonChannel.paper("full")
    simulation = channel.simulate(1, 5000, seed=1)
    fitted = ExactMJP(3, "gaussian").fit(simulation.data)
    assert fitted.converged
    assert (fitted.decode(simulation.data).states == simulation.states).mean() > 0.99
    assert covers(fitted.intervals["rates"], np.array(channel.rates))[~np.eye(3, dtype=bool)].sum() >= 4
    np.testing.assert_allclose(fitted.intervals["emission.mean"].mean.ravel(), channel.levels, atol=0.1)
    np.testing.assert_allclose(fitted.intervals["emission.sd"].mean.ravel(), 0.5, atol=0.05)


@pytest.mark.slow
@pytest.mark.statistical
def test_a_long_recording():
    """300,000 observations, more than EM looks at; a correct program is 4 errors off in 1e-4 of all seeds."""
    data = simulated(TWO, 1, 300_000, 0.2, seed=0, levels=[0.0, 1.0], noise=0.4)
    fitted = ExactMJP(2, "gaussian", restarts=2).fit(data)
    jumps = np.nonzero(TWO)
    off = np.log(fitted.rates[jumps] / TWO[jumps]) / log_errors(fitted.intervals["rates"])[jumps]
    assert (np.abs(off) < 4).all()
    assert fitted.score(data) == pytest.approx(fitted.log_likelihood, rel=1e-10)


RATES = np.array([[0, 1.0, 0.2], [0.5, 0, 1.5], [0.3, 0.8, 0]])
LABELS = simulated(RATES, 150, 15, 0.4, seed=1)


def changed(data, times=lambda t: t, values=lambda v: v):
    return TimeSeries(times(data.times), values(data.values), data.offsets, data.names, data.value_names)


@pytest.fixture(scope="module")
def reference():
    return ExactMJP(3).fit(LABELS)


def test_other_names_for_states(reference):
    """State i of the first fit is state order[i] of the second."""
    order = np.array([2, 0, 1])
    again = ExactMJP(3).fit(changed(LABELS, values=lambda v: order[v.astype(int)].astype(float)))
    for part in ("mean", "lower", "upper"):
        first, second = (getattr(fitted.intervals["rates"], part) for fitted in (reference, again))
        np.testing.assert_allclose(second[np.ix_(order, order)], first, rtol=1e-4)
    assert again.log_likelihood == pytest.approx(reference.log_likelihood, abs=1e-6)


def test_another_unit_of_time(reference):
    again = ExactMJP(3).fit(changed(LABELS, times=lambda t: 1000 * t))
    for part in ("mean", "lower", "upper"):
        first, second = (getattr(fitted.intervals["rates"], part) for fitted in (reference, again))
        np.testing.assert_allclose(1000 * second, first, rtol=1e-4)
    np.testing.assert_allclose(again.timescales.mean, 1000 * reference.timescales.mean, rtol=1e-4)
    assert again.log_likelihood == pytest.approx(reference.log_likelihood, abs=1e-6)


def test_a_clock_that_starts_elsewhere(reference):
    again = ExactMJP(3).fit(changed(LABELS, times=lambda t: t + 77.0))
    np.testing.assert_allclose(again.rates, reference.rates, rtol=1e-4)


def test_series_in_another_order(reference):
    again = ExactMJP(3).fit(LABELS[::-1])
    np.testing.assert_allclose(again.rates, reference.rates, rtol=1e-4)
    assert again.log_likelihood == pytest.approx(reference.log_likelihood, abs=1e-6)


def test_values_in_other_units():
    """Rates do not care; means and spreads, and their errors, follow."""
    data = simulated(TWO, 12, 6, 0.6, seed=2, levels=[-1.0, 2.0], noise=0.7)
    first = ExactMJP(2, "gaussian", initial="stationary").fit(data)
    again = ExactMJP(2, "gaussian", initial="stationary").fit(changed(data, values=lambda v: 1e3 * v + 5.0))
    for part in ("mean", "lower", "upper"):
        one, two = ({name: getattr(x, part) for name, x in fitted.intervals.items()} for fitted in (first, again))
        np.testing.assert_allclose(two["rates"], one["rates"], rtol=1e-4)
        np.testing.assert_allclose(two["emission.mean"], 1e3 * one["emission.mean"] + 5.0, rtol=1e-4, atol=1.0)
        np.testing.assert_allclose(two["emission.sd"], 1e3 * one["emission.sd"], rtol=1e-4)
    assert again.log_likelihood == pytest.approx(first.log_likelihood - 72 * np.log(1e3), abs=1e-6)
