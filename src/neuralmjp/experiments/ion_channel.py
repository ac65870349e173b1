"""The switching ion channel: stationary law, timescales and passage times.

The recording itself is private: a channel simulated with the rates that the paper inferred stands in for it.

Seifner & Sanchez 2023, https://proceedings.mlr.press/v202/seifner23a.html
Koehs, Alt & Koeppl 2021, Variational inference for continuous-time switching dynamical systems
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from .. import io, mjp
from ..estimators import ExactMJP, NeuralMJP
from ..fitted import FittedMJP
from ..systems import Dataset, IonChannel, ion_channel_dataset, paper_dataset
from ..timeseries import TimeSeries
from ..training.config import Preset
from . import patch_clamp
from .ion_channel_forecast import Forecasts
from .published_training import EMISSION, trained_as_published
from .runs import Told, chosen, how_long, reported, several, size_of
from .state_methods import KOEHS_HERE, Runs, by_koehs, by_networks, holds, lost, means, over_data
from .tables import AS_PUBLISHED, EXACT, PUBLISHED, TILTED, Line, Number, Progress, Report, ResultTable, Row, noted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECOND, FULL, MANY = "one second", "full", "recordings"
DATA = {SECOND: "ion-channel-one-second", FULL: "ion-channel-full"}
KOEHS, TRUTH = "Koehs 2021", "truth"
METHODS = (AS_PUBLISHED, TILTED, EXACT, KOEHS_HERE)
NAMES = ("bottom", "middle", "top")
JUMPS = [(i, j) for i in range(3) for j in range(3) if i != j]
PASSAGES = tuple(f"{NAMES[i][0]} to {NAMES[j][0]}" for i, j in JUMPS)
SCALES = ("first", "second")
LENGTH = 171_615


@dataclass(frozen=True)
class Size:
    """How much data and training."""

    n_runs: int
    n_many: int  # whole recordings for the coverage of intervals
    length: int
    rows: tuple[str, ...]
    paper: dict[str, Any] = field(default_factory=dict)
    tilted: dict[str, Any] = field(default_factory=dict)


SIZES = {
    "quick": Size(1, 2, 30_000, (SECOND, MANY), paper={"steps": 60, "round_steps": 60}, tilted={"steps": 300}),
    "paper": Size(5, 10, LENGTH, (SECOND, FULL, MANY)),
}
LAWS = {
    SECOND: {KOEHS: (0.17961, 0.14987, 0.67052), PUBLISHED: (0.17672, 0.09472, 0.72856)},
    FULL: {PUBLISHED: (0.19631, 0.07153, 0.73217)},
}
TIMES = {
    SECOND: {KOEHS: (0.01228, 0.03396), PUBLISHED: (0.00295, 0.02116)},
    FULL: {PUBLISHED: (0.00099, 0.0097)},
}
FIRST_PASSAGES = {
    SECOND: {
        KOEHS: (0.068, 0.054, 0.133, 0.033, 0.181, 0.092),
        PUBLISHED: (0.019, 0.031, 0.083, 0.014, 0.119, 0.038),
    },
    FULL: {PUBLISHED: (0.008, 0.014, 0.031, 0.006, 0.048, 0.018)},
}
TABLES = (
    ("Stationary law of the ion channel", NAMES, LAWS, 3),
    ("Ordered relaxation times (s)", SCALES, TIMES, 4),
    ("Mean first-passage times (s)", PASSAGES, FIRST_PASSAGES, 3),
)


def numbers_of(rates: Float[np.ndarray, "3 3"]) -> tuple[list[float], list[float], list[float]]:
    """Law, ordered timescales and passage times, as the three tables show them."""
    passage = np.asarray(mjp.mfpt(rates))
    scales = np.sort(np.asarray(mjp.timescales(rates)))
    return (
        np.asarray(mjp.stationary_distribution(rates)).tolist(),
        scales.tolist(),
        [float(passage[i, j]) for i, j in JUMPS],
    )


def run(
    preset: Preset,
    n_runs: int | None,
    seed: int,
    progress: Progress = lambda *_: None,
    only: Sequence[str] | None = None,
    data: Path | None = None,
) -> Report:
    """Fit by all methods to one second and to all of a recording, and by the default engines to several recordings.

    Args:
        preset: "quick" or "paper".
        n_runs: of the neural engine per row; the preset's if None.
        seed: of the first recording and of the first run.
        only: rows to run, and methods; all of the preset's if None.
        data: a measured recording in place of the simulated one: a column of samples at 5 kHz, such as the paper's own
            KcvMT325_140mV.txt, or any file that says its times. Its truth is not known. A folder of recordings is
            fitted file by file, see `patch_clamp`; `only` then names files.
    """
    began, size = time.perf_counter(), size_of(SIZES, preset)
    runs = size.n_runs if n_runs is None else n_runs
    settings = {**asdict(size), "data": None if data is None else data.name}
    if data is not None and data.is_dir():
        tables = patch_clamp.tables_of(data, size.paper, size.tilted, preset, runs, seed, partial(Told, progress), only)
        return reported("ion-channel", preset, seed, runs, settings, began, tables, {})
    rows, methods = chosen(size.rows, METHODS, only)
    shown = [row for row in rows if row in DATA]
    told = Told(progress, n_fits=sum(len(able(row, methods)) for row in shown) + size.n_many * (MANY in rows))
    measured = None if data is None else recording(data)
    found, split = {}, {}
    for row in shown:
        split[row] = (
            paper_dataset(DATA[row], seed=seed) if measured is None else ion_channel_dataset(DATA[row], measured)
        )
        found[row] = by_all(split[row], size, preset, runs, seed, told, row, able(row, methods))
    tables = [table_of(k, found, size, runs, measured is None) for k in range(len(TABLES))] if found else []
    figures = {}
    if found.get(SECOND, {}).keys() - {KOEHS_HERE}:
        forecasts = Forecasts(found[SECOND], split[SECOND])
        tables.append(forecasts.table())
        if EXACT in found[SECOND]:
            figures["ion-channel-forecast"] = partial(drawn, split[SECOND], found[SECOND][EXACT].models[0])
        figures["ion-channel-forecast-errors"] = forecasts.drawn
    if MANY in rows:
        recordings = [IonChannel.paper("full").simulate(1, size.length, seed=seed + k).data for k in range(size.n_many)]
        exact = over_data(ExactMJP(3, seed=seed), recordings, lambda k: told.next(f"recording {k + 1}"))
        tables.append(many_table(exact, size))
    return reported("ion-channel", preset, seed, runs, settings, began, tuple(tables), figures)


def recording(file: Path) -> TimeSeries:
    """One measured recording; a file of numbers alone was taken at 5 kHz."""
    numbers_alone = file.suffix == ".txt"
    return io.read(file, rate="5kHz" if numbers_alone else None)


def able(row: str, methods: Sequence[str]) -> tuple[str, ...]:
    """Methods for a row, as published: the whole recording is too long for Koehs's."""
    return tuple(method for method in methods if row == SECOND or method != KOEHS_HERE)


def by_all(
    data: Dataset,
    size: Size,
    preset: Preset,
    runs: int,
    seed: int,
    told: Told,
    row: str,
    methods: Sequence[str],
) -> dict[str, Runs]:
    neural = partial(NeuralMJP, 3, preset=preset, seed=seed, restarts=runs, intervals=False)
    published = neural(emission=EMISSION, posterior="paper", changes=trained_as_published(DATA[row], size.paper))
    train = data.train.data

    def tell(method: str) -> Progress:
        return told.next(f"{row}, {method}")

    ways: dict[str, Callable[[], Runs]] = {
        AS_PUBLISHED: lambda: by_networks(published, train, tell(AS_PUBLISHED)),
        TILTED: lambda: by_networks(neural(emission="gaussian", changes=size.tilted), train, tell(TILTED)),
        EXACT: lambda: over_data(ExactMJP(3, seed=seed), [train], lambda _: tell(EXACT)),
        KOEHS_HERE: lambda: by_koehs([train], 3, lambda _: tell(KOEHS_HERE), substeps=2),
    }
    return {method: ways[method]() for method in methods}


def truth_of(row: str) -> Float[np.ndarray, "3 3"]:
    return np.array(IonChannel.paper("one-second" if row == SECOND else "full").rates)


def table_of(k: int, found: dict[str, dict[str, Runs]], size: Size, runs: int, simulated: bool) -> ResultTable:
    title, columns, printed, decimals = TABLES[k]
    digits = (decimals,) * len(columns)

    def line(method: str, values: Sequence[float]) -> Line:
        return Line(method, {name: Number(float(x), None, decimals) for name, x in zip(columns, values, strict=True)})

    rows = []
    for row, methods in found.items():
        known = [line(TRUTH, numbers_of(truth_of(row))[k])] if simulated else []
        lines = [*known, *(line(*one) for one in printed[row].items())]
        lines += [each.line(m, columns, lambda one: numbers_of(one.rates)[k], digits) for m, each in methods.items()]
        rows.append(Row(row, tuple(lines)))
    whence = "a measured recording"
    if simulated:
        whence = "truth: rates that the paper's tables imply, simulated with levels 0, 4, 6 pA and noise of 0.5 pA; "
        whence += "published: on the private recording"
    return ResultTable(
        title,
        columns,
        tuple(rows),
        noted(
            {method for methods in found.values() for method in methods},
            f"{several(runs)} of the neural engine",
            (AS_PUBLISHED, how_long(size.paper)),
            whence,
            *(f"{row}, {lost(methods)}" for row, methods in found.items()),
        ),
    )


def many_table(exact: Runs, size: Size) -> ResultTable:
    truth = truth_of(FULL)
    law, passage = np.asarray(mjp.stationary_distribution(truth)), np.asarray(mjp.mfpt(truth))
    jumps = tuple(np.array(JUMPS).T)
    held = {
        "rates": [holds(one.intervals["rates"], truth)[jumps] for one in exact.models],
        "timescales": [holds(one.timescales, np.asarray(mjp.timescales(truth))) for one in exact.models],
        "passages": [holds(one.mfpt, passage)[jumps] for one in exact.models],
    }
    off = np.mean([np.abs(one.stationary_distribution.mean - law).max() for one in exact.models])
    numbers = {f"held {name}": Number(float(np.mean(each)), None, 2) for name, each in held.items()}
    numbers |= {"law off": Number(float(off), None, 4), "collapsed": Number(exact.collapsed, None, 0)}
    return ResultTable(
        "Whole recordings, each fitted on its own",
        tuple(numbers),
        (Row(f"{size.n_many} of {size.length} samples", (Line(EXACT, numbers, exact.seconds, exact.message),)),),
        "held: share of true values inside their 95 % intervals; law off: largest error of a stationary probability, "
        "mean over recordings",
    )


def drawn(data: Dataset, fitted: FittedMJP) -> "Figure":
    """A stretch of the recording with the path behind it, and the forecast of what follows (grey)."""
    from matplotlib.figure import Figure

    from ..plots import plot_trace
    from ..plots.palette import FUTURE, state_colour

    assert data.prediction is not None
    whole = data.prediction.data
    given = whole.between(0.0, float(whole.times[99]))
    decoded = fitted.decode(given)
    ahead = fitted.predict(given, whole.times[100:], samples=2000)
    mean = means(fitted)[:, 0]
    figure = Figure(figsize=(9, 4), layout="constrained")
    ax = plot_trace(whole, figure.subplots(), states=None)
    ax.plot(given.times, decoded.probabilities @ mean, color=state_colour(1), label="reconstruction")
    ax.axvspan(float(whole.times[99]), float(whole.times[-1]), color=FUTURE, zorder=0)
    ax.plot(ahead.times, ahead.readings.mean[:, 0], color=state_colour(0), label="forecast")
    ax.fill_between(
        ahead.times, ahead.readings.lower[:, 0], ahead.readings.upper[:, 0], color=state_colour(0), alpha=0.2
    )
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure
