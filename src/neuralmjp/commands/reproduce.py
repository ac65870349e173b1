"""`neuralmjp reproduce`: an experiment of the paper, its tables beside ours."""

import json
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from ..errors import InputError
from ..experiments import MEASURED, Report, named
from ..experiments.runs import Placed
from ..experiments.tables import ResultTable
from ..fitted_files import plain, versions
from ..systems.system import randomness
from ..training.config import Preset
from ..training.mesh import cores_as_devices
from .show import console, progress_display, table


def run(
    experiment: str,
    *,
    preset: Preset,
    n_runs: int | None,
    seed: int,
    json_file: Path | None,
    out: Path | None = None,
    only: list[str] | None = None,
    data: Path | None = None,
    keep: Path | None = None,
    mesh: int = 1,
) -> None:
    chosen = named(experiment)
    if data is not None and experiment not in MEASURED:
        raise InputError(f"--data is for {', '.join(MEASURED)}: {experiment} is simulated; leave it out")
    measured = {"data": data} if experiment in MEASURED else {}
    cores_as_devices(mesh)
    randomness(seed)  # refused here, in words, if it is no seed
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    with progress_display() as progress:
        report = chosen(preset, n_runs, seed, Placed(progress, keep, mesh), only, **measured)
    show(report)
    if json_file is not None:
        again = command(experiment, preset, n_runs, seed, only, data)
        json_file.write_text(json.dumps({"command": again, **as_json(report)}, indent=2, allow_nan=False) + "\n")
        console().print(f"result -> {json_file}", soft_wrap=True)
    if out is not None:
        draw(report, out)


def command(
    experiment: str, preset: Preset, n_runs: int | None, seed: int, only: list[str] | None, data: Path | None
) -> str:
    """What to type to have the same again."""
    chosen = {"--preset": preset, "--seeds": n_runs, "--seed": seed or None, "--data": data and data.name}
    chosen["--only"] = None if only is None else ",".join(only)
    words = [word for name, value in chosen.items() if value is not None for word in (name, shlex.quote(str(value)))]
    return " ".join(["neuralmjp reproduce", experiment, *words])


def draw(report: Report, folder: Path) -> None:
    """Every figure as a file of its name."""
    screen = console()
    if not report.figures:
        screen.print(f"{report.experiment} has no figures: nothing was written to {folder}", soft_wrap=True)
    for name, drawing in report.figures.items():
        file = folder / f"{name}.png"
        drawing().savefig(file, dpi=130)
        screen.print(f"figure -> {file}", soft_wrap=True)


def as_json(report: Report) -> dict[str, Any]:
    """Every number with mean and sd (null where there is none), seconds, device and versions."""
    result = {**asdict(replace(report, figures={})), "figures": list(report.figures)}
    for shown, stored in zip(report.tables, result["tables"], strict=True):
        for row, kept in zip(shown.rows, stored["rows"], strict=True):
            for line, entry in zip(row.lines, kept["lines"], strict=True):
                entry["numbers"] = {name: {"mean": one.mean, "sd": one.sd} for name, one in line.numbers.items()}
    return plain({**result, "versions": versions()})


def show(report: Report) -> None:
    """All tables, then how each of our fits ended."""
    screen = console()
    for one in report.tables:
        screen.print(as_table(one))
        screen.print(one.note, soft_wrap=True)
    fits = {
        f"{row.name}, {line.method}: {line.message}, {line.seconds:.1f} s": None  # once, though in several tables
        for one in report.tables
        for row in one.rows
        for line in row.lines
        if line.seconds is not None
    }
    for fit in fits:
        screen.print(fit, soft_wrap=True)
    several = f"{report.n_runs} run{'s' if report.n_runs > 1 else ''} per row"
    screen.print(
        f"{report.experiment}, preset {report.preset}, {several}, seed {report.seed}: {report.seconds:.0f} s on "
        f"{report.device}",
        soft_wrap=True,
    )


def as_table(shown: ResultTable) -> Table:
    """A section per row of the paper, a line per method; narrow enough for 80 columns."""
    grid = table(shown.title, ["", *shown.columns], [])
    grid.box, grid.show_edge, grid.pad_edge = box.SIMPLE_HEAD, False, False
    grid.padding = (0, 0, 0, 1)
    grid.columns[0].no_wrap = True
    for row in shown.rows:
        grid.add_section()
        grid.add_row(Text(row.name, style="bold"))
        for line in row.lines:
            cells = [str(line.numbers[name]) if name in line.numbers else "-" for name in shown.columns]
            grid.add_row(*(Text(cell) for cell in (line.method, *cells)))
    return grid
