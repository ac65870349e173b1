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
States = Annotated[
    int | None, typer.Option("--states", metavar="K", help="Number of hidden states; not for a reaction network.")
]
EngineName = Annotated[
    Engine, typer.Option("--engine", help="auto takes the best engine; meanfield is for reaction networks.")
]
PriorName = Annotated[
    str,
    typer.Option(
        "--prior",
        metavar="NAME",
        help="free, reversible, MASK.csv of allowed jumps, a system, or the file of a reaction network.",
    ),
]
InitialLaw = Annotated[
    Initial | None,
    typer.Option("--initial", help="Law at a first observation: free (default), stationary; network: flat, start."),
]
NoiseKind = Annotated[
    Noise | None, typer.Option("--noise", help="network: how counts are read; default: as the network says.")
]
NoiseScale = Annotated[
    float | None, typer.Option("--noise-scale", metavar="X", help="network: noise that is known, not learned.")
]
Seen = Annotated[
    str | None, typer.Option("--seen", metavar="A,B+C", help="network: species, or sum of them, in each value.")
]
Restarts = Annotated[
    int | None,
    typer.Option("--restarts", metavar="R", min=1, help="Starts; default 5, or 1 if states are seen or for neural."),
]
PosteriorName = Annotated[
    Posterior | None,
    typer.Option("--posterior", help="neural: tilted (default), or paper, the published model with its bias."),
]
PresetName = Annotated[
    Preset | None, typer.Option("--preset", help="neural: sizes for a laptop (default) or the published ones.")
]
EncoderName = Annotated[
    Encoder | None, typer.Option("--encoder", help="neural: network that reads a series; default: the preset's.")
]
Steps = Annotated[int | None, typer.Option("--steps", metavar="N", min=1, help="neural: most training steps.")]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="neural: change any choice of the training, such as width=32; repeat."
    ),
]
RefineBy = Annotated[
    Refine | None, typer.Option("--refine", help="neural: finish rates and emission with the exact engine.")
]
Resume = Annotated[bool, typer.Option("--resume", help="neural: go on from the last checkpoint in --out DIR.")]
ExactEntry = Annotated[
    float | None, typer.Option("--exact-entry", metavar="STATE", help="Absorbing state entered at the time given.")
]
FirstKnown = Annotated[bool, typer.Option("--first-known", help="First observations are read truly.")]
Misread = Annotated[
    Path | None, typer.Option("--misread", metavar="MASK.csv", help="Which labels (columns) each state can show.")
]
Censored = Annotated[
    list[str] | None,
    typer.Option("--censored", metavar="CODE=S,S", help="A label that means one of several states."),
]
FitFolder = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder for the fitted model; neural: also checkpoint, history.csv."),
]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")]
Methods = Annotated[
    str,
    typer.Option("--methods", metavar="M,M", help="Of exact, neural, paper, koehs, msm, vampnet, gmvae, hmm."),
]
Lag = Annotated[
    float | None,
    typer.Option("--lag", metavar="T", min=0, help="msm, vampnet, gmvae, hmm: lag, in the data's time unit."),
]
Angles = Annotated[bool, typer.Option("--angles", help="Values are angles in radians.")]
HeldOut = Annotated[
    float,
    typer.Option("--held-out", metavar="SHARE", help="Of the series, or the end of a single one: judged, not fitted."),
]
MethodChanges = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="METHOD.NAME=VALUE", help="A choice for one method, such as msm.cells=300; repeat."),
]
TruthFile = Annotated[
    Path | None, typer.Option("--truth", metavar="FILE", help="True state of every row, as simulate --truth writes it.")
]
Jobs = Annotated[int | None, typer.Option("--jobs", metavar="J", min=1, help="Fits at a time; default: one per core.")]
Limit = Annotated[
    float | None, typer.Option("--limit", metavar="S", min=0, help="Seconds after which a fit is given up.")
]
CompareFolder = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder for table and figure; answers are kept there, to go on."),
]
