"""NumPy's .npz in every accepted shape, and broken ones."""

import io
import zipfile

import numpy as np
import pytest

from neuralmjp.errors import InputError
from neuralmjp.io import read
from neuralmjp.timeseries import TimeSeries

NAN = np.nan


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.npz"


def message(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("times", "values"),
    [
        ([[0, 1], [0, 2]], [[1, 2], [3, 4]]),
        ([[0, 1], [0, NAN]], [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]),
        ([0, 1], [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]),
        ([0, 1], [1, 2]),
        ([0, 1], [[1, 2], [3, 4]]),
    ],
)
def test_shapes(path, times, values):
    np.savez_compressed(path, times=np.array(times, np.float32), values=values, extra=np.array([object()]))
    assert read(path).equals(TimeSeries.from_arrays(times, values))


def test_names(path):
    np.savez(path, times=[[0, 1]], values=[[1, 2]], names=[17], value_names="x", time_unit="ms")
    data = read(path)
    assert (data.names, data.value_names, data.time_unit) == (("17",), ("x",), "ms")


GOOD = {"times": np.array([[0.0, 1.0]]), "values": np.array([[1.0, 2.0]])}
BAD_ARRAYS = {
    "no times": ({"values": [1]}, ": no array 'times'; the arrays are 'values'"),
    "no values": ({"times": [1], "x": [2]}, ": no array 'values'; the arrays are 'times', 'x'"),
    "shapes": (GOOD | {"values": np.zeros((3, 4))}, ": times (1, 2) and values (3, 4) do not fit; use (N, L)"),
    "objects": (GOOD | {"values": np.array([[1, None]])}, ", array 'values': holds Python objects; save it as numbers"),
    "text": (GOOD | {"values": np.array([["a", "b"]])}, ": values are not numbers"),
    "names": (GOOD | {"names": ["a", "b"]}, ": 2 series need 3 offsets, not 2"),
    "unsorted": (GOOD | {"times": [[1.0, 0.0]]}, ", series '0', observation 1 (time 0): time 0.0 comes after 1.0"),
    "infinite": (GOOD | {"values": [[1, np.inf]]}, ", series '0', observation 1 (time 1), 'value': the value is inf"),
    "missing": (GOOD | {"values": [[NAN, NAN]]}, ", series '0', observation 0 (time 0): every value of series '0' is"),
    "one observation": ({"times": [0], "values": [1]}, ": a rate needs at least two observations"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_message(case, path):
    arrays, expected = BAD_ARRAYS[case]
    np.savez(path, **arrays)
    assert message(path).startswith(f"{path}{expected}")


def test_columns_make_no_sense(path):
    np.savez(path, **GOOD)
    assert message(path, time="t").startswith(f"{path}: an .npz file has no use for --time; leave it out")


def test_truncated_or_not_npz(path):
    np.savez(path, **GOOD)
    whole = path.read_bytes()
    for broken in (whole[:200], b"hello"):
        path.write_bytes(broken)
        assert message(path).startswith(f"{path}: is not an .npz file, or cut short")


def test_damaged(path):
    buffer = io.BytesIO()
    np.save(buffer, np.arange(1000.0))
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("times.npy", buffer.getvalue())
        file.writestr("values.npy", buffer.getvalue())
    whole = path.read_bytes()
    path.write_bytes(whole[:3000] + bytes(100) + whole[3100:])
    assert message(path) == f"{path}, array 'times': is damaged; copy the file again"


class TestUnnamedArrays:
    """As `numpy.savez(path, a, b)` names them: one series each."""

    def test_one_series_per_array(self, path):
        np.savez(path, np.zeros((3, 2), np.float32), np.ones((5, 2), np.float32))
        data = read(path, time_unit="ps")
        assert data.lengths.tolist() == [3, 5]
        assert data.times.tolist() == [0, 1, 2, 0, 1, 2, 3, 4]
        assert data.time_unit == "ps"

    def test_equal_lengths(self, path):
        np.savez(path, np.zeros(3), np.ones(3))
        assert read(path).lengths.tolist() == [3, 3]

    def test_shapes_that_are_no_series(self, path):
        np.savez(path, np.zeros((2, 3, 2)))
        assert "one series each, (L,) or (L, D), but the shapes are (2, 3, 2)" in message(path)
