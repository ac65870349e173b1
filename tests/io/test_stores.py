"""Folders of Parquet files and Zarr groups: read whole, read chunk by chunk, and broken ones."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from neuralmjp.errors import InputError
from neuralmjp.io import is_store, open_store, read, write
from neuralmjp.io.folders import part_files, write_parts
from neuralmjp.timeseries import TimeSeries

LENGTHS = (7, 1, 40, 2, 33)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    times = [np.sort(rng.uniform(0, 9, n)) for n in LENGTHS]
    values = [rng.normal(size=(n, 2)) for n in LENGTHS]
    values[2][3:9] = np.nan
    return TimeSeries.from_arrays(times, values, time_unit="ms", value_names=("a", "b"), names="pqrst")


def write_table(data: TimeSeries, path, rows: int) -> None:
    """With row groups of a few rows."""
    frame = data.to_frame()
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=rows)


def message(make, *args, **options) -> str:
    with pytest.raises(InputError) as caught:
        make(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def pieces(store) -> dict[str, np.ndarray]:
    """Rows of every series, time and values, from all chunks."""
    found: dict[str, list[np.ndarray]] = {}
    for k in range(len(store)):
        chunk = store.chunk(k)
        for one in () if chunk is None else chunk:
            found.setdefault(one.names[0], []).append(np.column_stack([one.times, one.values]))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def assert_same_but_ends(found: dict[str, np.ndarray], data: TimeSeries) -> None:
    """All rows in order, but for single ones that chunks cut off."""
    for one in data:
        whole = np.column_stack([one.times, one.values])
        rows = found.get(one.names[0], whole[:0])
        position = np.searchsorted(whole[:, 0], rows[:, 0])
        assert np.array_equal(whole[position], rows, equal_nan=True)
    assert sum(map(len, found.values())) > 0.8 * data.n_observations


class TestParquetFolder:
    def test_what_is_written_part_by_part_is_read_whole(self, data, tmp_path):
        write_parts([data[:2], data[2:]], tmp_path / "parts")
        assert is_store(tmp_path / "parts")
        assert read(tmp_path / "parts").equals(data)

    def test_a_series_may_go_on_in_the_next_file(self, data, tmp_path):
        table = pa.Table.from_pandas(data.to_frame(), preserve_index=False)
        for k in range(12):
            pq.write_table(table[7 * k : 7 * (k + 1)], tmp_path / f"part-{k}.parquet")
        assert read(tmp_path, time_unit="ms").equals(data)
        assert [path.stem for path in part_files(tmp_path)][2:4] == ["part-2", "part-3"]

    @pytest.mark.parametrize("rows", [3, 11, 1000])
    def test_chunks_are_row_groups(self, data, tmp_path, rows):
        write_table(data, tmp_path / "only.parquet", rows)
        store = open_store(tmp_path)
        assert len(store) == -(-data.n_observations // rows)
        assert store.n_rows == data.n_observations
        assert_same_but_ends(pieces(store), data)

    def test_a_chunk_of_single_rows_is_nothing(self, tmp_path):
        alone = TimeSeries.from_arrays([[0.0, 1.0], [0.0]], [[1.0, 2.0], [3.0]])
        write_table(alone, tmp_path / "a.parquet", 2)
        assert open_store(tmp_path).chunk(1) is None

    def test_without_a_column_of_series_each_file_is_one(self, data, tmp_path):
        for one in data[[0, 2]]:
            table = pa.Table.from_pandas(one.to_frame(), preserve_index=False).drop(["series"])
            pq.write_table(table, tmp_path / f"{one.names[0]}.parquet")
        assert read(tmp_path, time_unit="ms").equals(data[[0, 2]])
        assert list(pieces(open_store(tmp_path))) == ["p", "r"]

    def test_hidden_and_underscored_files_are_no_parts(self, data, tmp_path):
        write_table(data, tmp_path / "a.parquet", 100)
        for name in ("_metadata.parquet", ".a.parquet.crc", "notes.txt"):
            (tmp_path / name).write_text("x")
        assert len(part_files(tmp_path)) == 1

    def test_columns_are_chosen(self, data, tmp_path):
        write_table(data, tmp_path / "a.parquet", 100)
        assert open_store(tmp_path, values="b").value_names == ("b",)
        assert "no use for --rate" in message(open_store, tmp_path, rate=5.0)
        assert "--decimate" in message(read, tmp_path, decimate=2)

    def test_other_units(self, data, tmp_path):
        write_parts([data[:2], data[2:]], tmp_path)
        whole, parts = data.in_unit("s"), open_store(tmp_path, time_unit="s")
        assert parts.whole().equals(whole)
        assert parts.chunk(1).equals(whole[[2, 3, 4]])
        write(data[:1].in_unit("s"), tmp_path / "part-00002.parquet")
        assert "part-00002.parquet: counts time in 's', but part-00000.parquet in 'ms'" in message(read, tmp_path)

    def test_other_columns_in_another_part(self, data, tmp_path):
        write_table(data, tmp_path / "a.parquet", 100)
        table = pa.table({"series": ["u", "u"], "time": [0.0, 1.0], "c": [1.0, 2.0]})
        pq.write_table(table, tmp_path / "b.parquet")
        assert "b.parquet: has the columns series, time, c" in message(read, tmp_path)

    def test_broken_parts(self, data, tmp_path):
        write_table(data, tmp_path / "a.parquet", 100)
        whole = (tmp_path / "a.parquet").read_bytes()
        (tmp_path / "a.parquet").write_bytes(whole[: len(whole) // 2])
        assert "a.parquet: is cut short or damaged" in message(open_store, tmp_path)
        (tmp_path / "a.parquet").write_bytes(b"no table")
        assert "is not a Parquet file" in message(open_store, tmp_path)
        (tmp_path / "a.parquet").unlink()
        assert "is a directory" in message(read, tmp_path)
        assert "no folder of Parquet files" in message(open_store, tmp_path)

    def test_rows_are_named_in_messages(self, tmp_path):
        table = pa.table({"series": ["u"] * 6, "time": [0.0, 1, 2, 3, 5, 4], "c": np.arange(6.0)})
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=4)
        told = message(open_store(tmp_path).chunk, 1)
        assert "a.parquet, row 6 (counted from 1)" in told
        assert "sort each series by time" in told

    def test_a_row_group_too_big_to_be_held(self, data, tmp_path, monkeypatch):
        write_table(data, tmp_path / "a.parquet", 50)
        monkeypatch.setattr("neuralmjp.io.folders.MOST_ROWS", 40)
        assert "row group 0 has 50 rows" in message(open_store, tmp_path)

    def test_parts_do_not_mix_with_older_ones(self, data, tmp_path):
        write_parts([data], tmp_path)
        assert "holds .parquet files already" in message(write_parts, [data], tmp_path)


class TestZarr:
    def test_what_is_written_is_read(self, data, tmp_path):
        write(data, tmp_path / "x.zarr")
        assert read(tmp_path / "x.zarr").equals(data)

    @pytest.mark.parametrize("rows", [3, 11, 1000])
    def test_chunk_by_chunk(self, data, tmp_path, rows, monkeypatch):
        monkeypatch.setattr("neuralmjp.io.zarr.GROUP_ROWS", rows)
        write(data, tmp_path / "x.zarr")
        assert_same_but_ends(pieces(open_store(tmp_path / "x.zarr")), data)
        assert_same_but_ends(pieces(open_store(tmp_path / "x.zarr", time_unit="s")), data.in_unit("s"))

    @pytest.mark.parametrize("features", [None, 2])
    def test_padded_arrays(self, tmp_path, features):
        """As others write them: (N, L) and (N, L, D), without names and units."""
        rng = np.random.default_rng(1)
        times = np.tile(np.arange(6.0), (9, 1))
        times[3, 4:] = times[5, 1:] = np.nan
        values = rng.normal(size=(9, 6) if features is None else (9, 6, features))
        group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w", zarr_format=2)
        group.create_array("times", data=times, chunks=(2, 6))
        group.create_array("values", data=values, chunks=(2, *values.shape[1:]))
        store = open_store(tmp_path / "x.zarr")
        whole = TimeSeries.from_arrays(times, values)
        assert store.whole().equals(whole)
        store._step = 2
        assert_same_but_ends(pieces(store), whole)

    def test_a_gap_in_padded_times(self, tmp_path):
        times = np.array([[0.0, np.nan, 2.0], [0.0, 1.0, 2.0]])
        group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w")
        group.create_array("times", data=times)
        group.create_array("values", data=times)
        assert "a time is missing" in message(open_store(tmp_path / "x.zarr").chunk, 0)

    def test_one_series_without_offsets(self, tmp_path):
        group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w")
        group.create_array("times", data=np.arange(5.0))
        group.create_array("values", data=np.arange(5))
        assert read(tmp_path / "x.zarr").values.tolist() == [[0], [1], [2], [3], [4]]

    @pytest.mark.parametrize(
        ("arrays", "words"),
        [
            ({"times": np.arange(3.0)}, "no array 'values'"),
            ({"times": np.arange(3.0), "values": np.arange(4.0)}, "do not fit"),
            ({"times": np.arange(3.0), "values": np.zeros((3, 1, 1))}, "do not fit"),
            ({"times": np.arange(3.0), "values": np.arange(3.0), "offsets": np.array([0, 2])}, "offsets end at 2"),
            ({"times": np.arange(3.0), "values": np.arange(3.0), "offsets": np.array([0, 4, 3])}, "do not rise"),
            ({"times": np.arange(3.0), "values": np.arange(3.0), "names": np.array([1, 2])}, "2 names for 1 series"),
            ({"times": np.arange(3.0), "values": np.array([True, False, True])}, "no array of numbers"),
        ],
    )
    def test_wrong_arrays(self, tmp_path, arrays, words):
        group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w")
        for name, array in arrays.items():
            group.create_array(name, data=array)
        assert words in message(open_store, tmp_path / "x.zarr")

    @pytest.mark.parametrize(
        ("filters", "words"),
        [
            ([{"id": "delta", "dtype": "<f8"}], "packed by 'delta'"),
            ([{"id": "pickle", "protocol": 4}], "pickle"),
            ([{"id": "delta", "dtype": "<f8"}, {"id": "pickle", "protocol": 4}], "pickle"),
        ],
    )
    def test_other_codecs_are_refused(self, tmp_path, filters, words):
        """One of them unpickles."""
        group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w", zarr_format=2)
        for name in ("times", "values"):
            group.create_array(name, data=np.arange(3.0))
        file = tmp_path / "x.zarr" / "values" / ".zarray"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"filters": filters}))
        assert words in message(read, tmp_path / "x.zarr")

    def test_a_size_that_is_not_there(self, tmp_path):
        group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w")
        for name in ("times", "values"):
            group.create_array(name, shape=(10**13,), chunks=(10**6,), dtype="f8")
        assert "would unpack" in message(open_store, tmp_path / "x.zarr")

    def test_damaged(self, data, tmp_path):
        write(data, tmp_path / "x.zarr")
        for file in (tmp_path / "x.zarr" / "values").rglob("*"):
            if file.is_file() and file.name != "zarr.json":
                file.write_bytes(b"\x00" * 10)
        assert "damaged" in message(read, tmp_path / "x.zarr")
        shutil.rmtree(tmp_path / "x.zarr" / "values")
        assert "no array 'values'" in message(read, tmp_path / "x.zarr")
        (tmp_path / "x.zarr" / "zarr.json").write_text("{")
        assert "damaged" in message(read, tmp_path / "x.zarr")
