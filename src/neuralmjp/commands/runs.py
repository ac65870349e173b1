"""The folder that a fit left behind: which kind of model it holds, and which columns were read."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from .. import fitted_files, fitted_network_files
from ..cli_types import Reading
from ..errors import InputError
from ..fitted import FittedMJP
from ..fitted_network import FittedNetwork
from ..io import is_store, open_store, read
from ..io.columns import labels_of
from ..shapes import require_shape
from ..store import Store
from ..timeseries import TIME_UNIT, TimeSeries
from ..whole_files import write_whole_text
from .show import console

COLUMNS_FILE = "columns.json"
SOURCE_FILE = "source.json"
CHECKS_FILE = "checks.json"
REPORT_FILE = "report.html"
HISTORY_FILE = "history.csv"
_COLUMN = (str, int, None)
COLUMNS = {"series": _COLUMN, "time": _COLUMN, "values": (*_COLUMN, [(str, int)]), "time_unit": (str, None),
           "header": (bool, None), "rate": (str, float, None), "channel": _COLUMN, "decimate": (int, None),
           "topology": (str, None), "features": (str, None), "labels": (str, None)}  # fmt: skip


def load_any(folder: Path) -> FittedMJP | FittedNetwork:
    """A fitted process, of states or of counts, as the folder's model.json says."""
    try:
        known = fitted_files.read_json(folder / "model.json")
    except (OSError, InputError):
        known = None  # the reader of models says what is wrong
    if isinstance(known, dict) and known.get("format") == fitted_network_files.FORMAT:
        return FittedNetwork.load(folder)
    return fitted_files.load(folder)


def opened(path: Path, columns: dict[str, Any], *, stream: bool) -> TimeSeries | Store:
    """The data; a folder stays on disk where it can be fitted from there."""
    return open_store(path, **columns) if stream and is_store(path) else read(path, **columns)


def read_for(fitted: FittedMJP | FittedNetwork, path: Path, columns: dict[str, Any]) -> TimeSeries:
    """Data for a fitted model: in the unit of time that was asked for, else in the model's."""
    unit = unit_for(fitted, columns)
    asked: dict[str, Any] = columns | {"time_unit": unit}
    return counted_for(fitted, read(path, **asked), unit, path)


def counted_for(fitted: FittedMJP | FittedNetwork, data: TimeSeries, unit: str | None, path: str | Path) -> TimeSeries:
    """Data that were read in a unit, refused where they are dates and nobody named one."""
    if data.origin is not None and unit is None:
        raise InputError(
            f"{path}: holds dates, but the model counts time in {fitted.time_unit!r}, no unit that is known: say with "
            "--time-unit what it counts, such as years"
        )
    return data


def unit_for(fitted: FittedMJP | FittedNetwork, columns: dict[str, Any]) -> str | None:
    """None, where neither an option nor the model names one."""
    return columns["time_unit"] or (None if fitted.time_unit == TIME_UNIT else fitted.time_unit)


def write_columns(folder: Path, columns: dict[str, Any]) -> None:
    write_whole_text(folder / COLUMNS_FILE, json.dumps(columns, indent=2) + "\n")


def columns_of(run: Path, reading: Reading) -> dict[str, Any]:
    """Which columns to read, and how: as typed now, else as for the fit."""
    file = run / COLUMNS_FILE
    try:
        known = fitted_files.read_json(file) if file.exists() else {}
        require_shape(known, {name: COLUMNS[name] for name in COLUMNS if name in known})
    except (OSError, ValueError, TypeError):
        raise InputError(f"{file} is damaged: fit again, or remove it and name the columns") from None
    asked, kept = labels_of(reading.labels), labels_of(known.get("labels"))
    if asked and kept and asked != kept:
        raise InputError(f"--labels {reading.labels} is not the order of the fit, {','.join(kept)}: leave it out")
    return reading.columns(known)


def write_run(
    fitted: FittedMJP | FittedNetwork,
    result: dict[str, Any],
    columns: dict[str, Any],
    out: Path | None,
    json_file: Path | None,
    *,
    data: Path | None = None,
) -> None:
    """Save a fit where that was asked for, with the columns it read; its result as JSON; and say so.

    Args:
        data: the file that was fitted, for the report.
    """
    screen = console()
    if out is not None:
        replaced = (out / "model.json").exists()
        fitted.save(out)
        for told in (CHECKS_FILE, REPORT_FILE, *(() if fitted.engine == "neural" else (HISTORY_FILE,))):
            (out / told).unlink(missing_ok=True)  # of the fit that was here
        write_columns(out, columns)
        source = {
            "data": None if data is None else str(data.resolve()),
            "command": shlex.join(["neuralmjp", *sys.argv[1:]]),
        }
        write_whole_text(out / SOURCE_FILE, json.dumps(source, indent=2) + "\n")
        screen.print(f"model -> {out}{', in place of the one that was there' if replaced else ''}", soft_wrap=True)
    if json_file is not None:
        write_whole_text(json_file, json.dumps(result, indent=2, allow_nan=False) + "\n")
        screen.print(f"result -> {json_file}", soft_wrap=True)
