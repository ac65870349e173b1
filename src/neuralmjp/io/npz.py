"""NumPy's .npz: `times` (N, L) and `values` (N, L, D), NaN where a series has ended.

Or one array per series, (L_i,) or (L_i, D), as `numpy.savez` names them if nobody does: frames one time unit apart,
unless a rate says otherwise.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..npz_files import NpzFile
from ..timeseries import TIME_UNIT, TimeSeries
from .arrays import from_arrays
from .columns import Request


def read(path: Path, request: Request) -> TimeSeries:
    """Read the arrays of an .npz file in any shapes that `TimeSeries.from_arrays` takes."""
    request.only(("rate",), path, "an .npz file")
    with NpzFile(path) as file:
        if file.names and all(_UNNAMED.fullmatch(name) for name in file.names):
            return _frames(path, [file.array(name) for name in file.names], request.rate or 1.0)
        if request.rate is not None and "times" in file.names:
            raise InputError(f"{path}: holds an array 'times'; leave out --rate")
        for name in ("times", "values"):
            if name not in file.names:
                raise InputError(f"{path}: no array {name!r}; the arrays are {', '.join(map(repr, file.names[:20]))}")
        arrays = {name: file.array(name) for name in file.names if name in _ARRAYS}
    try:
        return from_arrays(
            arrays["times"],
            arrays["values"],
            time_unit=str(arrays.get("time_unit", TIME_UNIT)),
            names=_texts(arrays.get("names")),
            value_names=_texts(arrays.get("value_names")),
            origin=None if "time_origin" not in arrays else str(arrays["time_origin"]),
            copy=False,
        )
    except InputError as error:
        raise InputError(f"{path}, {error}" if str(error).startswith("series ") else f"{path}: {error}") from None


def _frames(path: Path, series: list[np.ndarray], rate: float) -> TimeSeries:
    """One array per series, without times: as molecular-dynamics trajectories are often kept."""
    if not all(one.ndim in (1, 2) and len(one) for one in series):
        shapes = ", ".join(str(one.shape) for one in series)
        raise InputError(f"{path}: unnamed arrays are one series each, (L,) or (L, D), but the shapes are {shapes}")
    try:
        times = [np.arange(float(len(one))) / rate for one in series]
        return from_arrays(times, series)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write(data: TimeSeries, path: Path) -> None:
    """Write all that `data` holds as arrays, padded with NaN to the longest series."""
    batch = data.pad()
    origin: Any = {} if data.origin is None else {"time_origin": np.array(data.origin)}
    np.savez(
        path,
        **origin,
        times=np.where(batch.valid, batch.times, np.nan),
        values=np.where(batch.mask, batch.values, np.nan),
        names=np.array(data.names),
        value_names=np.array(data.value_names),
        time_unit=np.array(data.time_unit),
    )


_UNNAMED = re.compile(r"arr_\d+")
_ARRAYS = ("times", "values", "names", "value_names", "time_unit", "time_origin")


def _texts(array: np.ndarray | None) -> list[str] | None:
    try:
        return None if array is None else [str(text) for text in np.atleast_1d(array)]
    except (SystemError, ValueError):  # numbers that are no letters
        raise InputError("the names in it are no text; write it again") from None
