"""The command line: arguments only. Each command imports what it needs when it runs, so that help is instant."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ._version import __version__
from .errors import InputError

app = typer.Typer(
    name="neuralmjp",
    help="Find the jump rates, the hidden path and the forecast of a hidden Markov jump process.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


# Typer may bring its own copy of click: take the base of all usage errors from there.
USAGE_ERROR: Any = typer.BadParameter.__mro__[1]


class Grid(StrEnum):
    """Kinds of observation times."""

    irregular = "irregular"
    shared = "shared"
    regular = "regular"


DataFile = Annotated[
    Path, typer.Argument(metavar="DATA", help="CSV, TSV, Parquet or .npz; the README shows the forms.")
]
SeriesColumn = Annotated[str | None, typer.Option("--series", metavar="COL", help="Column that names the series.")]
TimeColumn = Annotated[str | None, typer.Option("--time", metavar="COL", help="Column of observation times.")]
ValueColumns = Annotated[str | None, typer.Option("--values", metavar="COL,COL", help="Columns of observed values.")]
TimeUnit = Annotated[str | None, typer.Option("--time-unit", metavar="UNIT", help="Unit of the times, such as s.")]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The table has no header: columns are 0, 1, 2, ...")]
Seed = Annotated[int, typer.Option("--seed", metavar="S", help="The same seed gives the same result.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"neuralmjp {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find the jump rates, the hidden path and the forecast of a hidden Markov jump process."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for data and figure.")] = Path("demo"),
    seed: Seed = 0,
) -> None:
    """Simulate a noisy three-level channel, find its rates in the simplest way, and draw it."""
    from .commands import demo as command

    command.run(out, seed=seed)


@app.command()
def simulate(
    system: Annotated[
        str,
        typer.Argument(
            metavar="SYSTEM",
            help="flashing-ratchet, lotka-volterra, two-mode, brownian-folding, ion-channel, or the path of a "
            "reaction-network file.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write: .csv, .parquet or .npz.")],
    series: Annotated[int, typer.Option("--series", metavar="N", help="Number of independent series.")] = 100,
    length: Annotated[
        int | None, typer.Option("--length", metavar="L", help="Observations per series; default: the paper's.")
    ] = None,
    grid: Annotated[
        Grid | None, typer.Option("--grid", help="Observation times; default: irregular, or regular for recordings.")
    ] = None,
    duration: Annotated[
        float | None, typer.Option("--duration", metavar="T", help="Time span of a series; default: the paper's.")
    ] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a parameter; may be repeated.")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option("--truth", metavar="FILE", help="Also write the hidden states, row for row.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Simulate a system whose truth is known, exactly."""
    from .commands import simulate as command

    command.run(
        system,
        out=out,
        n_series=series,
        length=length,
        grid=None if grid is None else grid.value,
        duration=duration,
        seed=seed,
        changes=changes or [],
        truth=truth,
    )


@app.command()
def describe(
    data: DataFile,
    series: SeriesColumn = None,
    time: TimeColumn = None,
    values: ValueColumns = None,
    time_unit: TimeUnit = None,
    no_header: NoHeader = False,
    states: Annotated[
        int | None, typer.Option("--states", metavar="K", help="Also check that the data can bear K states.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the summary as JSON.")
    ] = None,
) -> None:
    """Show what is in a data file: series, lengths, gaps, missing values, histograms."""
    from .commands import describe as command
    from .io import read

    table = read(data, series=series, time=time, values=values, time_unit=time_unit, header=not no_header)
    command.run(table, path=data, n_states=states, json_file=json_file)


def main() -> None:
    """Run a command; whatever goes wrong, the user gets one line and an exit status: 2 for what they can mend."""
    try:
        # Without standalone mode errors come back here; the return value is an exit status where one was asked for.
        status = app(sys.argv[1:] or ["--help"], standalone_mode=False, prog_name="neuralmjp")
    except InputError as error:
        status = _say(str(error), 2)
    except USAGE_ERROR as error:
        status = _say(f"{error.format_message()} (see neuralmjp --help)", 2)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        status = _say(f"cannot read or write{where}: {error.strerror or error}", 2)
    except (KeyboardInterrupt, typer.Abort):
        status = _say("interrupted", 130)
    except Exception as error:
        if os.environ.get("NEURALMJP_DEBUG"):
            raise
        detail = " ".join(f"{type(error).__name__}: {error}".split())
        status = _say(f"a fault in neuralmjp itself: {detail} (NEURALMJP_DEBUG=1 shows where)", 1)
    sys.exit(status if isinstance(status, int) else 0)


def _say(message: str, status: int) -> int:
    line = " ".join(message.split())
    print(f"neuralmjp: {line}", file=sys.stderr)
    return status
