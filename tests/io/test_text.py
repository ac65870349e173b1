"""Plain columns of numbers without times: a rate makes them recordings."""

import numpy as np
import pytest

from neuralmjp.errors import InputError
from neuralmjp.io import read


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "KcvMT325_140mV.txt"
    path.write_text("-1.5\n 2.25\n\n3e-1\n-1.5\n")
    return path


def message(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_one_column_at_a_rate(recording):
    data = read(recording, rate="5kHz")
    assert data.times.tolist() == [0.0, 2e-4, 4e-4, 6e-4]
    assert data.values[:, 0].tolist() == [-1.5, 2.25, 0.3, -1.5]
    assert (data.time_unit, data.value_names) == ("s", ("column 0",))


@pytest.mark.parametrize(
    ("options", "gap", "unit"),
    [
        ({"rate": "5kHz", "time_unit": "ms"}, 0.2, "ms"),
        ({"rate": 4}, 0.25, "time unit"),
        ({"rate": "4", "time_unit": "h"}, 0.25, "h"),
    ],
)
def test_units(recording, options, gap, unit):
    data = read(recording, **options)
    np.testing.assert_allclose(data.gaps, gap, rtol=1e-12)
    assert data.time_unit == unit


@pytest.mark.parametrize("text", ["1\t2\n3\t4\n5\t6\n", "1,2\n3,4\n5,6\n", " 1   2\n 3   4 \n5 6\n"])
def test_several_columns(tmp_path, text):
    path = tmp_path / "two.txt"
    path.write_text(text)
    data = read(path, rate="1kHz")
    assert data.values.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert read(path, rate="1kHz", values=1).values[:, 0].tolist() == [2, 4, 6]


def test_one_column_with_a_name(tmp_path):
    path = tmp_path / "current.csv"
    path.write_text("current\n1\n\n2\n")
    data = read(path, rate="10Hz")
    assert (data.value_names, data.times.tolist()) == (("current",), [0.0, 0.1])


def test_every_series_has_its_own_clock(tmp_path):
    path = tmp_path / "series.csv"
    path.write_text("series,x\na,1\nb,2\na,3\nb,4\nb,5\n")
    data = read(path, rate=2.0)
    assert data["a"].times.tolist() == [0, 0.5]
    assert data["b"].times.tolist() == [0, 0.5, 1]
    assert data["b"].values[:, 0].tolist() == [2, 4, 5]


def test_parquet_and_arrays_take_a_rate_too(tmp_path):
    import pandas as pd

    pd.DataFrame({"x": [1.0, 2.0]}).to_parquet(tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet", rate="10Hz").times.tolist() == [0, 0.1]
    np.savez(tmp_path / "x.npz", np.arange(3.0))
    assert read(tmp_path / "x.npz", rate="10Hz").times.tolist() == [0, 0.1, 0.2]
    np.savez(tmp_path / "t.npz", times=[0.0, 1.0], values=[1.0, 2.0])
    assert message(tmp_path / "t.npz", rate="10Hz").endswith("holds an array 'times'; leave out --rate")


def test_several_files_are_several_series(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text("1\n2\n")
    (tmp_path / "y.txt").write_text("3\n4\n5\n")
    data = read([tmp_path / "a" / "x.txt", tmp_path / "y.txt"], rate=1)
    assert (data.names, data.lengths.tolist()) == (("x", "y"), [2, 3])
    same = [tmp_path / "a" / "x.txt", tmp_path / "b" / "x.txt"]
    assert read(same, rate=1).names == tuple(map(str, same))
    with pytest.raises(InputError, match="no file to read"):
        read([])


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({}, "no column 'time'; name the column of times with --time, or give --rate"),
        ({"rate": "fast"}, "the rate is a frequency such as 50Hz, got 'fast'"),
        ({"rate": "-5kHz"}, "the rate is a frequency"),
        ({"rate": "5kHz", "time_unit": "years"}, "the data's unit of time is 'years'"),
        ({"rate": 1, "time": 0}, "times come from a column or from the rate; leave out --time or --rate"),
        ({"rate": 1, "topology": "x.pdb"}, "a table has no use for --topology; leave it out"),
        ({"rate": 1, "topology": "x.pdb", "channel": 0}, "no use for --channel, --topology; leave them out"),
    ],
)
def test_refused(recording, options, what):
    assert what in message(recording, **options)


def test_bad_number_is_found(recording):
    recording.write_text("1\n2\nx\n")
    assert "line 3, column 0: 'x' is not a number" in message(recording, rate=1)


def test_a_table_with_times_needs_no_rate(table):
    assert "has a column 'time'; leave out --rate" in message(table, rate=1)
    assert read(table, rate=1, values="a")["x"].times.tolist() == [0, 1, 2]
