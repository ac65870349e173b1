"""The two-mode switching system: the paper's table of rates, and what 67 observations can tell at all.

Seifner & Sanchez 2023, https://proceedings.mlr.press/v202/seifner23a.html
Koehs, Alt & Koeppl 2021, Variational inference for continuous-time switching dynamical systems
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..baselines.koehs import KoehsFit
from ..estimators import ExactMJP, NeuralMJP
from ..fitted import FittedMJP
from ..systems import Simulation, TwoMode
from ..timeseries import TimeSeries
from ..training.config import Preset
from .published_training import EMISSION, trained_as_published
from .runs import Told, chosen, how_long, reported, several, size_of
from .state_methods import KOEHS_HERE, Runs, by_koehs, by_networks, holds, lost, means, over_data
from .tables import AS_PUBLISHED, EXACT, PUBLISHED, TILTED, Line, Number, Progress, Report, ResultTable, Row, noted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ONE, MANY, LONG = "one recording", "recordings of 67", "long recordings"
COLUMNS = ("up", "down")
MORE = ("median up", "median down", "held up", "held down")
KOEHS = "Koehs 2021"
METHODS = (AS_PUBLISHED, TILTED, KOEHS_HERE, EXACT)


@dataclass(frozen=True)
class Size:
    """How much data and training."""

    n_runs: int
    n_many: int  # recordings of 67 observations
    n_long: int
    long: int  # observations of a long one
    paper: dict[str, Any] = field(default_factory=dict)
    tilted: dict[str, Any] = field(default_factory=dict)


SIZES = {
    "quick": Size(1, 6, 2, 1000, paper={"steps": 60, "round_steps": 60}, tilted={"steps": 300}),
    "paper": Size(5, 40, 10, 2000),
}
AS_PRINTED = (
    Line(KOEHS, {"up": Number(0.64, None, 2), "down": Number(0.63, None, 2)}),
    Line(PUBLISHED, {"up": Number(0.16, 0.02, 2), "down": Number(0.90, 0.90, 2)}),
    Line("published, 4 of 5", {"up": Number(0.19, 0.02, 2), "down": Number(0.36, 0.06, 2)}),
)


def rates(fitted: FittedMJP | KoehsFit) -> list[float]:
    return [float(fitted.rates[0, 1]), float(fitted.rates[1, 0])]


def run(
    preset: Preset,
    n_runs: int | None,
    seed: int,
    progress: Progress = lambda *_: None,
    only: Sequence[str] | None = None,
) -> Report:
    """Fit by all methods to one recording, and by those without the published networks to many.

    Args:
        preset: "quick" or "paper".
        n_runs: of the neural engine on the one recording; the preset's if None.
        seed: of the first recording and of the first run.
        only: rows to run, and methods for the one recording; all if None.
    """
    began, size = time.perf_counter(), size_of(SIZES, preset)
    rows, methods = chosen((ONE, MANY, LONG), METHODS, only)
    runs = size.n_runs if n_runs is None else n_runs
    n_fits = {ONE: len(methods), MANY: 3 * size.n_many, LONG: 2 * size.n_long}
    told = Told(progress, n_fits=sum(n_fits[row] for row in rows))
    exact = ExactMJP(2, emission="diffusion", seed=seed)
    tables, figures = [], {}
    if ONE in rows:
        simulated = TwoMode().simulate(1, seed=seed)
        found = on_one(simulated, size, preset, runs, seed, exact, told, methods)
        tables.append(one_table(found, size, runs))
        if EXACT in found:
            figures["two-mode-reconstruction"] = partial(drawn, simulated, found[EXACT].models[0])
    more: dict[str, dict[str, Runs]] = {}
    for row, n, length in ((MANY, size.n_many, None), (LONG, size.n_long, size.long)):
        if row in rows:
            data = [TwoMode().simulate(1, length, seed=seed + k).data for k in range(n)]
            more[row] = on_many(row, data, exact, size, seed, told)
    if more:
        tables.append(many_table(more, size))
    settings = {**asdict(size), "truth": TwoMode().parameters}
    return reported("two-mode", preset, seed, runs, settings, began, tuple(tables), figures)


def on_one(
    simulated: Simulation,
    size: Size,
    preset: Preset,
    runs: int,
    seed: int,
    exact: ExactMJP,
    told: Told,
    methods: Sequence[str],
) -> dict[str, Runs]:
    neural = partial(NeuralMJP, 2, preset=preset, seed=seed, restarts=runs)
    data = simulated.data
    paper = neural(emission=EMISSION, posterior="paper", changes=trained_as_published("two-mode", size.paper))
    ways: dict[str, Callable[[], Runs]] = {
        AS_PUBLISHED: lambda: by_networks(paper, data, told.next(AS_PUBLISHED)),
        TILTED: lambda: by_networks(neural(emission="gaussian", changes=size.tilted), data, told.next(TILTED)),
        KOEHS_HERE: lambda: by_koehs([data], 2, lambda _: told.next(KOEHS_HERE)),
        EXACT: lambda: over_data(exact, [data], lambda _: told.next(EXACT)),
    }
    return {method: ways[method]() for method in methods}


def on_many(
    row: str, data: Sequence[TimeSeries], exact: ExactMJP, size: Size, seed: int, told: Told
) -> dict[str, Runs]:
    """The neural engine sees the short ones alone: it has no level behind noise, which many observations would tell."""
    neural = NeuralMJP(2, emission="gaussian", seed=seed, changes={"steps": 300, **size.tilted})
    found = {KOEHS_HERE: by_koehs(data, 2, lambda k: told.next(f"{row}, {KOEHS_HERE}, {k + 1}"))}
    if row == MANY:
        found[TILTED] = over_data(neural, data, lambda k: told.next(f"{row}, {TILTED}, {k + 1}"))
    found[EXACT] = over_data(exact, data, lambda k: told.next(f"{row}, {EXACT}, {k + 1}"))
    return found


def one_table(found: dict[str, Runs], size: Size, runs: int) -> ResultTable:
    lines = [each.line(method, COLUMNS, rates, (2, 2)) for method, each in found.items()]
    return ResultTable(
        "Rates of the two-mode system (truth: 0.2, 0.2)",
        COLUMNS,
        (Row(ONE, (*AS_PRINTED, *lines)),),
        noted(
            found,
            f"{several(runs)} of the neural engine (published: 5, one of which collapsed) on one recording",
            (AS_PUBLISHED, how_long(size.paper)),
            (EXACT, "level and noise told apart"),
            lost(found),
        ),
    )


def many_table(found: dict[str, dict[str, Runs]], size: Size) -> ResultTable:
    rows = tuple(
        Row(row, tuple(many_line(method, each) for method, each in lines.items())) for row, lines in found.items()
    )
    return ResultTable(
        "The same system, simulated many times (truth: 0.2, 0.2)",
        (*COLUMNS, *MORE),
        rows,
        noted(
            {method for lines in found.values() for method in lines},
            f"{size.n_many} recordings of 67 observations and {size.n_long} of {size.long}, all counted: mean ± sd of "
            "the rates, medians (a recording without a jump knows no largest rate), and the share whose 95 % interval "
            "holds the true rate",
            (TILTED, "a Gaussian per state, which takes a level that wanders for noise"),
        ),
    )


def many_line(method: str, each: Runs) -> Line:
    values = np.array([rates(one) for one in each.models])
    numbers = {name: Number.over(x, 3) for name, x in zip(COLUMNS, values.T, strict=True)}
    numbers |= {name: Number(float(x), None, 3) for name, x in zip(MORE[:2], np.median(values, axis=0), strict=True)}
    fitted = [one for one in each.models if isinstance(one, FittedMJP)]
    if fitted:
        held = np.mean([holds(one.intervals["rates"], TwoMode().rates)[[0, 1], [1, 0]] for one in fitted], axis=0)
        numbers |= {name: Number(float(x), None, 2) for name, x in zip(MORE[2:], held, strict=True)}
    return Line(method, numbers, each.seconds, f"{len(each.models)} fits, {each.collapsed} collapsed")


def drawn(simulated: Simulation, fitted: FittedMJP) -> "Figure":
    """The paper's figure: true modes, posterior probability of the upper one, observations and reconstruction."""
    from matplotlib.figure import Figure

    from ..plots.palette import TRACE, TRUTH, state_colour

    data = simulated.data
    decoded = fitted.decode(data)
    mean = means(fitted)[:, 0]
    figure = Figure(figsize=(8, 6), layout="constrained")
    top, middle, bottom = figure.subplots(3, sharex=True)
    top.step(data.times, simulated.states, where="post", color=TRUTH)
    top.set_ylabel("true mode")
    middle.plot(data.times, decoded.probabilities[:, 1], color=state_colour(1), label="probability")
    middle.step(
        data.times, decoded.states, where="post", color=state_colour(0), linestyle="--", label="most likely path"
    )
    middle.set_ylabel("upper mode")
    middle.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    bottom.plot(data.times, data.values[:, 0], ".", color=TRACE, label="observed")
    bottom.plot(data.times, decoded.probabilities @ mean, color=state_colour(1), label="rest point, expected")
    bottom.set_ylabel("y")
    bottom.set_xlabel(f"time ({data.time_unit})")
    bottom.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure
