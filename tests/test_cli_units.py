"""A fit and what its model is given later: times are compared and converted, never relabelled."""

import json

import numpy as np
import pytest

from command import assert_refused
from neuralmjp import ExactMJP, FittedMJP, InputError, TimeSeries, io, mjp, read, validation, write

RATES = np.array([[0, 0.3, 0], [0.2, 0, 0.3], [0.1, 0, 0]])
FIT = ("--states", 3, "--emission", "categorical")


@pytest.fixture(scope="module")
def visits():
    """Labels 0, 1 and 2 of some people, once in two years, every third of them missing; times in years."""
    import jax

    times = np.tile(np.arange(0, 20, 2.0), (60, 1))
    states = mjp.simulate_states(RATES, times, initial=[1.0, 0.0, 0.0], key=jax.random.key(0))
    labels = np.where(np.arange(10) % 3 == 2, np.nan, states)
    return TimeSeries.from_arrays(times, labels, time_unit="years", value_names=["label"])


@pytest.fixture
def fitted(run, visits, tmp_path):
    """Folder of a fit in years, of a table that does not say so."""
    write(visits, tmp_path / "years.csv")
    ended = run("fit", "years.csv", *FIT, "--time-unit", "years", "--out", "run")
    assert ended.status == 0, ended.err
    return "run"


def decoded(run, folder, file, *options) -> TimeSeries:
    ended = run("decode", folder, file, *options, "--out", "path.parquet")
    assert ended.status == 0, ended.err
    return read("path.parquet")


def test_a_file_that_says_its_unit_is_converted(run, fitted, visits):
    whole = decoded(run, fitted, "years.csv")
    write(visits.in_unit("days"), "days.npz")
    found = decoded(run, fitted, "days.npz")
    assert (whole.time_unit, found.time_unit) == ("years", "years")
    np.testing.assert_allclose(found.times, whole.times, rtol=1e-12)
    np.testing.assert_allclose(found.values, whole.values, atol=1e-9)
    wrong = TimeSeries(visits.times * 365.25, visits.values, visits.offsets, visits.names, ("label",))
    assert np.abs(FittedMJP.load(fitted).decode(wrong).probabilities - whole.values[:, 1:]).max() > 0.1


def test_a_file_without_a_unit_counts_as_the_model_does(run, fitted, visits):
    found = decoded(run, fitted, "years.csv")
    assert found.time_unit == "years"
    assert np.array_equal(found.times, visits.times)


def test_the_unit_that_is_typed_is_the_one_that_is_written(run, fitted, visits):
    days = visits.in_unit("days")
    write(days, "days.csv")
    whole, found = decoded(run, fitted, "years.csv"), decoded(run, fitted, "days.csv", "--time-unit", "days")
    assert found.time_unit == "days"
    assert np.array_equal(found.times, days.times)
    np.testing.assert_allclose(found.values, whole.values, atol=1e-9)


def test_forecasts(run, fitted, visits):
    write(visits.in_unit("days"), "days.csv")
    for file, options, until in (("years.csv", (), 22), ("days.csv", ("--time-unit", "days"), 8035.5)):
        ended = run("predict", fitted, file, *options, "--until", until, "--out", f"ahead-{file}")
        assert ended.status == 0, ended.err
    assert "time (days)" in ended.out
    years, days = read("ahead-years.csv", time_unit="years"), read("ahead-days.csv", time_unit="days")
    np.testing.assert_allclose(days.times, 365.25 * years.times, rtol=1e-12)
    law = [name for name in years.value_names if name.startswith("p_")]
    columns = [years.value_names.index(name) for name in law]
    np.testing.assert_allclose(days.values[:, columns], years.values[:, columns], atol=1e-9)


def test_validate_and_report_convert_too(run, fitted, visits, tmp_path):
    write(visits.in_unit("days"), "days.npz")
    ended = run("validate", fitted, "days.npz", "--json", "checks.json")
    assert ended.status == 0, ended.err
    told = json.loads((tmp_path / "checks.json").read_text())["checks"][0]["sentence"]
    assert told == validation.prevalence(FittedMJP.load(fitted), visits).verdict.sentence
    assert run("report", fitted, "days.npz", "--out", "page.html").status == 0
    assert '"unit": "years"' in (tmp_path / "page.html").read_text()


def test_a_unit_that_cannot_be_told_in_the_models(run, fitted, visits):
    write(TimeSeries.from_arrays([0.0, 1.0], [0.0, 1.0], time_unit="generations"), "other.npz")
    ended = run("decode", fitted, "other.npz", "--out", "path.csv")
    assert_refused(ended, "other.npz: times in 'generations' cannot be told in 'years'")
    assert_refused(run("decode", fitted, "years.csv", "--time-unit", "visits", "--out", "path.csv"), "'visits'")


def test_a_model_of_no_named_unit_takes_any(run, visits):
    write(visits, "years.csv")
    write(visits, "years.npz")
    assert run("fit", "years.csv", *FIT, "--out", "run").status == 0
    assert decoded(run, "run", "years.npz").time_unit == "years"


def test_in_python_another_unit_is_refused(fitted, visits):
    model, days = FittedMJP.load(fitted), visits.in_unit("days")
    told = r"the data count time in 'days', the model in 'years': convert them by data.in_unit\('years'\)"
    for use in (model.decode, model.score, model.predict_proba, model.one_step_ahead):
        with pytest.raises(InputError, match=told):
            use(days)
    for check in (validation.prevalence, validation.pearson, validation.chapman_kolmogorov):
        with pytest.raises(InputError, match=told):
            check(model, days)
    estimator = ExactMJP(3, "categorical")
    for again in (estimator.bootstrap, lambda *given: estimator.profile(*given, jump=(0, 1))):
        with pytest.raises(InputError, match=told):
            again(days, model)
    assert model.score(days.in_unit("yr")) == pytest.approx(model.score(visits))
    assert model.score(io.read("years.csv")) == pytest.approx(model.score(visits))


def test_reaction_networks(run, tmp_path):
    (tmp_path / "births.network").write_text(
        "0 -> X @ birth = 2\nX -> 0 @ death = 0.2\nbox X 30\nduration 20\nunit h\n"
    )
    assert run("simulate", "births.network", "--series", 8, "--seed", 1, "--out", "births.npz").status == 0
    assert run("fit", "births.npz", "--prior", "births.network", "--out", "run").status == 0
    minutes = read("births.npz", time_unit="min")
    write(minutes, "minutes.npz")
    whole, found = decoded(run, "run", "births.npz"), decoded(run, "run", "minutes.npz")
    assert found.time_unit == "h"
    np.testing.assert_allclose(found.values, whole.values, atol=1e-6)
    from neuralmjp import FittedNetwork

    with pytest.raises(InputError, match="the data count time in 'min', the model in 'h'"):
        FittedNetwork.load("run").decode(minutes)
