"""`neuralmjp validate` and `select`: what they print and write."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from command import assert_refused
from neuralmjp import ExactMJP, FittedMJP, TimeSeries, write
from validation.test_panel_checks import ILL, people
from validation.worlds import channel


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "channel.csv"
    write(channel(n=1000), path)
    return path


def test_validate(run, recording, tmp_path):
    folder, figures, result = tmp_path / "run", tmp_path / "figures", tmp_path / "checks.json"
    names = ("--state-names", "shut,open")
    assert run("fit", recording, "--states", 2, "--restarts", 1, *names, "--out", folder).status == 0
    ended = run("validate", folder, recording, "--simulations", 50, "--out", figures, "--json", result)
    assert ended.status == 0
    checks = {one["check"]: one for one in json.loads(result.read_text())["checks"]}
    assert set(checks) == {
        "Chapman-Kolmogorov",
        "timescales",
        "dwell times",
        "autocorrelation",
        "density",
        "residuals",
        "forecasts",
    }
    assert all(one["sentence"] for one in checks.values())
    assert re.search(r"furthest off: (shut|open) -> (shut|open) after", checks["Chapman-Kolmogorov"]["sentence"])
    assert "checks passed" in ended.out
    names = {path.name for path in figures.iterdir()}
    assert {"chapman-kolmogorov.png", "timescales.png", "dwell-times.png", "density.png", "residuals.png"} <= names
    assert {"autocorrelation.png", "forecasts.png"} <= names


def test_validate_a_panel(run, tmp_path):
    data = people(60)
    write(data, tmp_path / "people.csv")
    ExactMJP(3, mask=(ILL > 0).astype(int)).fit(data).named("well", "ill", "dead").save(tmp_path / "run")
    figures = tmp_path / "figures"
    ended = run("validate", tmp_path / "run", tmp_path / "people.csv", "--simulations", 50, "--out", figures)
    assert ended.status == 0
    assert "prevalence" in ended.out
    assert "Pearson" in ended.out
    assert re.search("last seen as (well|ill|dead)", " ".join(ended.out.split()))
    assert (figures / "prevalence.png").exists()


def test_figures_call_states_by_their_names(tmp_path, monkeypatch):
    from neuralmjp import plots
    from neuralmjp.commands import validate_figures

    drawn = {}
    monkeypatch.setattr(plots, "plot_dwell_times", lambda *_, **words: drawn.update(words))
    monkeypatch.setattr(validate_figures, "_figure", lambda _, name, panels: name * len([one(None) for one in panels]))
    found = SimpleNamespace(dwells=(), time_unit="ms", value_names=())
    assert "dwell-times" in validate_figures.draw({"predictive": found}, tmp_path, np.ones(2), ("shut", "open"))
    assert drawn["names"] == ("shut", "open")


def test_select(run, recording, tmp_path):
    folder, result = tmp_path / "run", tmp_path / "selection.json"
    options = ("--states", "2,3", "--folds", 2, "--restarts", 1, "--json", result, "--out", folder)
    ended = run("select", recording, *options)
    assert ended.status == 0
    assert "K = 2" in ended.out
    found = json.loads(result.read_text())
    assert found["n_states"] == 2
    assert [one["n_states"] for one in found["candidates"]] == [2, 3]
    assert FittedMJP.load(folder).n_states == 2


def test_validate_refuses_too_few_simulations(run, recording, tmp_path):
    assert_refused(run("validate", tmp_path, recording, "--simulations", 49), "--simulations")


def test_select_refuses(run, recording):
    assert_refused(run("select", recording, "--states", "1..3"), "--states takes numbers")
    assert_refused(run("select", recording, "--states", "2", "--folds", 100), "too few")


def test_data_of_another_kind_are_refused(run, tmp_path):
    """Nothing is written that a report could take for a check."""
    data = people(20)
    ExactMJP(3, mask=(ILL > 0).astype(int)).fit(data).save(tmp_path / "run")
    two = TimeSeries(data.times, np.hstack([data.values] * 2), data.offsets, data.names, ("a", "b"))
    write(two, tmp_path / "two.csv")
    assert_refused(run("validate", tmp_path / "run", tmp_path / "two.csv"), "was fitted to 1 values, the data have 2")
    assert not (tmp_path / "run" / "checks.json").exists()
