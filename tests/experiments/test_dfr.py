"""The flashing-ratchet experiment: what each number is, and a miniature of the whole, from the command to the file."""

import json

import numpy as np
import pytest

from command import assert_refused
from neuralmjp import ExactMJP, InputError, systems
from neuralmjp.experiments import dfr
from neuralmjp.experiments.runs import chosen
from neuralmjp.experiments.tables import Number
from neuralmjp.objective import Terms
from neuralmjp.training.networks import Evaluated

NETWORKS = {"width": 8, "dynamics": (8,), "initial_hidden": (8,), "rates_hidden": (8,), "quadrature": 4}
SHORT = {"batch": 8, "steps": 2, "round_steps": 2}
MINIATURE = dfr.Size(
    n_series=12,
    n_test=12,
    n_runs=2,
    paper={**NETWORKS, **SHORT},
    tilted={"width": 8, "batch": 8, "steps": 60, "round_steps": 30},
)


@pytest.fixture
def miniature(monkeypatch):
    """One grid and short series."""
    monkeypatch.setitem(dfr.SIZES, "quick", MINIATURE)
    monkeypatch.setattr(dfr, "GRIDS", ("regular",))
    whole = systems.FlashingRatchet().simulate(24, 15, seed=3).data
    monkeypatch.setattr(dfr, "data_of", lambda grid, size, seed: (whole[:12], whole[12:]))
    return whole[:12], whole[12:]


def by_method(row):
    return {line["method"]: {name: one["mean"] for name, one in line["numbers"].items()} for line in row["lines"]}


def test_rows_and_methods_that_are_asked_for():
    rows, methods = ("a", "b"), ("tilted", "exact")
    assert chosen(rows, methods, None) == (rows, methods)
    assert chosen(rows, methods, ["exact", "b"]) == (("b",), ("exact",))
    assert chosen(rows, methods, ["exact"]) == (rows, ("exact",))
    assert chosen(rows, methods, ["b"]) == (("b",), methods)


def test_one_method_alone(run, miniature, tmp_path):
    status, _, err = run("reproduce", "dfr", "--only", "exact limit", "--json", tmp_path / "a.json")
    assert (status, err) == (0, "")
    first, appendix = json.loads((tmp_path / "a.json").read_text())["tables"]
    for shown in (first, appendix):  # the masked posterior is of the paper's method
        assert [list(by_method(row)) for row in shown["rows"]] == [[dfr.PUBLISHED, dfr.EXACT]]


def test_reproduce(run, miniature, tmp_path):
    data, test = miniature
    file = tmp_path / "dfr.json"
    status, out, err = run("reproduce", "dfr", "--seeds", 2, "--json", file)
    assert (status, err) == (0, "")
    assert "Table 1: parameters of the flashing ratchet" in out
    assert "1.37 ±0.04" in out  # as published
    assert "mean ± sd of 2 runs" in out
    assert "regular grid, paper's method: stopped after 2 steps" in out
    assert not [line for line in out.splitlines() if line.strip().startswith("±")]  # 80 columns are enough
    report = json.loads(file.read_text())
    assert (report["experiment"], report["n_runs"], report["device"].split(":")[0]) == ("dfr", 2, "cpu")
    assert report["seconds"] > 0
    first, appendix = report["tables"]
    assert [row["name"] for row in first["rows"]] == ["regular grid"]
    assert [row["name"] for row in appendix["rows"]] == ["regular grid", "masked posterior"]
    methods = [dfr.PUBLISHED, dfr.AS_PUBLISHED, dfr.TILTED, dfr.EXACT]
    assert [list(by_method(row)) for row in appendix["rows"]] == [methods, methods[:2]]
    for shown in (first, appendix):
        for row in shown["rows"]:
            for line in row["lines"]:
                assert set(line["numbers"]) == set(shown["columns"])
                assert (line["seconds"] is None) == (line["method"] == dfr.PUBLISHED)

    found = by_method(appendix["rows"][0])
    limit = ExactMJP(6, prior=systems.FlashingRatchet()).fit(data)
    for k, name in enumerate(dfr.PARAMETERS):
        assert found[dfr.EXACT][name] == pytest.approx(np.exp(limit.parameters.rates[k]), rel=1e-3)
        assert found[dfr.TILTED][name] == pytest.approx(found[dfr.EXACT][name], rel=0.1)
    # States are seen: whatever the rates, a posterior that reconstructs them pays the whole of -log p.
    assert found[dfr.EXACT]["NLL"] == 0
    assert found[dfr.TILTED]["NLL"] == pytest.approx(0, abs=1e-4)
    assert found[dfr.EXACT]["KL"] == pytest.approx(-limit.score(dfr.without_last(test)) / 12, rel=1e-3)
    assert found[dfr.TILTED]["KL"] == pytest.approx(found[dfr.EXACT]["KL"], rel=0.02)
    # After two steps the paper's method knows next to nothing of six states, and is still where it began.
    assert found[dfr.AS_PUBLISHED]["NLL"] == pytest.approx(np.log(6), abs=0.8)
    assert found[dfr.AS_PUBLISHED]["r"] == pytest.approx(dfr.START, rel=0.2)
    spreads = [one["sd"] for line in appendix["rows"][0]["lines"][1:3] for one in line["numbers"].values()]
    assert all(sd is not None for sd in spreads)


def test_errors_are_those_of_the_curvature():
    """Against the spread of the samples behind other intervals."""
    ratchet = systems.FlashingRatchet()
    fitted = ExactMJP(6, prior=ratchet).fit(ratchet.simulate(50, 20, seed=1).data)
    drawn = np.log(fitted.rate_samples[:, 0, 3])  # r itself
    numbers = dict(zip(dfr.PARAMETERS, dfr.with_errors(fitted), strict=True))
    assert numbers["r"].sd == pytest.approx(numbers["r"].mean * drawn.std(), rel=0.1)


def test_test_set_terms():
    """KL is a mean over series, NLL over observations."""
    series = systems.FlashingRatchet().simulate(2, 5, seed=0).data
    terms = Terms(np.array([-3.0, -7.0]), np.array([2.0, 4.0]), np.array([100.0, 100.0]))
    found = dfr.on_test([Evaluated(terms, np.zeros((2, 5, 6)))] * 2, series)
    assert found == {"KL": Number(3.0, 0.0, 1), "NLL": Number(1.0, 0.0, 2)}


def test_without_last():
    series = systems.FlashingRatchet().simulate(3, 5, seed=0).data
    short = dfr.without_last(series)
    assert short.lengths.tolist() == [4, 4, 4]
    np.testing.assert_array_equal(short.times, series.times.reshape(3, 5)[:, :4].ravel())


def test_data_are_the_papers():
    data, test = dfr.data_of("shared", dfr.SIZES["paper"], seed=0)
    whole = systems.paper_dataset("flashing-ratchet", grid="shared", seed=0)
    assert data.equals(whole.train.data)
    assert test.equals(whole.test.data)
    assert len(dfr.data_of("shared", dfr.SIZES["quick"], seed=0)[0]) == 256


@pytest.mark.parametrize("values", [dfr.TABLE_1, dfr.APPENDIX])
def test_published_rows_are_complete(values):
    columns = {tuple(line.numbers) for line in values.values()}
    assert columns in ({("V", "r", "b")}, {("KL", "NLL", "V", "r", "b")})
    assert all(number.sd is not None for line in values.values() for number in line.numbers.values())


def test_numbers():
    assert str(Number(1.064, 0.021, 2)) == "1.06 ±0.02"
    assert str(Number.over([2.0])) == "2.000"
    assert Number.over([1.0, 3.0]) == Number(2.0, pytest.approx(np.sqrt(2)), 3)


def test_what_does_not_exist(run):
    assert_refused(run("reproduce", "dfs"), "no experiment 'dfs'; there are: dfr")
    assert_refused(run("reproduce", "dfr", "--preset", "huge"), "'huge' is not one of 'quick', 'paper'")
    assert_refused(run("reproduce", "dfr", "--seeds", 0), "--seeds")
    assert_refused(run("reproduce", "dfr", "--seed", -1), "seed must not be negative")
    with pytest.raises((InputError, TypeError), match="preset"):
        dfr.run("huge", 1, 0)
