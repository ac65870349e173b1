"""Commands that judge a model, choose one, and watch a training: arguments only; `cli` adds them to the others."""

from pathlib import Path
from typing import Annotated

import typer

from . import cli_types as given

FigureFolder = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Draw a figure per check here.")]
ModelFolder = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Fit the chosen number with intervals, keep the model; and answers, to go on."
    ),
]


@given.reads_data
def validate(
    *,
    run: given.RunFolder,
    data: given.DataFile,
    simulations: Annotated[
        int, typer.Option("--simulations", metavar="N", min=50, help="Simulated data sets behind the verdicts.")
    ] = 50,
    reading: given.Reading,
    seed: given.Seed = 0,
    out: FigureFolder = None,
    json_file: given.JsonFile = None,
) -> None:
    """Check a fitted model against data: a verdict per check, in one plain sentence each.

    Columns are those of the fit unless others are given.
    """
    from .commands import validate as command
    from .commands.runs import columns_of

    columns = columns_of(run, reading)
    command.run(run, data, columns, simulations=simulations, seed=seed, out=out, json_file=json_file)


@given.reads_data
def select(
    *,
    data: given.DataFile,
    states: Annotated[str, typer.Option("--states", metavar="A..B", help="Numbers to try: 2..6, or 2,3,5.")] = "2..6",
    folds: Annotated[int, typer.Option("--folds", metavar="N", min=2, help="Parts that are held out in turn.")] = 4,
    restarts: Annotated[int, typer.Option("--restarts", metavar="R", min=1, help="Starts of every fit.")] = 3,
    emission: given.EmissionName = "auto",
    prior: Annotated[str, typer.Option("--prior", metavar="NAME", help="free or reversible.")] = "free",
    hum: given.Hum = None,
    drift: given.Drift = 0,
    thin: given.Thin = 1,
    cluster: given.ClusterName = None,
    reading: given.Reading,
    seed: given.Seed = 0,
    out: ModelFolder = None,
    json_file: given.JsonFile = None,
) -> None:
    """Choose the number of hidden states, by held-out likelihood, BIC and ICL, and say why."""
    from .commands import select as command
    from .io import read
    from .preprocess import thinned

    columns = reading.columns()
    command.run(
        thinned(read(data, **columns), thin),
        path=data,
        columns=columns,
        states=states,
        folds=folds,
        restarts=restarts,
        emission=emission,
        prior=prior,
        hum=hum,
        drift=drift,
        cluster=cluster,
        seed=seed,
        out=out,
        json_file=json_file,
    )


def contrast(
    *,
    first: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a fit, say of a control.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Of the same model to other data, say with a drug.")],
    names: Annotated[
        str | None, typer.Option("--names", metavar="A,B", help="What to call them; else as their folders.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write the table and a figure here.")] = None,
    json_file: given.JsonFile = None,
) -> None:
    """Say what differs between two fits: every rate, time and probability as a ratio with its interval."""
    from .commands import contrast as command

    command.run(first, second, names=names, out=out, json_file=json_file)


def tensorboard(
    *,
    run: given.RunFolder,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where to; else inside RUN.")] = None,
) -> None:
    """Export the log of a training, finished or not, to TensorBoard."""
    from .commands import tensorboard as command

    command.run(run, out)


def add_to(app: typer.Typer) -> None:
    """Make these commands of the application."""
    for command in (validate, select, contrast, tensorboard):
        app.command()(command)
