"""A fitted model on a terminal: what was found, how sure it is, how and why the fit ended."""

from pathlib import Path
from typing import Any

import numpy as np

from ..emissions import Categorical
from ..emissions.places import place_words
from ..errors import InputError
from ..fitted import FittedMJP
from ..mjp import Interval
from ..mjp.interval import interval_or_unknown
from ..mjp.precision import in_double_precision
from ..priors import ParametricRates
from ..units import per
from .show import console, number, table


def show(fitted: FittedMJP, path: Path, *, bound_of: str = "") -> None:
    """The result as tables with units and intervals; `bound_of` says what the ELBO covers if not all of the data."""
    screen, unit = console(), fitted.time_unit
    screen.print(
        f"{path}: {fitted.n_states} states, emission {fitted.emission.name}, {fitted.n_observations} observations, "
        f"{fitted.seconds:.1f} s",
        soft_wrap=True,
    )
    for line in which_states(fitted):
        screen.print(line, soft_wrap=True)
    screen.print(f"{fitted.message}", soft_wrap=True)
    screen.print(_likelihood(fitted, bound_of), soft_wrap=True)
    known = fitted.uncertainty != "none"
    screen.print(f"intervals: {f'95 %, from {fitted.uncertainty}' if known else 'none'}", soft_wrap=True)
    level = ", 95 %" if known else ""
    if isinstance(fitted.model.rate_model, ParametricRates):
        found = interval_or_unknown(fitted.intervals, "parameters", np.exp(np.asarray(fitted.parameters.rates)))
        rows = rows_of(fitted.model.rate_model.names, found)
        screen.print(table(f"Parameters{level}", ["parameter", "value", "from", "to"], rows))
    rates = interval_or_unknown(fitted.intervals, "rates", fitted.rates)
    jumps = np.argwhere(fitted.model.rate_model.allowed)
    at = tuple(jumps.T)
    some = Interval(rates.mean[at], rates.lower[at], rates.upper[at])
    names = [fitted.arrow(i, j) for i, j in jumps.tolist()]
    screen.print(table(f"Jump rates ({per(unit)}){level}", ["jump", "rate", "from", "to"], rows_of(names, some)))
    _show_states(fitted, level)
    _show_emission(fitted, level)
    for warning in fitted.warnings:
        screen.print(f"note: {warning}", soft_wrap=True)


def which_states(fitted: FittedMJP) -> list[str]:
    """What the numbers of the states mean, where they have labels or names."""
    emission, names, lines = fitted.emission, fitted.state_names, []
    labels = emission.labels if isinstance(emission, Categorical) else ()
    if len(labels) == fitted.n_states and labels != tuple(range(fitted.n_states)):
        pairs = ", ".join(f"{k} is {label:g}" for k, label in enumerate(labels))
        lines.append(f"states are counted from 0, in the order of the data's labels: {pairs}")
    if names != tuple(map(str, range(fitted.n_states))):
        lines.append(f"names of the states: {', '.join(f'{k} is {name}' for k, name in enumerate(names))}")
    return lines


def _likelihood(fitted: FittedMJP, bound_of: str) -> str:
    """The exact log-likelihood, beside the bound that was trained if there is one."""
    size = f"{fitted.n_parameters} parameters, AIC {fitted.aic:.2f}, BIC {fitted.bic:.2f}"
    exact = f"log-likelihood {fitted.log_likelihood:.4f}"
    if fitted.elbo is None:
        return f"{exact}, {size}"
    part = f" (of {bound_of})" if bound_of else ""
    return f"engine {fitted.engine}, posterior {fitted.posterior}: ELBO {fitted.elbo:.4f}{part}, exact {exact}, {size}"


def _show_states(fitted: FittedMJP, level: str) -> None:
    screen, unit = console(), fitted.time_unit
    try:
        law = [_range(fitted.stationary_distribution, k) for k in range(fitted.n_states)]
        scales = fitted.timescales
    except InputError as reason:
        screen.print(f"note: {fitted.told(str(reason))}", soft_wrap=True)
        law, scales = ["-"] * fitted.n_states, None
    cells = [[fitted.state_names[k], _range(fitted.sojourn_times, k), law[k]] for k in range(fitted.n_states)]
    screen.print(table(f"States{level}", ["state", f"dwell time ({unit})", "stationary probability"], cells))
    if scales is not None:
        rows = rows_of([str(k + 1) for k in range(len(scales.mean))], scales)
        screen.print(table(f"Relaxation times ({unit}){level}", ["", "time", "from", "to"], rows))


def _show_emission(fitted: FittedMJP, level: str) -> None:
    """Every learned number of the emission, by state and value; known zeros and ones are left out."""
    rows = []
    for name, value in _natural(fitted).items():
        interval = interval_or_unknown(fitted.intervals, f"emission.{name}", value)
        shape = np.shape(interval.mean)
        for at in np.ndindex(*shape):
            if interval.lower[at] < interval.upper[at] or np.isnan(interval.lower[at]):
                place = place_words(fitted.emission, name, at, shape, fitted.value_names, fitted.state_names)
                rows.append([", ".join(place), *_cells(interval, at)])
    if rows:
        of = f" of {fitted.value_names[0]}" if len(fitted.value_names) == 1 else ""
        console().print(table(f"Emission ({fitted.emission.name}){of}{level}", ["", "value", "from", "to"], rows))


@in_double_precision
def _natural(fitted: FittedMJP) -> dict[str, np.ndarray]:
    """What the emission learned, as people know it; nothing where states are seen as they are."""
    if not any(np.any(free) for free in fitted.emission.learned(fitted.parameters.emission).values()):
        return {}
    return {
        name: np.asarray(entry.value) for name, entry in fitted.emission.natural(fitted.parameters.emission).items()
    }


def rows_of(names: Any, interval: Interval) -> list[list[str]]:
    return [[name, *_cells(interval, k)] for k, name in enumerate(names)]


def _cells(interval: Interval, at: Any) -> list[str]:
    return [number(float(part[at])) for part in (interval.mean, interval.lower, interval.upper)]


def _range(interval: Interval, at: Any) -> str:
    mean, lower, upper = _cells(interval, at)
    return f"{mean} [{lower}, {upper}]" if np.isfinite(interval.mean[at]) and lower != "-" else mean
