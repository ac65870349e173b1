"""All methods and seeds, each fit in a process of its own, several at a time, here or on a cluster."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from ..digests import digest_of
from ..ensembles import Kept, Place, Progress, opened, run_each
from ..ensembles.places import cores
from ..errors import InputError
from ..estimators.assumptions import require_states
from ..timeseries import TimeSeries
from .answer import Answer
from .apart import Apart, fitted_apart
from .compared import Comparison, Outcome
from .methods import DEFAULT, METHODS


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
    cluster: str | Place | None = None,
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
        jobs: fits at a time on this machine; one per core by default.
        limit: seconds after which a fit is given up.
        folder: keeps every answer, so that a comparison that was interrupted goes on where it was.
        cluster: None for this machine without dask, "local", or the address of a running `dask scheduler`.
    """
    more = more or {}
    _check(methods, more, held_out, truth, data, n_states)
    asked = {"n_states": n_states, "emission": emission, "prior": prior, "initial": initial, "lag": lag}
    asked |= {"angles": angles}
    seen = digest_of(data)
    questions = {
        f"{method}-{s}": {
            "method": method,
            "data": seen,
            "asked": {**asked, "seed": s, "more": dict(more.get(method, {}))},
            "held_out": held_out,
        }
        for s in range(seed, seed + seeds)
        for method in methods
    }
    kept = None if folder is None else Kept(folder, {})
    stop = threading.Event()
    if cluster is None:
        jobs = jobs or cores()
        shared = Apart(data, limit, max(cores() // min(jobs, len(questions)), 1), stop)
    else:
        shared = Apart(data, limit)
    with opened(cluster, jobs) as place:
        try:
            found = run_each(fitted_apart, questions, shared, cluster=place, kept=kept, go_on=True, progress=progress)
        finally:
            stop.set()
    outcomes = {
        method: tuple(_outcome(found[f"{method}-{s}"]) for s in range(seed, seed + seeds)) for method in methods
    }
    return Comparison.of(outcomes, n_states, data.time_unit, truth)


def _outcome(said: dict[str, Any]) -> Outcome:
    return Outcome(None, said["failed"]) if "failed" in said else Outcome(Answer.from_json(said))


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
    require_states(n_states)
    if truth is not None and truth.shape != (data.n_observations,):
        raise InputError(
            f"the truth has {len(truth)} rows, the data {data.n_observations}: one state for each is needed"
        )
    if truth is not None and not np.isin(truth, np.arange(n_states)).all():
        raise InputError(
            f"true states are numbered 0 to {n_states - 1}; the truth holds {truth.min()} to {truth.max()}"
        )
