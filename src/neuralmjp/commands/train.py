"""The neural engine on a terminal: what runs, how far it has come, and how to go on if it is interrupted."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..estimators import NetworkMJP, NeuralMJP
from ..timeseries import TimeSeries
from ..training.checkpoints import FILE as CHECKPOINT_FILE
from .history import HISTORY_FILE, write_history
from .show import console, progress_display


def fit_neural(
    estimator: NeuralMJP | NetworkMJP, data: TimeSeries, out: Path | None, resume: bool, why: str = ""
) -> Any:
    """What the estimator's training found: a `FittedMJP` or a `FittedNetwork`; checkpoint and history are in `out`."""
    screen, began = console(), time.perf_counter()
    config = estimator.configuration()
    several = f", {estimator.restarts} restarts" if estimator.restarts > 1 else ""
    screen.print(
        f"engine: neural, {config.posterior} posterior, {config.encoder} encoder of width {config.width}, "
        f"batches of {config.batch}, at most {config.steps} steps{several}{why}",
        soft_wrap=True,
    )
    if resume and out is not None:
        there = (out / CHECKPOINT_FILE).exists()
        word = "going on from the checkpoint in" if there else "starting anew: there is no checkpoint yet in"
        screen.print(f"{word} {out}", soft_wrap=True)
    try:
        with progress_display() as progress:
            progress("training", 0.0)
            trained: Any = estimator.train(data, progress, folder=out, resume=resume)
            progress("intervals", 1.0)
            fitted = estimator.fitted(data, trained)
    except KeyboardInterrupt:
        if out is not None and (out / CHECKPOINT_FILE).exists():
            screen.print("interrupted: the same command with --resume goes on from here", soft_wrap=True)
        raise
    if out is not None:
        write_history(trained, out / HISTORY_FILE)
    return replace(fitted, seconds=time.perf_counter() - began)
