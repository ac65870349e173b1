"""Commands and dates: what is read as dates is told, decoded and forecast as dates."""

import json

import numpy as np
import pandas as pd
import pytest

from command import assert_refused
from neuralmjp import FittedMJP, read

FIT = ("--states", 2, "--emission", "categorical", "--time", "date", "--series", "person", "--values", "ill")


@pytest.fixture
def visits(tmp_path):
    """Visits of some people, every month or two for some years; some are missing."""
    rng = np.random.default_rng(0)
    rows = []
    for person in range(30):
        day, ill = pd.Timestamp("2019-05-01") + pd.Timedelta(days=int(rng.integers(200))), 0
        for _ in range(12):
            rows.append({"person": f"p{person}", "date": day.date(), "ill": ill if rng.random() < 0.8 else None})
            gap = int(rng.integers(30, 90))
            day += pd.Timedelta(days=gap)
            ill = ill ^ int(rng.random() < gap / 300)
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    return frame


@pytest.fixture
def fitted(run, visits):
    ended = run("fit", "visits.csv", *FIT, "--time-unit", "years", "--out", "run")
    assert ended.status == 0, ended.err
    return "run"


def test_described(run, visits, tmp_path):
    columns = FIT[4:]
    ended = run("describe", "visits.csv", *columns, "--json", "facts.json")
    first, last = visits["date"].min(), visits["date"].max()
    assert f"dates from {first} to {last}, counted in days" in ended.out
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert (facts["time_unit"], facts["origin"]) == ("days", str(first))


def test_decoded(run, visits, fitted):
    """Row for row with the dates of the table; the model counts in the unit that the fit was asked for."""
    assert FittedMJP.load(fitted).time_unit == "years"
    ended = run("decode", fitted, "visits.csv", "--out", "path.csv")
    assert ended.status == 0, ended.err
    found = pd.read_csv("path.csv")
    assert found["time"].tolist() == visits["date"].map(str).tolist()
    data = read("visits.csv", series="person", time="date", values="ill", time_unit="years")
    np.testing.assert_allclose(found[["p_0", "p_1"]], FittedMJP.load(fitted).decode(data).probabilities, atol=1e-12)


def test_a_model_of_numbers_decodes_dates(run, visits):
    """The same visits, once as years in numbers and once as dates."""
    numbers = visits.assign(date=(pd.to_datetime(visits["date"]) - pd.Timestamp("2019-05-01")).dt.days / 365.25)
    numbers.to_csv("numbers.csv", index=False)
    assert run("fit", "numbers.csv", *FIT, "--time-unit", "years", "--out", "run").status == 0
    for name in ("numbers", "visits"):
        assert run("decode", "run", f"{name}.csv", "--out", f"path-{name}.csv").status == 0
    numbered, dated = pd.read_csv("path-numbers.csv"), pd.read_csv("path-visits.csv")
    np.testing.assert_allclose(numbered["p_1"], dated["p_1"], atol=1e-9)
    assert dated["time"].tolist() == visits["date"].map(str).tolist()


@pytest.mark.parametrize("until", ["2022-06-01", "2022-06-01T12:00"])
def test_forecast_to_a_date(run, visits, fitted, until):
    ended = run("predict", fitted, "visits.csv", "--until", until, "--samples", 50, "--out", "ahead.csv")
    assert ended.status == 0, ended.err
    ends = pd.read_csv("ahead.csv", parse_dates=["time"]).groupby("series")["time"].max()
    assert (ends == pd.Timestamp(until)).all()
    assert "date" in ended.out
    assert until in ended.out


def test_who_is_seen_later_is_left_out(run, visits, fitted):
    ends = pd.to_datetime(visits["date"]).groupby(visits["person"]).max()
    until = ends.sort_values().iloc[10] + pd.Timedelta(days=1)
    ended = run("predict", fitted, "visits.csv", "--until", until.date().isoformat(), "--out", "ahead.csv")
    assert ended.status == 0, ended.err
    gone = int((ends >= until).sum())
    assert f"{gone} of 30 series are left out: they go on to that time, as" in ended.out
    found = pd.read_csv("ahead.csv")
    assert set(found["series"]) == set(ends.index[ends < until])
    assert "Forecast at the end: chance of each ill" in ended.out


def test_forecast_by_steps(run, visits, fitted):
    assert run("predict", fitted, "visits.csv", "--steps", 1, "--samples", 50, "--out", "ahead.csv").status == 0
    found = pd.read_csv("ahead.csv", parse_dates=["time"]).set_index("series")["time"]
    for person, rows in visits.groupby("person"):
        days = pd.to_datetime(rows["date"])
        assert abs(found[person] - days.iloc[-1] - days.diff().median()) < pd.Timedelta(milliseconds=1)


def test_dates_that_are_refused(run, visits, fitted):
    predict = ("predict", fitted, "visits.csv", "--until")
    assert_refused(run(*predict, "2019-06-01"), "--until 2019-06-01 is not after the last observation of series 'p")
    assert_refused(run(*predict, "soon"), "'soon' is no date such as 2024-01-31")
    assert_refused(
        run(*predict, "2030"), "--until 2030 is a number of years since", "the year is meant, write 2030-01-01"
    )
    assert_refused(run(*predict, "20300101"), "years since 2019-05-13, and leads beyond the year 9999; a date")
    assert_refused(run(*predict, "2030-01-01T00:00Z"), "names a zone, but the dates in the data name none")


def test_no_date_where_the_data_have_none(run, visits, tmp_path):
    visits.assign(date=visits.groupby("person").cumcount()).to_csv("numbers.csv", index=False)
    assert run("fit", "numbers.csv", *FIT, "--out", "run").status == 0
    assert_refused(run("predict", "run", "numbers.csv", "--until", "2030-01-01"), "the data have no dates")
    ended = run("decode", "run", "visits.csv", "--out", "path.csv")
    assert_refused(ended, "visits.csv: holds dates, but the model counts time in 'time unit'", "--time-unit")
    assert run("decode", "run", "visits.csv", "--time-unit", "months", "--out", "path.csv").status == 0
    (tmp_path / "parts").mkdir()
    read("visits.csv", series="person", time="date", values="ill").to_frame().to_parquet(
        tmp_path / "parts" / "a.parquet"
    )
    columns = ("--series", "series", "--time", "time")
    assert_refused(run("report", "run", "parts", *columns), "parts: holds dates, but the model counts time in 'time")
    assert run("report", "run", "parts", *columns, "--time-unit", "months").status == 0


def test_zones(run, tmp_path):
    times = pd.date_range("2024-01-31", periods=40, freq="h", tz="Europe/Berlin")
    states = np.arange(40) // 7 % 2
    pd.DataFrame({"time": times, "x": states}).to_parquet("log.parquet")
    assert run("fit", "log.parquet", *FIT[:4], "--out", "run").status == 0
    assert FittedMJP.load("run").time_unit == "h"
    assert run("predict", "run", "log.parquet", "--until", "2024-02-02", "--samples", 50, "--out", "a.csv").status == 0
    assert pd.read_csv("a.csv")["time"].iloc[-1] == "2024-02-02 00:00:00Z"
