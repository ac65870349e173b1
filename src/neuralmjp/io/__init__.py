"""Files of observations in and out: CSV, Parquet and NumPy's .npz.

A table has one row per observation, with its series (optional), its time and its values. The formats, one file each:
`csv`, `parquet`, `npz`; what they share: `columns` (which column is what), `tables` (rows to series and back), `files`.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError
from ..timeseries import TimeSeries
from .columns import Request
from .files import check_readable, replacing

_FORMATS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
}


def read(
    path: str | os.PathLike[str],
    *,
    series: str | int | None = None,
    time: str | int | None = None,
    values: str | int | Sequence[str | int] | None = None,
    time_unit: str | None = None,
    header: bool = True,
) -> TimeSeries:
    """Read a file of observations.

    Args:
        path: .csv, .tsv, .txt, .csv.gz, .parquet, .pq or .npz.
        series: column that says which series a row belongs to. If left out: the one called "series", whether in
            capitals or not; if there is none, all rows are one series.
        time: column of times. If left out: the one called "time".
        values: column or columns of values, as a list or separated by commas. If left out: all others.
        time_unit: what the times count; overrides what the file says.
        header: False for a table without column names; columns are then given by position from 0, and unless
            others are named, the first holds the times.

    An .npz file holds arrays `times` and `values` in any shapes that `TimeSeries.from_arrays` takes, and may hold
    `names`, `value_names` and `time_unit`.
    """
    path = Path(path)
    check_readable(path)
    request = Request(series, time, values, header)
    return _format(path).read(path, request, time_unit)


def write(data: TimeSeries, path: str | os.PathLike[str]) -> None:
    """Write data in the format that the extension names; the file appears whole or not at all.

    CSV keeps all digits, but has no place for the time unit; Parquet and .npz keep everything.
    """
    path = Path(path)
    format_ = _format(path)
    with replacing(path) as temporary:
        format_.write(data, temporary)


def _format(path: Path):
    """Module that reads and writes such files, imported now because its libraries are slow to start."""
    kind = next((kind for suffix, kind in _FORMATS.items() if path.name.lower().endswith(suffix)), None)
    if kind == "csv":
        from . import csv as module
    elif kind == "parquet":
        from . import parquet as module
    elif kind == "npz":
        from . import npz as module
    else:
        raise InputError(f"{path}: unknown kind of file {path.suffix!r}; use one of {', '.join(_FORMATS)}")
    return module
