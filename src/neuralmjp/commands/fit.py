"""`neuralmjp fit`: rates with intervals, from a data file."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import systems
from ..errors import InputError
from ..estimators import ExactMJP, NeuralMJP
from ..exact.evidence import Panel
from ..fitted import FittedMJP
from ..fitted_files import summary
from ..systems import SYSTEMS
from ..systems.system import randomness
from ..timeseries import TimeSeries
from ..training.checkpoints import FILE as CHECKPOINT_FILE
from .history import HISTORY_FILE, write_history
from .result_tables import show
from .show import console, progress_display
from .training_options import TrainingOptions

COLUMNS_FILE = "columns.json"


def run(
    data: TimeSeries,
    *,
    path: Path,
    columns: dict[str, Any],
    n_states: int,
    engine: str,
    training: TrainingOptions,
    emission: str,
    prior: str,
    initial: str,
    restarts: int | None,
    seed: int,
    exact_entry: float | None,
    first_known: bool,
    misread: Path | None,
    censored: list[str],
    out: Path | None,
    json_file: Path | None,
) -> None:
    randomness(seed)  # refused here, in words, if it is no seed
    if engine != "neural" and training.given:
        one = len(training.given) == 1
        raise InputError(
            f"{', '.join(training.given)} {'belongs' if one else 'belong'} to the neural engine, but the engine is "
            f"exact{' unless another is asked for' if engine == 'auto' else ''}: add --engine neural, or leave "
            f"{'it' if one else 'them'} out"
        )
    if training.resume and out is None:
        raise InputError("--resume goes on from the checkpoint in the folder of --out: give --out DIR too")
    chosen, mask = read_prior(prior)
    assumed: dict[str, Any] = {
        "emission": emission,
        "prior": chosen,
        "mask": mask,
        "initial": initial,
        "misread": None if misread is None else read_mask(misread),
        "panel": Panel(exact_entry, first_known, dict(map(read_censored, censored))),
        "seed": seed,
    }
    screen = console()
    if engine == "neural":
        estimator = NeuralMJP(n_states, restarts=restarts or 1, **assumed, **training.choices())
        fitted = fit_neural(estimator, data, out, training.resume)
        bound_of = "the series without their last observations" if estimator.configuration().drop_last else ""
    else:
        why = f", chosen because with {n_states} states the likelihood can be computed exactly"
        screen.print(f"engine: exact{why if engine == 'auto' else ''}", soft_wrap=True)
        with progress_display() as progress:
            fitted = ExactMJP(n_states, restarts=restarts, **assumed).fit(data, progress)
        bound_of = ""
    show(fitted, path, bound_of=bound_of)
    if out is not None:
        fitted.save(out)
        (out / COLUMNS_FILE).write_text(json.dumps(columns, indent=2) + "\n")
        screen.print(f"model -> {out}", soft_wrap=True)
    if json_file is not None:
        json_file.write_text(json.dumps(summary(fitted), indent=2, allow_nan=False) + "\n")
        screen.print(f"result -> {json_file}", soft_wrap=True)


def fit_neural(estimator: NeuralMJP, data: TimeSeries, out: Path | None, resume: bool) -> FittedMJP:
    """Train with a checkpoint and a history in `out`; say what runs, and how to go on if it is interrupted."""
    screen, began = console(), time.perf_counter()
    config = estimator.configuration()
    several = f", {estimator.restarts} restarts" if estimator.restarts > 1 else ""
    screen.print(
        f"engine: neural, {config.posterior} posterior, {config.encoder} encoder of width {config.width}, "
        f"batches of {config.batch}, at most {config.steps} steps{several}",
        soft_wrap=True,
    )
    if resume and out is not None:
        there = (out / CHECKPOINT_FILE).exists()
        word = "going on from the checkpoint in" if there else "starting anew: there is no checkpoint yet in"
        screen.print(f"{word} {out}", soft_wrap=True)
    try:
        with progress_display() as progress:
            progress("training", 0.0)
            trained = estimator.train(data, progress, folder=out, resume=resume)
            progress("intervals", 1.0)
            fitted = estimator.fitted(data, trained)
    except KeyboardInterrupt:
        if out is not None and (out / CHECKPOINT_FILE).exists():
            screen.print("interrupted: the same command with --resume goes on from here", soft_wrap=True)
        raise
    if out is not None:
        write_history(trained, out / HISTORY_FILE)
    return replace(fitted, seconds=time.perf_counter() - began)


def read_prior(prior: str) -> tuple[Any, np.ndarray | None]:
    """free, reversible, the name of a system, or a file with a mask."""
    if prior in ("free", "reversible"):
        return prior, None
    if prior in SYSTEMS:
        return systems.named(prior), None
    if Path(prior).suffix or Path(prior).exists():
        return "free", read_mask(Path(prior))
    raise InputError(f"--prior is free, reversible, one of {', '.join(SYSTEMS)}, or a file with a mask; got {prior!r}")


def read_mask(path: Path) -> np.ndarray:
    """A table of 0 and 1 without header."""
    try:
        mask = np.loadtxt(path, delimiter=",", ndmin=2)
    except OSError as error:
        raise InputError(f"cannot read the mask {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(
            f"{path}: a mask is a table of 0 and 1, separated by commas, without header ({error})"
        ) from None
    if not np.isin(mask, (0, 1)).all():
        raise InputError(f"{path}: a mask holds 0 and 1 alone")
    return mask.astype(int)


def read_censored(text: str) -> tuple[float, tuple[float, ...]]:
    """`99=1,2` -> (99, (1, 2))."""
    code, equals, states = text.partition("=")
    try:
        if equals:
            return float(code), tuple(float(state) for state in states.split(","))
    except ValueError:
        pass
    raise InputError(f"--censored takes CODE=STATE,STATE, such as 99=1,2; got {text!r}")
