"""Files of observations in and out.

A table has one row per observation, with its series (optional), its time and its values. The formats, one file each:
`csv`, `parquet`, `npz`, `hdf5`, `abf` (patch clamp), `md` (molecular dynamics), and for more than memory holds
`folders` (of Parquet files) and `zarr`; what they share: `columns` (which column is what, and what else was asked for),
`cells` (what is a number, what a date), `clock` (times, or dates as such), `tables` (rows to series and back), `files`,
`extras` (packages that may be missing), `apart` (libraries that may crash).
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..store import Store
from ..timeseries import TIME_UNIT, TimeSeries
from ..units import length, sampling
from .columns import Request
from .files import check_readable, in_unit, replacing

if TYPE_CHECKING:
    import pandas as pd

_FORMATS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".mat": "hdf5",
    ".abf": "abf",
    ".dcd": "md",
    ".xtc": "md",
    ".trr": "md",
    ".nc": "md",
    ".netcdf": "md",
    ".pdb": "md",
    ".zarr": "zarr",
}
_WRITTEN = ("csv", "parquet", "npz", "hdf5", "zarr")


def read(
    path: "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | pd.DataFrame",
    *,
    series: str | int | None = None,
    time: str | int | None = None,
    values: str | int | Sequence[str | int] | None = None,
    time_unit: str | None = None,
    header: bool = True,
    rate: str | float | None = None,
    channel: str | int | None = None,
    topology: str | os.PathLike[str] | None = None,
    features: str | None = None,
    decimate: int = 1,
    labels: str | Sequence[str] | None = None,
) -> TimeSeries:
    """Read a file of observations, or several with the same values, whose series then stand side by side.

    Args:
        path: .csv, .tsv, .txt, .csv.gz, .parquet, .pq, .npz, .h5, .mat (version 7.3), .abf, .dcd, .xtc, .trr, .nc, ...;
            a folder of Parquet files; or .zarr. Also a pandas frame, as `TimeSeries.from_frame` takes it.
        series: column that says which series a row belongs to. If left out: the one called "series", whether in
            capitals or not; if there is none, all rows are one series.
        time: column of times, or of dates, which count from the earliest. If left out: the one called "time".
        values: column or columns of values, as a list or separated by commas. If left out: all others.
        time_unit: what the times shall count. A file that says what its own count is converted; the times of one that
            does not are taken to count this. Dates count days, or what else all of them are whole numbers of.
        header: False for a table without column names; columns are then given by position from 0, and unless
            others are named, the first holds the times.
        rate: how often values were taken, such as "5kHz" or a number per time unit, where the file holds no times. A
            text file of nothing but numbers then needs no header, and all its columns are values.
        channel: of an .abf file with several: its number from 0, or its name.
        topology: file that names the atoms of a molecular-dynamics trajectory, such as a .pdb.
        features: of a trajectory: "dihedrals" (phi and psi of the backbone), "sincos" (their sines and cosines),
            "distances:0-4,3-7" (between atoms, numbered from 0) or "positions:CA" (of atoms, by name or number).
        decimate: keep every n-th sample, after a filter against aliasing; see `preprocess.decimated`.
        labels: words that stand in the columns of values, in an order of yours, as a list or separated by commas. With
            "well,ill,dead" they are read as 0, 1, 2, so that the states come in this order.

    An .npz or HDF5 file holds arrays `times` and `values` in any shapes that `TimeSeries.from_arrays` takes, and may
    hold `names`, `value_names` and `time_unit`.
    """
    place = None if topology is None else Path(topology)
    asked = Request(series, time, values, header, None, channel, place, features, labels)
    if isinstance(path, str | os.PathLike) and is_store(path):
        given = {one.name: getattr(asked, one.name) for one in fields(asked)}
        return open_store(path, time_unit=time_unit, **given | {"rate": rate, "decimate": decimate}).whole()
    if type(path).__name__ == "DataFrame":
        replace(asked, rate=rate).only(("series", "time", "values", "labels"), Path("data frame"), "a table in memory")  # type: ignore[arg-type]
        columns: dict[str, Any] = {"series": series, "time": time, "values": values, "labels": labels}
        data = TimeSeries.from_frame(path, time_unit=time_unit, **columns)  # type: ignore[arg-type]
    elif isinstance(path, str | os.PathLike):
        data = _read_one(Path(path), asked, rate, time_unit)
    else:
        data = _joined([(one, _read_one(one, asked, rate, time_unit)) for one in _files(path)])
    if decimate == 1:
        return data
    from ..preprocess import decimated

    return decimated(data, decimate)


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether this is a folder that `open_store` reads: of Parquet files, or a .zarr."""
    path = Path(path)
    if not os.path.isdir(path) or _kind(path) == "zarr":
        return os.path.isdir(path)
    from .folders import part_files

    return bool(part_files(path))


def open_store(path: str | os.PathLike[str], *, time_unit: str | None = None, **asked: Any) -> Store:
    """Open data that may be more than memory holds: a folder of Parquet files, or a .zarr.

    `NeuralMJP.fit` trains on a store without holding it; its `whole()` reads all. The columns of a table are chosen as
    in `read`; nothing else that `read` takes has a meaning here.
    """
    path = Path(path)
    if not is_store(path):
        raise InputError(f"{path}: is no folder of Parquet files and no .zarr; read it as a file")
    if asked.pop("decimate", 1) != 1:
        raise InputError(f"{path}: --decimate needs all samples in memory; leave it out, or write fewer samples")
    if _kind(path) == "zarr":
        from .zarr import ZarrStore as kind
    else:
        from .folders import ParquetFolder as kind
    return kind(path, Request(**asked), time_unit)


def write(data: TimeSeries, path: str | os.PathLike[str]) -> None:
    """Write data in the format that the extension names; the file appears whole or not at all.

    CSV keeps all digits, but has no place for the time unit; Parquet, .npz and HDF5 keep everything. Dates
    are dates in CSV and Parquet, so times read from there count from the earliest that is in the file.
    """
    path = Path(path)
    kind = _kind(path)
    if kind not in _WRITTEN:
        usual = ", ".join(suffix for suffix, kind in _FORMATS.items() if kind in _WRITTEN and suffix != ".mat")
        why = f"unknown kind of file {path.suffix!r}" if kind is None else "such files are read, not written"
        raise InputError(f"{path}: {why}; use one of {usual}")
    with replacing(path) as temporary:
        module_of(path).write(data, temporary)


def _files(paths: object) -> list[Path]:
    """Files by their names."""
    if not isinstance(paths, Iterable):
        raise InputError(f"a file is read by its name, several by a list of theirs; got {type(paths).__name__}")
    found = list(paths)
    odd = next((one for one in found if not isinstance(one, str | os.PathLike)), None)
    if odd is not None:
        raise InputError(
            f"files are read by their names, got {type(odd).__name__} among them: of several data frames, "
            "pandas.concat makes one, with a column of series"
        )
    return [Path(one) for one in found]


def _read_one(path: Path, asked: Request, rate: str | float | None, time_unit: str | None) -> TimeSeries:
    check_readable(path)
    format_ = module_of(path)
    from . import apart

    reader = apart if path.name.lower().endswith(apart.SUFFIXES) else format_
    if rate is None:
        data = reader.read(path, asked)
        return data if time_unit is None else in_unit(data, time_unit, path)
    per_unit, unit = sampling(rate, time_unit, "ps" if _kind(path) == "md" else TIME_UNIT)
    return replace(reader.read(path, replace(asked, rate=per_unit)), time_unit=unit)


def _joined(parts: list[tuple[Path, TimeSeries]]) -> TimeSeries:
    """Series of several files, named after them."""
    if not parts:
        raise InputError("there is no file to read: name at least one")
    stems = [path.stem for path, _ in parts]
    labels = stems if len(set(stems)) == len(stems) else [str(path) for path, _ in parts]
    named = []
    for label, (_, data) in zip(labels, parts, strict=True):
        names = (label,) if len(data) == 1 else tuple(f"{label}/{name}" for name in data.names)
        named.append(replace(data, names=names))
    if all(data.origin is not None for data in named):  # each file of dates chose a unit of its own
        finest = min((data.time_unit for data in named), key=lambda unit: length(unit) or 0)
        named = [data.in_unit(finest) for data in named]
    return TimeSeries.concatenate(named)


def _kind(path: Path) -> str | None:
    return next((kind for suffix, kind in _FORMATS.items() if path.name.lower().endswith(suffix)), None)


def module_of(path: Path) -> Any:
    """Module that reads and writes such files, imported now because its libraries are slow to start."""
    kind = _kind(path)
    if kind == "csv":
        from . import csv as module
    elif kind == "parquet":
        from . import parquet as module
    elif kind == "npz":
        from . import npz as module
    elif kind == "hdf5":
        from . import hdf5 as module
    elif kind == "abf":
        from . import abf as module
    elif kind == "md":
        from . import md as module
    elif kind == "zarr":
        from . import zarr as module
    else:
        raise InputError(f"{path}: unknown kind of file {path.suffix!r}; use one of {', '.join(_FORMATS)}")
    return module
