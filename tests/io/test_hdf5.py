"""HDF5: every accepted form, what MATLAB writes, and what is refused."""

import numpy as np
import pytest

from neuralmjp.errors import InputError
from neuralmjp.io import read, write
from neuralmjp.timeseries import TimeSeries

h5py = pytest.importorskip("h5py", reason="h5py, of the extra 'hdf5', is not installed")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.h5"


def message(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read(path, **options)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


def save(path, **datasets):
    with h5py.File(path, "w") as file:
        for name, data in datasets.items():
            file[name] = data


def test_what_is_written_is_read(path):
    data = TimeSeries.from_arrays(
        [[0.0, 1.5], [0.0, 1.0, 2.0]],
        [[[1.0, np.nan], [2.0, 3.0]], np.ones((3, 2))],
        time_unit="ms",
        names=["α", "b"],
        value_names=["x (pA)", "y"],
    )
    write(data, path)
    assert read(path).equals(data)
    in_seconds = read(path, time_unit="s")
    assert in_seconds.time_unit == "s"
    np.testing.assert_allclose(1e3 * in_seconds.times, read(path).times, rtol=1e-12)


def test_shapes_are_those_of_arrays(path):
    times, values = [[0.0, 1.0], [0.0, np.nan]], np.arange(8.0).reshape(2, 2, 2)
    save(path, times=times, values=values)
    assert read(path).equals(TimeSeries.from_arrays(times, values))


@pytest.mark.parametrize("labels", [[7, 8, 7], np.array([b"7", b"8", b"7"])])
def test_a_series_per_row(path, labels):
    save(path, times=[0.0, 0.0, 1.0], values=[1.0, 2.0, 3.0], series=labels)
    data = read(path)
    assert (data.names, data.values[:, 0].tolist()) == (("7", "8"), [1, 3, 2])


def test_a_group_per_series(path):
    save(path, **{"b/times": [0.0, 1.0], "b/values": [1.0, 2.0], "a/times": [0.0, 2.0, 3.0], "a/values": [3, 4, 5]})
    with h5py.File(path, "a") as file:
        file.attrs["time_unit"] = "min"
    data = read(path)
    assert (data.names, data.lengths.tolist(), data.time_unit) == (("a", "b"), [3, 2], "min")


def test_a_rate_gives_times(path):
    save(path, values=[1.0, 2.0, 3.0])
    assert read(path, rate="10Hz").times.tolist() == [0, 0.1, 0.2]
    assert "no dataset 'times'; add it, or give --rate" in message(path)
    save(path, times=[0.0, 1.0], values=[1.0, 2.0])
    assert "holds a dataset 'times'; leave out --rate" in message(path, rate=1)


def test_matlab(tmp_path):
    """MATLAB keeps tables column by column, so that HDF5 sees them turned, and has no vectors."""
    path = tmp_path / "recording.mat"
    times, values = np.arange(4.0), np.arange(8.0).reshape(4, 2)
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in (("times", times[:, None]), ("values", values)):
            dataset = file.create_dataset(name, data=array.T)
            dataset.attrs["MATLAB_class"] = np.bytes_("double")
        unit = file.create_dataset("time_unit", data=np.array([[ord("m")], [ord("s")]], np.uint16))
        unit.attrs["MATLAB_class"] = np.bytes_("char")
        file.create_group("#refs#")
    assert read(path).equals(TimeSeries.from_arrays(times, values, time_unit="ms"))


GOOD = {"times": [0.0, 1.0, 2.0], "values": [1.0, 2.0, 3.0]}
BAD = {
    "nothing": ({}, "no dataset 'values', nor groups that hold one; there is nothing"),
    "other names": ({"x": [1.0]}, "no dataset 'values', nor groups that hold one; there is 'x'"),
    "group without values": ({"a/times": [0.0, 1.0]}, "no dataset 'a/values'; there is 'times'"),
    "a group called times": ({"values": [1.0], "times/x": [1.0]}, "'times' is a group where a dataset is expected"),
    "text": (GOOD | {"values": ["a", "b", "c"]}, "dataset 'values' holds object, not numbers"),
    "shapes": (GOOD | {"values": np.zeros((2, 5))}, "times (3,) and values (2, 5) do not fit"),
    "offsets": (
        GOOD | {"offsets": [0, 2]},
        "'offsets' must be whole numbers that rise from 0 to the number of rows, 3",
    ),
    "labels": (GOOD | {"series": [0, 1]}, "'series' names 2 rows, but there are 3"),
    "unsorted": (GOOD | {"times": [0.0, 2.0, 1.0]}, "series '0', observation 2 (time 1): time 1.0 comes after 2.0"),
}


@pytest.mark.parametrize(("datasets", "what"), BAD.values(), ids=BAD)
def test_refused(path, datasets, what):
    save(path, **datasets)
    assert what in message(path)


def test_links_are_not_followed(path, tmp_path):
    save(tmp_path / "other.h5", **GOOD)
    with h5py.File(path, "w") as file:
        file["times"] = GOOD["times"]
        file["values"] = h5py.ExternalLink("other.h5", "values")
    assert "'values' is a link; copy what it points to into the file" in message(path)


def test_data_in_other_files_are_not_read(path, tmp_path):
    (tmp_path / "raw").write_bytes(np.zeros(3).tobytes())
    with h5py.File(path, "w") as file:
        file["times"] = GOOD["times"]
        file.create_dataset("values", (3,), "f8", external=[(str(tmp_path / "raw"), 0, 24)])
    assert "dataset 'values' lies in another file" in message(path)


def test_broken_files(path, tmp_path):
    write(TimeSeries.from_arrays(np.arange(5000.0), np.arange(5000.0)), path)
    path.write_bytes(path.read_bytes()[:20_000])
    message(path)
    path.write_text("time,x\n")
    assert "is not an HDF5 file, or cut short" in message(path)
    old = tmp_path / "old.mat"
    old.write_bytes(b"MATLAB 5.0 MAT-file" + bytes(200))
    assert "save it with -v7.3" in message(old)


def test_missing_package(path, without):
    save(path, **GOOD)
    without("h5py")
    assert message(path) == f"{path}: an HDF5 file needs h5py: pip install 'neuralmjp[hdf5]'"
