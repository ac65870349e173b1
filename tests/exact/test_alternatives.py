"""Intervals by profile likelihood and by bootstrap, against the curvature where data are many."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from exact.test_information import TWO, log_errors, simulated
from exact.test_recovery import changed
from neuralmjp import ExactMJP, InputError, Panel
from neuralmjp.exact.alternatives import FEWEST, resimulated
from neuralmjp.mjp.interval import LEVEL

LABELS = simulated(TWO, 40, 20, 0.5, seed=0)


@pytest.fixture(scope="module")
def fitted():
    return ExactMJP(2).fit(LABELS)


def test_profile_agrees_with_the_curvature(fitted):
    profile, interval = ExactMJP(2).profile(LABELS, fitted, (0, 1)), fitted.intervals["rates"]
    assert float(profile.mean) == pytest.approx(interval.mean[0, 1], rel=1e-3)
    assert float(profile.lower) == pytest.approx(interval.lower[0, 1], rel=0.05)
    assert float(profile.upper) == pytest.approx(interval.upper[0, 1], rel=0.05)


def test_the_likelihood_falls_by_as_much_as_is_allowed(fitted):
    """Two rates: at the end of the interval for one, no value of the other does better than 1.92 below the top."""
    upper = float(ExactMJP(2).profile(LABELS, fitted, (0, 1)).upper)

    def at(other):
        parameters = fitted.parameters._replace(rates=np.log([upper, other]))
        return replace(fitted, parameters=parameters).score(LABELS)

    best = max(at(other) for other in fitted.rates[1, 0] * np.linspace(0.9, 1.4, 101))
    assert fitted.log_likelihood - best == pytest.approx(chi2.isf(0.05, 1) / 2, abs=2e-3)


def test_profile_of_a_jump_without_a_rate(fitted):
    with pytest.raises(InputError, match="the jump 0 -> 0 has no rate of its own"):
        ExactMJP(2).profile(LABELS, fitted, (0, 0))


@pytest.mark.statistical
def test_bootstrap_agrees_with_the_curvature(fitted):
    """60 data sets give widths to some 13 %; a correct program fails in 1 % of all seeds."""
    again, interval = ExactMJP(2).bootstrap(LABELS, fitted, n=60), fitted.intervals["rates"]
    assert again.uncertainty == "parametric bootstrap, 60 data sets"
    assert again.rate_samples.shape == (60, 2, 2)
    widths = [log_errors(some)[[0, 1], [1, 0]] for some in (again.intervals["rates"], interval)]
    np.testing.assert_allclose(*widths, rtol=0.4)
    np.testing.assert_array_equal(again.rates, fitted.rates)


def test_bootstrap_needs_enough_data_sets(fitted):
    """Beyond the smallest and the largest of 39 draws of one law lies another in 2 of 40 cases; fewer say less."""
    assert pytest.approx(1 - LEVEL) == 2 / (FEWEST + 1)
    for n in (1, 0, -3, FEWEST - 1):
        with pytest.raises(InputError, match=f"at least 39 simulated data sets, better 200, a whole number; got {n}"):
            ExactMJP(2).bootstrap(LABELS, fitted, n)


def test_fewest_data_sets_end_an_interval(fitted, monkeypatch):
    """By the smallest and the largest rate of 39, no matter what they are."""
    drawn = np.random.default_rng(0).permutation(np.arange(1.0, FEWEST + 1))

    def made(work, questions, shared, **how):
        seen = {"probability": np.eye(2)}
        return {name: {"rates": k * TWO, "emission": seen} for name, k in zip(questions, drawn, strict=True)}

    monkeypatch.setattr("neuralmjp.exact.alternatives.run_each", made)
    found = ExactMJP(2).bootstrap(LABELS, fitted, FEWEST).intervals["rates"]
    np.testing.assert_allclose(found.lower, TWO)
    np.testing.assert_allclose(found.upper, FEWEST * TWO)


def test_bootstrap_needs_times_it_can_simulate(fitted):
    deadly = ExactMJP(2, panel=Panel(exact_entry=1.0), mask=[[0, 1], [0, 0]])
    lives = changed(LABELS[:3], values=lambda v: 0.0 * v + (np.arange(len(v)) % 20 == 19)[:, None])
    with pytest.raises(InputError, match="cannot simulate exact times of entry"):
        deadly.bootstrap(lives, deadly.fit(lives), n=1)


def test_new_data_keep_the_shape_of_the_old(fitted):
    """Ragged series, missing values, and first states on which the fit is conditioned."""
    holes = np.random.default_rng(0).random((800, 1)) < 0.1
    holes[::20] = False
    data = changed(LABELS, values=lambda v: np.where(holes, np.nan, v))
    new = resimulated(fitted, data, seed=3)
    np.testing.assert_array_equal(np.isnan(new.values), np.isnan(data.values))
    np.testing.assert_array_equal(new.values[::20], data.values[::20])
    assert not np.array_equal(new.values[~holes], data.values[~holes])
    assert new.equals(resimulated(fitted, data, seed=3))
    short = LABELS.between(0.0, 3.0)
    np.testing.assert_array_equal(resimulated(fitted, short, seed=1).times, short.times)
