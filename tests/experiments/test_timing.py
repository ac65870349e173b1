"""Seconds of one fit each, beside the paper's hours."""

import json

import pytest

from neuralmjp.experiments import timing
from neuralmjp.experiments.tables import EXACT, PUBLISHED, TILTED

SHORT = {"width": 8, "batch": 4, "steps": 2, "round_steps": 2}


def test_the_paper_s_hours_are_all_there():
    assert sum(hours for _, hours in timing.PUBLISHED_HOURS.values()) == pytest.approx(387.9, abs=0.1)
    assert timing.trials_of(timing.SIZES["quick"], "quick", 0, None).keys() == timing.PUBLISHED_HOURS.keys()


def test_two_data_sets(run, tmp_path, monkeypatch):
    monkeypatch.setitem(timing.SIZES, "quick", timing.Size(8, 200, SHORT))
    words = ("--only", "two-mode,ion channel one second", "--json", tmp_path / "a.json")
    status, _, err = run("reproduce", "timing", *words)
    assert (status, err) == (0, "")
    (shown,) = json.loads((tmp_path / "a.json").read_text())["tables"]
    assert [row["name"] for row in shown["rows"]] == ["ion channel one second", "two-mode", timing.ALL]
    seconds = {TILTED: 0.0, EXACT: 0.0}
    for row in shown["rows"][:-1]:
        published, *ours = row["lines"]
        assert published["numbers"][timing.HOURS]["mean"] == timing.PUBLISHED_HOURS[row["name"]][1]
        for line in ours:
            seconds[line["method"]] += line["numbers"][timing.SECONDS]["mean"]
    summed = {line["method"]: line["numbers"] for line in shown["rows"][-1]["lines"]}
    assert summed[PUBLISHED][timing.HOURS]["mean"] == pytest.approx(21.5 + 26.3)
    for method, total in seconds.items():
        assert summed[method][timing.SECONDS]["mean"] == pytest.approx(total)
        assert total > 0
