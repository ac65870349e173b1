"""What experiments have in common: several runs of a method as numbers of a table, and how far all of them are."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Float

from ..errors import InputError
from ..estimators import NetworkMJP, NeuralMJP
from ..objective import Terms
from ..timeseries import TimeSeries
from ..training.config import Preset
from ..training.config import preset as preset_of
from .tables import Drawing, Number, Progress, Report, ResultTable

Size = TypeVar("Size")
Neural = TypeVar("Neural", NeuralMJP, NetworkMJP)
FEW_STEPS = 1000  # after fewer the published networks have hardly begun


def size_of(sizes: dict[str, Size], preset: Preset) -> Size:
    """How much data and training a preset means."""
    if preset not in sizes:
        raise InputError(f"a preset is {' or '.join(sizes)}, got {preset!r}")
    return sizes[preset]


def chosen_rows(rows: Sequence[str], only: Sequence[str] | None) -> tuple[str, ...]:
    """The rows of an experiment that are asked for, in its own order."""
    for name in only or ():
        if name not in rows:
            raise InputError(f"no row {name!r}; there are: {', '.join(rows)}")
    return tuple(row for row in rows if only is None or row in only)


def chosen(
    rows: Sequence[str], methods: Sequence[str], only: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Rows and methods that are asked for; see `chosen_of`."""
    some, others = chosen_of((rows, methods), only)
    return some, others


def chosen_of(kinds: Sequence[Sequence[str]], only: Sequence[str] | None) -> list[tuple[str, ...]]:
    """What is asked for of several kinds, in an experiment's own order; all of a kind where none of it is named."""
    named = chosen_rows([name for kind in kinds for name in kind], only)
    return [tuple(name for name in kind if name in named) or tuple(kind) for kind in kinds]


def how_long(changes: dict[str, Any]) -> str:
    """How many steps the paper's method was trained for."""
    steps = changes.get("steps", preset_of("paper", "paper").steps)
    return f"{steps} steps" + (", stopped long before it has learned (--preset paper)" if steps < FEW_STEPS else "")


def held_out_terms(
    runs: Sequence[Terms], n_observations: float
) -> tuple[Float[np.ndarray, "run"], Float[np.ndarray, "run"]]:
    """Path divergence per series, and reconstruction loss divided by a number of observations."""
    kl = np.array([np.asarray(one.path_kl, np.float64).mean() for one in runs])
    nll = np.array([-np.asarray(one.reconstruction, np.float64).sum() / n_observations for one in runs])
    return kl, nll


def columns_over_runs(
    names: Sequence[str], each: Float[np.ndarray, "run column"], decimals: Sequence[int]
) -> dict[str, Number]:
    """Mean and spread of every column."""
    return {name: Number.over(x, digits) for name, x, digits in zip(names, each.T, decimals, strict=True)}


def several(n_runs: int) -> str:
    return f"mean ± sd of {n_runs} runs" if n_runs > 1 else "one run"


def reported(
    experiment: str,
    preset: Preset,
    seed: int,
    n_runs: int,
    settings: dict[str, Any],
    began: float,
    tables: tuple[ResultTable, ...],
    figures: dict[str, Drawing] | None = None,
) -> Report:
    """The report of an experiment that ends now, on JAX's device."""
    device = jax.devices()[0]
    return Report(
        experiment=experiment,
        preset=preset,
        seed=seed,
        n_runs=n_runs,
        settings=settings,
        device=f"{device.platform}: {device.device_kind}",
        seconds=time.perf_counter() - began,
        tables=tables,
        figures=figures or {},
    )


@dataclass(frozen=True)
class Placed:
    """Progress of work that has a place of its own.

    Args:
        folder: where it leaves checkpoints, from which it goes on if it was broken off; nowhere if None.
        mesh: devices that share every batch of a neural fit.
    """

    tell: Progress
    folder: Path | None = None
    mesh: int = 1

    def __call__(self, stage: str, share: float) -> None:
        self.tell(stage, share)

    def part(self, name: str, tell: Progress) -> "Placed":
        """Of one fit, in a folder of its own."""
        own = self.folder and self.folder / re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        return replace(self, tell=tell, folder=own)


def train_there(estimator: Neural, data: TimeSeries, progress: Progress) -> Any:
    """Train a neural engine at the place of its progress."""
    placed, kept = _placed(estimator, progress)
    return placed.train(data, progress, **kept)


def fit_there(estimator: Neural, data: TimeSeries, progress: Progress) -> Any:
    """Fit by a neural engine at the place of its progress."""
    placed, kept = _placed(estimator, progress)
    return placed.fit(data, progress, **kept)


def _placed(estimator: Neural, progress: Progress) -> tuple[Neural, dict[str, Any]]:
    if not isinstance(progress, Placed):
        return estimator, {}
    estimator = replace(estimator, changes={**(estimator.changes or {}), "mesh": progress.mesh})
    return estimator, {} if progress.folder is None else {"folder": progress.folder, "resume": True}


@dataclass
class Told:
    """Progress of one fit as part of the progress of all."""

    progress: Progress
    n_fits: int
    begun: int = 0

    def next(self, what: str) -> Progress:
        before, self.begun = self.begun, self.begun + 1
        self.progress(what, before / self.n_fits)

        def tell(stage: str, share: float) -> None:
            self.progress(f"{what}: {stage}", (before + min(share, 1.0)) / self.n_fits)

        return self.progress.part(what, tell) if isinstance(self.progress, Placed) else tell
