"""The experiments on continuous signals: published numbers as printed, and a miniature of each, from the command on."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from neuralmjp import ExactMJP, InputError
from neuralmjp.emissions import NeuralGaussian
from neuralmjp.experiments import (
    adp,
    adp_published,
    brownian_folding,
    classical,
    ion_channel,
    ion_channel_forecast,
    patch_clamp,
    two_mode,
)
from neuralmjp.experiments.classical import GMVAE, MSM, VAMPNETS
from neuralmjp.experiments.state_methods import KOEHS_HERE, Runs, holds
from neuralmjp.experiments.tables import AS_PUBLISHED, EXACT, TILTED
from neuralmjp.mjp import Interval, mfpt, simulate_states
from neuralmjp.systems import IonChannel
from neuralmjp.timeseries import TimeSeries

SHORT = {"width": 8, "batch": 4, "steps": 2, "round_steps": 2, "dynamics": (8,)}
NETWORKS = {"initial_hidden": (8,), "rates_hidden": (8,), "quadrature": 4}
SMALL = {"paper": {**SHORT, **NETWORKS}, "tilted": SHORT}


def by_method(row):
    return {line["method"]: {name: one["mean"] for name, one in line["numbers"].items()} for line in row["lines"]}


@pytest.mark.slow  # several programs are compiled
def test_two_mode(run, tmp_path, monkeypatch):
    monkeypatch.setitem(two_mode.SIZES, "quick", two_mode.Size(2, 2, 1, 300, **SMALL))
    status, out, err = run("reproduce", "two-mode", "--json", tmp_path / "a.json", "--out", tmp_path / "figures")
    assert (status, err) == (0, "")
    one, many = json.loads((tmp_path / "a.json").read_text())["tables"]
    assert "0.90 ±0.90" in out
    found = by_method(one["rows"][0])
    assert list(found)[-4:] == [AS_PUBLISHED, TILTED, KOEHS_HERE, EXACT]
    assert all(np.isfinite(list(numbers.values())).all() for numbers in found.values())
    assert [row["name"] for row in many["rows"]] == [two_mode.MANY, two_mode.LONG]
    assert by_method(many["rows"][1])[EXACT]["up"] == pytest.approx(0.2, abs=0.15)
    assert (tmp_path / "figures" / "two-mode-reconstruction.png").exists()


@pytest.mark.slow
def test_brownian_folding(run, tmp_path, monkeypatch):
    monkeypatch.setitem(brownian_folding.SIZES, "quick", brownian_folding.Size(1, 200, **SMALL))
    status, _, err = run("reproduce", "brownian-folding", "--json", tmp_path / "a.json")
    assert (status, err) == (0, "")
    (shown,) = json.loads((tmp_path / "a.json").read_text())["tables"]
    found = by_method(shown["rows"][0])
    assert found["truth"]["folded"] == pytest.approx(0.727, abs=0.001)
    assert found[EXACT]["folded"] == pytest.approx(0.727, abs=0.1)
    for numbers in found.values():
        assert numbers["folded"] + numbers["unfolded"] == pytest.approx(1.0, abs=0.011)


def test_forecast_by_a_network_of_means():
    """The published emission keeps its means in a network; a forecast by it must be that of the plain numbers."""
    data = IonChannel.paper("full").simulate(1, 400, seed=0).data
    plain = ExactMJP(3, "gaussian", restarts=1, intervals=False).fit(data)
    network = NeuralGaussian()
    parameters = network.around(plain.parameters.emission, None)
    model = plain.model._replace(emission=network)
    by_network = replace(plain, model=model, parameters=plain.parameters._replace(emission=parameters))
    expected, found = (ion_channel_forecast.ahead(one, data).at for one in (plain, by_network))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.slow
def test_ion_channel(run, tmp_path, monkeypatch):
    rows = (ion_channel.SECOND, ion_channel.MANY)
    monkeypatch.setitem(ion_channel.SIZES, "quick", ion_channel.Size(2, 1, 5000, rows, **SMALL))
    status, _, err = run("reproduce", "ion-channel", "--json", tmp_path / "a.json", "--out", tmp_path / "figures")
    assert (status, err) == (0, "")
    law, scales, passages, ahead, many = json.loads((tmp_path / "a.json").read_text())["tables"]
    for shown in (law, scales, passages):
        found = by_method(shown["rows"][0])
        assert list(found) == ["truth", "Koehs 2021", "published", AS_PUBLISHED, TILTED, EXACT, KOEHS_HERE]
    for row in ahead["rows"]:
        found = by_method(row)
        assert list(found) == [AS_PUBLISHED, TILTED, EXACT]
        assert 0 < found[EXACT]["at 1"] < 3
    assert by_method(law["rows"][0])[EXACT]["top"] == pytest.approx(by_method(law["rows"][0])["truth"]["top"], abs=0.2)
    assert by_method(many["rows"][0])[EXACT]["collapsed"] == 0
    assert (tmp_path / "figures" / "ion-channel-forecast.png").exists()


@pytest.fixture
def dihedrals(tmp_path):
    """Three states on the torus, one of them with positive phi."""
    rates = np.array([[0, 0.02, 0.002], [0.03, 0, 0.002], [0.02, 0.02, 0]])
    places = np.deg2rad([[-80.0, 150.0], [-75.0, -20.0], [55.0, 30.0]])
    times = np.arange(1500.0)
    rng = np.random.default_rng(0)
    series = {}
    for k in range(2):
        states = simulate_states(rates, times[None], initial=np.ones(3) / 3, key=jax.random.key(k))[0]
        angles = places[np.asarray(states)] + rng.normal(0, 0.25, (1500, 2))
        series[f"arr_{k}"] = ((angles + np.pi) % (2 * np.pi) - np.pi).astype(np.float32)
    np.savez(tmp_path / "angles.npz", **series)
    return tmp_path / "angles.npz"


def test_every_run_and_rate_of_alanine_dipeptide_is_printed():
    """Six rows each; of the ten runs that were not picked by hand one tells the rare states apart."""
    assert len(adp_published.RATES) == len(adp_published.PASSAGES) == 6
    assert [len(line.numbers) for line in adp_published.RATES] == [5] * 6
    runs = adp_published.STABILITY
    assert len(runs) == 15
    assert [int(one.numbers["apart"].mean) for one in runs[5:]] == [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    for state, (rates, law) in enumerate(zip(adp_published.RATES, (0.30, 0.31, 0.23, 0.10, 0.05, 0.01), strict=True)):
        assert adp_published.STATES[state] not in rates.numbers, law


@pytest.mark.slow
def test_a_measured_recording_takes_the_place_of_the_simulated_one(run, tmp_path, monkeypatch):
    """A column of numbers, as the paper's own file is said to be: no truth is known, the splits are the same."""
    simulated = IonChannel.paper("one-second").simulate(1, ion_channel.LENGTH, seed=0).data
    np.savetxt(tmp_path / "KcvMT325_140mV.txt", simulated.values[:, 0], fmt="%.5f")
    monkeypatch.setitem(ion_channel.SIZES, "quick", ion_channel.Size(1, 1, 5000, (ion_channel.SECOND,), **SMALL))
    words = ("--data", tmp_path / "KcvMT325_140mV.txt", "--json", tmp_path / "a.json")
    status, _, err = run("reproduce", "ion-channel", *words)
    assert (status, err) == (0, "")
    law = by_method(json.loads((tmp_path / "a.json").read_text())["tables"][0]["rows"][0])
    assert "truth" not in law
    assert law[EXACT]["top"] == pytest.approx(0.73, abs=0.15)


def test_a_recording_that_is_too_short(run, tmp_path):
    np.savetxt(tmp_path / "short.txt", np.arange(100.0))
    status, _, err = run("reproduce", "ion-channel", "--data", tmp_path / "short.txt")
    assert status == 2
    assert "need one recording of at least 171615 samples, got 1 series and 100 samples" in err


@pytest.fixture
def amplifier(tmp_path):
    """A folder with one recording of two channels that open and close, and their number."""
    rates = np.array([[0, 40.0, 0], [60, 0, 20], [0, 120, 0]])
    times = np.arange(4000) / 1000
    opened = np.asarray(simulate_states(rates, times[None], initial=np.ones(3) / 3, key=jax.random.key(0)))[0]
    current = opened + np.random.default_rng(0).normal(0, 0.15, len(times))
    (tmp_path / "recordings").mkdir()
    table = np.column_stack([times, current, opened])
    np.savetxt(tmp_path / "recordings" / "two.csv", table, delimiter=",", fmt="%.6f")
    return tmp_path / "recordings", rates


def test_recordings_of_an_amplifier(run, tmp_path, amplifier):
    """The number of states is that of the levels; the path that was played is the measure."""
    folder, rates = amplifier
    words = ("--only", EXACT, "--json", tmp_path / "a.json")
    status, _, err = run("reproduce", "ion-channel", "--data", folder, *words)
    assert (status, err) == (0, "")
    (shown,) = json.loads((tmp_path / "a.json").read_text())["tables"]
    assert [row["name"] for row in shown["rows"]] == ["two"]
    found = by_method(shown["rows"][0])
    assert list(found) == [patch_clamp.PATH, EXACT]
    assert 0.995 < found[EXACT]["read right"] <= 1
    for name, value in zip(patch_clamp.COLUMNS, patch_clamp.of_rates(rates), strict=False):
        assert found[EXACT][name] == pytest.approx(found[patch_clamp.PATH][name], rel=0.05)
        assert found[EXACT][name] == pytest.approx(value, rel=0.35)  # 4 s, some 150 jumps


def test_a_folder_without_recordings(run, tmp_path):
    status, _, err = run("reproduce", "ion-channel", "--data", tmp_path)
    assert status == 2
    assert "it holds no recording, neither .csv (time, current, open channels) nor .abf, .npz" in err


@pytest.mark.slow
def test_adp(run, tmp_path, monkeypatch, dihedrals):
    monkeypatch.setitem(adp.SIZES, "quick", adp.Size(2, 1000, **SMALL))
    words = (
        "--data",
        dihedrals,
        "--only",
        "three states",
        "--json",
        tmp_path / "a.json",
        "--out",
        tmp_path / "figures",
    )
    status, _, err = run("reproduce", "adp", *words)
    assert (status, err) == (0, "")
    law, scales, passage = json.loads((tmp_path / "a.json").read_text())["tables"]
    assert sum(by_method(law["rows"][0])[EXACT].values()) == pytest.approx(1.0)
    assert by_method(scales["rows"][0])[EXACT]["first"] == pytest.approx(0.023, rel=0.5)  # ns
    assert 0.15 < by_method(passage["rows"][0])[EXACT][adp.INTO] < 1.6  # 0.5, of four entries or so
    assert (tmp_path / "figures" / "adp-3-states.png").exists()


def test_markov_models_of_the_same_dihedrals(run, tmp_path, monkeypatch, dihedrals):
    """Two seeds each; of three states only those that the paper quotes for any number of them."""
    monkeypatch.setitem(adp.SIZES, "quick", adp.Size(2, 1000, **SMALL))
    words = ("--data", dihedrals, "--only", f"three states,{EXACT},{MSM},{GMVAE}", "--json", tmp_path / "a.json")
    status, _, err = run("reproduce", "adp", *words)
    assert (status, err) == (0, "")
    tables = json.loads((tmp_path / "a.json").read_text())["tables"]
    assert [list(by_method(one["rows"][0])) for one in tables] == [[EXACT, MSM]] * 3
    law, scales, passage = (by_method(one["rows"][0]) for one in tables)
    assert sum(law[MSM].values()) == pytest.approx(1.0)
    assert scales[MSM]["first"] == pytest.approx(scales[EXACT]["first"], rel=0.5)
    assert len(scales[MSM]) == 2
    # A chain that looks every 20 ps misses a third of the visits, which last 25 ps; there are some four in all.
    assert passage[EXACT][adp.INTO] < passage[MSM][adp.INTO] < passage[EXACT][adp.INTO] * 2.5


def test_markov_models_of_folding(run, tmp_path, monkeypatch):
    monkeypatch.setitem(brownian_folding.SIZES, "quick", brownian_folding.Size(2, 200, **SMALL))
    words = ("--only", f"{MSM},{VAMPNETS}", "--json", tmp_path / "a.json")
    status, _, err = run("reproduce", "brownian-folding", *words)
    assert (status, err) == (0, "")
    (shown,) = json.loads((tmp_path / "a.json").read_text())["tables"]
    found = by_method(shown["rows"][0])
    assert list(found)[-2:] == [MSM, VAMPNETS]
    for method in (MSM, VAMPNETS):
        assert found[method]["folded"] == pytest.approx(found["truth"]["folded"], abs=0.15)
        assert found[method]["unfolding"] == pytest.approx(found["truth"]["unfolding"], rel=1.0)


def test_methods_whose_packages_are_missing_are_left_out(monkeypatch):
    """Unless they are asked for: then they say themselves what to install."""
    monkeypatch.setattr(classical, "find_spec", lambda name: None if name == "deeptime" else object())
    assert classical.installed(adp.METHODS, None) == (AS_PUBLISHED, TILTED, EXACT, GMVAE)
    assert classical.installed((EXACT, MSM), ["six states", MSM]) == (EXACT, MSM)


def test_a_chain_is_passed_through_as_it_was_seen():
    """Its passage times are those of its own jumps, one look a lag."""
    times = np.arange(2000.0)
    states = simulate_states([[0, 0.05], [0.1, 0]], times[None], initial=[0.5, 0.5], key=jax.random.key(0))[0]
    data = TimeSeries.from_arrays(times, np.random.default_rng(0).normal(np.asarray(states), 0.1))
    (chain,) = classical.by_chains(MSM, 2, [data], [0], lambda *_: None, lag=4.0, cells=10).models
    np.testing.assert_allclose(mfpt(classical.passing_rates(chain)), chain.mfpt, rtol=1e-9)
    with pytest.raises(InputError, match="a lag is a time above 0"):
        classical.by_chains(GMVAE, 2, [data], [0], lambda *_: None, lag=-1.0)


def test_alanine_dipeptide_needs_its_data(run):
    status, _, err = run("reproduce", "adp")
    assert status == 2
    assert "give its dihedrals as --data FILE" in err
    status, _, err = run("reproduce", "dfr", "--data", "x.npz")
    assert status == 2
    assert "--data is for adp, ion-channel, timing: dfr is simulated" in err


def test_truth_is_what_the_paper_inferred():
    for row in (ion_channel.SECOND, ion_channel.FULL):
        law, scales, passages = ion_channel.numbers_of(ion_channel.truth_of(row))
        np.testing.assert_allclose(law, ion_channel.LAWS[row]["published"], atol=0.01)
        np.testing.assert_allclose(scales, ion_channel.TIMES[row]["published"], rtol=0.1)
        np.testing.assert_allclose(passages, ion_channel.FIRST_PASSAGES[row]["published"], atol=0.0015)


ROWS = {"two-mode": 3 + 4, "brownian-folding": 6, "ion-channel": 2 + 4}  # and methods


def test_rows_that_nobody_knows(run):
    for name in ROWS:
        status, _, err = run("reproduce", name, "--only", "odd")
        assert status == 2
        assert "no row 'odd'; there are:" in err
        assert len(err.split("there are:")[1].split(",")) == ROWS[name]  # each can be asked for: none holds a comma


def test_intervals_and_collapse():
    interval = Interval(np.array([1.0, 2.0]), np.array([0.5, 2.5]), np.array([1.5, 3.0]))
    assert holds(interval, np.array([1.0, 2.0])).tolist() == [True, False]
    assert Runs((), 0.0, "").collapsed == 0
