"""States by name: in tables, figures, files and the page; numbers where nobody named them."""

import json

import jax
import numpy as np
import pytest

import neuralmjp as nm
from command import assert_refused
from neuralmjp import ExactMJP, FittedMJP, InputError, TimeSeries
from neuralmjp.fitted_files import summary
from neuralmjp.report.page import Source, report_of
from neuralmjp.report.verdict import findings_of

RATES = np.array([[0, 0.5, 0.1], [0.4, 0, 0.3], [0, 0, 0]])
NAMES = ("well", "ill", "dead <for ever>")


def people():
    """Of labels 1, 2, 3, seen every year."""
    states = nm.mjp.simulate_states(
        RATES, np.tile(np.arange(8.0), (40, 1)), initial=[1.0, 0.0, 0.0], key=jax.random.key(0)
    )
    return TimeSeries.from_arrays(np.tile(np.arange(8.0), (40, 1)), states + 1.0, time_unit="year")


@pytest.fixture(scope="module")
def fitted():
    return ExactMJP(3, "categorical", mask=(RATES > 0).astype(int)).fit(people())


def test_numbers_unless_named(fitted):
    assert fitted.state_names == ("0", "1", "2")
    named = fitted.named(*NAMES)
    assert named.state_names == NAMES
    assert fitted.named(list(NAMES)).state_names == fitted.named(NAMES).state_names == NAMES
    assert named.arrow(0, 2) == "well → dead <for ever>"
    np.testing.assert_array_equal(named.rates, fitted.rates)


@pytest.mark.parametrize("names", [("well", "ill"), ("well", "well", "dead"), ("well", " ", "dead")])
def test_every_state_needs_a_name_of_its_own(fitted, names):
    with pytest.raises(InputError, match="3 states need 3 different names"):
        fitted.named(*names)


@pytest.fixture(scope="module")
def warned():
    """A fit that allows jumps which nobody makes: the dead do not rise."""
    return ExactMJP(3, "categorical").fit(people())


def test_warnings_say_the_names(warned):
    assert "no sign of the jump 2->0: its rate is given as an upper limit" in warned.warnings
    named = warned.named("well", "ill", "dead")
    assert "no sign of the jump dead->well: its rate is given as an upper limit" in named.warnings
    assert named.named("0", "1", "2").warnings == named.named().warnings == warned.warnings
    assert any("No sign of the jump dead->well" in finding.words for finding in findings_of(named))


def test_names_are_kept(fitted, tmp_path):
    fitted.named(*NAMES).save(tmp_path)
    assert FittedMJP.load(tmp_path).state_names == NAMES
    assert json.loads((tmp_path / "result.json").read_text())["state_names"] == list(NAMES)


def test_files_say_the_names(warned, tmp_path):
    named = warned.named("well", "ill", "dead")
    named.save(tmp_path)
    assert FittedMJP.load(tmp_path).warnings == named.warnings
    assert json.loads((tmp_path / "result.json").read_text())["warnings"] == list(named.warnings)


def test_reasons_say_the_names():
    """Who is ill gets well or dies, and that for ever: two closed classes."""
    seen = np.array([[2.0, 1, 1, 1], [2, 3, 3, 3], [2, 2, 1, 1], [2, 2, 3, 3]])
    data = TimeSeries.from_arrays(np.tile(np.arange(4.0), (4, 1)), seen)
    fitted = ExactMJP(3, "categorical", mask=[[0, 0, 0], [1, 0, 1], [0, 0, 0]]).fit(data).named("well", "ill", "dead")
    assert "2 closed classes, {well}, {dead}" in summary(fitted)["stationary_distribution"]["reason"]


def test_a_model_that_was_written_before_there_were_names(fitted, tmp_path):
    fitted.save(tmp_path)
    known = json.loads((tmp_path / "model.json").read_text())
    del known["state_names"]
    (tmp_path / "model.json").write_text(json.dumps(known))
    assert FittedMJP.load(tmp_path).state_names == ("0", "1", "2")


def test_on_the_page(fitted):
    page = report_of(fitted.named(*NAMES), data=people(), source=Source())
    assert "well → ill" in page
    assert "Dwell times of state ill" in page
    assert "dead &lt;for ever&gt;" in page
    assert "dead <for" not in page
    assert "State dead &lt;for ever&gt; is never left" in page


def test_in_figures(fitted):
    from matplotlib.figure import Figure

    from neuralmjp.plots import plot_rates, plot_trace, plot_transition_network

    one, two, three = Figure().subplots(1, 3)
    named, data = fitted.named(*NAMES), people()
    plot_rates({"found": named.intervals["rates"]}, one, time_unit="year", names=named.state_names)
    assert "well → ill" in [label.get_text() for label in one.get_yticklabels()]
    plot_trace(data[0], two, states=named.decode(data[0]).states, names=named.state_names)
    assert "state well" in [label.get_text() for label in two.legend().get_texts()]
    plot_transition_network(named, three)
    assert any(text.get_text().startswith("well\n") for text in three.texts)


def test_on_the_command_line(run, tmp_path):
    data, folder = tmp_path / "people.csv", tmp_path / "run"
    nm.io.write(people(), data)
    options = ("--states", 3, "--emission", "categorical", "--time-unit", "year")
    status, out, error = run("fit", data, *options, "--state-names", "well, ill, dead", "--out", folder)
    assert status == 0, error
    assert "well → ill" in out
    assert "names of the states: 0 is well, 1 is ill, 2 is dead" in out
    assert "note: no sign of the jump dead->well" in out
    told = run("decode", folder, data, "--out", tmp_path / "path.csv")[1]
    assert "names of the states: 0 is well, 1 is ill" in told
    assert_refused(run("fit", data, *options, "--state-names", "well, ill"), "3 states need 3 different names")
    options = ("--prior", "birth-death", "--state-names", "some")
    assert_refused(run("fit", data, *options), "--state-names belongs to hidden states")


def test_verdicts_say_the_names(run, fitted, monkeypatch, tmp_path):
    from neuralmjp.commands import validate
    from neuralmjp.validation.verdict import Verdict

    class Found:
        verdict = Verdict("dwell times", False, "the data show more dwells in state 1 longer than 2 year")

    monkeypatch.setattr(validate, "checks_of", lambda *_: [("dwell times", Found)])
    fitted.named("well", "ill", "dead").save(tmp_path / "run")
    nm.io.write(people(), tmp_path / "people.csv")
    assert run("validate", "run", "people.csv", "--json", "checks.json").status == 0
    (check,) = json.loads((tmp_path / "checks.json").read_text())["checks"]
    assert check["sentence"] == "the data show more dwells in state ill longer than 2 year"
