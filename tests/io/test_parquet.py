"""Parquet tables made by us and by others, and broken ones."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuralmjp.errors import InputError
from neuralmjp.io import read, write
from neuralmjp.timeseries import TimeSeries


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.parquet"


def message(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_types_of_others(path):
    table = pa.table(
        {
            "series": pa.array([3.0, 3.0, 1.0]),
            "time": pa.array([0, 1, 2**60], pa.int64()),
            "single": pa.array([0.5, None, 1.5], pa.float32()),
            "flag": pa.array([True, False, None]),
            "text": pa.array(["1", "", " 2.5 "]).dictionary_encode(),
        }
    )
    pq.write_table(table, path)
    data = read(path)
    assert data.names == ("3", "1")
    assert data.times.tolist() == [0, 1, 2.0**60]
    assert np.array_equal(data.values, [[0.5, 1, 1], [np.nan, 0, np.nan], [1.5, np.nan, 2.5]], equal_nan=True)


def test_index_of_pandas_is_no_value(path):
    pd.DataFrame({"time": [0, 1], "x": [1, 2]}, index=["p", "q"]).to_parquet(path)
    assert read(path).value_names == ("x",)


def test_columns_by_position(path):
    pq.write_table(pa.table({"t": [0, 1], "x": [1, 2], "y": [3, 4]}), path)
    assert read(path, header=False, values=2).values.ravel().tolist() == [3, 4]


def test_dots_in_names(path):
    pq.write_table(pa.table({"time": [0, 1], "x.y": [1, 2]}), path)
    assert read(path).value_names == ("x.y",)


BAD_COLUMNS = {
    "text": ({"x": ["1", "abc", "2"]}, ", row 2 (counted from 1), column 'x': 'abc' is not a number; leave"),
    "dates": (
        {"x": pa.array([0, 1, 2], pa.timestamp("us"))},
        ", column 'x': holds timestamp[us], not numbers; convert it",
    ),
    "lists": ({"x": [[1], [2], [3]]}, ", column 'x': holds list<element: int64>, not numbers; convert it to numbers"),
    "unsorted": ({"time": [0, 2, 1]}, ", row 3 (counted from 1), column 'time': time 1.0 comes after 2.0"),
    "missing time": ({"time": [0, 1, None]}, ", row 3 (counted from 1), column 'time': the time is missing"),
    "infinite": ({"x": [1, 2, np.inf]}, ", row 3 (counted from 1), column 'x': the value is inf"),
    "no series": ({"series": ["a", None, "a"]}, ", row 2 (counted from 1), column 'series': the series is not named"),
    "no series number": ({"series": [1.0, 1.0, np.nan]}, ", row 3 (counted from 1), column 'series': the series"),
    "no rows": ({"time": [], "x": []}, ": the table has no rows of data"),
}


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_message_names_file_row_and_column(case, path):
    columns, expected = BAD_COLUMNS[case]
    pq.write_table(pa.table({"time": [0, 1, 2], "x": [1.0, 2.0, 3.0]} | columns), path)
    assert message(path).startswith(f"{path}{expected}")


def test_missing_column(path):
    pq.write_table(pa.table({"time": [0, 1], "x": [1, 2]}), path)
    assert message(path, values="y") == f"{path}: no column 'y'; the columns are 'time', 'x'"


def test_row_numbers_count_across_batches(path):
    x = np.zeros(300_000)
    x[250_000] = np.inf
    pq.write_table(pa.table({"time": np.arange(300_000), "x": x}), path, row_group_size=70_000)
    assert message(path).startswith(f"{path}, row 250001 (counted from 1), column 'x'")


class TestBroken:
    """Files that are not, or no longer, what they say."""

    @pytest.fixture(autouse=True)
    def _write(self, path):
        rng = np.random.default_rng(0)
        write(TimeSeries.from_arrays(np.cumsum(rng.random(5000)), rng.random(5000)), path)

    @pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.999])
    def test_truncated(self, path, share):
        whole = path.read_bytes()
        path.write_bytes(whole[: int(share * len(whole))])
        assert message(path).startswith(f"{path}: is cut short or damaged; copy it again (")

    def test_damaged_inside(self, path):
        whole = path.read_bytes()
        path.write_bytes(whole[:100] + b"\xff" * 20_000 + whole[20_100:])
        assert message(path).startswith(f"{path}: is cut short or damaged; copy it again (")

    def test_not_parquet(self, path):
        path.write_text("time,x\n0,1\n")
        assert message(path) == f"{path}: is not a Parquet file; give it the extension of what it is"
