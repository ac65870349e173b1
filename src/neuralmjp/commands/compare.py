"""`neuralmjp compare`: several methods on the same data, in one table and one figure."""

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from ..comparison import Comparison, compare
from ..comparison.compared import shown
from ..errors import InputError
from ..io.files import replacing
from ..systems.system import randomness
from ..timeseries import TimeSeries
from .show import console, progress_display, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PASSAGES = 3  # states, up to which the terminal shows first-passage times


def run(
    data: TimeSeries,
    n_states: int,
    methods: list[str],
    *,
    changes: list[str],
    truth: TimeSeries | None,
    choices: dict[str, Any],
    out: Path | None,
    json_file: Path | None,
) -> None:
    randomness(choices["seed"])  # refused here, in words, if it is no seed
    folder = None if out is None else out / "answers"
    more, known = by_method(changes), None if truth is None else true_states(truth)
    with progress_display() as progress:
        found = compare(data, n_states, methods, more=more, truth=known, folder=folder, progress=progress, **choices)
    show(found)
    if json_file is not None:
        with replacing(json_file) as partial:
            partial.write_text(json.dumps(found.to_json(), indent=2, allow_nan=False) + "\n")
        console().print(f"result -> {json_file}", soft_wrap=True)
    if out is not None:
        keep(found, out)


def by_method(changes: list[str]) -> dict[str, dict[str, Any]]:
    """`["msm.cells=300"]` -> {"msm": {"cells": 300}}."""
    found: dict[str, dict[str, Any]] = {}
    for change in changes:
        path, equals, text = change.partition("=")
        method, dot, name = path.strip().partition(".")
        if not (equals and dot and name):
            raise InputError(f"--set takes METHOD.NAME=VALUE, such as msm.cells=300; got {change!r}")
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            value = text.strip()
        found.setdefault(method, {})[name] = value
    return found


def true_states(truth: TimeSeries) -> np.ndarray:
    """One whole number per row."""
    values = truth.values
    if values.shape[1] != 1 or np.isnan(values).any() or (values != np.round(values)).any():
        raise InputError("the truth is one column of whole numbers, a state for every row of the data")
    return values[:, 0].astype(int)


def show(found: Comparison) -> None:
    screen = console()
    screen.print(as_table(found))
    if found.named_after:
        screen.print(f"states are numbered as in {found.named_after}; ± is the spread over runs", soft_wrap=True)
    for line in (*found.warnings(), *(f"failed: {line}" for line in found.failures())):
        screen.print(line, soft_wrap=True)


def as_table(found: Comparison) -> Table:
    """A column per method; passage times of many states are left to the files."""
    grid = table("Methods on the same data", ["", *found.methods], [])
    grid.box, grid.show_edge, grid.pad_edge = box.SIMPLE_HEAD, False, False
    grid.padding = (0, 0, 0, 1)
    section = ""
    for row in found.table():
        if row.section == "first passage" and found.n_states > MOST_PASSAGES:
            continue
        if row.section != section:
            grid.add_section()
            unit = f" ({row.unit})" if row.unit and row.section in ("timescales", "first passage") else ""
            grid.add_row(Text(row.section + unit, style="bold"))
            section = row.section
        unit = f" ({row.unit})" if row.unit and row.section in ("judged", "cost") else ""
        cells = [shown(values, missing="failed" if not len(values) else "-") for values in row.values.values()]
        grid.add_row(*(Text(cell) for cell in (row.name + unit, *cells)))
    return grid


def keep(found: Comparison, folder: Path) -> None:
    """The table in three forms, and the figure."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "compare.csv": found.to_csv(),
        "compare.tex": found.to_latex(),
        "compare.json": json.dumps(found.to_json(), indent=2, allow_nan=False) + "\n",
    }
    for name, text in texts.items():
        with replacing(folder / name) as partial:
            partial.write_text(text, encoding="utf-8")
    drawn(found).savefig(folder / "compare.png", dpi=130)
    console().print(f"table, figure and answers -> {folder}", soft_wrap=True)


def drawn(found: Comparison) -> "Figure":
    """Timescales, stationary law and passage times, a sign per method."""
    from matplotlib.figure import Figure

    from ..plots import plot_comparison

    figure = Figure(figsize=(11, 7), layout="constrained")
    grid = figure.add_gridspec(2, 2)
    panels = [figure.add_subplot(place) for place in (grid[0, 0], grid[0, 1], grid[1, :])]
    rows = found.table()
    parts = {
        "timescales": (f"timescale ({found.time_unit})", True),
        "stationary law": ("stationary probability", False),
        "first passage": (f"mean first-passage time ({found.time_unit})", True),
    }
    for ax, (section, (label, log)) in zip(panels, parts.items(), strict=True):
        some = [row for row in rows if row.section == section]
        values = {method: np.stack([row.values[method] for row in some]) for method in found.methods}
        plot_comparison([row.name for row in some], values, ax, label=label, log=log)
    panels[2].tick_params(axis="x", rotation=90 if found.n_states > MOST_PASSAGES else 0)
    panels[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure
