"""Alanine dipeptide: stationary laws, timescales and passage times of models with six, three and two states.

Seifner & Sanchez 2023, https://proceedings.mlr.press/v202/seifner23a.html
Mardt et al. 2018 (VAMPnets), Varolgunes et al. 2020 (GMVAE), Trendelkamp-Schroer & Noe 2014 (MSM), as quoted there.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from .. import io, mjp
from ..baselines.chain import MarkovChain
from ..errors import InputError
from ..estimators import ExactMJP, NeuralMJP
from ..fitted import FittedMJP
from ..preprocess import shortened, sine_cosine
from ..timeseries import TimeSeries
from ..training.config import Preset
from .adp_published import (
    APART,
    INTO,
    LAWS,
    PASSAGE,
    PASSAGES,
    RATES,
    SCALES,
    STABILITY,
    STATES,
    TIMES,
)
from .classical import GMVAE, MSM, VAMPNETS, by_chains, estimate, installed, passing_rates
from .published_training import FULL_EMISSION, trained_as_published
from .runs import Told, chosen, how_long, reported, several, size_of
from .state_methods import Runs, by_networks, over_data, probabilities
from .tables import AS_PUBLISHED, EXACT, TILTED, Line, Number, Progress, Report, ResultTable, Row, noted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = {"six states": 6, "three states": 3, "two states": 2}
SIX = "six states"
METHODS = (AS_PUBLISHED, TILTED, EXACT, MSM, VAMPNETS, GMVAE)
OF_SIX = (VAMPNETS, GMVAE)  # as published
LAG = 20.0  # ps, of Markov models
CHAINS = "what is faster than that it cannot tell"
Model = FittedMJP | MarkovChain
TO_NS = 1e-3  # the trajectories are in ps
VISITED_FRAMES = 20.0  # a state that explains fewer is none


@dataclass(frozen=True)
class Size:
    """How much data and training."""

    n_runs: int
    n_frames: int | None  # of each trajectory; None for all
    paper: dict[str, Any] = field(default_factory=dict)
    tilted: dict[str, Any] = field(default_factory=dict)


SIZES = {
    "quick": Size(1, 50_000, paper={"steps": 60, "round_steps": 60}, tilted={"steps": 300}),
    # Longer windows than usual: whatever is lost at their ends makes the slowest process look faster.
    "paper": Size(10, None, paper={"steps": 15_000}, tilted={"window": 500, "batch": 128}),
}


def run(
    preset: Preset,
    n_runs: int | None,
    seed: int,
    progress: Progress = lambda *_: None,
    only: Sequence[str] | None = None,
    data: Path | None = None,
) -> Report:
    """Fit by all methods.

    Args:
        preset: "quick" or "paper".
        n_runs: of the neural engine per row; the preset's if None.
        seed: of the first run.
        only: rows to run, and methods; all if None.
        data: dihedrals phi and psi in radians, one frame per ps: the `mdshare` file, or one like it.
    """
    began, size = time.perf_counter(), size_of(SIZES, preset)
    rows, methods = chosen(tuple(ROWS), METHODS, only)
    methods = installed(methods, only)
    angles = required(data, size.n_frames)
    runs = size.n_runs if n_runs is None else n_runs
    told = Told(progress, n_fits=sum(len(able(row, methods)) for row in rows))
    found = {row: by_all(ROWS[row], angles, size, preset, runs, seed, told, row, able(row, methods)) for row in rows}
    kernels = "von Mises kernels on the torus, shared by all states"
    note = noted(
        methods,
        f"{several(runs)}, but for the exact limit",
        (AS_PUBLISHED, f"Gaussians with full covariance in the sines and cosines, {how_long(size.paper)}"),
        (TILTED, kernels),
        (EXACT, f"{kernels}, one fit, its start is not random"),
        (MSM, f"150 cells by k-means, lag {LAG:g} ps, {CHAINS}"),
        (VAMPNETS, f"lag {LAG:g} ps, the network trained at a tenth of it, {CHAINS}"),
        (GMVAE, f"as many clusters as states, lag {LAG:g} ps, {CHAINS}"),
    )
    # Found once for each model, by identity: it takes a pass over all frames.
    positive = {
        id(one): of_positive_phi(angles, one)
        for each in found.values()
        for runs in each.values()
        for one in runs.models
    }
    tables = [
        table_of("Stationary law, largest first", STATES, LAWS, law_of, 3, found, note),
        table_of("Relaxation times (ns)", SCALES, TIMES, scales_of, 4, found, note),
        table_of(
            "Mean first-passage time (ns)", (INTO,), PASSAGE, partial(into_positive_phi, positive), 1, found, note
        ),
    ]
    if SIX in found:
        six = found[SIX]
        tables += [
            matrix_table("Rates of the six-state model (per ns)", RATES, rates_of, 2, processes(six), note),
            matrix_table("Mean first-passage times of the six-state model (ns)", PASSAGES, passages_of, 3, six, note),
            stability_table(six, positive),
        ]
    best = {row: each[EXACT].models[0] for row, each in found.items() if EXACT in each}
    figures = {f"adp-{ROWS[row]}-states": partial(drawn, angles, model) for row, model in best.items()}
    settings = {**asdict(size), "data": data.name if data else None}
    return reported("adp", preset, seed, runs, settings, began, tuple(tables), figures)


def required(file: Path | None, n_frames: int | None) -> TimeSeries:
    """phi and psi in radians, one frame per ps."""
    if file is None:
        raise InputError(
            "alanine dipeptide is not simulated here: give its dihedrals as --data FILE, such as "
            "alanine-dipeptide-3x250ns-backbone-dihedrals.npz of mdshare"
        )
    data = io.read(file, time_unit="ps")
    if data.n_features != 2:
        raise InputError(f"{file}: two dihedrals phi and psi are needed, it holds {data.n_features} values")
    return data if n_frames is None else shortened(data, n_frames)


def by_all(
    n_states: int,
    angles: TimeSeries,
    size: Size,
    preset: Preset,
    runs: int,
    seed: int,
    told: Told,
    row: str,
    methods: Sequence[str],
) -> dict[str, Runs]:
    neural = partial(NeuralMJP, n_states, preset=preset, seed=seed, restarts=runs, intervals=False)
    paper = neural(emission=FULL_EMISSION, posterior="paper", changes=trained_as_published("adp", size.paper))
    tilted = neural(emission="torus", prior="reversible", changes=size.tilted)
    exact = ExactMJP(n_states, emission="torus", prior="reversible", seed=seed)

    def chains(method: str) -> Runs:
        seeds, progress = range(seed, seed + runs), told.next(f"{row}, {method}")
        return by_chains(method, n_states, [angles] * runs, seeds, progress, angles=True, lag=LAG)

    ways: dict[str, Callable[[], Runs]] = {
        AS_PUBLISHED: lambda: by_networks(paper, sine_cosine(angles), told.next(f"{row}, {AS_PUBLISHED}")),
        TILTED: lambda: by_networks(tilted, angles, told.next(f"{row}, {TILTED}")),
        EXACT: lambda: over_data(exact, [angles], lambda _: told.next(f"{row}, {EXACT}")),
        **{method: partial(chains, method) for method in (MSM, VAMPNETS, GMVAE)},
    }
    return {method: ways[method]() for method in methods}


def able(row: str, methods: Sequence[str]) -> tuple[str, ...]:
    """Methods for a row: those that the paper quotes for six states alone are for six states."""
    return tuple(method for method in methods if row == SIX or method not in OF_SIX)


def processes(methods: dict[str, Runs]) -> dict[str, Runs]:
    """Without chains, whose states mix within the lag: they have no rates."""
    return {name: runs for name, runs in methods.items() if isinstance(runs.models[0], FittedMJP)}


def law_of(fitted: Model) -> list[float]:
    return np.sort(estimate(fitted.stationary_distribution))[::-1].tolist()


def scales_of(fitted: Model) -> list[float]:
    """As many as states can show: the cells of a Markov state model have more."""
    return (TO_NS * np.sort(estimate(fitted.timescales))[::-1][: fitted.n_states - 1]).tolist()


def by_law(fitted: Model) -> Int[np.ndarray, "state"]:
    """The states, most populated first."""
    return np.argsort(-estimate(fitted.stationary_distribution))


def rates_of(fitted: FittedMJP) -> Float[np.ndarray, "state state"]:
    order = by_law(fitted)
    return fitted.rates[np.ix_(order, order)] / TO_NS


def passages_of(fitted: Model) -> Float[np.ndarray, "state state"]:
    order = by_law(fitted)
    return TO_NS * estimate(fitted.mfpt)[np.ix_(order, order)]


def of_positive_phi(angles: TimeSeries, fitted: Model) -> Int[np.ndarray, "some"]:
    """States that lie there with more than half of their weight."""
    phi = angles.values[:, 0]
    reads_angles = isinstance(fitted, MarkovChain) or fitted.emission.name == "torus"
    weight = probabilities(fitted, angles if reads_angles else sine_cosine(angles))
    total = weight.sum(0)
    share = weight[(phi > 0) & (phi < np.deg2rad(120))].sum(0) / np.maximum(total, 1e-300)
    return np.flatnonzero((share > 0.5) & (total > VISITED_FRAMES))


def into_positive_phi(by_model: dict[int, Int[np.ndarray, "some"]], fitted: Model) -> list[float]:
    """From the states of negative phi, weighted by their law, into those of positive phi; NaN if there are none."""
    positive = by_model[id(fitted)]
    others = np.setdiff1d(np.arange(fitted.n_states), positive)
    if not positive.size or not others.size:
        return [float("nan")]
    times = mjp.mfpt(passing_rates(fitted), source=others.tolist(), target=positive.tolist())
    return [TO_NS * float(np.asarray(times))]


def table_of(
    title: str,
    columns: Sequence[str],
    printed: Sequence[Line],
    told: Any,
    decimals: int,
    found: dict[str, dict[str, Runs]],
    note: str,
) -> ResultTable:
    rows = []
    for row, methods in found.items():
        n = len(told(next(iter(methods.values())).models[0]))
        lines = [each.line(m, columns[:n], told, (decimals,) * n) for m, each in methods.items()]
        rows.append(Row(row, (*(printed if row == SIX else ()), *lines)))
    return ResultTable(title, tuple(columns), tuple(rows), note)


def matrix_table(
    title: str, printed: Sequence[Line], told: Any, decimals: int, methods: dict[str, Runs], note: str
) -> ResultTable:
    """A row per state that is left, a column per state that is entered."""
    each = {method: np.array([told(one) for one in runs.models]) for method, runs in methods.items()}
    rows = []
    for i, state in enumerate(STATES):
        others = [j for j in range(len(STATES)) if j != i]
        lines = [Line(m, {STATES[j]: Number.over(x[:, i, j], decimals) for j in others}) for m, x in each.items()]
        rows.append(Row(f"from {state}", (printed[i], *lines)))
    return ResultTable(title, STATES, tuple(rows), f"states in the order of their law, in every run; {note}")


def stability_table(methods: dict[str, Runs], positive: dict[int, Int[np.ndarray, "some"]]) -> ResultTable:
    """Every run, and whether the two states of positive phi are apart in it."""

    def line(k: int, fitted: Model) -> Line:
        numbers = {name: Number(x, None, 4) for name, x in zip(SCALES, scales_of(fitted), strict=True)}
        apart = len(positive[id(fitted)]) > 1
        return Line(str(k), numbers | {APART: Number(float(apart), None, 0)})

    rows = [Row("published", STABILITY)]
    for method, runs in methods.items():
        lines = tuple(line(k, one) for k, one in enumerate(runs.models, start=1))
        together = sum(int(one.numbers[APART].mean) for one in lines)
        rows.append(Row(f"{method}: apart in {together} of {len(lines)}", lines))
    return ResultTable(
        "Six states, run by run: relaxation times (ns)",
        (*SCALES, APART),
        tuple(rows),
        f"{APART}: 1 where the two states of positive phi are told apart; none of our runs is picked by hand",
    )


def drawn(angles: TimeSeries, fitted: FittedMJP) -> "Figure":
    """A Ramachandran panel per state, the darker the more probable it is there."""
    from matplotlib.figure import Figure

    from ..plots import plot_ramachandran

    probability: Float[np.ndarray, "row state"] = fitted.predict_proba(angles)
    order = by_law(fitted)
    n_columns = min(fitted.n_states, 3)
    n_rows = -(-fitted.n_states // n_columns)
    figure = Figure(figsize=(3 * n_columns, 3 * n_rows), layout="constrained")
    panels = np.atleast_1d(figure.subplots(n_rows, n_columns, sharex=True, sharey=True)).ravel()
    for name, state, ax in zip(STATES, order, panels, strict=False):
        plot_ramachandran(angles, probability[:, state], ax)
        ax.set_title(f"{name}: {fitted.stationary_distribution.mean[state]:.3f}")
    for ax in panels[fitted.n_states :]:
        ax.set_axis_off()
    return figure
