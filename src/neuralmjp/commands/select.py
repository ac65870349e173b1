"""`neuralmjp select`: how many states, and why."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..estimators import ExactMJP
from ..fitted_files import summary
from ..systems.system import randomness
from ..timeseries import TimeSeries
from ..validation import Selection, select
from .options import emission_for
from .result_tables import show as show_fit
from .runs import write_run
from .show import console, number, progress_display, table


def run(
    data: TimeSeries,
    *,
    path: Path,
    columns: dict[str, Any],
    states: str,
    folds: int,
    restarts: int,
    emission: str,
    prior: str,
    hum: str | None,
    drift: int,
    cluster: str | None,
    seed: int,
    out: Path | None,
    json_file: Path | None,
) -> None:
    randomness(seed)  # refused here, in words, if it is no seed
    tried = numbers(states)
    assumed: dict[str, Any] = {"emission": emission_for(emission, columns), "prior": prior, "hum": hum, "drift": drift}
    with progress_display() as progress:
        found = select(
            data,
            tried,
            folds=folds,
            restarts=restarts,
            seed=seed,
            cluster=cluster,
            folder=None if out is None else out / "answers",
            progress=progress,
            **assumed,
        )
    show(found, path)
    if json_file is not None:
        json_file.write_text(json.dumps(told(found, seed), indent=2, allow_nan=False) + "\n")
        console().print(f"result -> {json_file}", soft_wrap=True)
    if out is not None:
        with progress_display() as progress:
            fitted = ExactMJP(found.n_states, seed=seed, **assumed).fit(data, progress)
        show_fit(fitted, path, bound_of="")
        write_run(fitted, summary(fitted), columns, out, None)


def numbers(text: str) -> list[int]:
    """`2..6`, or `2,3,5` -> the numbers."""
    first, dots, last = text.partition("..")
    try:
        found = list(range(int(first), int(last) + 1)) if dots else [int(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 2:
        raise InputError(f"--states takes numbers of states from 2 on, such as 2..6 or 2,3,5; got {text!r}")
    return found


def show(found: Selection, path: Path) -> None:
    """One row per number of states, then why."""
    screen, best = console(), max(one.held_out.sum() for one in found.candidates)
    rows = [
        [
            f"{one.n_states}{' *' if one.n_states == found.n_states else ''}",
            f"{one.held_out.sum() - best:.1f}",
            number(one.bic),
            number(one.icl),
            f"{float(one.separation.distances[one.separation.closest]):.2g}",
            f"{one.separation.occupancy.min():.1%}",
            f"{one.wandering:.2g}",
        ]
        for one in found.candidates
    ]
    names = ["states", "held-out (nats)", "BIC", "ICL", "closest levels", "rarest state", "levels wander"]
    screen.print(table(f"{path}: how many states? Distances in noise widths", names, rows))
    screen.print(found.why, soft_wrap=True)
    for warning in found.warnings:
        screen.print(f"careful: {warning}", soft_wrap=True)


def told(found: Selection, seed: int) -> dict[str, Any]:
    """For a file."""
    return {
        "n_states": found.n_states,
        "why": found.why,
        "warnings": list(found.warnings),
        "by": found.by,
        "seed": seed,
        "candidates": [
            {
                "n_states": one.n_states,
                "log_likelihood": one.fitted.log_likelihood,
                "n_parameters": one.fitted.n_parameters,
                "held_out": float(one.held_out.sum()),
                "bic": _finite(one.bic),
                "icl": _finite(one.icl),
                "levels": one.separation.means.tolist(),
                "distances": one.separation.distances.tolist(),
                "occupancy": one.separation.occupancy.tolist(),
                "levels_wander": _finite(one.wandering),
            }
            for one in found.candidates
        ],
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
