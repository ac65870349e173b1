"""The words and columns that several commands take; loads nothing slow."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from .errors import InputError


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
    Path,
    typer.Argument(
        metavar="DATA",
        help="CSV, text, Parquet (a file or a folder), .npz, HDF5, Zarr, .abf, a trajectory: docs/data.md.",
    ),
]
SeriesColumn = Annotated[str | None, typer.Option("--series", metavar="COL", help="Column that names the series.")]
TimeColumn = Annotated[str | None, typer.Option("--time", metavar="COL", help="Column of observation times.")]
ValueColumns = Annotated[str | None, typer.Option("--values", metavar="COL,COL", help="Columns of observed values.")]
Labels = Annotated[
    str | None,
    typer.Option("--labels", metavar="A,B,C", help="Words among the values, in order: they are read as 0, 1, 2."),
]
TimeUnit = Annotated[
    str | None, typer.Option("--time-unit", metavar="UNIT", help="What times shall count: s, days, years, ...")
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The table has no header: columns are 0, 1, 2, ...")]
Rate = Annotated[
    str | None, typer.Option("--rate", metavar="5kHz", help="Samples per time, where the file holds no times.")
]
Channel = Annotated[str | None, typer.Option("--channel", metavar="C", help=".abf: channel, by number or name.")]
Decimate = Annotated[
    int | None, typer.Option("--decimate", metavar="N", min=1, help="Filter against aliasing, keep every N-th sample.")
]
Topology = Annotated[
    Path | None, typer.Option("--topology", metavar="FILE", help="Trajectories: names of the atoms, such as a .pdb.")
]
TrajectoryFeatures = Annotated[
    str | None,
    typer.Option(
        "--features", metavar="F", help="Trajectories: dihedrals (default), sincos, distances:0-4,3-7 or positions:CA."
    ),
]
EmissionName = Annotated[
    str,
    typer.Option(
        "--emission",
        metavar="NAME",
        help="What a state looks like: categorical, gaussian, gaussian-full, gaussian-shared, student-t, "
        "poisson, negative-binomial, mixture, neural, neural-full, ornstein-uhlenbeck, diffusion, measured, torus, "
        "dictionary; auto looks at the data.",
    ),
]
StateNames = Annotated[
    str | None,
    typer.Option("--state-names", metavar="A,B,C", help="What tables and figures call the states, in their order."),
]
Draws = Annotated[
    int | None,
    typer.Option("--samples", metavar="M", min=1, help="states: draws behind the numbers; default 1000."),
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
ThinFit = Annotated[
    str,
    typer.Option(
        "--thin", metavar="N|auto", help="Fit to every N-th observation; auto: until the slowest timescale settles."
    ),
]
Thin = Annotated[
    int, typer.Option("--thin", metavar="N", min=1, help="Fit to every N-th observation of each series alone.")
]


def in_a_folder(file: Path | None) -> Path | None:
    """Refused before the work, not after it."""
    if file is not None and not file.absolute().parent.is_dir():
        raise InputError(f"{file}: there is no folder {file.parent}; make it first")
    return file


OnlyRows = Annotated[
    str | None, typer.Option("--only", metavar="ROWS", help="Only these rows and methods: irregular,tilted.")
]
Numbers = Annotated[
    Path | None,
    typer.Option(
        "--json", metavar="FILE", callback=in_a_folder, help="Write every number, seconds and device as JSON."
    ),
]
Figures = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Draw the paper's figures into this folder.")
]
Checkpoints = Annotated[
    Path | None,
    typer.Option("--keep", metavar="DIR", help="Keep neural fits here: the same command goes on if it was broken off."),
]
Written = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write: .csv, .parquet or .npz.")]
Until = Annotated[
    str | None, typer.Option("--until", metavar="T", help="Forecast to this time, or date, in steps of a median gap.")
]
StepsAhead = Annotated[
    int | None, typer.Option("--steps", metavar="N", min=1, help="Forecast so many median gaps of each series.")
]
EventsFile = Annotated[
    Path | None,
    typer.Option("--events", metavar="FILE", help="A row per stay in a state, too: .csv, .tsv or .parquet."),
]
Devices = Annotated[
    int,
    typer.Option(
        "--mesh", metavar="N", min=0, help="Cards, or cores without one, that share neural fits; 0 for all there are."
    ),
]
MeasuredData = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="FILE",
        help="adp: dihedrals phi and psi, one frame per ps; ion-channel: a recording, or a folder of them.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="S", help="The same seed gives the same result.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that fit --out wrote.")]
StoredNoHeader = Annotated[
    bool | None, typer.Option("--no-header", help="The table has no header: columns are 0, 1, 2, ...")
]
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
    str | None, typer.Option("--exact-entry", metavar="STATE", help="Absorbing state entered at the time given.")
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
JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", callback=in_a_folder, help="Write the result as JSON.")
]
SummaryFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", callback=in_a_folder, help="Also write the summary as JSON.")
]
FetchOut = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write: .npz.")]
Nanoseconds = Annotated[
    float | None,
    typer.Option("--ns", metavar="T", help="alanine-dipeptide: how long; a frame per ps. Goes on if cut off."),
]
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
ClusterName = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="local|ADDRESS",
        help="Work on a dask cluster: started here, or tcp://host:8786 of a scheduler.",
    ),
]
Limit = Annotated[
    float | None, typer.Option("--limit", metavar="S", min=0, help="Seconds after which a fit is given up.")
]
CompareFolder = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder for table and figure; answers are kept there, to go on."),
]


FittedData = Annotated[
    Path | None, typer.Argument(metavar="[DATA]", help="What was fitted; default: where the fit found it.")
]
ReportFile = Annotated[
    Path | None, typer.Option("--out", metavar="FILE.html", help="Where to write; default: report.html in RUN.")
]


@dataclass(frozen=True)
class Reading:
    """How a data file is read, as it was typed; None where nothing was."""

    series: SeriesColumn = None
    time: TimeColumn = None
    values: ValueColumns = None
    time_unit: TimeUnit = None
    no_header: StoredNoHeader = None
    rate: Rate = None
    channel: Channel = None
    decimate: Decimate = None
    topology: Topology = None
    features: TrajectoryFeatures = None
    labels: Labels = None

    def columns(self, stored: dict[str, Any] | None = None) -> dict[str, Any]:
        """For `neuralmjp.io.read`: what was typed, else what is stored of an earlier reading."""
        typed = {field.name: getattr(self, field.name) for field in fields(self)}
        no_header = typed.pop("no_header")
        typed["header"] = None if no_header is None else not no_header
        typed["topology"] = None if self.topology is None else str(self.topology.resolve())
        known = stored or {}
        chosen = {name: known.get(name) if value is None else value for name, value in typed.items()}
        return {**chosen, "header": chosen["header"] is not False, "decimate": chosen["decimate"] or 1}


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with a parameter `reading: Reading` one option for each of its fields, in this place."""
    options = {field.name: (field.type, field.default) for field in fields(Reading)}
    shown = []
    for one in inspect.signature(command).parameters.values():
        taken = options if one.name == "reading" else {one.name: (one.annotation, one.default)}
        shown += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for name, (kind, default) in taken.items()
        ]

    def with_reading(**given: Any) -> None:
        reading = Reading(**{name: given.pop(name) for name in options})
        command(**given, reading=reading)

    with_reading.__name__, with_reading.__doc__ = command.__name__, command.__doc__
    with_reading.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    with_reading.__annotations__ = {one.name: one.annotation for one in shown}
    return with_reading
