"""The command line: arguments only. Each command imports what it needs when it runs, so that help is instant."""

import os
import sys
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from ._version import __version__
from .cli_types import (
    DataFile,
    Drift,
    EmissionName,
    Encoder,
    Engine,
    Grid,
    Hum,
    Initial,
    LevelsOption,
    MeasuredData,
    NoHeader,
    Noise,
    OnlyRows,
    Posterior,
    Preset,
    Refine,
    RunFolder,
    Seed,
    SeriesColumn,
    StoredNoHeader,
    Thin,
    TimeColumn,
    TimeUnit,
    ValueColumns,
)
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


def _word(choice: StrEnum | None) -> str | None:
    return None if choice is None else choice.value


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"neuralmjp {__version__}")
        raise typer.Exit
    return asked


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
    """Simulate a noisy three-level channel, find its rates, and draw it."""
    from .commands import demo as command

    command.run(out, seed=seed)


@app.command()
def simulate(
    system: Annotated[
        str,
        typer.Argument(
            metavar="SYSTEM",
            help="flashing-ratchet, lotka-volterra, two-mode, brownian-folding, ion-channel, birth-death, "
            "immigration-death, sir, sis, schloegl, telegraph, or the path of a reaction-network file.",
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


@app.command()
def fit(
    data: DataFile,
    states: Annotated[
        int | None, typer.Option("--states", metavar="K", help="Number of hidden states; not for a reaction network.")
    ] = None,
    engine: Annotated[
        Engine, typer.Option("--engine", help="auto takes the best engine; meanfield is for reaction networks.")
    ] = Engine.auto,
    emission: EmissionName = "auto",
    prior: Annotated[
        str,
        typer.Option(
            "--prior",
            metavar="NAME",
            help="free, reversible, MASK.csv of allowed jumps, a system, or the file of a reaction network.",
        ),
    ] = "free",
    initial: Annotated[
        Initial | None,
        typer.Option("--initial", help="Law at a first observation: free (default), stationary; network: flat, start."),
    ] = None,
    noise: Annotated[
        Noise | None, typer.Option("--noise", help="network: how counts are read; default: as the network says.")
    ] = None,
    noise_scale: Annotated[
        float | None, typer.Option("--noise-scale", metavar="X", help="network: noise that is known, not learned.")
    ] = None,
    seen: Annotated[
        str | None, typer.Option("--seen", metavar="A,B+C", help="network: species, or sum of them, in each value.")
    ] = None,
    levels: LevelsOption = None,
    hum: Hum = None,
    drift: Drift = 0,
    thin: Thin = 1,
    series: SeriesColumn = None,
    time: TimeColumn = None,
    values: ValueColumns = None,
    time_unit: TimeUnit = None,
    no_header: NoHeader = False,
    restarts: Annotated[
        int | None,
        typer.Option(
            "--restarts", metavar="R", min=1, help="Starts; default 5, or 1 if states are seen or for neural."
        ),
    ] = None,
    seed: Seed = 0,
    posterior: Annotated[
        Posterior | None,
        typer.Option("--posterior", help="neural: tilted (default), or paper, the published model with its bias."),
    ] = None,
    preset: Annotated[
        Preset | None, typer.Option("--preset", help="neural: sizes for a laptop (default) or the published ones.")
    ] = None,
    encoder: Annotated[
        Encoder | None, typer.Option("--encoder", help="neural: network that reads a series; default: the preset's.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", min=1, help="neural: most training steps.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="neural: change any choice of the training, such as width=32; repeat."
        ),
    ] = None,
    refine: Annotated[
        Refine | None, typer.Option("--refine", help="neural: finish rates and emission with the exact engine.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="neural: go on from the last checkpoint in --out DIR.")
    ] = False,
    exact_entry: Annotated[
        float | None, typer.Option("--exact-entry", metavar="STATE", help="Absorbing state entered at the time given.")
    ] = None,
    first_known: Annotated[bool, typer.Option("--first-known", help="First observations are read truly.")] = False,
    misread: Annotated[
        Path | None, typer.Option("--misread", metavar="MASK.csv", help="Which labels (columns) each state can show.")
    ] = None,
    censored: Annotated[
        list[str] | None,
        typer.Option("--censored", metavar="CODE=S,S", help="A label that means one of several states."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for the fitted model; neural: also checkpoint, history.csv."),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")] = None,
) -> None:
    """Find the jump rates of a hidden process, with intervals."""
    from .commands import fit as command
    from .commands.options import CountOptions, SignalOptions
    from .commands.training_options import TrainingOptions
    from .io import read
    from .preprocess import thinned

    columns = {"series": series, "time": time, "values": values, "time_unit": time_unit, "header": not no_header}
    command.run(
        thinned(read(data, **columns), thin),  # type: ignore[arg-type]
        path=data,
        columns=columns,
        n_states=states,
        engine=engine.value,
        training=TrainingOptions(
            posterior=_word(posterior),
            preset=_word(preset),
            encoder=_word(encoder),
            refine=_word(refine),
            steps=steps,
            changes=tuple(changes or ()),
            resume=resume,
        ),
        emission=emission,
        prior=prior,
        initial=_word(initial),
        counts=CountOptions(_word(noise), noise_scale, seen),
        signal=SignalOptions(levels, hum, drift),
        restarts=restarts,
        seed=seed,
        exact_entry=exact_entry,
        first_known=first_known,
        misread=misread,
        censored=censored or [],
        out=out,
        json_file=json_file,
    )


@app.command()
def decode(
    run: RunFolder,
    data: DataFile,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write: .csv, .parquet or .npz.")],
    series: SeriesColumn = None,
    time: TimeColumn = None,
    values: ValueColumns = None,
    time_unit: TimeUnit = None,
    no_header: StoredNoHeader = None,
) -> None:
    """Write what was hidden at every observation: the most likely state and the probability of each, or counts.

    Columns are those of the fit unless others are given.
    """
    from .commands import decode as command
    from .commands.runs import columns_of

    command.run(run, data, columns_of(run, series, time, values, time_unit, no_header), out)


@app.command()
def predict(
    run: RunFolder,
    data: DataFile,
    until: Annotated[
        float | None, typer.Option("--until", metavar="T", help="Forecast up to this time, in steps of a median gap.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", min=1, help="Forecast so many median gaps of each series.")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option("--samples", metavar="M", min=1, help="states: draws behind the numbers; default 1000."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write: .csv, .parquet or .npz.")
    ] = None,
    series: SeriesColumn = None,
    time: TimeColumn = None,
    values: ValueColumns = None,
    time_unit: TimeUnit = None,
    no_header: StoredNoHeader = None,
    seed: Seed = 0,
) -> None:
    """Forecast each series after its last observation: for every value the mean and 5, 50, 95 % quantiles.

    Columns are those of the fit unless others are given.
    """
    from .commands import predict as command
    from .commands.runs import columns_of

    columns = columns_of(run, series, time, values, time_unit, no_header)
    command.run(run, data, columns, until=until, steps=steps, samples=samples, seed=seed, out=out)


@app.command()
def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT", help="dfr, ion-channel, lotka-volterra, adp, brownian-folding or two-mode."
        ),
    ],
    preset: Annotated[
        Preset, typer.Option("--preset", help="quick takes minutes on a laptop; paper has the published sizes.")
    ] = Preset.quick,
    seeds: Annotated[
        int | None, typer.Option("--seeds", metavar="N", min=1, help="Runs per row; default 1, or 5 as published.")
    ] = None,
    seed: Seed = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write every number, seconds and device as JSON.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Draw the paper's figures into this folder.")
    ] = None,
    only: OnlyRows = None,
    data: MeasuredData = None,
) -> None:
    """Run an experiment of the paper again and print its tables beside ours."""
    from .commands import reproduce as command

    rows = None if only is None else [row.strip() for row in only.split(",")]
    command.run(
        experiment, preset=preset.value, n_runs=seeds, seed=seed, json_file=json_file, out=out, only=rows, data=data
    )


def main() -> None:
    """Run a command; whatever goes wrong, the user gets one line and an exit status: 2 for what they can mend."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a bar or an arrow shows "?"
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
    except MemoryError as error:
        status = _say(f"not enough memory: {error}; ask for less", 2)
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
