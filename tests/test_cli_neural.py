"""`neuralmjp fit --engine neural`: what it prints and writes, how it goes on, and what does not go together."""

import csv
import json
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from command import assert_refused
from neuralmjp import ExactMJP, FittedMJP, InputError, systems, write
from neuralmjp.commands import fit, train
from neuralmjp.commands.result_tables import show
from neuralmjp.commands.training_options import read_changes
from neuralmjp.io.folders import write_parts
from neuralmjp.training import Config
from neuralmjp.training import run as training_run

TINY = ("--set", "width=8", "--set", "batch=4", "--set", "steps=20", "--set", "round_steps=10")
NEURAL = ("--states", 2, "--engine", "neural", "--time-unit", "s", *TINY)


@pytest.fixture
def data(tmp_path) -> Path:
    """Eight short series of a two-level signal."""
    path = tmp_path / "signal.csv"
    write(systems.TwoMode().simulate(8, 20, seed=1).data, path)
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_fit_from_data_to_files(run, data, tmp_path):
    folder, result = tmp_path / "run", tmp_path / "result.json"
    status, out, err = run("fit", data, *NEURAL, "--out", folder, "--json", result)
    assert (status, err) == (0, "")
    assert "engine: neural, tilted posterior, gru encoder of width 8, batches of 4, at most 20 steps" in out
    assert "stopped after 20 steps: the limit of 20 steps" in out
    assert "intervals: 95 %, from observed information" in out
    found = json.loads(result.read_text())
    assert f"ELBO {found['elbo']:.4f}, exact log-likelihood {found['log_likelihood']:.4f}" in out
    contract = {"engine", "posterior", "time_unit", "n_states", "elbo", "seconds", "rates", "stationary_distribution"}
    assert contract | {"timescales", "mfpt", "emission", "uncertainty", "versions", "seed"} <= found.keys()
    assert (found["engine"], found["posterior"], found["time_unit"]) == ("neural", "tilted", "s")
    assert found["elbo"] <= found["log_likelihood"] + 1e-3

    history = rows_of(folder / "history.csv")
    assert [int(row["step"]) for row in history] == [10, 20]
    terms = ("objective", "reconstruction", "path_kl", "initial_kl")
    assert list(history[0]) == ["step", "seconds", *terms, "0->1", "1->0"]
    for row in history:
        objective, reconstruction, path_kl, initial_kl = (float(row[name]) for name in terms)
        assert objective == pytest.approx(reconstruction - path_kl - initial_kl, rel=1e-5)
    model = FittedMJP.load(folder)  # whose rates are the average of the last round, as the last row is
    np.testing.assert_allclose([float(history[-1][name]) for name in ("0->1", "1->0")], model.rates[[0, 1], [1, 0]])

    assert run("decode", folder, data, "--out", tmp_path / "path.csv")[0] == 0


def test_history_numbers_states_as_the_result_does(run, data, tmp_path, monkeypatch):
    """Networks that hold the states in another order: the upper level first."""
    start = fit.NeuralMJP.model

    def upside_down(self, data):
        model = start(self, data)
        emission = type(model.emission)
        begin = emission.start
        monkeypatch.setattr(
            emission, "start", lambda *args: {name: np.asarray(v)[::-1] for name, v in begin(*args).items()}
        )
        return model

    monkeypatch.setattr(fit.NeuralMJP, "model", upside_down)
    assert run("fit", data, *NEURAL, "--out", tmp_path / "run")[0] == 0
    model, last = FittedMJP.load(tmp_path / "run"), rows_of(tmp_path / "run" / "history.csv")[-1]
    assert np.diff(model.emission.locations(model.parameters.emission)) > 0
    np.testing.assert_allclose([float(last[name]) for name in ("0->1", "1->0")], model.rates[[0, 1], [1, 0]])


def test_an_interrupted_fit_goes_on_to_the_same_result(run, data, tmp_path, monkeypatch):
    rounds = []
    one_round = training_run.run_round
    monkeypatch.setattr(training_run, "run_round", lambda *args: rounds.append(1) or one_round(*args))
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run("fit", data, *NEURAL, "--out", whole)[0] == 0
    assert len(rounds) == 2

    @contextmanager
    def impatient():
        def stop(stage, share):
            if share > 0:  # the first round has ended and its checkpoint is written
                raise KeyboardInterrupt

        yield stop

    with monkeypatch.context() as patched:
        patched.setattr(train, "progress_display", impatient)
        ended = run("fit", data, *NEURAL, "--out", parts)
    assert_refused(ended, "interrupted: the same command with --resume goes on from here", status=130)
    assert not (parts / "model.json").exists()

    rounds.clear()
    status, out, _ = run("fit", data, *NEURAL, "--out", parts, "--resume")
    assert status == 0
    assert "going on from the checkpoint" in out
    assert len(rounds) == 1
    with np.load(whole / "arrays.npz") as expected, np.load(parts / "arrays.npz") as found:
        assert sorted(found.files) == sorted(expected.files)
        for name in expected.files:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    assert FittedMJP.load(parts).elbo == FittedMJP.load(whole).elbo
    timeless = [[{**row, "seconds": ""} for row in rows_of(folder / "history.csv")] for folder in (whole, parts)]
    assert timeless[0] == timeless[1]

    assert_refused(run("fit", data, *NEURAL, "--out", parts, "--resume", "--seed", 1), "another seed")


def test_resume_before_the_first_checkpoint_starts_anew(run, data, tmp_path):
    status, out, _ = run("fit", data, *NEURAL, "--out", tmp_path / "run", "--resume")
    assert status == 0
    assert "starting anew: there is no checkpoint yet" in out


def test_refine(run, data, tmp_path):
    """The exact engine finishes: it ends no lower than the networks did, where it would have ended by itself."""
    plain, better = tmp_path / "plain.json", tmp_path / "better.json"
    assert run("fit", data, *NEURAL, "--json", plain)[0] == 0
    status, out, _ = run("fit", data, *NEURAL, "--refine", "exact", "--json", better)
    assert status == 0
    assert "stopped after 20 steps: the limit of 20 steps; then by the exact engine: converged" in out
    before, after = json.loads(plain.read_text()), json.loads(better.read_text())
    assert after["log_likelihood"] > before["log_likelihood"] + 1e-6
    assert after["converged"]
    assert after["elbo"] == before["elbo"]


def test_the_published_model(run, tmp_path):
    """Trained for two steps: only rates and parameters have a spread, and nothing stumbles over the rest."""
    data, result = tmp_path / "ratchet.csv", tmp_path / "result.json"
    write(systems.FlashingRatchet().simulate(8, 10, seed=1).data, data)
    sizes = ("width=8", "dynamics=8", "rates_hidden=8", "initial_hidden=8", "quadrature=4", "batch=8", "round_steps=2")
    options = [word for size in sizes for word in ("--set", size)]
    words = ("--states", 6, "--prior", "flashing-ratchet", "--engine", "neural", "--posterior", "paper", "--steps", 2)
    status, out, err = run("fit", data, *words, *options, "--json", result)
    assert (status, err) == (0, "")
    assert "engine: neural, paper posterior, ode-rnn encoder of width 8" in out
    assert "(of the series without their last observations)" in out
    assert "intervals: 95 %, from spread of the generator prior" in out
    found = json.loads(result.read_text())
    assert found["posterior"] == "paper"
    assert found["parameters"].keys() == {"V", "r", "b"}


def test_tables_without_intervals(capsys):
    """An engine may know the numbers and not how sure they are."""
    signal = ExactMJP(2, intervals=False, restarts=1).fit(systems.TwoMode().simulate(8, 20, seed=1).data)
    assert signal.intervals == {}
    show(signal, Path("signal.csv"))
    out = capsys.readouterr().out
    assert "intervals: none" in out
    assert "95 %" not in out
    assert "mean, state 1" in out
    assert "nan" not in out
    ratchet = systems.FlashingRatchet()
    fitted = ExactMJP(6, prior=ratchet).fit(ratchet.simulate(50, 20, seed=1).data)
    show(replace(fitted, intervals={"rates": fitted.intervals["rates"]}), Path("ratchet.csv"))
    parameters = capsys.readouterr().out.partition("Parameters")[2].partition("Jump rates")[0]
    value = f"{np.exp(fitted.parameters.rates[0]):.4g}"
    assert [cell.strip() for cell in parameters.splitlines()[4].split("│")[1:-1]] == ["V", value, "-", "-"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--posterior", "paper"), "--posterior belongs to the neural engine, but the engine is exact unless"),
        (("--engine", "exact", "--set", "width=8", "--resume"), "--set, --resume belong to the neural engine"),
        (("--steps", 5), "--steps belongs to the neural engine"),
        (("--engine", "exact", "--refine", "exact"), "--refine belongs to the neural engine"),
        (("--preset", "quick"), "add --engine neural, or leave it out"),
        (("--encoder", "gru"), "--encoder belongs"),
        (("--engine", "neural", "--resume"), "give --out DIR too"),
        (("--engine", "meanfield"), "--engine meanfield belongs to reaction networks, but --prior is free"),
        (("--engine", "magic"), "'magic' is not one of 'auto', 'exact', 'neural', 'meanfield'"),
        (("--engine", "neural", "--encoder", "lstm"), "'lstm' is not one of"),
        (("--engine", "neural", "--steps", 0), "--steps"),
        (("--engine", "neural", "--steps", 5, "--set", "steps=6"), "--steps and --set steps say the same"),
        (("--engine", "neural", "--set", "widht=8"), "no 'widht'; it has posterior, encoder, width,"),
        (("--engine", "neural", "--set", "width"), "--set takes NAME=VALUE, such as --set width=32; got 'width'"),
        (("--engine", "neural", "--set", "width=wide"), "--set width takes a whole number, got 'wide'"),
        (("--engine", "neural", "--set", "width=0"), "width must be at least 1"),
        (("--engine", "neural", "--seed", -1), "seed must not be negative"),
    ],
)
def test_what_does_not_go_together(run, data, options, words):
    assert_refused(run("fit", data, "--states", 2, *options), words)


def test_changes_are_read_by_type():
    typed = ["encoder=gru", "order=4", "masked=True", "learning_rate=1e-3", "prior_learning_rate=none", "width=3"]
    changes = read_changes([*typed, "dynamics=16, 8", "initial_hidden=5", "curriculum=10,20,30"])
    assert changes == {
        "encoder": "gru",
        "order": 4,
        "masked": True,
        "learning_rate": 1e-3,
        "prior_learning_rate": None,
        "width": 3,
        "dynamics": (16, 8),
        "initial_hidden": (5,),
        "curriculum": (10, 20, 30),
    }
    assert Config().changed(**changes).dynamics == (16, 8)


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("encoder=rnn", "takes one of ode-rnn, gru, state-space, got 'rnn'"),
        ("order=3", "takes one of 2, 4, got '3'"),
        ("masked=1", "takes true or false"),
        ("clip=big", "takes a number, got 'big'"),
        ("width=2.5", "takes a whole number"),
        ("dynamics=a,b", "takes whole numbers with commas between"),
        ("curriculum=1,2", "takes 3 whole numbers: 1,2,3 or none"),
        ("width=", "takes a whole number, got ''"),
    ],
)
def test_changes_of_another_type(pair, words):
    with pytest.raises(InputError, match=words):
        read_changes([pair])


class TestTensorBoard:
    """The log of a training as event files."""

    def log(self, folder, rows):
        folder.mkdir()
        known = {"objective": -3.0, "reconstruction": -2.0, "path_kl": 0.5, "initial_kl": 0.5}
        lines = [json.dumps({"run": k, "step": step, **known, "theta": [0.1, -1.0]}) + "\n" for k, step in rows]
        (folder / "log.jsonl").write_text("".join(lines))

    def test_every_run_has_its_curves(self, run, tmp_path):
        self.log(tmp_path / "fit", [(0, 50), (1, 50), (0, 100), (1, 100)])
        with open(tmp_path / "fit" / "log.jsonl", "a") as file:
            file.write('{"run": 0, "st')  # still being written
        status, out, err = run("tensorboard", tmp_path / "fit")
        assert (status, err) == (0, "")
        assert "4 rounds" in out
        for k in range(2):
            (events,) = (tmp_path / "fit" / "tensorboard" / f"run-{k}").iterdir()
            written = events.read_bytes()
            for name in (b"objective", b"path_kl", b"log_parameters/1"):
                assert name in written

    def test_refused(self, run, tmp_path):
        (tmp_path / "empty").mkdir()
        status, _, err = run("tensorboard", tmp_path / "empty")
        assert status == 2
        assert "only a neural fit with --out keeps a log" in err
        self.log(tmp_path / "fit", [(0, 50)])
        with open(tmp_path / "fit" / "log.jsonl", "a") as file:
            file.write("[]\n")
        status, _, err = run("tensorboard", tmp_path / "fit")
        assert status == 2
        assert "line 2 is damaged" in err


def test_a_folder_is_trained_on_from_disk(run, tmp_path):
    """Fit, report and decode of a folder of Parquet files; what needs all of it in memory says so."""
    data = systems.TwoMode().simulate(8, 20, seed=1).data
    write_parts([data[:3], data[3:]], tmp_path / "parts")
    folder = tmp_path / "run"
    status, out, err = run("fit", tmp_path / "parts", *NEURAL, "--out", folder)
    assert (status, err) == (0, "")
    assert "160 observations" in out
    status, out, _ = run("report", folder)
    assert status == 0
    assert "the hidden path is that of the first of 2 parts" in " ".join(out.split())
    assert run("decode", folder, tmp_path / "parts", "--out", tmp_path / "path.csv").status == 0
    assert len(rows_of(tmp_path / "path.csv")) == 160
    assert_refused(run("fit", tmp_path / "parts", *NEURAL, "--thin", 2), "--thin needs all of")
    assert run("fit", tmp_path / "parts", "--states", 2, "--time-unit", "s").status == 0
