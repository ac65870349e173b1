"""What each part of the paper's method is good for: its appendices C to F, measured.

Seifner & Sanchez 2023, https://proceedings.mlr.press/v202/seifner23a.html
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ..estimators import NetworkMJP, NeuralMJP
from ..systems import lotka_volterra, paper_dataset
from ..training.config import Preset
from . import dfr
from . import lotka_volterra as predators
from .published_training import EMISSION, SCHEDULES, trained_as_published
from .runs import Told, chosen_of, how_long, reported, several, size_of, train_there
from .state_methods import Runs, by_networks
from .tables import Line, Number, Progress, Report, ResultTable, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATCHET, COLLAPSE, PRIOR = "flashing ratchet", "index collapse", "prior"
ROWS = (RATCHET, COLLAPSE, PRIOR)
PUBLISHED_WAY = "as published"
# Changes to the paper's configuration, one at a time.
PARTS: dict[str, dict[str, Any]] = {
    PUBLISHED_WAY: {},
    "joint updates": {"two_step": False, "quadrature": 0},
    "explicit prior": {"prior": "explicit"},
    "no time embedding": {"embedded": False},
}
TILTED = "tilted posterior"
SCHEDULED: dict[str, dict[str, Any]] = {
    "no schedule": {},
    "curriculum": {"curriculum": SCHEDULES["curriculum"]},
    "fixed spread": {"fixed_spread": SCHEDULES["fixed_spread"]},
    "both": SCHEDULES,
}
SYSTEMS = {"two-mode": 2, "ion-channel-one-second": 3}  # data set: states
STARTS = (0.5, 2.0)  # of the constants, times the truth
PRIORS = {"generator (implicit)": {}, "numbers (explicit)": {"prior": "explicit"}}


@dataclass(frozen=True)
class Size:
    """How much data and training."""

    n_series: int
    n_test: int
    n_runs: int
    n_collapse: int  # runs per schedule
    paper: dict[str, Any] = field(default_factory=dict)
    collapse: dict[str, Any] = field(default_factory=dict)
    tilted: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)  # of the mean field


SHORT = {"steps": 60, "round_steps": 20}
SIZES = {
    "quick": Size(
        128,
        128,
        1,
        2,
        paper=SHORT,
        collapse=SHORT,
        tilted={"steps": 200},
        counts={**SHORT, "batch": 16, "quadrature": 16},
    ),
    # A thousand steps more than the schedules take.
    "paper": Size(4480, 260, 5, 5, collapse={"steps": 9000}, counts={"steps": 6000}),
}


def run(
    preset: Preset,
    n_runs: int | None,
    seed: int,
    progress: Progress = lambda *_: None,
    only: Sequence[str] | None = None,
) -> Report:
    """Train with one part of the method changed at a time.

    Args:
        preset: "quick" or "paper".
        n_runs: per line; the preset's if None.
        seed: of the data and of the first run.
        only: rows to run, and of the first two also lines (changes, schedules, data sets); all if None.
    """
    began, size = time.perf_counter(), size_of(SIZES, preset)
    rows, parts, schedules, systems = chosen_of((ROWS, (*PARTS, TILTED), tuple(SCHEDULED), tuple(SYSTEMS)), only)
    runs = size.n_runs if n_runs is None else n_runs
    told = Told(
        progress,
        len(parts) * (RATCHET in rows)
        + len(systems) * len(schedules) * (COLLAPSE in rows)
        + len(PRIORS) * (PRIOR in rows),
    )
    tables, figures = [], {}
    if RATCHET in rows:
        tables.append(ratchet_table(size, preset, runs, seed, told, parts))
    if COLLAPSE in rows:
        again = size.n_collapse if n_runs is None else n_runs
        tables.append(collapse_table(size, preset, again, seed, told, systems, schedules))
    if PRIOR in rows:
        followed = follow_priors(size, preset, seed, told)
        tables.append(prior_table(followed, size))
        figures["ablation-prior"] = partial(drawn, followed)
    return reported("ablations", preset, seed, runs, asdict(size), began, tuple(tables), figures)


def ratchet_table(size: Size, preset: Preset, runs: int, seed: int, told: Told, parts: Sequence[str]) -> ResultTable:
    """The paper's model without one of its parts, on the irregular grid."""
    data, test = dfr.data_of("irregular", dfr.Size(size.n_series, size.n_test, runs), seed)
    neural = partial(
        NeuralMJP, dfr.N_STATES, emission="categorical", prior=dfr.unknown_ratchet(), preset=preset, seed=seed
    )
    lines = []
    for name in parts:
        if name == TILTED:
            estimator = neural(changes=size.tilted, restarts=runs)
        else:
            estimator = neural(posterior="paper", changes={**size.paper, **PARTS[name]}, restarts=runs)
        lines.append(dfr.by_networks(name, estimator, data, test, told.next(name)))
    return ResultTable(
        "The paper's method without one of its parts: flashing ratchet, irregular grid (truth: 1, 1, 1)",
        ("KL", "NLL", *dfr.PARAMETERS),
        (Row(RATCHET, tuple(lines)),),
        f"{several(runs)}, {how_long(size.paper)}; KL in nats per series of the test set, NLL per observation",
    )


def collapse_table(
    size: Size, preset: Preset, runs: int, seed: int, told: Told, systems: Sequence[str], schedules: Sequence[str]
) -> ResultTable:
    """Runs in which a state is lost, by the schedules that are meant to prevent it."""
    rows = []
    for system in systems:
        data = paper_dataset(system, seed=seed).train.data
        lines = []
        for name in schedules:
            estimator = NeuralMJP(
                SYSTEMS[system],
                emission=EMISSION,
                posterior="paper",
                preset=preset,
                seed=seed,
                restarts=runs,
                intervals=False,
                changes=trained_as_published(system, size.collapse, SCHEDULED[name]),
            )
            found = by_networks(estimator, data, told.next(f"{system}, {name}"))
            lines.append(Line(name, _collapse(found), found.seconds, found.message))
        rows.append(Row(system, tuple(lines)))
    return ResultTable(
        "Index collapse by schedule, the paper's posterior",
        ("collapsed", "rarest"),
        tuple(rows),
        f"collapsed: of {runs} runs those in which a state holds less than 0.1 % of the observations; rarest: median "
        f"over runs of the share of the rarest state; {how_long(size.collapse)}",
    )


def _collapse(found: Runs) -> dict[str, Number]:
    return {"collapsed": Number(found.collapsed, None, 0), "rarest": Number(float(np.median(found.rarest)), None, 3)}


@dataclass(frozen=True)
class Followed:
    """How the constants moved in one run."""

    prior: str
    start: float
    steps: Float[np.ndarray, "round"]
    constants: Float[np.ndarray, "round constant"]
    seconds: float


def follow_priors(size: Size, preset: Preset, seed: int, told: Told) -> list[Followed]:
    """Appendix C: constants of Lotka-Volterra from two starts, as outputs of a generator and as numbers."""
    grids = predators.Size(size.n_series, size.n_test, 1, 1, 1, 1)
    data = predators.data_of("irregular", grids, seed)[0].train
    found = []
    for prior, changes in PRIORS.items():
        estimator = NetworkMJP(
            lotka_volterra(),
            engine="neural",
            posterior="paper",
            start=[{name: times * x for name, x in lotka_volterra().parameters.items()} for times in STARTS],
            restarts=len(STARTS),
            seed=seed,
            preset=preset,
            changes={**size.counts, **changes},
            intervals=False,
        )
        progress = told.next(prior)
        trained = train_there(estimator, data, progress)
        for start, history in zip(STARTS, trained.histories, strict=True):
            steps = np.array([row["step"] for row in history], float)
            constants = np.exp([row["theta"] for row in history])
            found.append(Followed(prior, start, steps, constants, trained.seconds))
    return found


def prior_table(followed: Sequence[Followed], size: Size) -> ResultTable:
    rows = []
    for prior in PRIORS:
        ends = [one for one in followed if one.prior == prior]
        lines = [
            Line(
                f"from {one.start:g} times",
                {
                    name: Number(float(x / predators.UNIT), None, d)
                    for name, x, d in zip(predators.PARAMETERS, one.constants[-1], predators.DECIMALS, strict=True)
                },
                one.seconds,
                f"{int(one.steps[-1])} steps",
            )
            for one in ends
        ]
        rows.append(Row(prior, tuple(lines)))
    return ResultTable(
        "Appendix C: implicit against explicit prior, Lotka-Volterra, x 1e-4 (truth: 5, 1, 1, 5)",
        predators.PARAMETERS,
        tuple(rows),
        f"where the constants end from half and from twice the truth, {size.counts.get('steps', 'all')} steps of the "
        "paper's method, irregular grid",
    )


def drawn(followed: Sequence[Followed]) -> "Figure":
    """The paper's figure: alpha over training, from two starts."""
    from matplotlib.figure import Figure

    from ..plots.palette import TRUTH, state_colour

    figure = Figure(figsize=(7, 4), layout="constrained")
    ax = figure.subplots()
    for one in followed:
        colour = state_colour(list(PRIORS).index(one.prior))
        style = "-" if one.start == STARTS[0] else "--"
        ax.plot(one.steps, one.constants[:, 0], style, color=colour, label=f"{one.prior}, from {one.start:g} times")
    ax.axhline(lotka_volterra().parameters["alpha"], color=TRUTH, linewidth=0.8, label="truth")
    ax.set_xlabel("training steps")
    ax.set_ylabel("alpha")
    ax.legend(frameon=False)
    return figure
