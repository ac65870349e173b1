"""`neuralmjp fit`, `decode` and `predict` of reaction networks, and forecasts of hidden states."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from command import assert_refused
from neuralmjp import FittedNetwork, TimeSeries, read, systems, write
from neuralmjp.commands.fit import is_network_file
from neuralmjp.commands.predict import times_ahead

BIRTHS = "0 -> X @ birth = 2\nX -> 0 @ death = 0.2\nbox X 30\nstart X 3..12\nduration 20\nunit h\n"


@pytest.fixture
def births(tmp_path) -> Path:
    path = tmp_path / "births.network"
    path.write_text(BIRTHS)
    return path


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "births.csv"
    write(systems.parse_network(BIRTHS).simulate(20, 15, seed=1).data, path)
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_fit_decode_predict(run, births, data, tmp_path):
    folder, result = tmp_path / "run", tmp_path / "result.json"
    status, out, err = run("fit", data, "--prior", births, "--time-unit", "h", "--out", folder, "--json", result)
    assert (status, err) == (0, "")
    assert "engine: exact, chosen because the likelihood is tractable" in out
    assert "Rate constants (per h), 95 %" in out
    assert "│ birth │ 0 → X" in out
    assert "intervals: 95 %, from observed information" in out
    assert "Noise (counts), 95 %" in out
    assert "note" not in out
    found = json.loads(result.read_text())
    assert (found["engine"], found["network"], found["time_unit"]) == ("exact", "births", "h")
    truth = {"birth": 2.0, "death": 0.2}
    assert all(found["parameters"][name]["lower"] < truth[name] < found["parameters"][name]["upper"] for name in truth)
    assert f"log-likelihood {found['log_likelihood']:.4f}, 3 parameters" in out

    hidden, ahead = tmp_path / "hidden.csv", tmp_path / "ahead.csv"
    status, out, _ = run("decode", folder, data, "--out", hidden)
    assert status == 0
    assert "300 observations decoded" in out
    decoded, seen, model = read(hidden), read(data), FittedNetwork.load(folder)
    assert decoded.value_names == ("X_mean", "X_lower", "X_upper", "X_mode")
    expected = model.decode(seen)
    np.testing.assert_allclose(decoded.values[:, 0], expected.mean[:, 0], atol=1e-9)
    np.testing.assert_array_equal(decoded.values[:, 1:3], np.column_stack([expected.lower, expected.upper]))
    np.testing.assert_array_equal(decoded.values[:, 3], expected.most_probable[:, 0])

    status, out, _ = run("predict", folder, data, "--steps", 2, "--out", ahead)
    assert status == 0
    assert "40 times ahead in 20 series" in out
    assert "and 10 more series" in out
    rows = rows_of(ahead)
    assert list(rows[0]) == ["series", "time", "X_mean", "X_q05", "X_q50", "X_q95"]
    gap = np.median(np.diff(seen.times[:15]))
    assert float(rows[1]["time"]) == pytest.approx(seen.times[14] + 2 * gap)
    law = model.predict(seen, times_ahead(seen, None, 2)).readings
    np.testing.assert_allclose([float(row["X_q95"]) for row in rows], law.upper[:, 0])

    assert_refused(run("predict", folder, data), "--until T, or --steps N, and not both")
    assert_refused(run("predict", folder, data, "--steps", 2, "--until", 50), "and not both")
    assert_refused(
        run("predict", folder, data, "--until", 3), "--until 3 is not after the last observation of series '0'"
    )
    assert_refused(run("predict", folder, data, "--until", "inf"), "--until must be a finite time")
    assert_refused(run("predict", folder, data, "--steps", 10**6), "ask for less")
    assert_refused(run("predict", folder, data, "--steps", 2, "--samples", 9), "computed, not sampled")
    assert_refused(run("predict", folder, data, "--steps", 2, "--values", "Z"), "no column 'Z'")
    (folder / "columns.json").write_text("[")
    assert_refused(run("predict", folder, data, "--steps", 2), "columns.json is damaged")


def test_known_noise_of_a_sum(run, data, tmp_path):
    """What is seen is the sum of two species; its noise is known."""
    pair, result = tmp_path / "pair.txt", tmp_path / "result.json"
    pair.write_text("0 -> A @ make = 2\nA -> 0 @ lose = 0.2\n0 -> B @ seed = 0.01\nbox A 25\nbox B 1\nstart B 0")
    some = read(data)[:4]
    shown = tmp_path / "sums.csv"
    write(TimeSeries(some.times, some.values, some.offsets, some.names, ("total",)), shown)
    words = ("--prior", pair, "--seen", "A+B", "--noise-scale", 1, "--initial", "flat", "--json", result)
    status, out, err = run("fit", shown, *words)
    assert (status, err) == (0, "")
    assert "seen: A+B (gaussian noise)" in out
    assert "Noise (counts), known" in out
    found = json.loads(result.read_text())
    assert found["n_parameters"] == 3
    assert found["emission"]["sd"]["mean"] == [1.0]


def test_mean_field(run, births, data, tmp_path):
    result, folder = tmp_path / "result.json", tmp_path / "run"
    folder.mkdir()
    (folder / "history.csv").write_text("of a neural fit that was here\n")
    status, out, err = run("fit", data, "--prior", births, "--engine", "meanfield", "--json", result, "--out", folder)
    assert (status, err) == (0, "")
    assert not (folder / "history.csv").exists()
    assert "engine: meanfield\n" in out
    found = json.loads(result.read_text())
    assert f"ELBO {found['elbo']:.4f}, exact log-likelihood {found['log_likelihood']:.4f}" in out
    assert found["elbo"] <= found["log_likelihood"] + 1e-6
    assert (found["engine"], found["posterior"]) == ("meanfield", "coordinate")


@pytest.mark.slow
def test_neural_engine_keeps_a_checkpoint(run, births, data, tmp_path):
    folder = tmp_path / "run"
    sizes = ("width=8", "batch=8", "round_steps=5", "sweeps=0", "piece_jumps=3", "polish=false")
    words = [word for size in sizes for word in ("--set", size)]
    neural = ("fit", data, "--prior", births, "--engine", "neural", "--out", folder, "--steps", 10, *words)
    status, out, err = run(*neural)
    assert (status, err) == (0, "")
    assert "engine: neural, tilted posterior, gru encoder of width 8, batches of 8, at most 10 steps" in out
    assert "stopped after 10 steps: the limit of 10 steps" in out
    history, model = rows_of(folder / "history.csv"), FittedNetwork.load(folder)
    assert list(history[0])[2:] == ["objective", "reconstruction", "path_kl", "initial_kl", "birth", "death"]
    assert [int(row["step"]) for row in history] == [5, 10, 10]  # the last row is what the run ended with
    np.testing.assert_allclose([float(history[-1][name]) for name in model.names], model.constants, rtol=1e-5)
    assert f"ELBO {model.elbo:.4f}, exact log-likelihood {model.log_likelihood:.4f}" in out

    (folder / "model.json").unlink()
    status, out, _ = run(*neural, "--resume")
    assert status == 0
    assert "going on from the checkpoint" in out
    np.testing.assert_array_equal(FittedNetwork.load(folder).constants, model.constants)


def test_a_box_that_is_too_large(run, data, tmp_path):
    large = tmp_path / "large.network"
    large.write_text("0 -> X @ birth = 2\nX -> 0 @ death = 0.2\nX -> X + Y @ make = 1\nbox X 9999\nbox Y 9999\nseen X")
    line = "the box of large has 1.0e+08 cells, more than 5e+06 for the exact engine"
    assert_refused(run("fit", data, "--prior", large, "--engine", "exact"), line)


def test_names_of_systems_are_networks_too(run, tmp_path):
    data = tmp_path / "pairs.csv"
    assert run("simulate", "lotka-volterra", "--series", 2, "--length", 5, "--out", data)[0] == 0
    assert_refused(run("fit", data, "--prior", "lotka-volterra", "--states", 2), "--states belongs to hidden states")
    assert_refused(run("fit", data, "--prior", "lotka-volterra", "--seen", "prey,wolf"), "'wolf' is seen, but is not")
    words = ("--prior", "telegraph", "--engine", "meanfield", "--values", "prey")
    assert run("fit", data, *words, "--seen", "gene").status == 2


def test_forecast_of_hidden_states(run, tmp_path):
    data, folder, ahead = tmp_path / "signal.csv", tmp_path / "run", tmp_path / "ahead.csv"
    write(systems.TwoMode().simulate(3, 40, seed=2).data, data)
    assert run("fit", data, "--states", 2, "--restarts", 1, "--out", folder)[0] == 0
    status, out, err = run("predict", folder, data, "--until", 30, "--samples", 300, "--seed", 4, "--out", ahead)
    assert (status, err) == (0, "")
    assert "Forecast at the end: mean [5 %, 95 %]" in out
    seen, found = read(data), read(ahead)
    name = seen.value_names[0]
    readings = tuple(f"{name}_{part}" for part in ("mean", "q05", "q50", "q95"))
    assert found.value_names == (*readings, "p_0", "p_1")
    np.testing.assert_allclose(found.values[:, 4:].sum(1), 1.0)
    assert (found.times[found.offsets[1:] - 1] == 30).all()
    assert (np.diff(found.values[:, 1:4], axis=1) >= 0).all()
    again = tmp_path / "again.csv"
    run("predict", folder, data, "--until", 30, "--samples", 300, "--seed", 4, "--out", again)
    assert again.read_text() == ahead.read_text()


def test_forecast_of_labels(run, tmp_path):
    data, folder, ahead = tmp_path / "labels.csv", tmp_path / "run", tmp_path / "ahead.csv"
    write(systems.FlashingRatchet().simulate(20, 15, seed=2).data, data)
    assert run("fit", data, "--states", 6, "--prior", "flashing-ratchet", "--out", folder)[0] == 0
    assert run("predict", folder, data, "--steps", 1, "--out", ahead)[0] == 0
    rows = rows_of(ahead)  # one for each series
    assert len(rows) == 20
    assert list(rows[0])[6:] == [f"{start}p_{k}" for start in ("state_", "") for k in range(6)]
    chances, exact = (
        np.array([[float(row[f"{start}p_{k}"]) for k in range(6)] for row in rows]) for start in ("state_", "")
    )
    np.testing.assert_allclose(chances, exact, atol=0.08)  # of what is seen, by 1000 draws; of the states, computed
    np.testing.assert_allclose(chances.sum(1), 1.0)
    np.testing.assert_allclose(chances @ np.arange(6), [float(row["state_mean"]) for row in rows])


def test_times_of_a_forecast():
    data = TimeSeries.from_arrays([[0.0, 1.0, 3.0, 4.0], [5.0, np.nan, np.nan, np.nan]], np.zeros((2, 4)))
    some = times_ahead(data, 6.5, None)
    assert [one.tolist() for one in some] == [[5.0, 6.0, 6.5], [6.0, 6.5]]  # the second series has no gap of its own
    assert [one.tolist() for one in times_ahead(data[:1], 6.0, None)] == [[5.0, 6.0]]
    assert [one.tolist() for one in times_ahead(data, None, 2)] == [[5.0, 6.0], [6.0, 7.0]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "say how many hidden states there are with --states K, or name a reaction network with --prior"),
        (("--prior", "two-mode"), "say how many hidden states there are"),
        (("--states", 2, "--initial", "flat"), "--initial of hidden states is free or stationary; got flat"),
        (
            ("--states", 2, "--noise", "none", "--seen", "X"),
            "--noise, --seen belong to reaction networks, but --prior is",
        ),
        (("--prior", "NETWORK", "--states", 2), "--states belongs to hidden states, but --prior is a reaction network"),
        (("--prior", "NETWORK", "--emission", "gaussian", "--first-known"), "--emission, --first-known belong to"),
        (("--prior", "NETWORK", "--refine", "exact"), "--refine belongs to hidden states"),
        (("--prior", "NETWORK", "--initial", "stationary"), "is flat or start; got stationary"),
        (("--prior", "NETWORK", "--noise", "loud"), "--noise"),
        (("--prior", "NETWORK", "--noise", "poisson"), "is no count, but poisson readings are"),
        (("--prior", "NETWORK", "--noise", "none", "--noise-scale", 1), "none readings have no noise parameter"),
        (("--prior", "NETWORK", "--noise-scale", 0), "noise must be positive, got 0"),
        (
            ("--prior", "NETWORK", "--noise", "binomial", "--noise-scale", 2),
            "a chance of detection lies between 0 and 1",
        ),
        (("--prior", "NETWORK", "--seen", "Z"), "'Z' is seen, but is not among the species X"),
        (("--prior", "NETWORK", "--seen", "X,X"), "seen are X, X: each of them can be one value only"),
        (("--prior", "NETWORK", "--values", "Z"), "no column 'Z'; the columns are 'series', 'time', 'X'"),
        (("--prior", "NETWORK", "--steps", 5), "--steps: only for the neural engine, but the engine is exact, chosen"),
        (("--prior", "NETWORK", "--engine", "meanfield", "--restarts", 2), "meanfield engine has a single start"),
        (("--prior", "NETWORK", "--engine", "neural", "--resume"), "give --out DIR too"),
        (("--prior", "sir"), "no species is called 'X', there are S, I: say what each value shows, such as --seen S,I"),
        (("--prior", "missing.network"), "cannot read the reaction network missing.network"),
        (("--prior", "bad.network"), "bad.network, line 2: cannot read 'X => 0'"),
    ],
)
def test_one_line_for_what_cannot_be_done(run, births, data, tmp_path, options, words):
    (tmp_path / "bad.network").write_text("0 -> X @ birth = 1\nX => 0")
    assert_refused(run("fit", data, *(births if word == "NETWORK" else word for word in options)), words)


def test_files_of_masks_and_networks(births, tmp_path):
    mask, text = tmp_path / "mask.txt", tmp_path / "text.txt"
    mask.write_text("0,1\n1,0\n")
    shutil.copy(births, text)
    assert [is_network_file(path) for path in (births, text, mask, tmp_path)] == [True, True, False, False]
