"""`neuralmjp decode`: the hidden path behind the observations of a file."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..fitted import FittedMJP
from ..io import read, write
from ..timeseries import TimeSeries
from .fit import COLUMNS_FILE
from .show import console, number, table


def columns_of(run: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Which columns to read: those given now, else those of the fit."""
    file = run / COLUMNS_FILE
    stored = json.loads(file.read_text()) if file.exists() else {}
    return {name: value if value is not None else stored.get(name) for name, value in given.items()}


def run(folder: Path, path: Path, columns: dict[str, Any], out: Path) -> None:
    fitted = FittedMJP.load(folder)
    data = read(path, **columns)
    decoded = fitted.decode(data)
    values = np.column_stack([decoded.states, decoded.probabilities])
    names = ("state", *(f"p_{k}" for k in range(fitted.n_states)))
    write(TimeSeries(data.times, values, data.offsets, data.names, names, data.time_unit), out)
    share = np.bincount(decoded.states, minlength=fitted.n_states) / len(decoded.states)
    jumps = int((np.diff(decoded.states) != 0)[np.isin(np.arange(1, len(data.times)), data.offsets, invert=True)].sum())
    screen = console()
    screen.print(
        f"{path}: {data.n_observations} observations decoded, {jumps} changes of state -> {out}", soft_wrap=True
    )
    rows = [
        [str(k), number(float(share[k])), number(float(decoded.probabilities[:, k].mean()))] for k in range(len(share))
    ]
    screen.print(table("Occupancy", ["state", "most likely path", "mean probability"], rows))
