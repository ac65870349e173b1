"""Dates in tables: read as times since the earliest, in any unit, and written back; one line for what is none."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuralmjp.errors import InputError
from neuralmjp.io import open_store, read, write
from neuralmjp.io.folders import write_parts
from neuralmjp.timeseries import TimeSeries

DAYS = ["2024-01-31", "2024-02-01", "2024-02-03"]
MINUTES = ["2024-01-31 12:30", "2024-02-01 12:45", "2024-02-03 00:00"]
ZONED = ["2024-01-31T12:30:00Z", "2024-01-31T13:30:30+01:00", "2024-01-31T14:30:00+0100"]


def table(folder, times, name="dates.csv"):
    path = folder / name
    path.write_text("time,x\n" + "".join(f"{time},{k}\n" for k, time in enumerate(times)))
    return path


def message(make, *args, **options) -> str:
    with pytest.raises(InputError) as caught:
        make(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("times", "unit", "expected", "origin"),
    [
        (DAYS, "days", [0, 1, 3], "2024-01-31"),
        ([f"{day} 12:00" for day in DAYS], "days", [0, 1, 3], "2024-01-31T12:00:00"),
        (["2024-01-31", "2024-01-31 05:00"], "h", [0, 5], "2024-01-31"),
        (MINUTES, "min", [0, 1455, 3570], "2024-01-31T12:30:00"),
        (ZONED, "s", [0, 30, 3600], "2024-01-31T12:30:00Z"),
        (["2024-01-31T00:00:00.25", "2024-01-31T00:00:01"], "s", [0, 0.75], "2024-01-31T00:00:00.250000"),
        (["0001-01-01", "9999-12-31"], "days", [0, 3652058], "0001-01-01"),
        (['"2024-01-31"', " 2024-02-01 "], "days", [0, 1], "2024-01-31"),
    ],
)
def test_text(times, unit, expected, origin, tmp_path):
    data = read(table(tmp_path, times))
    assert (data.time_unit, data.times.tolist(), data.origin) == (unit, expected, origin)


@pytest.mark.parametrize(
    ("unit", "per_day"),
    [("days", 1), ("hours", 24), ("weeks", 1 / 7), ("months", 12 / 365.25), ("years", 1 / 365.25), ("min", 1440),
     ("s", 86400), ("ms", 86400e3)],
)  # fmt: skip
def test_units_that_are_asked_for(unit, per_day, tmp_path):
    data = read(table(tmp_path, DAYS), time_unit=unit)
    assert data.time_unit == unit
    np.testing.assert_allclose(data.times, np.array([0, 1, 3]) * per_day, rtol=1e-15)


def test_numbers_stay_numbers(tmp_path):
    data = read(table(tmp_path, [20240131, 20240201]))
    assert (data.times.tolist(), data.time_unit, data.origin) == ([20240131, 20240201], "time unit", None)


def test_the_earliest_date_of_all_series(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("series,time,x\nb,2024-03-01,1\nb,2024-03-02,2\na,2024-02-01,1\na,2024-02-03,2\n")
    data = read(path)
    assert data["b"].times.tolist() == [29, 30]
    assert data["a"].times.tolist() == [0, 2]
    assert data["b"].dates.astype("datetime64[D]").tolist() == [date(2024, 3, 1), date(2024, 3, 2)]


def test_more_rows_than_a_batch(tmp_path):
    """The earliest date comes last, and no sooner does anything show that not all are whole hours."""
    times = np.datetime64("2024-01-31", "h") + np.arange(60_000)
    texts = [*map(str, times), "2024-01-30T23:59"]
    path = tmp_path / "long.csv"
    path.write_text("series,time,x\n" + "".join(f"{k == 60_000},{text}:00,1\n" for k, text in enumerate(texts[:-1])))
    with open(path, "a") as file:
        file.write("last,2024-01-30T23:59,1\nlast,2024-01-31T00:00,2\n")
    data = read(path)
    assert (data.time_unit, data.origin) == ("min", "2024-01-30T23:59:00")
    assert np.array_equal(data.times[:60_000], 1 + 60 * np.arange(60_000.0))


COLUMNS = {
    "date32": pa.array([date(2024, 1, 31), date(2024, 2, 1)]),
    "date64": pa.array([date(2024, 1, 31), date(2024, 2, 1)], pa.date64()),
    "seconds": pa.array([datetime(2024, 1, 31), datetime(2024, 2, 1)], pa.timestamp("s")),
    "nanoseconds": pa.array([datetime(2024, 1, 31), datetime(2024, 2, 1)], pa.timestamp("ns")),
    "text": pa.array(["2024-01-31", "2024-02-01"]),
    "categories": pa.array(["2024-01-31", "2024-02-01"]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_parquet_columns(kind, tmp_path):
    pq.write_table(pa.table({"time": COLUMNS[kind], "x": [1.0, 2.0]}), tmp_path / "x.parquet")
    data = read(tmp_path / "x.parquet")
    assert (data.times.tolist(), data.time_unit, data.origin) == ([0, 1], "days", "2024-01-31")


FRAMES = {
    "datetime64": pd.to_datetime(DAYS),
    "Timestamp": [pd.Timestamp(day) for day in DAYS],
    "date": [date.fromisoformat(day) for day in DAYS],
    "datetime": np.array([datetime.fromisoformat(day) for day in DAYS], object),
    "text": DAYS,
    "categories": pd.Categorical(DAYS),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames(kind):
    data = TimeSeries.from_frame(pd.DataFrame({"time": FRAMES[kind], "x": [1.0, 2, 3]}))
    assert (data.times.tolist(), data.time_unit, data.origin) == ([0, 1, 3], "days", "2024-01-31")
    in_hours = TimeSeries.from_frame(pd.DataFrame({"time": FRAMES[kind], "x": [1.0, 2, 3]}), time_unit="h")
    assert (in_hours.times.tolist(), in_hours.time_unit) == ([0, 24, 72], "h")


def test_zones_count_as_what_they_are():
    """The clocks in Berlin went forward between these noons: 23 hours."""
    times = pd.to_datetime(["2024-03-30 12:00", "2024-03-31 12:00"]).tz_localize("Europe/Berlin")
    data = TimeSeries.from_frame(pd.DataFrame({"time": times, "x": [1.0, 2]}))
    assert (data.times.tolist(), data.time_unit, data.origin) == ([0, 23], "h", "2024-03-30T11:00:00Z")


WRONG = {
    "zone missing": (
        [ZONED[0], DAYS[1]],
        "3",
        "'2024-02-01' names no zone, but the dates before it name a zone; write",
    ),
    "zone too much": ([DAYS[0], ZONED[0]], "3", "'2024-01-31T12:30:00Z' names a zone, but the dates before it name no"),
    "no date": ([*DAYS[:2], "later"], "4", "'later' is no date such as 2024-01-31 or 2024-01-31T12:30:00Z, but the"),
    "a number": ([*DAYS[:2], 7], "4", "'7' is a number, but the times before it are dates; write all of them alike"),
    "no number": ([1, 2, DAYS[2]], "4", "'2024-02-03' is a date, but the times before it are numbers; write all of"),
    "missing": ([DAYS[0], "", DAYS[1]], "3", "the time is missing; every observation needs one"),
    "missing first": (["NA", *DAYS], "2", "the time is missing; every observation needs one"),
    "other forms": (["31.01.2024"], "2", "'31.01.2024' is not a number; every observation needs a time: a number, or"),
    "month": (["2024-01"], "2", "'2024-01' is not a number; every observation needs a time: a number, or a date such"),
    "no such day": (
        ["2024-02-30"],
        "2",
        "'2024-02-30' is no date in ISO's form, of the calendar and to the microsecond",
    ),
    "too fine": (
        ["2024-02-03T00:00:00.123456789"],
        "2",
        "'2024-02-03T00:00:00.123456789' is no date in ISO's form, of the calendar and to the microsecond",
    ),
    "order": ([DAYS[1], DAYS[0]], "3", "2024-01-31 comes after 2024-02-01; sort each series by time"),
    "repeated": ([DAYS[0], DAYS[0]], "3", "2024-01-31 is repeated; keep one observation per time in each series"),
}


@pytest.mark.parametrize("case", WRONG)
def test_one_line_for_what_cannot_be_read(case, tmp_path):
    times, line, expected = WRONG[case]
    path = table(tmp_path, times)
    assert message(read, path).startswith(f"{path}, line {line}, column 'time': {expected}")


def test_dates_are_no_values(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("time,x\n0,1\n1,2024-01-31\n")
    assert message(read, path).endswith(
        "line 3, column 'x': '2024-01-31' is a date; choose other columns with --values"
    )
    frame = pd.DataFrame({"time": [0, 1], "x": pd.to_datetime(DAYS[:2])})
    assert "data frame, column 'x': holds timestamp" in message(TimeSeries.from_frame, frame)


@pytest.mark.parametrize("unit", ["visits", "generations"])
def test_a_unit_that_dates_cannot_be_told_in(unit, tmp_path):
    assert f"times in 'days' cannot be told in '{unit}'" in message(read, table(tmp_path, DAYS), time_unit=unit)


def test_finer_than_a_microsecond():
    frame = pd.DataFrame({"time": pd.to_datetime([0, 1500]), "x": [1.0, 2]})
    assert "row 1 (counted from 0), column 'time'" in message(TimeSeries.from_frame, frame)
    assert "is finer than a microsecond" in message(TimeSeries.from_frame, frame)


def test_out_of_the_calendar():
    frame = pd.DataFrame({"time": np.array(["2024-01-31", "12024-01-31"], "datetime64[s]"), "x": [1.0, 2]})
    assert "is no date of the years 1 to 9999" in message(TimeSeries.from_frame, frame)


class TestPeriods:
    """Arrow would take the number behind a period: months since 1970."""

    frame = pd.DataFrame({"time": pd.period_range("2024-01", periods=2, freq="M"), "x": [1.0, 2]})
    told = "column 'time': holds periods; give the date on which each begins, such as column.dt.to_timestamp()"

    def test_in_frames_and_files(self, tmp_path):
        self.frame.to_parquet(tmp_path / "x.parquet")
        assert self.told in message(TimeSeries.from_frame, self.frame)
        assert self.told in message(read, tmp_path / "x.parquet")

    def test_where_nobody_has_told_arrow_of_them(self, tmp_path):
        """In a process of its own: pandas does so when it first makes some, and until then Arrow sees numbers."""
        self.frame.to_parquet(tmp_path / "x.parquet")
        code = f"import neuralmjp.io\ntry: neuralmjp.io.read({str(tmp_path / 'x.parquet')!r})\n"
        code += "except ValueError as error: print(error)"
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert self.told in ended.stdout


def test_files_of_dates_are_brought_to_the_finest_of_their_units(tmp_path):
    """One of days, one with a noon among them: together they count hours."""
    days = table(tmp_path, DAYS, "days.csv")
    noon = table(tmp_path, ["2024-01-01", "2024-01-02 12:00"], "noon.csv")
    both = read([days, noon])
    assert (both.time_unit, both.origin) == ("h", "2024-01-01")
    assert both["noon"].times.tolist() == [0, 36]
    assert both["days"].times.tolist() == [24 * 30, 24 * 31, 24 * 33]


class TestFolders:
    """Parts count from one date, which may be in any of them."""

    def write(self, folder, *parts):
        for k, times in enumerate(parts):
            columns = {"series": [f"s{k}"] * len(times), "time": times, "x": np.arange(1.0, 1 + len(times))}
            pq.write_table(pa.table(columns), folder / f"part-{k}.parquet", row_group_size=2)

    def test_the_earliest_date_is_in_another_part(self, tmp_path):
        self.write(tmp_path, DAYS, ["2024-01-01", "2024-01-02"])
        store = open_store(tmp_path)
        assert store.time_unit == "days"
        assert store.chunk(0).times.tolist() == [30, 31]
        assert store.chunk(2).times.tolist() == [0, 1]
        assert {store.chunk(k).origin for k in (0, 2)} == {"2024-01-01"}
        whole = read(tmp_path)
        assert (whole.times.tolist(), whole.origin) == ([30, 31, 33, 0, 1], "2024-01-01")

    def test_in_a_unit(self, tmp_path):
        self.write(tmp_path, DAYS, ["2024-01-01", "2024-01-02 12:00"])
        assert open_store(tmp_path).time_unit == "h"
        store = open_store(tmp_path, time_unit="weeks")
        np.testing.assert_allclose(store.chunk(0).times, [30 / 7, 31 / 7], rtol=1e-15)
        assert store.whole().equals(read(tmp_path, time_unit="weeks"))

    def test_files_that_are_series(self, tmp_path):
        for name, times in (("a", DAYS), ("b", ["2024-01-01", "2024-01-02"])):
            pd.DataFrame({"time": pd.to_datetime(times), "x": 1.0}).to_parquet(tmp_path / f"{name}.parquet")
        store = open_store(tmp_path)
        assert store.chunk(0).times.tolist() == [30, 31, 33]
        assert store.whole().times.tolist() == [30, 31, 33, 0, 1]
        assert (store.whole().origin, store.whole().names) == ("2024-01-01", ("a", "b"))

    def test_zones_in_some_parts(self, tmp_path):
        self.write(tmp_path, DAYS, ZONED)
        told = message(open_store, tmp_path)
        assert told.startswith(f"{tmp_path / 'part-1.parquet'}, row 1 (counted from 1), column 'time': ")
        assert "names a zone" in told

    def test_numbers_in_some_parts(self, tmp_path):
        self.write(tmp_path, DAYS, [0.0, 1.0])
        assert (
            "part-1.parquet, row 1 (counted from 1), column 'time': '0' is a number, but the times before it are dates"
            in message(open_store, tmp_path)
        )

    def test_dates_in_later_parts_alone(self, tmp_path):
        """Said of the part, whichever is read first."""
        self.write(tmp_path, [0.0, 1.0], DAYS)
        told = message(open_store, tmp_path)
        assert told.startswith(f"{tmp_path / 'part-1.parquet'}, row 1 (counted from 1), column 'time': ")
        assert "is a date, but the times before it are numbers" in told

    @pytest.mark.parametrize("unit", ["ms", None])
    def test_files_that_are_series_in_other_units(self, tmp_path, unit):
        """Refused by the whole as by its chunks."""
        for name, counted in (("a", "s"), ("b", unit)):
            data = TimeSeries.from_arrays([0.0, 1.0], [1.0, 2.0], **({} if counted is None else {"time_unit": counted}))
            write(data, tmp_path / f"{name}.parquet")
        store = open_store(tmp_path)
        for ask in (store.whole, lambda: store.chunk(1)):
            assert "b.parquet: counts time in" in message(ask)

    def test_bad_rows_of_later_groups(self, tmp_path):
        self.write(tmp_path, [*DAYS, "soon"])
        assert "part-0.parquet, row 4 (counted from 1), column 'time': 'soon' is no date" in message(
            open_store, tmp_path
        )

    def test_parts_that_were_written_here(self, tmp_path):
        data = read(table(tmp_path, MINUTES), time_unit="h")
        write_parts([data], tmp_path / "parts")
        assert read(tmp_path / "parts").equals(data)


class TestWriting:
    """Files hold dates where the data have an origin."""

    @pytest.mark.parametrize(
        ("times", "written"),
        [
            (DAYS, DAYS),
            (MINUTES, ["2024-01-31 12:30:00", "2024-02-01 12:45:00", "2024-02-03 00:00:00"]),
            (ZONED, ["2024-01-31 12:30:00Z", "2024-01-31 12:30:30Z", "2024-01-31 13:30:00Z"]),
            (["2024-01-31T00:00:00.25", "2024-01-31T00:00:01"], ["2024-01-31 00:00:00.250", "2024-01-31 00:00:01.000"]),
        ],
    )
    def test_text(self, times, written, tmp_path):
        write(read(table(tmp_path, times)), tmp_path / "again.csv")
        lines = (tmp_path / "again.csv").read_text().splitlines()
        assert [line.split(",")[1] for line in lines[1:]] == written

    @pytest.mark.parametrize("extension", [".csv", ".tsv", ".parquet", ".npz", ".h5", ".zarr"])
    @pytest.mark.parametrize("times", [DAYS, MINUTES, ZONED], ids=["days", "minutes", "zones"])
    def test_what_is_written_is_read(self, extension, times, tmp_path):
        data = read(table(tmp_path, times), time_unit="years")
        write(data, tmp_path / f"again{extension}")
        again = read(tmp_path / f"again{extension}", time_unit="years")
        assert np.array_equal(again.dates, data.dates)
        np.testing.assert_allclose(again.times, data.times, rtol=1e-14)
        assert (again.origin, again.time_unit) == (data.origin, "years")

    def test_frames(self):
        times = pd.to_datetime(["2024-01-31 12:30", "2024-02-01 00:00"])
        data = TimeSeries.from_frame(pd.DataFrame({"time": times, "x": [1.0, 2]}))
        assert data.to_frame()["time"].tolist() == times.tolist()
        assert TimeSeries.from_frame(data.to_frame()).equals(data)

    @given(st.lists(st.datetimes(datetime(1000, 1, 1), datetime(1030, 1, 1)), min_size=2, max_size=9, unique=True))
    def test_every_microsecond_comes_back(self, times):
        data = TimeSeries.from_frame(pd.DataFrame({"time": np.array(sorted(times), "datetime64[us]"), "x": 1.0}))
        assert data.in_unit("years").dates.tolist() == sorted(times)


class TestSeries:
    """What a `TimeSeries` does with its origin."""

    data = TimeSeries.from_arrays([0.0, 1.5], [1.0, 2.0], time_unit="days", origin="2024-01-31")

    def test_shown(self):
        assert "time in days since 2024-01-31" in repr(self.data)
        assert self.data.dates.tolist() == [datetime(2024, 1, 31), datetime(2024, 2, 1, 12)]

    def test_parts_keep_it(self):
        assert self.data[0].origin == self.data.in_unit("h").origin == self.data.between(0, 9).origin == "2024-01-31"
        assert self.data.in_unit("h").dates.tolist() == self.data.dates.tolist()

    @pytest.mark.parametrize(
        "origin", [pd.Timestamp("2024-01-31"), np.datetime64("2024-01-31"), datetime(2024, 1, 31).date(), "20240131"]
    )
    def test_origins_of_any_kind_are_the_same(self, origin):
        other = TimeSeries.from_arrays([0.0, 1.5], [1.0, 2.0], time_unit="days", origin=origin)
        assert other.origin == "2024-01-31"
        assert other.equals(self.data)

    @pytest.mark.parametrize("kind", [str, pd.Timestamp, np.datetime64, datetime.fromisoformat])
    def test_cut_by_dates(self, kind):
        part = self.data.between(kind("2024-02-01"), kind("2024-02-02"))
        assert (part.times.tolist(), part.origin) == ([1.5], "2024-01-31")

    def test_cut_by_dates_that_there_are_not(self):
        plain = TimeSeries.from_arrays([0.0, 1.5], [1.0, 2.0], time_unit="days")
        assert "the data have no dates: give a time such as 10" in message(plain.between, "2024-02-01", "2024-02-02")
        assert "is no date such as" in message(self.data.between, "soon", "2024-02-02")
        fine = np.datetime64("2024-02-01T00:00:00.123456789")
        assert "is finer than a microsecond: round it" in message(self.data.between, fine, "2024-02-02")
        assert "names a zone, but the dates in the data name none" in message(self.data.between, 0, "2024-02-02T00:00Z")
        told = "no value lies between 2024-02-10 and 2024-02-20; the data run from 2024-01-31 to 2024-02-01T12:00:00"
        assert told in message(self.data.between, "2024-02-10", "2024-02-20")

    @given(
        st.lists(st.integers(0, 10**14), min_size=2, max_size=9, unique=True),
        st.sampled_from(["us", "ms", "s", "min", "h", "days", "weeks", "months", "years"]),
        st.sampled_from(["s", "h", "days", "years"]),
    )
    def test_the_same_dates_are_the_same_times_whichever_way_they_came(self, since, unit, way):
        """At once or by a detour, from files that count from other dates; none is lost where a part begins."""
        start = np.datetime64("2001-02-03T04:05:06", "us")
        frame = pd.DataFrame({"time": start + np.sort(np.array(since)).astype("timedelta64[us]"), "x": 1.0})
        read_at_once = TimeSeries.from_frame(frame, time_unit=unit)
        assert TimeSeries.from_frame(frame, time_unit=way).in_unit(unit).equals(read_at_once)
        later = (
            TimeSeries.from_frame(frame.iloc[1:].assign(series="b"), series="series", time_unit=unit)
            if (len(frame) > 2)
            else read_at_once
        )
        both = TimeSeries.concatenate([replace(read_at_once, names=("a",)), replace(later, names=("b",))])
        np.testing.assert_array_equal(both["b"].times, read_at_once.times[-len(later.times) :])
        for k, day in enumerate(read_at_once.dates):
            assert read_at_once.between(day, "2100-01-01").n_observations == len(since) - k
            if k:
                assert read_at_once.between(0, day).n_observations == k

    def test_times_that_never_were_dates_keep_their_digits(self):
        """A microsecond is no limit to what merely counts from a date."""
        fine = TimeSeries.from_arrays([0.0, 0.25, 1.75], [1.0, 2.0, 3.0], time_unit="ns", origin="2024-01-31")
        np.testing.assert_allclose(fine.in_unit("ps").times, [0.0, 250.0, 1750.0], rtol=1e-15)

    def test_beyond_the_calendar(self):
        assert "time 1000000000.0 is repeated" in message(
            TimeSeries.from_arrays, [0, 1e9, 1e9], [1, 2, 3], time_unit="days", origin="2024-01-31"
        )

    def test_the_last_digits_of_an_origin_do_not_wander_into_far_dates(self):
        """Beyond 35 years dates are told to the millisecond, of the calendar and not of the origin."""
        frame = pd.DataFrame(
            {"time": np.array(["1900-01-01T00:00:00.123456", "1950-01-01T10:00:00.5"], "M8[us]"), "x": 1}
        )
        assert TimeSeries.from_frame(frame).dates[1] == np.datetime64("1950-01-01T10:00:00.5")

    def test_days_are_timestamps_to_programs(self, tmp_path):
        """Parquet and frames join to what pandas makes of a column of days; text has the day alone."""
        days = TimeSeries.from_arrays([0.0, 1.0], [1.0, 2.0], time_unit="days", origin="2024-01-31")
        write(days, tmp_path / "days.parquet")
        write(days, tmp_path / "days.csv")
        for frame in (pd.read_parquet(tmp_path / "days.parquet"), days.to_frame()):
            assert pd.api.types.is_datetime64_any_dtype(frame["time"])
            assert frame["time"].tolist() == [pd.Timestamp("2024-01-31"), pd.Timestamp("2024-02-01")]
        assert "0,2024-01-31,1\n" in (tmp_path / "days.csv").read_text()

    def test_other_origin_other_data(self):
        other = TimeSeries.from_arrays([0.0, 1.5], [1.0, 2.0], time_unit="days", origin="2024-02-01")
        assert not self.data.equals(other)

    def test_several_count_from_the_earliest(self):
        other = TimeSeries.from_arrays([0.0, 1.0], [1.0, 2.0], time_unit="days", origin="2024-01-01", names=["b"])
        both = TimeSeries.concatenate([self.data, other])
        assert (both.times.tolist(), both.origin) == ([30, 31.5, 0, 1], "2024-01-01")

    def test_several_files(self, tmp_path):
        paths = [table(tmp_path, DAYS, "a.csv"), table(tmp_path, ["2024-01-01", "2024-01-02"], "b.csv")]
        assert read(paths).times.tolist() == [30, 31, 33, 0, 1]

    @pytest.mark.parametrize("origin", [None, "2024-01-31T00:00Z"])
    def test_not_with_those_that_count_otherwise(self, origin):
        other = TimeSeries.from_arrays([0.0, 1.0], [1.0, 2.0], time_unit="days", origin=origin, names=["b"])
        assert "make all alike" in message(TimeSeries.concatenate, [self.data, other])

    @pytest.mark.parametrize(
        ("unit", "origin", "told"),
        [
            ("visits", "2024-01-31", "times in 'visits' cannot count from the date"),
            ("days", "soon", "is no date such as"),
        ],
    )
    def test_refused(self, unit, origin, told):
        assert told in message(TimeSeries.from_arrays, [0.0, 1.0], [1.0, 2.0], time_unit=unit, origin=origin)

    def test_out_of_the_calendar(self):
        far = TimeSeries.from_arrays([0.0, 1e300], [1.0, 2.0], time_unit="days", origin="2024-01-31")
        assert "beyond the year 9999" in message(lambda: far.dates)
        choices = {"time_unit": "h", "origin": "0001-01-01T00:00+01:00"}
        assert "is no date such as" in message(TimeSeries.from_arrays, [0.0, 1.0], [1.0, 2.0], **choices)

    def test_zones_are_utc(self):
        zoned = TimeSeries.from_arrays([0.0, 1.0], [1.0, 2.0], time_unit="h", origin="2024-01-31T01:00+01:00")
        assert zoned.dates[0] == np.datetime64(datetime(2024, 1, 31, tzinfo=UTC).replace(tzinfo=None))
