"""`neuralmjp validate`: is a fitted model true to the data? A verdict per check, in one plain sentence each."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import validation
from ..errors import InputError
from ..estimators import ExactMJP
from ..fitted import FittedMJP
from ..fitted_network import FittedNetwork
from ..mjp import exit_rates
from ..systems.system import randomness
from ..timeseries import TimeSeries
from ..validation.verdict import Verdict
from .runs import CHECKS_FILE, load_any, read_for
from .show import console, table
from .validate_figures import draw

HORIZON = 5
WORDS = {True: "passed", False: "FAILED", None: "not done"}
Check = tuple[str, Callable[[], Any]]


def run(
    folder: Path,
    path: Path,
    columns: dict[str, Any],
    *,
    simulations: int,
    seed: int,
    out: Path | None,
    json_file: Path | None,
) -> None:
    randomness(seed)  # refused here, in words, if it is no seed
    fitted = load_any(folder)
    data = read_for(fitted, path, columns).in_unit(fitted.time_unit)
    if isinstance(fitted, FittedMJP):
        fitted.require_values(data)
    found: dict[str, Any] = {}
    verdicts: list[Verdict] = []
    for name, check in checks_of(fitted, data, simulations, seed):
        try:
            found[name] = check()
            verdicts += getattr(found[name], "verdicts", None) or [found[name].verdict]
        except InputError as reason:
            verdicts.append(Verdict(name, None, str(reason)))
    if isinstance(fitted, FittedMJP):
        verdicts = [replace(one, sentence=fitted.told(one.sentence)) for one in verdicts]
    screen = console()
    rows = [[one.check, WORDS[one.passed], one.sentence] for one in verdicts]
    shown = table(f"{path}: is the model true to the data?", ["check", "verdict", "because"], rows)
    shown.columns[1].justify = shown.columns[2].justify = "left"
    screen.print(shown)
    failed = [one.check for one in verdicts if one.passed is False]
    done = sum(one.passed is not None for one in verdicts)
    if done == 0:
        raise InputError(f"{path}: no check could be done: {verdicts[0].sentence}")
    screen.print(f"{done - len(failed)} of {done} checks passed{': look at ' + ', '.join(failed) if failed else ''}")
    if out is not None:
        names = fitted.state_names if isinstance(fitted, FittedMJP) else None
        for name in draw(found, out, exits_of(fitted), names):
            screen.print(f"figure -> {out / name}", soft_wrap=True)
    result = {"passed": not failed, "checks": [asdict(one) for one in verdicts], "data": path.name}
    text = json.dumps(result, indent=2, allow_nan=False) + "\n"
    (folder / CHECKS_FILE).write_text(text)  # for the report
    if json_file is not None:
        json_file.write_text(text)
        screen.print(f"result -> {json_file}", soft_wrap=True)


def exits_of(fitted: FittedMJP | FittedNetwork) -> np.ndarray:
    return np.asarray(exit_rates(fitted.rates)) if isinstance(fitted, FittedMJP) else np.empty(0)


def checks_of(fitted: FittedMJP | FittedNetwork, data: TimeSeries, simulations: int, seed: int) -> list[Check]:
    """Which checks a model and its data allow."""
    horizon = max(min(HORIZON, int(data.lengths.max()) // 2), 1)
    forecasts: Check = ("forecasts", lambda: validation.coverage(fitted, data, horizon, seed=seed))
    if isinstance(fitted, FittedNetwork):
        return [forecasts]
    many = {"simulations": simulations, "seed": seed}
    try:
        validation.panel.labels_of(fitted)
        return [
            ("prevalence", lambda: validation.prevalence(fitted, data)),
            ("Pearson", lambda: validation.pearson(fitted, data, **many)),
        ]
    except InputError:
        again = ExactMJP(
            fitted.n_states,
            emission=fitted.emission,
            prior=fitted.model.rate_model,
            initial=fitted.model.given or ("stationary" if fitted.model.initial == "stationary" else "free"),
            panel=fitted.panel,
            seed=fitted.seed,
        )
        return [
            ("Chapman-Kolmogorov", lambda: validation.chapman_kolmogorov(fitted, data, **many)),
            ("timescales", lambda: validation.implied_timescales(data, again)),
            ("predictive", lambda: validation.predictive(fitted, data, **many)),
            ("residuals", lambda: validation.residuals(fitted, data, seed=seed)),
            forecasts,
        ]
