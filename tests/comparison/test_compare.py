"""Methods side by side, each in a process of its own."""

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from neuralmjp import InputError, TimeSeries, mjp
from neuralmjp.comparison import Comparison, compare
from neuralmjp.comparison.answer import Answer
from neuralmjp.comparison.compared import Outcome, shown
from neuralmjp.comparison.methods import Question, answer
from neuralmjp.comparison.worker import split

RATES = np.array([[0.0, 0.05], [0.1, 0.0]])


@pytest.fixture(scope="module")
def channel():
    """Two levels, four noise widths apart, with the true path."""
    rng = np.random.default_rng(0)
    times = np.arange(2000.0)
    path = [0]
    stay = np.asarray(mjp.transition_matrix(RATES, 1.0))
    for _ in pairwise(times):
        path.append(int(rng.random() < stay[path[-1], 1]))
    states = np.array(path)
    return TimeSeries.from_arrays(times, 4.0 * states + rng.normal(size=len(times)), time_unit="ms"), states


@pytest.fixture(scope="module")
def found(channel, tmp_path_factory):
    data, truth = channel
    folder = tmp_path_factory.mktemp("answers")
    told = []
    choices = {"lag": 1.0, "truth": truth, "folder": folder, "jobs": 2}
    result = compare(
        data, 2, ["hmm", "koehs"], more={"koehs": {"no": 1}}, progress=lambda *x: told.append(x), **choices
    )
    return result, folder, told, choices


def test_truth_comes_back(found):
    result = found[0]
    rows = {(row.section, row.name): row.values["hmm"] for row in result.table()}
    assert rows["judged", "accuracy"] > 0.95
    np.testing.assert_allclose(rows["stationary law", "p1"], 1 / 3, atol=0.06)
    np.testing.assert_allclose(rows["timescales", "t1"], 1 / 0.15, rtol=0.25)
    np.testing.assert_allclose(rows["first passage", "0 to 1"], 20, rtol=0.4)
    assert rows["judged", "held-out log-likelihood"] < 0
    assert 0 < rows["cost", "time"] < 100
    assert 50 < rows["cost", "memory"] < 5000


def test_a_method_that_fails_says_so_and_the_others_go_on(found):
    result = found[0]
    assert result.answers("hmm")
    assert not result.answers("koehs")
    (line,) = result.failures()
    assert line.startswith("koehs, run 1 of 1: TypeError")


def test_progress(found):
    told = found[2]
    assert told[-1] == ("done", 1.0)
    assert any("hmm" in words for words, _ in told)


def test_answers_are_kept_for_the_same_question_alone(channel, found):
    data, _ = channel
    _, folder, _, choices = found
    (again,), told = folder.glob("hmm-0-*.json"), []
    known = json.loads(again.read_text())
    known["answer"]["timescales"] = [77.0]
    again.write_text(json.dumps(known))
    kept = compare(data, 2, ["hmm"], progress=lambda *x: told.append(x), **choices)
    assert kept.answers("hmm")[0].timescales.tolist() == [77.0]
    assert told == [("done", 1.0)]
    other = compare(data, 2, ["hmm"], **{**choices, "lag": 2.0})
    assert other.answers("hmm")[0].timescales.tolist() != [77.0]


def test_what_takes_too_long_is_given_up(channel):
    result = compare(channel[0], 2, ["hmm"], limit=0.01)
    assert list(result.failures()) == ["hmm, run 1 of 1: given up after 0.01 s"]
    assert result.named_after == ""
    assert "failed" not in result.to_csv()


def test_a_process_that_dies_is_told(channel, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    (line,) = compare(channel[0], 2, ["hmm"]).failures()
    assert "its process ended with status 1" in line


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": ["magic"]}, "no method 'magic'; there are exact"),
        ({"methods": []}, "nothing to compare"),
        ({"methods": ["hmm", "hmm"]}, "named twice"),
        ({"held_out": 1.0}, "lies between 0 and 1"),
        ({"n_states": 1}, "at least 2 states"),
        ({"truth": np.zeros(3, int)}, "the truth has 3 rows, the data 2000"),
        ({"truth": np.full(2000, 5)}, "numbered 0 to 1"),
        ({"more": {"magic": {}}}, "no method 'magic'"),
    ],
)
def test_what_cannot_be_asked(channel, changes, words):
    asked = {"n_states": 2, "methods": ["hmm"], **changes}
    with pytest.raises(InputError, match=words):
        compare(channel[0], **asked)


def test_what_is_held_out(channel):
    data = channel[0]
    train, test = split(data, 0.25)
    assert (len(train), len(test)) == (1, 1)
    assert train.times.max() < test.times.min()
    several = TimeSeries.from_arrays([np.arange(5.0)] * 4, [np.arange(5.0)] * 4)
    train, test = split(several, 0.25)
    assert (len(train), len(test)) == (3, 1)
    assert split(data, 0.0) == (data, None)


def test_where_the_only_series_began_says_nothing_of_what_is_held_out(channel):
    """The part that is judged begins in the other state: no method is punished for that more than another."""
    data, states = channel
    begins = float(data.times[1500 + int(states[1500:].argmax())])
    assert states[0] == 0
    asked = Question(data.between(0.0, begins - 1), data.between(begins, 2000.0), data, 2, emission="gaussian")
    exact, hmm = (answer(name, asked).held_out for name in ("exact", "hmm"))
    assert exact == pytest.approx(hmm, abs=0.005)


def test_memory_is_that_of_the_process_itself():
    """Not that of whoever started it, here half a gigabyte more."""
    ballast = np.ones(2**26)
    code = "from neuralmjp.comparison.methods import peak_memory; print(peak_memory())"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 50 < float(ended.stdout) < ballast.nbytes / 2**20


def answers(*laws):
    return tuple(
        Outcome(Answer(np.array([0, 1, 1]), np.array(law), np.array([2.0]), np.array([[0.0, 1.0], [3.0, 0.0]])))
        for law in laws
    )


def test_tables_in_all_forms():
    """Method b names the states the other way round; its third run failed."""
    other = Answer(np.array([1, 0, 0]), np.array([0.6, 0.4]), np.array([4.0]), np.array([[0.0, 5.0], [7.0, 0.0]]))
    b = (Outcome(other), Outcome(other), Outcome(None, "no <reason> & 100%"))
    found = Comparison.of({"a": answers([0.3, 0.7], [0.5, 0.5]), "b_c": b}, 2, "ms")
    assert found.named_after == "a"
    lines = found.to_csv().splitlines()
    assert "stationary law,p0,,a,1,0.5" in lines
    assert "stationary law,p0,,b_c,0,0.4" in lines
    assert "first passage,0 to 1,ms,b_c,0,7.0" in lines
    table = found.to_json()["table"]
    assert table[0]["methods"]["b_c"] == {"mean": 4.0, "sd": 0.0, "runs": [4.0, 4.0]}
    assert found.to_json()["failures"] == ["b_c, run 3 of 3: no <reason> & 100%"]
    latex = found.to_latex()
    assert r"b\_c" in latex
    assert latex.count("&") == len(found.table()) * 2 + 2
    assert "timescales (ms)" in latex


def test_numbers_are_short():
    assert shown(np.array([1.4839, 1.4841])) == "1.48 ±0.00"
    assert shown(np.array([0.000123])) == "0.000123"
    assert shown(np.array([12345.6])) == "12346"
    assert shown(np.array([])) == "-"
    assert shown(np.array([np.inf])) == "∞"
