"""`neuralmjp fit` and `decode`: what they print, what they write, and one line for what cannot be done."""

import json
from pathlib import Path

import numpy as np
import pytest

from neuralmjp import FittedMJP, read


@pytest.fixture
def channel(run, tmp_path):
    """A short recording of a three-level channel, and the hidden states behind it."""
    data, truth = tmp_path / "channel.csv", tmp_path / "hidden.csv"
    arguments = ("--series", 1, "--length", 3000, "--seed", 3, "--out", data, "--truth", truth)
    assert run("simulate", "ion-channel", *arguments)[0] == 0
    return data, truth


def test_thinned_until_the_slowest_timescale_settles(run, channel):
    options = ("--states", 3, "--time-unit", "s", "--restarts", 1)
    status, out, error = run("fit", channel[0], *options, "--thin", "auto")
    assert status == 0, error
    assert "observation is fitted: there the slowest timescale settles" in out
    status, _, error = run("fit", channel[0], *options, "--thin", "some")
    assert (status, error.count("\n")) == (2, 1)
    assert "--thin takes a whole number above 0, or auto" in error


def test_fit_then_decode(run, channel, tmp_path):
    data, truth = channel
    folder, result, path = tmp_path / "run", tmp_path / "result.json", tmp_path / "path.csv"
    options = ("--states", 3, "--time-unit", "s", "--restarts", 1)
    status, out, _ = run("fit", data, *options, "--out", folder, "--json", result)
    assert status == 0
    assert "engine: exact, chosen because" in out
    assert "Jump rates (per s), 95 %" in out
    found = json.loads(result.read_text())
    contract = {"engine", "time_unit", "n_states", "log_likelihood", "seconds", "rates", "stationary_distribution"}
    assert contract | {"timescales", "mfpt", "emission", "uncertainty", "versions", "seed"} <= found.keys()
    assert found["time_unit"] == "s"
    assert np.shape(found["rates"]["lower"]) == (3, 3)
    assert FittedMJP.load(folder).log_likelihood == found["log_likelihood"]

    assert run("decode", folder, data, "--out", path)[0] == 0
    decoded, hidden = read(path), read(truth)
    assert decoded.value_names == ("state", "p_0", "p_1", "p_2")
    assert (decoded.values[:, 0] == hidden.values[:, 0]).mean() > 0.98
    np.testing.assert_allclose(decoded.values[:, 1:].sum(1), 1.0)


def test_decode_reads_the_columns_of_the_fit(run, channel, tmp_path):
    """A table without names: what was said to `fit` need not be said again."""
    bare = tmp_path / "bare.csv"
    rows = read(channel[0])
    np.savetxt(bare, np.column_stack([rows.times, np.zeros(len(rows.times)), rows.values]), delimiter=",")
    folder, path = tmp_path / "run", tmp_path / "path.csv"
    columns = ("--no-header", "--time", 0, "--values", 2)
    assert run("fit", bare, *columns, "--states", 3, "--restarts", 1, "--out", folder)[0] == 0
    assert run("decode", folder, bare, "--out", path)[0] == 0
    assert len(read(path).times) == 3000


def test_parameters_of_a_system(run, tmp_path):
    data, result = tmp_path / "ratchet.csv", tmp_path / "result.json"
    run("simulate", "flashing-ratchet", "--series", 100, "--length", 20, "--seed", 1, "--out", data)
    status, out, _ = run("fit", data, "--states", 6, "--prior", "flashing-ratchet", "--json", result)
    assert status == 0
    assert "Parameters, 95 %" in out
    found = json.loads(result.read_text())["parameters"]
    assert found.keys() == {"V", "r", "b"}
    assert all(entry["lower"] < entry["mean"] < entry["upper"] for entry in found.values())


def test_panel_options(run, tmp_path):
    """Three states, the last one entered at the time given; 9 means one of the first two."""
    data, mask, result = tmp_path / "panel.csv", tmp_path / "mask.csv", tmp_path / "result.json"
    visits = [
        "p,t,s",
        *(f"{k},{t},{s}" for k in range(30) for t, s in ((0, 1), (1, 1 + k % 2), (2, 9), (2.5 + k / 9, 3))),
    ]
    data.write_text("\n".join(visits))
    mask.write_text("0,1,1\n1,0,1\n0,0,0\n")
    columns = ("--series", "p", "--time", "t", "--values", "s", "--time-unit", "year")
    panel = ("--emission", "categorical", "--prior", mask, "--exact-entry", 3, "--first-known", "--censored", "9=1,2")
    status, out, err = run("fit", data, *columns, "--states", 3, *panel, "--json", result)
    assert (status, err) == (0, "")
    assert "Jump rates (per year)" in out
    assert json.loads(result.read_text())["rates"]["mean"][2] == [0, 0, 0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--states", 3, "--emission", "cauchy"), "no emission 'cauchy'"),
        (("--states", 3, "--prior", "nowhere"), "--prior is free, reversible"),
        (("--states", 3, "--prior", "missing.csv"), "cannot read the mask missing.csv"),
        (("--states", 2, "--prior", "named.csv"), "without header or row names; row 1, column 1 holds ''"),
        (("--states", 2, "--prior", "ragged.csv"), "row names; the number of columns changed from 2 to 1 at row 2"),
        (("--states", 1), "at least 2 states"),
        (("--states", 3, "--censored", "9:1"), "--censored takes CODE=STATE,STATE"),
        (("--states", 3, "--emission", "poisson"), "counts must be whole numbers"),
        (("--states", 3, "--values", "voltage"), "voltage"),
        (("--states", 3, "--engine", "magic"), "magic"),
    ],
)
def test_one_line_for_what_cannot_be_done(run, channel, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    Path("named.csv").write_text(",a,b\na,0,1\nb,1,0\n")
    Path("ragged.csv").write_text("0,1\n1\n")
    status, _, err = run("fit", channel[0], *options)
    assert status == 2
    assert err.count("\n") == 1
    assert words in err


def test_decode_needs_a_fitted_model(run, channel, tmp_path):
    status, _, err = run("decode", tmp_path, channel[0], "--out", tmp_path / "path.csv")
    assert (status, err.count("\n")) == (2, 1)
    assert "holds no fitted model" in err
