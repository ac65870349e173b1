"""The words and columns that several commands take; loads nothing slow."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Grid(StrEnum):
    """Kinds of observation times."""

    irregular = "irregular"
    shared = "shared"
    regular = "regular"


class Engine(StrEnum):
    """How to fit."""

    auto = "auto"
    exact = "exact"
    neural = "neural"
    meanfield = "meanfield"


class Posterior(StrEnum):
    """How the neural engine describes the hidden path."""

    tilted = "tilted"
    paper = "paper"


class Preset(StrEnum):
    """Sizes: for a laptop, or the published ones."""

    quick = "quick"
    paper = "paper"


class Encoder(StrEnum):
    """How the neural engine reads a series."""

    ode_rnn = "ode-rnn"
    gru = "gru"
    state_space = "state-space"


class Refine(StrEnum):
    """How to finish what the neural engine found."""

    exact = "exact"


class Initial(StrEnum):
    """Law at the first observation of a series."""

    free = "free"
    stationary = "stationary"
    flat = "flat"
    start = "start"


class Noise(StrEnum):
    """How the counts of a reaction network are read."""

    gaussian = "gaussian"
    poisson = "poisson"
    binomial = "binomial"
    two_sided_exponential = "two-sided-exponential"
    none = "none"


DataFile = Annotated[
    Path, typer.Argument(metavar="DATA", help="CSV, TSV, Parquet or .npz; the README shows the forms.")
]
SeriesColumn = Annotated[str | None, typer.Option("--series", metavar="COL", help="Column that names the series.")]
TimeColumn = Annotated[str | None, typer.Option("--time", metavar="COL", help="Column of observation times.")]
ValueColumns = Annotated[str | None, typer.Option("--values", metavar="COL,COL", help="Columns of observed values.")]
TimeUnit = Annotated[str | None, typer.Option("--time-unit", metavar="UNIT", help="Unit of the times, such as s.")]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The table has no header: columns are 0, 1, 2, ...")]
EmissionName = Annotated[
    str,
    typer.Option(
        "--emission",
        metavar="NAME",
        help="What a state looks like: categorical, gaussian, gaussian-full, student-t, poisson, "
        "negative-binomial, mixture, neural, ornstein-uhlenbeck, diffusion, measured, torus, dictionary; auto looks "
        "at the data.",
    ),
]
LevelsOption = Annotated[
    str | None,
    typer.Option("--levels", metavar="0,0,1", help="Level of each state, where several look alike; or a table."),
]
Hum = Annotated[
    str | None, typer.Option("--hum", metavar="50Hz", help="Mains hum in the signal, with harmonics, fitted too.")
]
Drift = Annotated[
    int,
    typer.Option("--drift", metavar="N", min=0, help="A baseline that wanders, of N half-waves over the recording."),
]
Thin = Annotated[
    int, typer.Option("--thin", metavar="N", min=1, help="Fit to every N-th observation of each series alone.")
]
OnlyRows = Annotated[
    str | None, typer.Option("--only", metavar="ROWS", help="Only these rows of its tables: irregular,shared.")
]
MeasuredData = Annotated[
    Path | None, typer.Option("--data", metavar="FILE", help="adp: dihedrals phi and psi, one frame per ps.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="S", help="The same seed gives the same result.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that fit --out wrote.")]
StoredNoHeader = Annotated[bool | None, typer.Option("--no-header", help="The table has no header.")]
