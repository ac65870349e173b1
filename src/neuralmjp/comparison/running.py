"""All methods and seeds, each fit in a process of its own, several at a time."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from ..errors import InputError
from ..io import write
from ..timeseries import TimeSeries
from ..training.problem import digest_of
from .answer import Answer
from .compared import Comparison, Outcome
from .methods import DEFAULT, METHODS

Progress = Callable[[str, float], None]
LOOK = 0.1  # seconds between looks at the processes
LAST_WORDS = 200  # characters of what a process said before it died


def compare(
    data: TimeSeries,
    n_states: int,
    methods: Sequence[str] = DEFAULT,
    *,
    seeds: int = 1,
    seed: int = 0,
    emission: str = "auto",
    prior: str = "free",
    initial: str = "free",
    lag: float | None = None,
    angles: bool = False,
    held_out: float = 0.2,
    more: Mapping[str, Mapping[str, Any]] | None = None,
    truth: Int[np.ndarray, "row"] | None = None,
    jobs: int | None = None,
    limit: float | None = None,
    folder: Path | None = None,
    progress: Progress = lambda *_: None,
) -> Comparison:
    """Fit the same data by several methods.

    Args:
        methods: see `METHODS`; the states of all are named as those of the first that answers.
        seeds: fits of every method.
        seed: of the first.
        emission, prior, initial: as in `ExactMJP`; for exact, neural and paper.
        lag: of msm, vampnet, gmvae and hmm, in the data's time unit.
        angles: values are angles in radians.
        held_out: share of the series (of a single series: the end) that is not fitted but judged; 0 for none.
        more: choices for one method alone: {"msm": {"cells": 300}}.
        truth: the true state of every observation, 0 to K - 1, if known: states are then named as these.
        jobs: fits at a time; one per core by default.
        limit: seconds after which a fit is given up.
        folder: keeps every answer, so that a comparison that was interrupted goes on where it was.
    """
    more = more or {}
    _check(methods, more, held_out, truth, data, n_states)
    asked = {"n_states": n_states, "emission": emission, "prior": prior, "initial": initial, "lag": lag}
    asked |= {"angles": angles}
    with tempfile.TemporaryDirectory() as scratch:
        file, kept = Path(scratch) / "data.npz", Path(scratch) if folder is None else folder
        kept.mkdir(parents=True, exist_ok=True)
        write(data, file)
        known = digest_of(data)
        tasks = [
            Task(
                method,
                s,
                Path(scratch),
                kept,
                known,
                {**asked, "seed": s, "more": dict(more.get(method, {}))},
                held_out,
            )
            for s in range(seed, seed + seeds)
            for method in methods
        ]
        found = run_all(tasks, jobs or os.cpu_count() or 1, limit, progress)
    outcomes = {method: tuple(found[method, s] for s in range(seed, seed + seeds)) for method in methods}
    return Comparison.of(outcomes, n_states, data.time_unit, truth)


def _check(
    methods: Sequence[str],
    more: Mapping[str, Any],
    held_out: float,
    truth: np.ndarray | None,
    data: TimeSeries,
    n_states: int,
) -> None:
    for method in (*methods, *more):
        if method not in METHODS:
            raise InputError(f"no method {method!r}; there are {', '.join(METHODS)}")
    if not methods:
        raise InputError("nothing to compare: name at least one method")
    if len(set(methods)) < len(methods):
        raise InputError("a method is named twice")
    if not 0 <= held_out < 1:
        raise InputError(f"the share that is held out lies between 0 and 1, got {held_out:g}")
    if n_states < 2:
        raise InputError(f"a process that jumps has at least 2 states, got {n_states}")
    if truth is not None and truth.shape != (data.n_observations,):
        raise InputError(
            f"the truth has {len(truth)} rows, the data {data.n_observations}: one state for each is needed"
        )
    if truth is not None and not np.isin(truth, np.arange(n_states)).all():
        raise InputError(
            f"true states are numbered 0 to {n_states - 1}; the truth holds {truth.min()} to {truth.max()}"
        )


@dataclass(frozen=True)
class Task:
    """One fit: its question, and where the answer goes."""

    method: str
    seed: int
    scratch: Path
    kept: Path
    data: str  # digest: an answer that was kept may be to another question
    asked: dict[str, Any]
    held_out: float

    @property
    def file(self) -> Path:
        return self.scratch / f"task-{self.method}-{self.seed}.json"

    @property
    def words(self) -> Path:
        """What the process says."""
        return self.file.with_suffix(".txt")

    @property
    def result(self) -> Path:
        return self.kept / f"{self.method}-{self.seed}.json"

    @property
    def question(self) -> dict[str, Any]:
        return {"method": self.method, "data": self.data, "asked": self.asked, "held_out": self.held_out}

    def start(self, threads: int) -> "Running":
        places = {"file": str(self.scratch / "data.npz"), "result": str(self.result)}
        self.file.write_text(json.dumps(self.question | places))
        few = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        command = [sys.executable, "-W", "ignore", "-m", "neuralmjp.comparison.worker", str(self.file)]
        with open(self.words, "wb") as words:
            process = subprocess.Popen(command, stdout=words, stderr=words, env={**os.environ, **few})
        return Running(self, process, time.monotonic())

    def outcome(self) -> Outcome | None:
        """What was answered, if it was."""
        try:
            known = json.loads(self.result.read_text())
        except (OSError, ValueError):
            return None
        if known["question"] != self.question:
            return None
        return Outcome(None, known["failed"]) if "failed" in known else Outcome(Answer.from_json(known["answer"]))


@dataclass(frozen=True)
class Running:
    """A fit that is under way."""

    task: Task
    process: subprocess.Popen
    began: float

    def ended(self, limit: float | None) -> Outcome | None:
        """How it ended; None while it has not."""
        status = self.process.poll()
        late = limit is not None and time.monotonic() - self.began > limit
        if status is None and not late:
            return None
        if status is None:
            self.stop()
            return Outcome(None, f"given up after {limit:g} s")
        found = self.task.outcome()  # whole or not there, however the process ended after it
        if found is None:
            last = " ".join(self.task.words.read_text(errors="replace").split())[-LAST_WORDS:]
            found = Outcome(None, f"its process ended with status {status}: {last or 'it said nothing'}")
        return found

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def run_all(
    tasks: Sequence[Task], jobs: int, limit: float | None, progress: Progress
) -> dict[tuple[str, int], Outcome]:
    """Every task, `jobs` at a time; those whose answer is kept already are not done again."""
    found = {(task.method, task.seed): old for task in tasks if (old := task.outcome()) is not None and old.answer}
    waiting = [task for task in tasks if (task.method, task.seed) not in found]
    threads = max((os.cpu_count() or 1) // min(jobs, max(len(waiting), 1)), 1)
    running: list[Running] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(waiting.pop(0).start(threads))
            names = ", ".join(f"{one.task.method} {one.task.seed}" for one in running)
            progress(names, len(found) / len(tasks))
            time.sleep(LOOK)
            for one in list(running):
                outcome = one.ended(limit)
                if outcome is not None:
                    found[one.task.method, one.task.seed] = outcome
                    running.remove(one)
    finally:
        for one in running:
            one.stop()
    progress("done", 1.0)
    return found
