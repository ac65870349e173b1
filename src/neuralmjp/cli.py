"""The command line: arguments only. Each command imports what it needs when it runs, so that help is instant."""

import os
import sys
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from . import cli_checks
from . import cli_types as given
from ._version import __version__
from .errors import INTERRUPTED, InputError

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
    seed: given.Seed = 0,
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
            "immigration-death, sir, sis, schloegl, telegraph, or the path of a reaction-network file; "
            "alanine-dipeptide, whose truth is not known.",
        ),
    ],
    out: given.Written,
    series: Annotated[
        int | None, typer.Option("--series", metavar="N", help="Independent series; default 100.")
    ] = None,
    length: Annotated[
        int | None, typer.Option("--length", metavar="L", help="Observations per series; default: the paper's.")
    ] = None,
    grid: Annotated[
        given.Grid | None,
        typer.Option("--grid", help="Observation times; default: irregular, or regular for recordings."),
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
    ns: given.Nanoseconds = None,
    seed: given.Seed = 0,
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
        ns=ns,
    )


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="adp: dihedrals of alanine dipeptide, 3 x 250 ns.")],
    out: given.FetchOut,
) -> None:
    """Download a public data set, and check it."""
    from .commands import fetch as command

    command.run(name, out)


@app.command()
@given.reads_data
def describe(
    *,
    data: given.DataFile,
    reading: given.Reading,
    states: Annotated[
        int | None, typer.Option("--states", metavar="K", help="Also check that the data can bear K states.")
    ] = None,
    json_file: given.SummaryFile = None,
) -> None:
    """Show what is in a data file: series, lengths, gaps, missing values, histograms."""
    from .commands import describe as command
    from .io import read

    command.run(read(data, **reading.columns()), path=data, n_states=states, json_file=json_file)


@app.command()
@given.reads_data
def fit(
    *,
    data: given.DataFile,
    states: given.States = None,
    state_names: given.StateNames = None,
    engine: given.EngineName = given.Engine.auto,
    emission: given.EmissionName = "auto",
    prior: given.PriorName = "free",
    initial: given.InitialLaw = None,
    noise: given.NoiseKind = None,
    noise_scale: given.NoiseScale = None,
    seen: given.Seen = None,
    levels: given.LevelsOption = None,
    hum: given.Hum = None,
    drift: given.Drift = 0,
    thin: given.ThinFit = "1",
    reading: given.Reading,
    restarts: given.Restarts = None,
    seed: given.Seed = 0,
    posterior: given.PosteriorName = None,
    preset: given.PresetName = None,
    encoder: given.EncoderName = None,
    steps: given.Steps = None,
    changes: given.Changes = None,
    refine: given.RefineBy = None,
    resume: given.Resume = False,
    exact_entry: given.ExactEntry = None,
    first_known: given.FirstKnown = False,
    misread: given.Misread = None,
    censored: given.Censored = None,
    out: given.FitFolder = None,
    json_file: given.JsonFile = None,
) -> None:
    """Find the jump rates of a hidden process, with intervals."""
    from .commands import fit as command
    from .commands.options import CountOptions, SignalOptions
    from .commands.runs import opened
    from .commands.training_options import TrainingOptions

    columns = reading.columns()
    command.run(
        opened(data, columns, stream=engine is given.Engine.neural),
        thin=thin,
        path=data,
        columns=columns,
        n_states=states,
        state_names=state_names,
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
@given.reads_data
def decode(
    *,
    run: given.RunFolder,
    data: given.DataFile,
    out: given.Written,
    events: given.EventsFile = None,
    reading: given.Reading,
) -> None:
    """Write what was hidden at every observation: the most likely state and the probability of each, or counts.

    Columns are those of the fit unless others are given.
    """
    from .commands import decode as command
    from .commands.runs import columns_of

    command.run(run, data, columns_of(run, reading), out, events)


@app.command()
@given.reads_data
def report(
    *,
    run: given.RunFolder,
    data: given.FittedData = None,
    out: given.ReportFile = None,
    reading: given.Reading,
) -> None:
    """Write one HTML file that tells what was fitted to what: verdict, tables, figures, the hidden path."""
    from .commands import report as command
    from .commands.runs import columns_of

    command.run(run, data, columns_of(run, reading), out)


@app.command()
@given.reads_data
def predict(
    *,
    run: given.RunFolder,
    data: given.DataFile,
    until: given.Until = None,
    steps: given.StepsAhead = None,
    samples: given.Draws = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write: .csv, .parquet or .npz.")
    ] = None,
    reading: given.Reading,
    seed: given.Seed = 0,
) -> None:
    """Forecast each series after its last observation: for every value the mean and 5, 50, 95 % quantiles.

    Columns are those of the fit unless others are given.
    """
    from .commands import predict as command
    from .commands.runs import columns_of

    command.run(run, data, columns_of(run, reading), until=until, steps=steps, samples=samples, seed=seed, out=out)


@app.command()
def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            help="dfr, ion-channel, lotka-volterra, adp, brownian-folding, two-mode, ablations or timing.",
        ),
    ],
    preset: Annotated[
        given.Preset, typer.Option("--preset", help="quick takes minutes on a laptop; paper has the published sizes.")
    ] = given.Preset.quick,
    seeds: Annotated[
        int | None, typer.Option("--seeds", metavar="N", min=1, help="Runs per row; default 1, or 5 as published.")
    ] = None,
    seed: given.Seed = 0,
    json_file: given.Numbers = None,
    out: given.Figures = None,
    only: given.OnlyRows = None,
    data: given.MeasuredData = None,
    keep: given.Checkpoints = None,
    mesh: given.Devices = 1,
) -> None:
    """Run an experiment of the paper again and print its tables beside ours."""
    from .commands import reproduce as command

    rows = None if only is None else [row.strip() for row in only.split(",")]
    chosen = {"json_file": json_file, "out": out, "only": rows, "data": data, "keep": keep, "mesh": mesh}
    command.run(experiment, preset=preset.value, n_runs=seeds, seed=seed, **chosen)


@app.command()
@given.reads_data
def compare(
    *,
    data: given.DataFile,
    states: Annotated[int, typer.Option("--states", metavar="K", help="Number of hidden states.")],
    methods: given.Methods = "exact,neural,msm,hmm",
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="Fits of every method.")] = 1,
    emission: given.EmissionName = "auto",
    prior: Annotated[str, typer.Option("--prior", metavar="NAME", help="exact, neural: free or reversible.")] = "free",
    initial: given.InitialLaw = None,
    lag: given.Lag = None,
    angles: given.Angles = False,
    held_out: given.HeldOut = 0.2,
    changes: given.MethodChanges = None,
    truth: given.TruthFile = None,
    jobs: given.Jobs = None,
    cluster: given.ClusterName = None,
    limit: given.Limit = None,
    thin: given.Thin = 1,
    reading: given.Reading,
    seed: given.Seed = 0,
    out: given.CompareFolder = None,
    json_file: given.JsonFile = None,
) -> None:
    """Fit the same data by several methods: timescales, laws, passage times, accuracy and cost in one table."""
    from .commands import compare as command
    from .commands.options import emission_for
    from .io import read
    from .preprocess import thinned

    columns = reading.columns()
    command.run(
        thinned(read(data, **columns), thin),
        states,
        [name.strip() for name in methods.split(",") if name.strip()],
        changes=changes or [],
        truth=None if truth is None else thinned(read(truth), thin),
        choices={
            "seeds": seeds,
            "seed": seed,
            "emission": emission_for(emission, columns),
            "prior": prior,
            "initial": _word(initial) or "free",
            "lag": lag,
            "angles": angles,
            "held_out": held_out,
            "jobs": jobs,
            "cluster": cluster,
            "limit": limit,
        },
        out=out,
        json_file=json_file,
    )


cli_checks.add_to(app)


def main() -> None:
    """Run a command; whatever goes wrong, the user gets one line and an exit status: 2 for what they can mend."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a bar or an arrow shows "?"
    try:
        # Without standalone mode errors come back here; the return value is an exit status where one was asked for.
        status = app(sys.argv[1:] or ["--help"], standalone_mode=False, prog_name="neuralmjp")
        if status == INTERRUPTED:  # typer's, without a word
            raise KeyboardInterrupt
    except InputError as error:
        status = _say(str(error), 2)
    except USAGE_ERROR as error:
        where = "neuralmjp" if error.ctx is None else error.ctx.command_path
        status = _say(f"{error.format_message()} (see {where} --help)", 2)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        status = _say(f"cannot read or write{where}: {error.strerror or error}", 2)
    except MemoryError as error:
        status = _say(f"not enough memory: {error}; ask for less", 2)
    except (KeyboardInterrupt, typer.Abort):
        status = _say("interrupted", INTERRUPTED)
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
