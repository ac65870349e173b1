"""Training times: the paper's table, and what the default engine and the exact one take for the same data, once each.

Seifner & Sanchez 2023, https://proceedings.mlr.press/v202/seifner23a.html
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..emissions import GaussianMixture
from ..estimators import ExactMJP, NetworkMJP, NeuralMJP
from ..preprocess import thinned
from ..systems import lotka_volterra, paper_dataset
from ..timeseries import TimeSeries
from ..training.config import Preset
from . import adp, brownian_folding, dfr, ion_channel
from . import lotka_volterra as predators
from .runs import Told, chosen_rows, reported, size_of, train_there
from .tables import EXACT, PUBLISHED, TILTED, Line, Number, Progress, Report, ResultTable, Row

HOURS, SECONDS, OBSERVATIONS = "hours", "seconds", "observations (1000)"
PUBLISHED_HOURS = {
    "ratchet irregular": (224.0, 41.3),
    "ratchet shared": (224.0, 22.5),
    "ratchet regular": (224.0, 31.2),
    "one trajectory": (0.016, 36.61),
    "ion channel one second": (5.0, 21.5),
    "ion channel full": (162.6, 22.0),
    "predators irregular": (224.0, 33.1),
    "predators shared": (224.0, 19.5),
    "predators regular": (224.0, 19.0),
    "alanine dipeptide six": (896.0, 48.1),
    "alanine dipeptide three": (896.0, 20.6),
    "alanine dipeptide two": (896.0, 19.4),
    "folding": (89.6, 26.8),
    "two-mode": (0.067, 26.3),
}
MOLECULE = tuple(name for name in PUBLISHED_HOURS if name.startswith("alanine"))
ALL = "all together"


@dataclass(frozen=True)
class Size:
    """How much of each data set, and of training."""

    n_series: int
    n_observations: int | None  # of a recording; None for all
    changes: dict[str, Any] = field(default_factory=dict)


SIZES = {"quick": Size(64, 5000, {"steps": 100}), "paper": Size(70 * 64, None)}
Trial = tuple[TimeSeries, Any, Any]  # data, the default engine, the exact one


def run(
    preset: Preset,
    n_runs: int | None,
    seed: int,
    progress: Progress = lambda *_: None,
    only: Sequence[str] | None = None,
    data: Path | None = None,
) -> Report:
    """Train once on every data set of the paper, everything included: compilation, starts, the last steps.

    Args:
        preset: "quick" or "paper".
        n_runs: one, as in the paper's table; nothing else is meant.
        seed: of the data and of the runs.
        only: data sets; all if None, without alanine dipeptide where there are no data.
        data: dihedrals of alanine dipeptide, as `reproduce adp` takes them.
    """
    began, size = time.perf_counter(), size_of(SIZES, preset)
    names = chosen_rows(tuple(PUBLISHED_HOURS), only)
    if data is None and only is None:
        names = tuple(name for name in names if name not in MOLECULE)
    trials = trials_of(size, preset, seed, data)
    told = Told(progress, 2 * len(names))
    rows, total = [], {TILTED: 0.0, EXACT: 0.0}
    for name in names:
        series, *engines = trials[name]()
        lines = [published(*PUBLISHED_HOURS[name])]
        for method, engine in zip((TILTED, EXACT), engines, strict=True):
            seconds, message = timed(engine, series, told.next(f"{name}, {method}"))
            total[method] += seconds
            numbers = {OBSERVATIONS: Number(series.n_observations / 1000, None, 3), SECONDS: Number(seconds, None, 1)}
            lines.append(Line(method, numbers, seconds, message))
        rows.append(Row(name, tuple(lines)))
    hours = sum(PUBLISHED_HOURS[name][1] for name in names)
    sums = [Line(method, {SECONDS: Number(seconds, None, 0)}) for method, seconds in total.items()]
    rows.append(Row(ALL, (Line(PUBLISHED, {HOURS: Number(hours, None, 0)}), *sums)))
    shown = ResultTable(
        "Training times, one run each",
        (OBSERVATIONS, HOURS, SECONDS),
        tuple(rows),
        "published: hours on a GTX 1080 Ti; seconds here hold everything from the data to the parameters, compilation "
        "included, but no intervals; all together: the data sets above",
    )
    return reported("timing", preset, seed, 1, asdict(size), began, (shown,))


def published(observations: float, hours: float) -> Line:
    return Line(PUBLISHED, {OBSERVATIONS: Number(observations, None, 3), HOURS: Number(hours, None, 1)})


def timed(engine: Any, data: TimeSeries, progress: Progress) -> tuple[float, str]:
    """Seconds of one fit."""
    began = time.perf_counter()
    neural = isinstance(engine, NeuralMJP) or getattr(engine, "engine", None) == "neural"
    found = train_there(engine, data, progress) if neural else engine.fit(data, progress)
    return time.perf_counter() - began, found.message


def trials_of(size: Size, preset: Preset, seed: int, file: Path | None) -> dict[str, Callable[[], Trial]]:
    """By the name of the data set: data and engines, made when they are needed."""
    trials: dict[str, Callable[[], Trial]] = {}
    for grid in dfr.GRIDS:
        trials[f"ratchet {grid}"] = partial(_ratchet, grid, size, preset, seed)
        trials[f"predators {grid}"] = partial(_predators, grid, size, preset, seed)
    trials["one trajectory"] = partial(_alone, size, preset, seed)
    trials["ion channel one second"] = partial(_channel, ion_channel.SECOND, size, preset, seed)
    trials["ion channel full"] = partial(_channel, ion_channel.FULL, size, preset, seed)
    for name, row in zip(MOLECULE, adp.ROWS, strict=True):
        trials[name] = partial(_molecule, adp.ROWS[row], size, preset, seed, file)
    trials["folding"] = partial(_folding, size, preset, seed)
    trials["two-mode"] = partial(_two_mode, size, preset, seed)
    return trials


def _ratchet(grid: str, size: Size, preset: Preset, seed: int) -> Trial:
    data, _ = dfr.data_of(grid, dfr.Size(size.n_series, 1, 1), seed)
    known: dict[str, Any] = {
        "emission": "categorical",
        "prior": dfr.unknown_ratchet(),
        "seed": seed,
        "intervals": False,
    }
    neural = NeuralMJP(dfr.N_STATES, preset=preset, changes=size.changes, **known)
    return data, neural, ExactMJP(dfr.N_STATES, **known)


def _predators(grid: str, size: Size, preset: Preset, seed: int) -> Trial:
    sizes = predators.Size(size.n_series, 1, 1, 1, 1, 1)
    data = predators.data_of(grid, sizes, seed)[0].train
    return data, *_networks(lotka_volterra(), size, preset, seed)


def _alone(size: Size, preset: Preset, seed: int) -> Trial:
    return predators.single_of(seed)[0].train, *_networks(predators.alone(), size, preset, seed)


def _networks(network: Any, size: Size, preset: Preset, seed: int) -> tuple[NetworkMJP, NetworkMJP]:
    make = partial(NetworkMJP, network, start=predators.start_of(seed), seed=seed, preset=preset, intervals=False)
    return make(engine="neural", changes=size.changes), make(engine="exact")


def _channel(row: str, size: Size, preset: Preset, seed: int) -> Trial:
    data = _some(paper_dataset(ion_channel.DATA[row], seed=seed).train.data, size)
    neural = NeuralMJP(3, emission="gaussian", preset=preset, seed=seed, intervals=False, changes=size.changes)
    return data, neural, ExactMJP(3, seed=seed, intervals=False)


def _molecule(n_states: int, size: Size, preset: Preset, seed: int, file: Path | None) -> Trial:
    angles = adp.required(file, size.n_observations)
    known: dict[str, Any] = {"emission": "torus", "prior": "reversible", "seed": seed, "intervals": False}
    changes = {**adp.SIZES[preset].tilted, **size.changes}
    return angles, NeuralMJP(n_states, preset=preset, changes=changes, **known), ExactMJP(n_states, **known)


def _folding(size: Size, preset: Preset, seed: int) -> Trial:
    data = thinned(paper_dataset("brownian-folding", seed=seed).train.data[: size.n_series], brownian_folding.THIN)
    known: dict[str, Any] = {"emission": GaussianMixture(), "initial": "stationary", "seed": seed, "intervals": False}
    return data, NeuralMJP(2, preset=preset, changes=size.changes, **known), ExactMJP(2, **known)


def _two_mode(size: Size, preset: Preset, seed: int) -> Trial:
    data = paper_dataset("two-mode", seed=seed).train.data
    neural = NeuralMJP(2, emission="gaussian", preset=preset, seed=seed, intervals=False, changes=size.changes)
    return data, neural, ExactMJP(2, emission="diffusion", seed=seed, intervals=False)


def _some(data: TimeSeries, size: Size) -> TimeSeries:
    return data if size.n_observations is None else data[: max(size.n_observations // 100, 1)]
