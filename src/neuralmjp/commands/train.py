"""The neural engine on a terminal: what runs, how far it has come, and how to go on if it is interrupted."""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import INTERRUPTED
from ..estimators import NetworkMJP, NeuralMJP
from ..store import Store
from ..timeseries import TimeSeries
from ..training.checkpoints import has_checkpoint
from ..training.interrupt import Interruption, listening
from ..training.mesh import writes
from .history import write_history
from .runs import HISTORY_FILE
from .show import console, progress_display


def fit_neural(
    estimator: NeuralMJP | NetworkMJP, data: TimeSeries | Store, out: Path | None, resume: bool, why: str = ""
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
        there = has_checkpoint(out)
        word = "going on from the checkpoint in" if there else "starting anew: there is no checkpoint yet in"
        screen.print(f"{word} {out}", soft_wrap=True)
    try:
        # Without a folder there is nothing to be saved, hence no reason to wait for the end of a round.
        with listening(patient=out is not None) as asked, progress_display() as progress:
            opened: Any = estimator.opened(data, progress) if isinstance(estimator, NeuralMJP) else data
            progress("training", 0.0)
            trained: Any = estimator.train(opened, _checking(asked, progress), folder=out, resume=resume)
            asked.patient = False
            asked.check()
            progress("intervals", 1.0)
            fitted = estimator.fitted(opened, trained)
    except KeyboardInterrupt as stopped:
        saved = out is not None and has_checkpoint(out)
        word = "the same command with --resume goes on from here" if saved else "nothing was saved"
        print(f"neuralmjp: interrupted: {word}", file=sys.stderr)
        raise SystemExit(getattr(stopped, "status", INTERRUPTED)) from None
    if out is not None and writes():
        write_history(trained, out / HISTORY_FILE)
    return replace(fitted, seconds=time.perf_counter() - began)


def _checking(asked: Interruption, progress: Callable[[str, float], None]) -> Callable[[str, float], None]:
    """Progress is told after a round was saved: the moment to stop, if somebody asked for that."""

    def told(stage: str, share: float) -> None:
        progress(stage, share)
        asked.check()

    return told
