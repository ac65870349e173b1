"""What differs between two fits: intervals by hand, coverage against known truth, refusals, the command."""

import json
from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from command import assert_refused
from neuralmjp import ExactMJP, InputError, NetworkMJP, TimeSeries, contrast, mjp, systems, write
from neuralmjp.contrasts import difference, ratio_of
from neuralmjp.mjp.interval import Interval, Z
from neuralmjp.priors.generator import SPREAD

CONTROL = np.array([[0.0, 1.0], [2.0, 0.0]])
TWICE = np.array([[0.0, 2.0], [2.0, 0.0]])


def visits(rates, seed, n=60) -> TimeSeries:
    """States that are seen as they are, at irregular times."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.1, 1.0, (n, 15)), axis=1)
    states = mjp.simulate_states(rates, times - times[:, :1], initial=[0.5, 0.5], key=jax.random.key(seed))
    return TimeSeries.from_arrays(times, np.asarray(states, float), time_unit="year")


def fitted(rates, seed, n=60, **choices):
    return ExactMJP(2, emission="categorical", **choices).fit(visits(rates, seed, n))


def of(value, error) -> Interval:
    return Interval(value, value - Z * error, value + Z * error)


class TestByHand:
    def test_errors_add_in_squares(self):
        change, p = difference(of(2.0, 0.3), of(3.0, 0.4))
        np.testing.assert_allclose([change.mean, change.lower, change.upper], [1.0, 1 - Z * 0.5, 1 + Z * 0.5])
        np.testing.assert_allclose(p, 2 * norm.sf(1.0 / 0.5))

    @pytest.mark.parametrize("second", [of(3.0, 0.4), Interval(3.0, 2.9, 9.0), Interval(0.5, 0.1, 0.6)])
    def test_there_and_back(self, second):
        first = Interval(2.0, 1.0, 2.5)
        (there, p), (back, q) = difference(first, second), difference(second, first)
        np.testing.assert_allclose([there.mean, there.lower, there.upper], [-back.mean, -back.upper, -back.lower])
        np.testing.assert_allclose(p, q)
        assert (p < 0.05) == (there.lower > 0 or there.upper < 0)

    def test_a_ratio_is_a_difference_of_logarithms(self):
        def exp(x):
            return Interval(*np.exp([x.mean, x.lower, x.upper]))

        one, two = of(0.2, 0.3), of(1.1, 0.1)
        (ratio, p), (change, q) = ratio_of(exp(one), exp(two)), difference(one, two)
        np.testing.assert_allclose(
            [ratio.mean, ratio.lower, ratio.upper, p], [*np.exp([change.mean, change.lower, change.upper]), q]
        )

    def test_a_side_that_may_be_zero_is_a_limit(self):
        ratio, p = ratio_of(Interval(10.0, 8.0, 12.0), Interval(1e-6, 0.0, 0.5))
        assert ratio.lower == 0
        assert 0.5 / 12 < ratio.upper < 0.5 / 7
        assert np.isnan(p)
        both, p = ratio_of(Interval(1e-6, 0.0, 0.5), Interval(1e-6, 0.0, 0.5))
        assert np.isnan([both.mean, both.lower, both.upper, p]).all()

    def test_what_is_not_known_stays_so(self):
        change, p = difference(Interval(1.0, np.nan, np.nan), of(2.0, 0.1))
        assert change.mean == 1.0
        assert np.isnan([change.lower, change.upper, p]).all()


class TestFits:
    def test_a_rate_that_doubled(self):
        found = contrast(fitted(CONTROL, 1, 200), fitted(TWICE, 2, 200), ("control", "drug"))
        up, down = found.section("Jump rates (per year)")
        assert up.name == "0 → 1"
        assert up.change.lower < 2 < up.change.upper
        assert up.p < 1e-3
        assert down.change.lower < 1 < down.change.upper
        assert found.n_directions == 2
        assert found.p < 1e-3
        table = found.to_frame()
        assert {"control", "drug_upper", "change_lower", "measure", "p"} < set(table)
        assert set(table.measure) == {"ratio"}  # labels are seen as they are: nothing else is told of them
        law = found.section("Stationary law")
        np.testing.assert_allclose([e.change.mean * e.first.mean for e in law], [e.second.mean for e in law])

    @pytest.mark.statistical
    def test_coverage_and_false_alarms(self):
        """60 pairs, two rates each: a correct program fails once in a thousand times, mostly by the first bound."""
        inside, surprises = 0, []
        for k in range(60):
            found = contrast(fitted(CONTROL, 2 * k), fitted(TWICE if k % 2 else CONTROL, 2 * k + 1))
            up, down = found.section("Jump rates (per year)")
            inside += (up.change.lower < (2 if k % 2 else 1) < up.change.upper) + (
                down.change.lower < 1 < down.change.upper
            )
            if k % 2 == 0:
                surprises.append(found.p)
        assert 106 <= inside <= 120  # of 120; 114 expected
        assert 0.3 < np.mean(surprises) < 0.7  # uniform: 0.5, standard error 0.053
        assert sum(p < 0.05 for p in surprises) <= 6  # of 30

    def test_few_parameters_differ_in_few_directions(self):
        ratchet = systems.FlashingRatchet()
        one, two = (ExactMJP(6, prior=ratchet).fit(ratchet.simulate(40, seed=k).data) for k in range(2))
        found = contrast(one, two)
        assert found.n_directions == 3
        assert 0.001 < found.p <= 1
        assert [entry.name for entry in found.section("Parameters")] == ["V", "r", "b"]

    def test_levels_are_told_as_a_difference(self):
        channel = systems.IonChannel.paper("one-second")
        one, two = (ExactMJP(3).fit(channel.simulate(1, 3000, seed=k).data) for k in range(2))
        found = contrast(one, two)
        means = [entry for entry in found.entries if entry.name.endswith("mean")]
        assert {entry.measure for entry in means} == {"difference"}
        np.testing.assert_allclose([e.first.mean + e.change.mean for e in means], [e.second.mean for e in means])
        assert not found.notes
        moved = TimeSeries.from_arrays(
            [channel.simulate(1, 3000, seed=1).data.times],
            [channel.simulate(1, 3000, seed=1).data.values + 4],
            time_unit="s",
            value_names=one.value_names,
        )
        note = " ".join(contrast(one, ExactMJP(3).fit(moved)).notes)
        assert "state 0 of second" in note
        assert "looks more like state 1 of first" in note

    def test_without_intervals_changes_are_told_all_the_same(self):
        found = contrast(fitted(CONTROL, 1), fitted(TWICE, 2, intervals=False), ("control", "drug"))
        assert found.notes == ("drug was fitted without intervals: how sure a change is cannot be told",)
        assert np.isnan(found.p)
        assert found.section("Jump rates (per year)")[0].change.mean > 1

    def test_the_spread_of_a_generator_is_no_uncertainty(self):
        one = fitted(CONTROL, 1)
        note = "second tells the spread of the generator prior, which is no uncertainty"
        assert note in " ".join(contrast(one, replace(fitted(TWICE, 2), uncertainty=SPREAD)).notes)

    def test_networks(self):
        births = systems.birth_death()
        one, two = (NetworkMJP(births).fit(births.simulate(6, 12, seed=k).data) for k in range(2))
        found = contrast(one, two)
        assert [entry.name for entry in found.entries][: len(one.names)] == list(one.names)
        assert found.n_directions == len(one.names)
        with pytest.raises(InputError, match="first and second are fits of different models"):
            contrast(one, fitted(CONTROL, 1))


class TestRefusals:
    def test_other_models(self):
        data = visits(CONTROL, 1)
        two = ExactMJP(2, emission="categorical").fit(data)
        named = two.named("well", "ill")
        with pytest.raises(InputError, match=r"different models \(names of the states: .*fit both in the same way"):
            contrast(two, named)
        one_way = ExactMJP(2, emission="categorical", mask=[[0, 1], [0, 0]])
        forth = TimeSeries.from_arrays([[0.0, 1, 2], [0.0, 1, 2]], [[0, 0, 1], [0, 1, 1]], time_unit="year")
        with pytest.raises(InputError, match="jumps that are allowed: 2 and 1"):
            contrast(two, one_way.fit(forth))

    def test_other_units(self):
        data = visits(CONTROL, 1)
        fit = ExactMJP(2, emission="categorical").fit
        with pytest.raises(InputError, match="first counts time in 'year', second in 'days': fit one of them again"):
            contrast(fit(data), fit(data.in_unit("days")))

    def test_one_name(self):
        one = fitted(CONTROL, 1)
        with pytest.raises(InputError, match="two fits need two different names"):
            contrast(one, one, ("a", "a"))


def test_the_command(run, tmp_path):
    for name, rates, seed in (("control", CONTROL, 1), ("drug", TWICE, 2)):
        write(visits(rates, seed), f"{name}.csv")
        chosen = ("--states", 2, "--emission", "categorical", "--time-unit", "year")
        assert run("fit", f"{name}.csv", *chosen, "--out", f"fits/{name}").status == 0
    told = run("contrast", "fits/control", "fits/drug", "--out", "found", "--json", "found.json")
    assert told.status == 0, told.err
    assert "all rates together: chi-square" in told.out
    assert "drug / control" in told.out
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["names"] == ["control", "drug"]
    table = pd.read_csv("found/contrast.csv")
    assert len(table) == len(found["entries"])
    np.testing.assert_allclose(table.change, [entry["change"]["mean"] for entry in found["entries"]], rtol=1e-9)
    assert (tmp_path / "found" / "contrast.png").stat().st_size > 5000
    told = run("contrast", "fits/control", "fits/drug", "--names", "before, after")
    assert "after / before" in told.out
    assert_refused(run("contrast", "fits/control", "fits/drug", "--names", "one"), "--names takes two names")
    assert_refused(run("contrast", "fits/control", "nowhere"), "nowhere")
