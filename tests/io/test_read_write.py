"""What holds for every file format: round trips, and files that cannot be read or written at all."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neuralmjp.errors import InputError
from neuralmjp.io import read, write
from neuralmjp.timeseries import TimeSeries

EXTENSIONS = [".csv", ".csv.gz", ".tsv", ".txt", ".parquet", ".pq", ".npz"]

name = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=5).map(str.strip).filter(bool)
value_name = name.filter(lambda text: text.lower() not in ("series", "time"))
time = st.floats(0, allow_nan=False, allow_infinity=False)
value = st.floats(allow_infinity=False)


@st.composite
def arrays(draw) -> dict:
    """Arguments of `TimeSeries.from_arrays`: any floats, ragged, with missing values."""
    n_series, n_features = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    times = [sorted(draw(st.sets(time, min_size=1, max_size=6))) for _ in range(n_series)]
    times[0] = sorted({*times[0], 1.5, 2.5})
    values = [
        draw(st.lists(st.lists(value, min_size=n_features, max_size=n_features), min_size=len(t), max_size=len(t)))
        for t in times
    ]
    for x in values:
        x[0][0] = 0.1  # no series is all missing
    return {
        "times": times,
        "values": values,
        "names": draw(st.lists(name, min_size=n_series, max_size=n_series, unique=True)),
        "value_names": draw(st.lists(value_name, min_size=n_features, max_size=n_features, unique=True)),
        "time_unit": draw(st.text(st.characters(exclude_categories=["C"]), max_size=5)),
    }


def bits(data: TimeSeries) -> tuple[bytes, bytes]:
    """Times and values to the last bit, except that one NaN is as good as another."""
    return data.times.tobytes(), np.where(data.mask, data.values, np.nan).tobytes()


@pytest.mark.parametrize("extension", EXTENSIONS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(given_arrays=arrays())
def test_round_trip_is_exact(extension, given_arrays, tmp_path):
    data = TimeSeries.from_arrays(**given_arrays)
    path = tmp_path / f"data{extension}"
    write(data, path)
    again = read(path, time_unit=data.time_unit)
    assert again.equals(data)
    assert bits(again) == bits(data)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


KEEPING_UNITS = (".parquet", ".npz", ".h5", ".zarr")


@pytest.mark.parametrize("extension", KEEPING_UNITS)
def test_time_unit_is_kept_or_converted(extension, tmp_path):
    path = tmp_path / f"data{extension}"
    write(TimeSeries.from_arrays([0, 12], [2, 3], time_unit="months"), path)
    assert read(path).time_unit == "months"
    asked = read(path, time_unit="years")
    assert (asked.time_unit, asked.times.tolist()) == ("years", [0, 1])
    assert message(path, time_unit="frames").startswith(f"{path}: times in 'months' cannot be told in 'frames'")


@pytest.mark.parametrize("extension", [".csv", *KEEPING_UNITS])
def test_times_of_no_named_unit_take_the_one_asked_for(extension, tmp_path):
    write(TimeSeries.from_arrays([0, 12], [2, 3]), tmp_path / f"data{extension}")
    asked = read(tmp_path / f"data{extension}", time_unit="frames")
    assert (asked.time_unit, asked.times.tolist()) == ("frames", [0, 12])


def test_many_batches(tmp_path):
    """More rows than are handled at a time, with series that begin and end inside batches."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 9000, 60)
    data = TimeSeries.from_arrays([np.cumsum(rng.random(n)) for n in lengths], [rng.normal(size=n) for n in lengths])
    for extension in (".csv", ".parquet"):
        write(data, tmp_path / f"data{extension}")
        assert read(tmp_path / f"data{extension}").equals(data)


def test_plain_csv_looks_plain(tmp_path):
    data = TimeSeries.from_arrays([[0, 1.5]], [[0.1, np.nan]], names=["a"], value_names=["current"])
    write(data, tmp_path / "data.csv")
    assert (tmp_path / "data.csv").read_text() == "series,time,current\na,0,0.1\na,1.5,\n"


def message(path: Path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("extension", EXTENSIONS)
class TestNoFile:
    """The same line for every format."""

    def test_missing(self, extension, tmp_path):
        path = tmp_path / f"data{extension}"
        assert message(path) == f"{path}: no such file; check the path"

    def test_directory(self, extension, tmp_path):
        path = tmp_path / f"data{extension}"
        path.mkdir()
        assert message(path) == f"{path}: is a directory without Parquet files; name a file in it"

    def test_no_bytes(self, extension, tmp_path):
        path = tmp_path / f"data{extension}"
        path.touch()
        assert message(path) == f"{path}: is empty (0 bytes); write or copy it again"


def test_no_permission(tmp_path):
    """In a process of its own that is not root, because root may read everything."""
    path = tmp_path / "data.csv"
    path.write_text("time,x\n0,1\n1,2\n")
    path.chmod(0)
    script = (
        "import os, sys; from neuralmjp.io import read, csv\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "try: read(sys.argv[1])\n"
        "except ValueError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}: no permission to read it; change its mode or its owner\n"


def test_other_trouble_of_the_system(tmp_path):
    path = tmp_path / ("x" * 300 + ".csv")
    assert message(path) == f"{path}: cannot be read (File name too long); check the path"


def test_unknown_extension(tmp_path):
    path = tmp_path / "data.xlsx"
    path.write_text("x")
    known = ".csv, .csv.gz, .tsv, .txt, .parquet, .pq, .npz, .h5, .hdf5, .mat, .abf, .dcd, .xtc, .trr, .nc, .netcdf"
    assert message(path) == f"{path}: unknown kind of file '.xlsx'; use one of {known}, .pdb, .zarr"


def test_writing_elsewhere(tmp_path):
    data = TimeSeries.from_arrays([0, 1], [2, 3])
    path = tmp_path / "no" / "such" / "data.csv"
    with pytest.raises(InputError) as caught:
        write(data, path)
    assert str(caught.value) == f"{path}: cannot be written (No such file or directory); choose another place"
    with pytest.raises(InputError, match="unknown kind of file"):
        write(data, tmp_path / "data")


@pytest.mark.parametrize("extension", [".csv", ".parquet"])
def test_failed_write_leaves_the_old_file(extension, tmp_path):
    path = tmp_path / f"data{extension}"
    path.write_text("old")
    with pytest.raises(InputError, match="a value is called 'time'"):
        write(TimeSeries.from_arrays([0, 1], [2, 3], value_names=["time"]), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_import_is_light():
    """The slow libraries are loaded by the first file that needs them."""
    script = "import sys, neuralmjp.io; print({'jax', 'pandas', 'pyarrow', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
