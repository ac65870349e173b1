"""HDF5, and MATLAB files of version 7.3: datasets `times` and `values`, or a group per series that holds both.

With `offsets` (series i has the rows offsets[i] to offsets[i + 1] - 1) or `series` (a name per row) the series lie
end to end, otherwise shapes are those of `TimeSeries.from_arrays`. `names`, `value_names`, `time_unit` and
`time_origin` are datasets or attributes.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..timeseries import TIME_UNIT, TimeSeries
from .arrays import from_arrays
from .columns import Request
from .extras import needed

_MATLAB = "MATLAB_class"  # an attribute of all that MATLAB writes


def read(path: Path, request: Request) -> TimeSeries:
    """Read datasets of numbers; links to other files and anything that is not understood are refused."""
    request.only(("rate",), path, "an HDF5 file")
    h5py = load(path)
    if not h5py.is_hdf5(path):
        advice = "save it with -v7.3" if path.suffix.lower() == ".mat" else "give it the extension of what it is"
        raise InputError(f"{path}: is not an HDF5 file, or cut short; {advice}")
    try:
        with h5py.File(path, "r") as file:
            return _Reader(h5py, path, request.rate).read(file)
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(str(path)) else f"{path}: {text}") from None
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: is damaged or no plain HDF5 ({reason}); write or copy it again") from None


def load(path: Path) -> Any:
    """The library that this kind of file needs."""
    return needed("h5py", "hdf5", f"{path}: an HDF5 file")


def write(data: TimeSeries, path: Path) -> None:
    """Write all that `data` holds, series end to end."""
    h5py = load(path)
    with h5py.File(path, "w") as file:
        for name in ("times", "values", "offsets"):
            file.create_dataset(name, data=getattr(data, name))
        for name in ("names", "value_names"):
            file.create_dataset(name, data=list(getattr(data, name)), dtype=h5py.string_dtype())
        file.attrs["time_unit"] = data.time_unit
        if data.origin is not None:
            file.attrs["time_origin"] = data.origin


class _Reader:
    """One file, with the clock that was asked for."""

    def __init__(self, h5py: Any, path: Path, rate: float | None):
        self._h5py = h5py
        self._path = path
        self._rate = rate

    def read(self, file: Any) -> TimeSeries:
        known = self._members(file)
        unit = self._text(file, known, "time_unit") or TIME_UNIT
        said: Any = {"time_unit": unit, "origin": self._text(file, known, "time_origin")}
        said["value_names"] = self._texts(file, known, "value_names")
        groups = {name: item for name, item in known.items() if isinstance(item, self._h5py.Group)}
        if "values" in known and known["values"] not in groups.values():
            times, values = self._pair(known, "")
            rows, names = self._rows(known, len(times))
            names = self._texts(file, known, "names") or names
            if rows is None:
                return from_arrays(times, values, names=names, **said)
            times, values = [times[one] for one in rows], [values[one] for one in rows]
        elif groups:
            pairs = [self._pair(self._members(group), f"{name}/") for name, group in groups.items()]
            names, times, values = list(groups), [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        else:
            listing = ", ".join(map(repr, known)) or "nothing"
            raise InputError(f"no dataset 'values', nor groups that hold one; there is {listing}")
        return from_arrays(times, values, names=names, **said)

    def _members(self, group: Any) -> dict[str, Any]:
        """What lies in a group, by name; a link could lead into another file."""
        for name in group:
            if not isinstance(group.get(name, getlink=True), self._h5py.HardLink):
                raise InputError(f"{name!r} is a link; copy what it points to into the file")
        return {name: group[name] for name in group if not name.startswith("#")}  # MATLAB's own: "#refs#"

    def _pair(self, known: dict[str, Any], where: str) -> tuple[np.ndarray, np.ndarray]:
        if "values" not in known:
            listing = ", ".join(map(repr, known)) or "nothing"
            raise InputError(f"no dataset '{where}values'; there is {listing}")
        values = self._numbers(known["values"], f"{where}values")
        if self._rate is None and "times" not in known:
            raise InputError(f"no dataset '{where}times'; add it, or give --rate")
        if self._rate is None:
            times = self._numbers(known["times"], f"{where}times")
            return times, values[:, 0] if values.shape == (times.size, 1) else values
        if "times" in known:
            raise InputError(f"holds a dataset '{where}times'; leave out --rate")
        if values.ndim == 3:
            return np.arange(values.shape[1]) / self._rate, values
        return np.arange(len(values)) / self._rate, values

    def _rows(self, known: dict[str, Any], n_rows: int) -> tuple[list[Any] | None, list[str] | None]:
        """Which rows are which series, where the file says so, and how these are called."""
        if "offsets" in known:
            offsets = self._numbers(known["offsets"], "offsets").ravel()
            whole = offsets.size > 1 and offsets[0] == 0 and offsets[-1] == n_rows and np.all(np.diff(offsets) > 0)
            if not (whole and np.all(offsets % 1 == 0)):
                raise InputError(f"'offsets' must be whole numbers that rise from 0 to the number of rows, {n_rows}")
            edges = offsets.astype(int).tolist()
            return [slice(a, b) for a, b in pairwise(edges)], None
        if "series" in known:
            labels = np.array(self._strings(known["series"], "series"))
            if len(labels) != n_rows:
                raise InputError(f"'series' names {len(labels)} rows, but there are {n_rows}")
            names = list(dict.fromkeys(labels.tolist()))
            return [np.flatnonzero(labels == name) for name in names], names
        return None, None

    def _numbers(self, dataset: Any, name: str) -> np.ndarray:
        self._check_plain(dataset, name)
        if dataset.dtype.kind not in "fiub":
            raise InputError(f"dataset {name!r} holds {dataset.dtype}, not numbers; save it as numbers")
        array = np.asarray(dataset[()], np.float64)
        if _MATLAB in dataset.attrs:  # written column by column, and vectors as tables
            array = array.T
            return array.ravel() if array.ndim == 2 and 1 in array.shape else array
        return array

    def _check_plain(self, dataset: Any, name: str) -> None:
        if not isinstance(dataset, self._h5py.Dataset):
            raise InputError(f"{name!r} is a group where a dataset is expected; see the forms in docs/data.md")
        if dataset.external or dataset.is_virtual:
            raise InputError(f"dataset {name!r} lies in another file; copy it into this one")

    def _strings(self, dataset: Any, name: str) -> list[str]:
        self._check_plain(dataset, name)
        if self._h5py.check_string_dtype(dataset.dtype) is not None:
            return [str(text) for text in np.atleast_1d(dataset.asstr()[()]).tolist()]
        if _MATLAB in dataset.attrs and dataset.attrs[_MATLAB] == b"char":
            return ["".join(map(chr, np.asarray(dataset[()]).ravel().tolist()))]
        return [f"{number:g}" for number in self._numbers(dataset, name).ravel().tolist()]

    def _texts(self, file: Any, known: dict[str, Any], name: str) -> list[str] | None:
        if name in known:
            return self._strings(known[name], name)
        if name in file.attrs:
            return [one.decode() if isinstance(one, bytes) else str(one) for one in np.atleast_1d(file.attrs[name])]
        return None

    def _text(self, file: Any, known: dict[str, Any], name: str) -> str | None:
        texts = self._texts(file, known, name)
        return texts[0] if texts else None
