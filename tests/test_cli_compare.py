"""`neuralmjp compare`: one table, its files, and one line for what cannot be done."""

import csv
import json

import pytest

from command import assert_refused


@pytest.fixture
def channel(run, tmp_path):
    data, truth = tmp_path / "channel.csv", tmp_path / "hidden.csv"
    arguments = ("--series", 5, "--length", 400, "--seed", 3, "--out", data, "--truth", truth)
    assert run("simulate", "ion-channel", *arguments)[0] == 0
    return data, truth


def test_table_files_and_figure(run, channel, tmp_path):
    data, truth = channel
    out, result = tmp_path / "compared", tmp_path / "result.json"
    options = ("--states", 3, "--methods", "hmm, msm", "--time-unit", "s", "--truth", truth, "--set", "msm.cells=20")
    status, text, error = run("compare", data, *options, "--out", out, "--json", result)
    assert status == 0, error
    for words in ("timescales (s)", "stationary law", "accuracy", "numbered as in the truth", "memory (MB)"):
        assert words in text
    found = json.loads(result.read_text())
    assert found["methods"] == ["hmm", "msm"]
    assert found == json.loads((out / "compare.json").read_text())
    rows = list(csv.DictReader((out / "compare.csv").read_text().splitlines()))
    accuracy = {row["method"]: float(row["value"]) for row in rows if row["quantity"] == "accuracy"}
    assert accuracy["hmm"] > 0.97
    assert (out / "compare.tex").read_text().startswith("\\begin{tabular}{lrr}")
    assert (out / "compare.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--methods", "magic"), "no method 'magic'"),
        (("--set", "cells=3"), "--set takes METHOD.NAME=VALUE"),
        (("--held-out", "2"), "lies between 0 and 1"),
    ],
)
def test_refused(run, channel, words, told):
    ended = run("compare", channel[0], "--states", 3, *words)
    assert_refused(ended, told)


def test_a_truth_of_other_rows(run, channel):
    assert_refused(run("compare", channel[0], "--states", 3, "--truth", channel[0]), "one column of whole numbers")
