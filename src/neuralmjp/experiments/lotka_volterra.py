"""Lotka-Volterra: the paper's table of parameters, and both tables of its appendix with five runs per row.

Seifner & Sanchez 2023, https://proceedings.mlr.press/v202/seifner23a.html
Opper & Sanguinetti 2007, https://papers.nips.cc/paper/2007/hash/735b90b4568125ed6c3f678819b6e058-Abstract.html
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from ..estimators import NetworkMJP
from ..systems import ReactionNetwork, Simulation, lotka_volterra, paper_dataset
from ..training.config import Preset
from .count_methods import Found, Task, by_exact, by_networks, by_sweeps, log_interval, looking_ahead, swept
from .lotka_volterra_figures import grid_figure, single_figure
from .published_training import trained_as_published
from .runs import Told, chosen, columns_over_runs, fit_there, how_long, reported, several, size_of
from .tables import (
    AS_PUBLISHED,
    EXACT,
    PUBLISHED,
    TILTED,
    Drawing,
    Line,
    Number,
    Progress,
    Report,
    ResultTable,
    Row,
    noted,
)

GRIDS = ("irregular", "shared", "regular")
SINGLE, MANY = "one trajectory", "trajectories"
PARAMETERS = ("alpha", "beta", "delta", "gamma")
UNIT = 1e-4  # of all parameters in the tables, as printed
DECIMALS = (1, 2, 2, 1)  # as printed
STEPS = (1, 5, 10)  # observations of the prediction set at which forecasts are judged
READ, LATER = "RMSE test", tuple(f"ahead {step}" for step in STEPS)
N_GIVEN, N_GIVEN_SINGLE = 50, 16
AWAY = 2.0  # starting values are the truth times or divided by this
OPPER, SWEEPS = "O&S 2007", "sweeps"
METHODS = (AS_PUBLISHED, TILTED, SWEEPS, EXACT)
BELOW = "below"


@dataclass(frozen=True)
class Size:
    """How much data and training; `paper` and `tilted` change the training configuration of the preset."""

    n_series: int
    n_test: int
    n_ahead: int
    n_swept: int  # series that the mean field by sweeps is fitted to
    n_single: int  # trajectories of 16 observations
    n_runs: int
    grids: tuple[str, ...] = GRIDS
    paper: dict[str, Any] = field(default_factory=dict)
    tilted: dict[str, Any] = field(default_factory=dict)


SMALL = {"batch": 16, "width": 16}
SIZES = {
    # As many test as training series, so that one compiled program serves both.
    "quick": Size(
        48,
        48,
        16,
        n_swept=16,
        n_single=2,
        n_runs=1,
        grids=("irregular",),  # most of the time goes into compiling for it
        paper={**SMALL, "steps": 20, "round_steps": 20, "quadrature": 16},
        tilted={**SMALL, "steps": 120, "round_steps": 40, "model_learning_rate": 3e-2},
    ),
    "paper": Size(70 * 64, 260, 100, n_swept=256, n_single=20, n_runs=5),
}


def published(method: str, names: tuple[str, ...], *numbers: float | tuple[float, float], decimals: tuple[int, ...]):
    """Means, and standard deviations where there are, as printed."""
    pairs = [one if isinstance(one, tuple) else (one, None) for one in numbers]
    return Line(method, {name: Number(*pair, decimals=d) for name, pair, d in zip(names, pairs, decimals, strict=True)})


OPPER_CONSTANTS = published(OPPER, PARAMETERS, 13.5, 2.32, 1.78, 15.7, decimals=DECIMALS)
MAIN_TEXT = published(PUBLISHED, PARAMETERS, (4.5, 0.3), (1.00, 0.08), (0.76, 0.08), (3.5, 0.2), decimals=DECIMALS)
BOUND = ("KL", "NLL", *PARAMETERS)
_bound = partial(published, PUBLISHED, BOUND, decimals=(0, 0, *DECIMALS))
APPENDIX = {
    "irregular": _bound((31, 2), (166, 2), (4.3, 0.6), (0.94, 0.07), (0.83, 0.09), (4.1, 0.4)),
    "shared": _bound((36, 4), (155, 2), (5.4, 0.6), (1.10, 0.07), (1.00, 0.06), (4.9, 0.4)),
    "regular": _bound((28, 5), (163, 4), (4.5, 0.6), (1.00, 0.03), (0.90, 0.08), (4.3, 0.5)),
    SINGLE: _bound((192, 114), (13, 24), (2.1, 0.6), (0.67, 0.06), (1.05, 0.32), (9.3, 8.1)),
}
SIGHT = (READ, *LATER)
_sight = partial(published, PUBLISHED, SIGHT, decimals=(2, 2, 1, 1))
SEEN = {
    "irregular": _sight((1.87, 0.04), (2.67, 0.17), (3.1, 0.1), (3.3, 0.1)),
    "shared": _sight((1.67, 0.04), (2.33, 0.08), (2.8, 0.2), (3.1, 0.2)),
    "regular": _sight((1.80, 0.08), (1.75, 0.14), (2.4, 0.2), (2.7, 0.2)),
    SINGLE: _sight((2.02, 0.04), (5.69, 2.66), (9.2, 3.6), (10.6, 4.3)),
}
OPPER_SEEN = published(OPPER, SIGHT, 2.672, 3.000, 9.487, 11.402, decimals=(3, 3, 3, 3))


def run(
    preset: Preset,
    n_runs: int | None,
    seed: int,
    progress: Progress = lambda *_: None,
    only: Sequence[str] | None = None,
) -> Report:
    """Fit by all methods on every grid and on a single trajectory; runs of one row go side by side as restarts.

    Args:
        preset: "quick" or "paper".
        n_runs: per row; the preset's if None.
        seed: of the data, of the starting values and of the first run.
        only: rows to run, of the grids, "one trajectory" and "trajectories" (several such, by all that need no
            published networks), and methods; all if None.
    """
    began, size = time.perf_counter(), size_of(SIZES, preset)
    rows, methods = chosen((*size.grids, SINGLE, MANY), METHODS, only)
    runs = size.n_runs if n_runs is None else n_runs
    fitted = [row for row in rows if row != MANY]
    told = Told(progress, n_fits=len(fitted) * len(methods) + size.n_single * (MANY in rows))
    found: dict[str, dict[str, Found]] = {}
    shown: dict[str, Simulation] = {}
    for row in fitted:
        task, shown[row] = single_of(seed) if row == SINGLE else data_of(row, size, seed)
        network = alone() if row == SINGLE else lotka_volterra()
        found[row] = by_all(network, task, size, preset, runs, seed, told, row, methods)
    tables = list(appendix_tables(found, size, runs)) if found else []
    if size.grids[0] in found:
        tables.insert(0, main_table(found[size.grids[0]], size))
    both = {row: each for row, each in found.items() if row != SINGLE and {TILTED, EXACT} <= each.keys()}
    if both:
        tables.append(bias_table(both))
    if MANY in rows:
        tables.append(coverage_table(intervals_of(size, preset, seed, told)))
    settings = {**asdict(size), "start": start_of(seed)}
    return reported("lotka-volterra", preset, seed, runs, settings, began, tuple(tables), drawings(found, shown))


def drawings(found: dict[str, dict[str, Found]], shown: dict[str, Simulation]) -> dict[str, Drawing]:
    """The paper's two figures, as far as their rows were run: the first grid, and one trajectory."""
    figures: dict[str, Drawing] = {}
    first = next(iter(found), SINGLE)
    if first != SINGLE and EXACT in found[first]:
        figures |= grid_figure(shown[first], found[first][EXACT].model, N_GIVEN)
    if {EXACT, SWEEPS} <= found.get(SINGLE, {}).keys():
        models = found[SINGLE][EXACT].model, found[SINGLE][SWEEPS].model
        figures |= single_figure(shown[SINGLE], *models, N_GIVEN_SINGLE)
    return figures


def start_of(seed: int) -> dict[str, float]:
    """Twice or half the truth, at random: what comes near it was learned."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(PARAMETERS))
    return {
        name: value * AWAY**sign for (name, value), sign in zip(lotka_volterra().parameters.items(), signs, strict=True)
    }


def alone() -> ReactionNetwork:
    """The process of the single trajectory: known start, discrete noise with two tails."""
    return lotka_volterra(start=((19, 19), (7, 7)), noise="two-sided-exponential")


def data_of(grid: Any, size: Size, seed: int) -> tuple[Task, Simulation]:
    """The paper's data set, as many series as asked for, and one longer series to draw."""
    whole = paper_dataset("lotka-volterra", grid=grid, seed=seed)
    assert whole.test is not None
    assert whole.prediction is not None
    ahead = looking_ahead(whole.prediction.data[: size.n_ahead], N_GIVEN, STEPS)
    return Task(whole.train.data[: size.n_series], whole.test.data[: size.n_test], ahead), whole.prediction.part(0, 1)


def single_of(seed: int) -> tuple[Task, Simulation]:
    """The trajectory is its own test set; what comes after it was read without noise."""
    whole = paper_dataset("lotka-volterra-single", seed=seed)
    assert whole.prediction is not None
    ahead = looking_ahead(whole.prediction.data, N_GIVEN_SINGLE, STEPS)
    return Task(whole.train.data, whole.train.data, ahead), whole.prediction


def by_all(
    network: ReactionNetwork,
    task: Task,
    size: Size,
    preset: Preset,
    runs: int,
    seed: int,
    told: Told,
    name: str,
    methods: Sequence[str],
) -> dict[str, Found]:
    """The methods on one data set; standard errors where the main text or the coverage of intervals needs them."""
    needed = name in (size.grids[0], SINGLE)
    make = partial(NetworkMJP, network, start=start_of(seed), seed=seed, preset=preset, intervals=needed)
    neural = partial(make, engine="neural", restarts=runs)
    few = Task(task.train[: size.n_swept], task.test[: size.n_swept], task.ahead)
    changes = trained_as_published("lotka-volterra-single", size.paper, {}) if name == SINGLE else size.paper
    paper, tilted = neural(posterior="paper", changes=changes), neural(changes=size.tilted)
    ways = {
        AS_PUBLISHED: partial(by_networks, paper, task, errors=needed),
        TILTED: partial(by_networks, tilted, task, errors=needed, evidence=name != SINGLE),
        SWEEPS: partial(by_sweeps, make(engine="meanfield"), few),
        EXACT: partial(by_exact, make(engine="exact"), task),
    }
    return {method: ways[method](progress=told.next(f"{name}, {method}")) for method in methods}


def intervals_of(
    size: Size, preset: Preset, seed: int, told: Told
) -> dict[str, Float[np.ndarray, "data bound constant"]]:
    """Estimate, lower and upper end of every constant in each of several trajectories."""
    kept: dict[str, list] = {method: [] for method in (EXACT, TILTED, SWEEPS)}
    for k in range(size.n_single):
        data = single_of(seed + k)[0].train
        tell = told.next(f"{MANY}, {k + 1} of {size.n_single}")
        make = partial(NetworkMJP, alone(), start=start_of(seed + k), seed=seed, preset=preset)
        neural = make(engine="neural", changes=size.tilted)
        kept[EXACT].append(make(engine="exact").fit(data, tell).intervals["parameters"])
        kept[TILTED].append(fit_there(neural, data, tell).intervals["parameters"])
        fit = swept(make(), data, tell)
        kept[SWEEPS].append(log_interval(np.array(list(fit.constants.values())), fit.log_covariance))
    return {method: np.array([[one.mean, one.lower, one.upper] for one in several]) for method, several in kept.items()}


def main_table(found: dict[str, Found], size: Size) -> ResultTable:
    lines = [OPPER_CONSTANTS, MAIN_TEXT]
    for method, one in found.items():
        errors = one.errors if one.errors is not None else [None] * len(PARAMETERS)
        pairs = zip(PARAMETERS, one.constants[one.best], errors, DECIMALS, strict=True)
        numbers = {
            name: Number(float(x / UNIT), None if sd is None else float(sd / UNIT), d) for name, x, sd, d in pairs
        }
        lines.append(Line(method, numbers, one.seconds, one.message))
    return ResultTable(
        "Main text: parameters of Lotka-Volterra, x 1e-4 (truth: 5, 1, 1, 5)",
        PARAMETERS,
        (Row(f"{size.grids[0]} grid", tuple(lines)),),
        noted(
            found,
            (AS_PUBLISHED, f"as implemented here, {how_long(size.paper)}"),
            "± is the sd of 1000 draws of the generator prior, which is no uncertainty (published, paper's), or a "
            "standard error",
            (
                SWEEPS,
                f"mean field of Opper & Sanguinetti by coordinate ascent on {size.n_swept} of {size.n_series} series",
            ),
        ),
    )


def appendix_tables(found: dict[str, dict[str, Found]], size: Size, runs: int) -> tuple[ResultTable, ResultTable]:
    """Bound and parameters; how closely observations are read, and forecast."""
    first, second = [], []
    for name, methods in found.items():
        row = name if name == SINGLE else f"{name} grid"
        others = ((OPPER_CONSTANTS,), (OPPER_SEEN,)) if name == SINGLE else ((), ())
        first.append(Row(row, (*others[0], APPENDIX[name], *(bound_line(m, one) for m, one in methods.items()))))
        second.append(Row(row, (*others[1], SEEN[name], *(sight_line(m, one) for m, one in methods.items()))))
    return (
        ResultTable(
            "Appendix: several runs, and the test set; parameters x 1e-4",
            BOUND,
            tuple(first),
            f"{several(runs)} of the neural engine (published: 5); KL of the paths and NLL in nats per series of the "
            f"test set; {SINGLE}: 16 observations, its own test set",
        ),
        ResultTable(
            "Appendix: distance from noisy observations, read and forecast",
            SIGHT,
            tuple(second),
            "root of the mean over observations of the squared euclidean distance (both species) between expected "
            "counts and noisy observations (noise alone: 1.41); test: expected counts given the whole series, by each "
            "method's own posterior; ahead n: n-th observation after the 50 that are given, by the exact filter at "
            f"each method's constants (sweeps: by its own law); {SINGLE}: read on its 16 observations, forecast "
            "against true counts, without noise",
        ),
    )


def bound_line(method: str, found: Found) -> Line:
    digits = 0 if len(found.kl) > 1 else 1
    each = np.column_stack([found.kl, found.nll, found.constants / UNIT])
    numbers = columns_over_runs(BOUND, each, (digits, digits, *DECIMALS))
    return Line(method, numbers, found.seconds, found.message)


def sight_line(method: str, found: Found) -> Line:
    each = np.column_stack([found.rmse, found.rmse_ahead])
    return Line(method, columns_over_runs(SIGHT, each, (2,) * len(SIGHT)), found.seconds, found.message)


def bias_table(found: dict[str, dict[str, Found]]) -> ResultTable:
    """How far the neural mean field is from what no engine can surpass, on the same data."""
    rows = []
    for name, methods in found.items():
        neural, limit = methods[TILTED], methods[EXACT].constants[0]
        off = 100 * (neural.constants / limit - 1)
        below = np.full(len(off), np.nan) if neural.below is None else neural.below
        numbers = columns_over_runs((*PARAMETERS, BELOW), np.column_stack([off, below]), (1, 1, 1, 1, 2))
        rows.append(Row(f"{name} grid", (Line(TILTED, numbers),)))
    return ResultTable(
        "Mean field against the exact limit: constants, % off it, and the bound",
        (*PARAMETERS, BELOW),
        tuple(rows),
        f"{BELOW}: nats per series of the test set between the bound and the exact evidence of the same constants",
    )


def coverage_table(intervals: dict[str, Float[np.ndarray, "data bound constant"]]) -> ResultTable:
    truth = np.array(list(lotka_volterra().parameters.values()))
    held, middle = [], []
    for method, each in intervals.items():
        inside = ((each[:, 1] <= truth) & (truth <= each[:, 2])).mean(0)
        held.append(Line(method, {name: Number(float(x), None, 2) for name, x in zip(PARAMETERS, inside, strict=True)}))
        medians = np.median(each[:, 0], axis=0) / UNIT
        numbers = {n: Number(float(x), None, d) for n, x, d in zip(PARAMETERS, medians, DECIMALS, strict=True)}
        middle.append(Line(method, numbers))
    n = len(next(iter(intervals.values())))
    return ResultTable(
        f"One trajectory, simulated {n} times",
        PARAMETERS,
        (
            Row("held the truth", tuple(held)),
            Row("median estimate", (OPPER_CONSTANTS, *middle)),
        ),
        f"share of {n} trajectories whose 95 % interval holds the true constant (exact, tilted: curvature of the "
        "likelihood, sweeps: of the bound), and median of the estimates x 1e-4 (truth: 5, 1, 1, 5)",
    )
