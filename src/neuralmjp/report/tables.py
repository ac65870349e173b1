"""Numbers of a fit as tables: for the page, and as CSV for whoever wants to go on with them."""

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..emissions.places import place_words
from ..errors import InputError
from ..events import Events
from ..fitted import FittedMJP
from ..mjp import Interval
from ..mjp.interval import interval_or_unknown
from ..mjp.precision import in_double_precision
from ..priors import ParametricRates
from ..units import per


@dataclass(frozen=True)
class Table:
    """A title with its unit, headings, and rows of text or numbers."""

    name: str  # of the file
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def to_csv(self) -> str:
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(self.headings)
        lines.writerows(["" if _unknown(cell) else cell for cell in row] for row in self.rows)
        return text.getvalue()

    def intervals(self) -> list[tuple[str, Interval]]:
        """What each row is called, and its number with both ends, of a table that has such."""
        at = self.headings.index("value")
        return [(" ".join(map(str, row[:at])), Interval(*map(float, row[at : at + 3]))) for row in self.rows]

    def shown(self) -> list[list[str]]:
        """As people read it."""
        return [[shown(cell) for cell in row] for row in self.rows]


def _unknown(cell: Any) -> bool:
    return isinstance(cell, float) and math.isnan(cell)


def shown(cell: Any) -> str:
    """Four significant digits; a dash for what is not known."""
    if not isinstance(cell, float):
        return str(cell)
    if math.isnan(cell):
        return "–"
    if math.isinf(cell):
        return "∞" if cell > 0 else "-∞"
    return f"{cell:.0f}" if cell == round(cell) and abs(cell) < 1e7 else f"{cell:.4g}"


def tables_of(fitted: FittedMJP) -> list[Table]:
    """Everything a fit tells, the most wanted first."""
    unit, found = fitted.time_unit, [parameters_of(fitted), rates_of(fitted)]
    names, settles = list(fitted.state_names), True
    try:
        found.append(_listed("stationary-law", "Stationary law", "state", names, fitted.stationary_distribution))
    except InputError:  # several states that nobody leaves: in the end any of them
        settles = False
    found.append(_listed("dwell-times", f"Mean dwell time ({unit})", "state", names, fitted.sojourn_times))
    if settles:
        scales = fitted.timescales
        found.append(_listed("timescales", f"Relaxation times ({unit})", "", _ordinals(np.size(scales.mean)), scales))
    jumps = [(i, j) for i in range(fitted.n_states) for j in range(fitted.n_states) if i != j]
    passage = _picked(fitted.mfpt, jumps)
    found.append(_listed("first-passage", f"Mean first-passage times ({unit})", "", _arrows(fitted, jumps), passage))
    found.append(emission_of(fitted))
    return [table for table in found if table is not None and table.rows]


def parameters_of(fitted: FittedMJP) -> Table | None:
    model = fitted.model.rate_model
    if not isinstance(model, ParametricRates):
        return None
    value = np.exp(np.asarray(fitted.parameters.rates))
    interval = interval_or_unknown(fitted.intervals, "parameters", value)
    return _listed("parameters", "Parameters", "parameter", list(model.names), interval)


def rates_of(fitted: FittedMJP) -> Table:
    jumps = [(int(i), int(j)) for i, j in np.argwhere(fitted.model.rate_model.allowed)]
    interval = _picked(interval_or_unknown(fitted.intervals, "rates", fitted.rates), jumps)
    return _listed("rates", f"Jump rates ({per(fitted.time_unit)})", "jump", _arrows(fitted, jumps), interval)


def stays_of(events: Events) -> Table:
    """How often each state was visited, for how long, and what was read there."""
    headings = ["state", "whole events", "mean", "median"]
    headings += [] if events.means is None else [f"mean {name}" for name in events.data.value_names]
    title = f"Events of the most likely path: duration ({events.data.time_unit})"
    return Table("dwells", title, tuple(headings), tuple(events.summary()))


@in_double_precision
def emission_of(fitted: FittedMJP) -> Table | None:
    """What each state looks like, number by number."""
    rows = []
    for name, entry in fitted.emission.natural(fitted.parameters.emission).items():
        value = np.asarray(entry.value, float)
        if value.ndim == 0 or value.size > 60 * fitted.n_states:
            continue
        interval = interval_or_unknown(fitted.intervals, f"emission.{name}", value)
        for place in np.ndindex(value.shape):
            what, owner = place_words(fitted.emission, name, place, value.shape, fitted.value_names, fitted.state_names)
            ends = [float(np.broadcast_to(x, value.shape)[place]) for x in (interval.lower, interval.upper)]
            rows.append((owner.removeprefix("state "), what, float(value[place]), *ends))
    of = f": {fitted.value_names[0]}" if len(fitted.value_names) == 1 else ""
    return Table("emission", f"What each state looks like{of}", ("state", "", "value", "from", "to"), tuple(rows))


def _listed(name: str, title: str, heading: str, labels: list[str], interval: Interval) -> Table:
    parts = [np.atleast_1d(np.asarray(part, float)) for part in (interval.mean, interval.lower, interval.upper)]
    rows = zip(labels, *(part.tolist() for part in parts), strict=True)
    return Table(name, title, (heading, "value", "from", "to"), tuple(rows))


def _picked(interval: Interval, jumps: list[tuple[int, int]]) -> Interval:
    at = tuple(np.array(jumps, dtype=int).reshape(-1, 2).T)
    mean, lower, upper = (np.asarray(part)[at] for part in (interval.mean, interval.lower, interval.upper))
    return Interval(mean, lower, upper)


def _arrows(fitted: FittedMJP, jumps: list[tuple[int, int]]) -> list[str]:
    return [fitted.arrow(i, j) for i, j in jumps]


def _ordinals(n: int) -> list[str]:
    return [str(k + 1) for k in range(n)]
