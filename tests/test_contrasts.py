"""What differs between two fits: intervals by hand, coverage against known truth, refusals, the command."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.stats import norm

from command import assert_refused
from neuralmjp import ExactMJP, InputError, NetworkMJP, Panel, TimeSeries, contrast, mjp, plots, priors, systems, write
from neuralmjp.commands.contrast import names_of
from neuralmjp.contrasts import difference, ratio_of
from neuralmjp.mjp.interval import Interval, Z
from neuralmjp.priors.generator import SPREAD

CONTROL = np.array([[0.0, 1.0], [2.0, 0.0]])
TWICE = np.array([[0.0, 2.0], [2.0, 0.0]])


def visits(rates, seed, n=60, initial=None) -> TimeSeries:
    """States that are seen as they are, at irregular times."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.1, 1.0, (n, 15)), axis=1)
    law = np.ones(len(rates)) / len(rates) if initial is None else initial
    states = mjp.simulate_states(rates, times - times[:, :1], initial=law, key=jax.random.key(seed))
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
        assert p < 1e-10  # 10 of an error of 1 is not 0.5
        both, q = ratio_of(Interval(1e-6, 0.0, 0.5), Interval(1e-6, 0.0, 0.5))
        assert np.isnan([both.mean, both.lower, both.upper]).all()
        assert q == 1.0

    @pytest.mark.parametrize("compared", [difference, ratio_of])
    def test_what_is_not_known_stays_so(self, compared):
        for sides in ([Interval(1.0, np.nan, np.nan), of(2.0, 0.1)], [of(2.0, 0.1), Interval(1.0, np.nan, np.nan)]):
            change, p = compared(*sides)
            assert np.isfinite(change.mean)
            assert np.isnan([change.lower, change.upper, p]).all()
        _, p = compared(of(1.0, 0.1), Interval(2.0, 1.9, np.inf))
        assert p < 0.05
        _, p = compared(of(3.0, 0.1), Interval(2.0, 1.9, np.inf))
        assert np.isnan(p)  # nothing is known of how far up it goes

    def test_angles_go_the_shorter_way_round(self):
        change, p = difference(of(179.0, 1.0), of(-179.0, 1.0), 360.0)
        np.testing.assert_allclose(
            [change.mean, change.lower, change.upper], [2.0, 2 - Z * np.sqrt(2), 2 + Z * np.sqrt(2)]
        )
        assert p == pytest.approx(2 * norm.sf(2 / np.sqrt(2)))


class TestFits:
    def test_a_rate_that_doubled(self):
        found = contrast(fitted(CONTROL, 1, 200), fitted(TWICE, 2, 200), ("control", "drug"))
        up, down = found.section("Jump rates (per year)")
        assert up.name == "0 → 1"
        assert up.change.lower < 2 < up.change.upper
        assert up.p < 1e-3
        assert down.change.lower < 1 < down.change.upper
        assert found.together.degrees == 2
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

    def test_a_jump_that_appears_is_seen(self):
        """No logarithm knows a rate that may be zero: it is judged by itself, and counts in the test of all."""
        both = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
        more = both + 1.5 * np.eye(3, k=2)
        one, two = (self.three(rates, seed) for rates, seed in ((both, 1), (more, 2)))
        found = contrast(one, two)
        assert "0 → 2" in found.together.left_out
        assert found.together.degrees <= 5
        (entry,) = [entry for entry in found.section("Jump rates (per year)") if entry.name == "0 → 2"]
        assert entry.p < 1e-4
        assert found.p < 1e-3
        same = contrast(one, self.three(both, 3))
        assert same.p > 0.01
        assert 0 < same.together.degrees < 6

    def three(self, rates, seed):
        rng = np.random.default_rng(seed)
        times = np.cumsum(rng.uniform(0.02, 0.2, (150, 15)), axis=1)
        states = mjp.simulate_states(rates, times - times[:, :1], initial=np.ones(3) / 3, key=jax.random.key(seed))
        data = TimeSeries.from_arrays(times, np.asarray(states, float), time_unit="year")
        return ExactMJP(3, emission="categorical").fit(data)

    def test_what_is_tied_or_given_is_no_direction(self):
        tied = priors.FreeRates(3, equal=[[(0, 1), (1, 2)]], fixed={(2, 0): 0.5})
        one, two = (
            ExactMJP(3, emission="categorical", prior=tied).fit(visits(np.ones((3, 3)) - np.eye(3), seed))
            for seed in (1, 2)
        )
        found = contrast(one, two)
        assert found.together.degrees == 4 == tied.n_parameters
        assert found.p > 0.001

    def test_few_draws_are_no_evidence(self):
        """What 40 draws make of a covariance looks too sure: 20 pairs without a difference, a mean of 2 directions."""
        squared = []
        for seed in range(20):
            one, two = (fitted(CONTROL, 2 * seed + k) for k in range(2))
            few = [replace(one, rate_samples=one.rate_samples[:8]), replace(two, rate_samples=two.rate_samples[:8])]
            squared.append(contrast(*few).together.chi_square)
        assert np.mean(squared) < 4
        assert np.isnan(contrast(*(replace(fit, rate_samples=fit.rate_samples[:3]) for fit in (one, two))).p)

    def test_few_parameters_differ_in_few_directions(self):
        ratchet = systems.FlashingRatchet()
        one, two = (ExactMJP(6, prior=ratchet).fit(ratchet.simulate(40, seed=k).data) for k in range(2))
        found = contrast(one, two)
        assert found.together.degrees == 3
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
        found = contrast(one, replace(fitted(TWICE, 2), uncertainty=SPREAD))
        assert "second tells the spread of the generator prior, which is no uncertainty" in " ".join(found.notes)
        assert np.isnan([found.p, *(entry.p for entry in found.entries)]).all()
        assert found.section("Jump rates (per year)")[0].change.mean > 1

    def test_several_states_that_nobody_leaves(self):
        """Two ways to end: there is no stationary law, and rates are compared all the same."""
        ends = np.array([[0.0, 0.5, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        mask = (ends > 0).astype(int)
        one, two = (
            ExactMJP(3, emission="categorical", mask=mask).fit(visits(ends, seed, initial=[1.0, 0, 0]))
            for seed in (1, 2)
        )
        found = contrast(one, two)
        assert len(found.section("Jump rates (per year)")) == 2
        assert "Stationary law" not in found.sections
        assert found.p > 0.001

    def test_networks(self):
        births = systems.birth_death()
        one, two = (NetworkMJP(births).fit(births.simulate(6, 12, seed=k).data) for k in range(2))
        found = contrast(one, two)
        assert [entry.name for entry in found.entries][: len(one.names)] == list(one.names)
        assert found.together.degrees == len(one.names)
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
        with pytest.raises(InputError, match="are fits of different models"):
            contrast(two, one_way.fit(forth))

    @pytest.mark.parametrize(
        ("choices", "said"),
        [
            ({"prior": "reversible"}, "rates: FreeRates and ReversibleRates"),
            ({"prior": priors.FreeRates(2, fixed={(0, 1): 1.0})}, "parameters of the rates"),
            ({"panel": Panel(first_known=True)}, "panel: "),
        ],
    )
    def test_other_assumptions(self, choices, said):
        with pytest.raises(InputError, match=said):
            contrast(fitted(CONTROL, 1), fitted(CONTROL, 2, **choices))

    def test_other_labels(self):
        data = visits(CONTROL, 1)
        other = replace(data, values=4 * data.values)
        with pytest.raises(InputError, match="assumed of the emission"):
            contrast(fitted(CONTROL, 1), ExactMJP(2, emission="categorical").fit(other))

    def test_other_units(self):
        data = visits(CONTROL, 1)
        fit = ExactMJP(2, emission="categorical").fit
        with pytest.raises(InputError, match="first counts time in 'year', second in 'days': fit one of them again"):
            contrast(fit(data), fit(data.in_unit("days")))

    @pytest.mark.parametrize("names", [("a", "a"), ("a",), ("change", "b"), ("a", "p")])
    def test_names_that_will_not_do(self, names):
        one = fitted(CONTROL, 1)
        with pytest.raises(InputError, match="two fits need two different names"):
            contrast(one, one, names)


def test_the_command(run, tmp_path):
    for name, rates, seed in (("control", CONTROL, 1), ("drug", TWICE, 2)):
        write(visits(rates, seed), f"{name}.csv")
        chosen = ("--states", 2, "--emission", "categorical", "--time-unit", "year")
        assert run("fit", f"{name}.csv", *chosen, "--out", f"fits/{name}").status == 0
    told = run("contrast", "fits/control", "fits/drug", "--out", "found", "--json", "found.json")
    assert told.status == 0, told.err
    assert "all rates together: p = " in told.out
    assert "chi-square" in told.out
    assert found_names(tmp_path) == ["control", "drug"]
    assert "drug / control" in told.out
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["all_rates"]["degrees"] == 2
    table = pd.read_csv("found/contrast.csv")
    assert len(table) == len(found["entries"])
    np.testing.assert_allclose(table.change, [entry["change"]["mean"] for entry in found["entries"]], rtol=1e-9)
    assert (tmp_path / "found" / "contrast.png").stat().st_size > 5000
    told = run("contrast", "fits/control", "fits/drug", "--names", "before, after")
    assert "after / before" in told.out
    assert_refused(run("contrast", "fits/control", "fits/drug", "--names", "one"), "--names takes two names")
    assert_refused(run("contrast", "fits/control", "nowhere"), "nowhere")


def found_names(folder) -> list[str]:
    return json.loads((folder / "found.json").read_text())["names"]


def test_folders_lend_their_names(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert names_of((Path("control/run"), Path("drug/run")), None) == ("control/run", "drug/run")
    assert names_of((Path("."), Path("..") / "drug"), None) == (tmp_path.name, "drug")
    with pytest.raises(InputError, match=r"run and run/\.\./run are one fit: name two"):
        names_of((Path("run"), Path("./run/../run")), None)


def test_a_figure_shows_limits_as_arrows():
    ratios = Interval(np.array([2.0, 1e-9, np.nan]), np.array([1.5, 0.0, np.nan]), np.array([2.5, 0.5, np.nan]))
    ax = Figure().subplots()
    assert plots.plot_contrast(["a", "b", "c"], ratios, ax, sure=np.array([0.01, 0.2, np.nan])) is ax
    markers = [line.get_marker() for line in ax.lines]
    assert markers.count("<") == 1  # the limit on one side
    assert markers.count("o") == 1
