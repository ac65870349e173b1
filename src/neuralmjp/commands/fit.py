"""`neuralmjp fit`: rates with intervals, from a data file."""

import json
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .. import systems
from ..errors import InputError
from ..estimators import ExactMJP
from ..exact.evidence import Panel
from ..fitted import FittedMJP
from ..fitted_files import summary
from ..mjp import Interval
from ..priors import ParametricRates
from ..systems import SYSTEMS
from ..timeseries import TimeSeries
from .show import console, number, table

COLUMNS_FILE = "columns.json"


def run(
    data: TimeSeries,
    *,
    path: Path,
    columns: dict[str, Any],
    n_states: int,
    engine: str,
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
    chosen, mask = read_prior(prior)
    estimator = ExactMJP(
        n_states,
        emission=emission,
        prior=chosen,
        mask=mask,
        initial=initial,
        misread=None if misread is None else read_mask(misread),
        panel=Panel(exact_entry, first_known, dict(map(read_censored, censored))),
        restarts=restarts,
        seed=seed,
    )
    screen = console()
    why = f", chosen because with {n_states} states the likelihood can be computed exactly" if engine == "auto" else ""
    screen.print(f"engine: exact{why}", soft_wrap=True)
    with progress_display() as progress:
        fitted = estimator.fit(data, progress)
    show(fitted, path)
    if out is not None:
        fitted.save(out)
        (out / COLUMNS_FILE).write_text(json.dumps(columns, indent=2) + "\n")
        screen.print(f"model -> {out}", soft_wrap=True)
    if json_file is not None:
        json_file.write_text(json.dumps(summary(fitted), indent=2, allow_nan=False) + "\n")
        screen.print(f"result -> {json_file}", soft_wrap=True)


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


@contextmanager
def progress_display():
    """A bar on a terminal, silence elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task("reading", total=1.0)

        def update(stage: str, share: float) -> None:
            bar.update(task, description=stage, completed=min(share, 1.0))

        report: Callable[[str, float], None] = update
        yield report


def show(fitted: FittedMJP, path: Path) -> None:
    """The result as tables with units and intervals."""
    screen, unit = console(), fitted.time_unit
    screen.print(
        f"{path}: {fitted.n_states} states, emission {fitted.emission.name}, {fitted.n_observations} observations, "
        f"{fitted.seconds:.1f} s",
        soft_wrap=True,
    )
    screen.print(f"{fitted.message}", soft_wrap=True)
    screen.print(
        f"log-likelihood {fitted.log_likelihood:.4f}, {fitted.n_parameters} parameters, AIC {fitted.aic:.2f}, "
        f"BIC {fitted.bic:.2f}"
    )
    if isinstance(fitted.model.rate_model, ParametricRates):
        found = fitted.intervals["parameters"]
        screen.print(
            table("Parameters, 95 %", ["parameter", "value", "from", "to"], _rows(fitted.model.rate_model.names, found))
        )
    rates = fitted.intervals["rates"]
    jumps = np.argwhere(fitted.model.rate_model.allowed)
    at = tuple(jumps.T)
    some = Interval(rates.mean[at], rates.lower[at], rates.upper[at])
    names = [f"{i} → {j}" for i, j in jumps]
    screen.print(table(f"Jump rates (per {unit}), 95 %", ["jump", "rate", "from", "to"], _rows(names, some)))
    _show_states(fitted)
    _show_emission(fitted)
    for warning in fitted.warnings:
        screen.print(f"note: {warning}", soft_wrap=True)


def _show_states(fitted: FittedMJP) -> None:
    screen, unit = console(), fitted.time_unit
    try:
        law = [_range(fitted.stationary_distribution, k) for k in range(fitted.n_states)]
        scales = fitted.timescales
    except InputError as reason:
        screen.print(f"note: {reason}", soft_wrap=True)
        law, scales = ["-"] * fitted.n_states, None
    cells = [[str(k), _range(fitted.sojourn_times, k), law[k]] for k in range(fitted.n_states)]
    screen.print(table("States, 95 %", ["state", f"dwell time ({unit})", "stationary probability"], cells))
    if scales is not None:
        rows = _rows([str(k + 1) for k in range(len(scales.mean))], scales)
        screen.print(table(f"Relaxation times ({unit}), 95 %", ["", "time", "from", "to"], rows))


def _show_emission(fitted: FittedMJP) -> None:
    """Every learned number of the emission, by state and value; known zeros and ones are left out."""
    rows = []
    for name, interval in fitted.intervals.items():
        if not name.startswith("emission."):
            continue
        for at in np.ndindex(*np.shape(interval.mean)):
            if interval.lower[at] < interval.upper[at]:
                place = f"state {at[0]}" + "".join(
                    f", {k}" for k in at[1:] if len(at) > 2 or interval.mean.shape[1] > 1
                )
                rows.append([f"{name.removeprefix('emission.')}, {place}", *_cells(interval, at)])
    if rows:
        console().print(table(f"Emission ({fitted.emission.name}), 95 %", ["", "value", "from", "to"], rows))


def _rows(names: Any, interval: Interval) -> list[list[str]]:
    return [[name, *_cells(interval, k)] for k, name in enumerate(names)]


def _cells(interval: Interval, at: Any) -> list[str]:
    return [number(float(part[at])) for part in (interval.mean, interval.lower, interval.upper)]


def _range(interval: Interval, at: Any) -> str:
    mean, lower, upper = _cells(interval, at)
    return f"{mean} [{lower}, {upper}]"
