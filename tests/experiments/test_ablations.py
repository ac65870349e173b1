"""Parts of the paper's method switched off one at a time, and its schedules: a miniature, from the command on."""

import json

import numpy as np
import pytest

from neuralmjp import InputError
from neuralmjp.experiments import ablations
from neuralmjp.experiments.published_training import RATES, SCHEDULES, trained_as_published
from neuralmjp.experiments.runs import chosen_of
from neuralmjp.training.config import preset

SHORT = {"width": 8, "batch": 4, "steps": 2, "round_steps": 1, "dynamics": (8,)}
PAPER = {**SHORT, "initial_hidden": (8,), "rates_hidden": (8,), "quadrature": 4}


@pytest.fixture
def miniature(monkeypatch):
    size = ablations.Size(8, 8, 1, 2, paper=PAPER, collapse=PAPER, tilted=SHORT, counts={**PAPER, "piece_jumps": 0.25})
    monkeypatch.setitem(ablations.SIZES, "quick", size)


@pytest.mark.parametrize("data_set", RATES)
def test_the_paper_s_training_is_a_configuration(data_set):
    """Every name exists, and schedules fit into the steps, however few."""
    for changes in ({}, {"steps": 5}, {"steps": 60}, {"steps": 14_000}):
        config = preset("paper", "paper").changed(**trained_as_published(data_set, changes))
        assert config.curriculum is not None
        few, hold, grow = config.curriculum
        assert few == 10
        assert hold + grow <= max(config.steps, 13_000 if data_set == "adp" and not changes else 0)
        assert config.fixed_spread < config.steps


def test_schedules_alone():
    """Without a curriculum the spread's own schedule must still fit."""
    assert trained_as_published("two-mode", {"steps": 60}, {}) == {"decay": 1.0, "steps": 60}
    alone = trained_as_published("two-mode", {"steps": 60}, {"fixed_spread": SCHEDULES["fixed_spread"]})
    assert 0 < alone["fixed_spread"] < 60


def test_lines_are_chosen():
    kinds = (ablations.ROWS, tuple(ablations.PARTS), tuple(ablations.SCHEDULED))
    assert chosen_of(kinds, None) == [*kinds]
    rows, parts, schedules = chosen_of(kinds, ["both", ablations.COLLAPSE, "curriculum"])
    assert (rows, parts, schedules) == ((ablations.COLLAPSE,), kinds[1], ("curriculum", "both"))
    with pytest.raises(InputError, match="no row 'bolth'"):
        chosen_of(kinds, ["bolth"])


@pytest.mark.slow  # ten programs are compiled
def test_parts_and_schedules(run, miniature, tmp_path):
    words = ("--only", f"{ablations.RATCHET},{ablations.COLLAPSE}", "--json", tmp_path / "a.json")
    status, _, err = run("reproduce", "ablations", *words)
    assert (status, err) == (0, "")
    parts, collapse = json.loads((tmp_path / "a.json").read_text())["tables"]
    assert [line["method"] for line in parts["rows"][0]["lines"]] == [*ablations.PARTS, ablations.TILTED]
    assert all(np.isfinite(line["numbers"]["KL"]["mean"]) for line in parts["rows"][0]["lines"])
    assert [row["name"] for row in collapse["rows"]] == list(ablations.SYSTEMS)
    for row in collapse["rows"]:
        assert [line["method"] for line in row["lines"]] == list(ablations.SCHEDULED)
        for line in row["lines"]:
            assert 0 <= line["numbers"]["collapsed"]["mean"] <= 2
            assert 0 <= line["numbers"]["rarest"]["mean"] <= 0.5


@pytest.mark.slow
def test_prior(run, miniature, tmp_path):
    words = ("--only", ablations.PRIOR, "--json", tmp_path / "a.json", "--out", tmp_path / "figures")
    status, _, err = run("reproduce", "ablations", *words)
    assert (status, err) == (0, "")
    (shown,) = json.loads((tmp_path / "a.json").read_text())["tables"]
    for row in shown["rows"]:
        below, above = (line["numbers"]["beta"]["mean"] for line in row["lines"])
        assert 0.3 < below < above < 3  # after two steps still near where they began
    assert (tmp_path / "figures" / "ablation-prior.png").exists()
