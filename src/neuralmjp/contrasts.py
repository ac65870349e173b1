"""Two fits side by side: which rates differ, by how much, and how sure one can be of it.

Zou & Donner 2008, https://doi.org/10.1002/sim.3095: an interval for a difference from the intervals of its two sides.
Hartlap, Simon & Schneider 2007, https://doi.org/10.1051/0004-6361:20066170: the inverse of a covariance from few draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import chi2, norm

from .emissions import Torus
from .emissions.named import options_of
from .errors import InputError
from .fitted import FittedMJP
from .fitted_network import FittedNetwork
from .mjp.interval import Interval, Z, interval_or_unknown
from .mjp.precision import in_double_precision
from .priors import FreeRates
from .priors.generator import SPREAD
from .report.networks import constants_of, noise_of
from .report.tables import Table, tables_of
from .units import ratio

if TYPE_CHECKING:
    import pandas as pd

Fitted = FittedMJP | FittedNetwork
LOOKS = ("emission", "noise")  # tables of which the difference is told, not the ratio
FLAT = 1e-10  # of the largest variance: a direction in which rates cannot move
OWN = ("section", "name", "change", "measure", "p", "all_rates", "entries", "notes")  # words of a table and of its JSON


class Entry(NamedTuple):
    """One number of both fits, and how the second differs from the first."""

    section: str
    name: str
    first: Interval
    second: Interval
    measure: str  # "ratio" or "difference"
    change: Interval  # second / first, or second - first
    p: float  # that no change at all would look like this or worse; NaN where an interval is not known


class Together(NamedTuple):
    """Whether the rates differ at all."""

    p: float  # NaN where it is not known
    chi_square: float  # of the rates that are surely there: how far they are apart, squared, in standard errors
    degrees: int  # in which these may differ
    left_out: tuple[str, ...]  # rates that may be zero: each has a p of its own, and counts with it


@dataclass(frozen=True)
class Contrast:
    """Every number that two fits of the same model tell, with the change from one to the other."""

    names: tuple[str, str]
    entries: tuple[Entry, ...]
    together: Together
    notes: tuple[str, ...]

    @property
    def p(self) -> float:
        """That rates which do not differ would look as different as these."""
        return self.together.p

    def section(self, title: str) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.section == title)

    @property
    def sections(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(entry.section for entry in self.entries))

    def to_frame(self) -> "pd.DataFrame":
        """A row per number."""
        import pandas as pd

        one, two = self.names
        rows = []
        for entry in self.entries:
            sides = ((one, entry.first), (two, entry.second), ("change", entry.change))
            told = {
                f"{side}{end}": float(value)
                for side, interval in sides
                for end, value in (("", interval.mean), ("_lower", interval.lower), ("_upper", interval.upper))
            }
            rows.append({"section": entry.section, "name": entry.name, **told, "measure": entry.measure, "p": entry.p})
        return pd.DataFrame(rows)


@in_double_precision
def contrast(first: Fitted, second: Fitted, names: Sequence[str] = ("first", "second")) -> Contrast:
    """How a second fit differs from a first one, of the same model to other data: a drug from a control.

    Of rates, times and probabilities the ratio second / first is told, of what states look like the difference, each
    with its 95 % interval. The data of both must have nothing in common.

    Args:
        names: what to call the two.

    >>> # contrast(control, drug, ("control", "drug")).to_frame()
    """
    notes = require_same_model(first, second, names)
    sure = SPREAD not in (first.uncertainty, second.uncertainty)
    entries = []
    for one, two in zip(_tables(first), _tables(second), strict=True):
        looks = one.name.startswith(LOOKS)
        for (label, here), (_, there) in zip(one.intervals(), two.intervals(), strict=True):
            if looks and here.lower == here.upper and there.lower == there.upper:
                continue  # known, not learned: such as how labels are read that are the states themselves
            turn = _turn(first, label) if looks else None
            change, p = difference(here, there, turn) if looks else ratio_of(here, there)
            measure = "difference" if looks else "ratio"
            entries.append(Entry(one.title, label, here, there, measure, change, p if sure else np.nan))
    together = _together(first, second) if sure else Together(np.nan, np.nan, 0, ())
    return Contrast((names[0], names[1]), tuple(entries), together, notes)


def difference(first: Interval, second: Interval, turn: float | None = None) -> tuple[Interval, float]:
    """Second minus first, with its interval, and how surprising that would be without a difference.

    Args:
        turn: of angles: the shorter way round is meant.

    >>> change, p = difference(Interval(1.0, 0.0, 2.0), Interval(4.0, 3.0, 6.0))
    >>> round(change.mean, 2), round(change.lower, 2), round(change.upper, 2)
    (3.0, 1.59, 5.24)
    """
    mean = float(second.mean - first.mean)
    if turn is not None:
        mean = (mean + turn / 2) % turn - turn / 2
    sides = [second.mean - second.lower, first.upper - first.mean, second.upper - second.mean, first.mean - first.lower]
    if np.isnan([mean, *sides]).any():
        return Interval(mean, np.nan, np.nan), np.nan
    down, up = float(np.hypot(*sides[:2])), float(np.hypot(*sides[2:]))
    towards = down if mean > 0 else up
    known = np.isfinite([mean, towards]).all() and towards > 0
    surprise = float(2 * norm.sf(Z * abs(mean) / towards)) if known else np.nan
    return Interval(mean, mean - down, mean + up), surprise


def ratio_of(first: Interval, second: Interval) -> tuple[Interval, float]:
    """Second divided by first: the difference of their logarithms.

    Where one of both may be zero, the ratio has a limit on one side alone; where both may be, nothing is known of it.
    How surprising it is tells their difference then.
    """
    zero = [side.lower <= 0 for side in (first, second)]
    p = difference(first, second)[1] if any(zero) else np.nan
    if all(zero):
        return Interval(np.nan, np.nan, np.nan), p
    with np.errstate(divide="ignore", invalid="ignore"):
        one, two = (Interval(*np.log([side.mean, side.lower, side.upper])) for side in (first, second))
        change, surprise = difference(one, two)
        ends = [float(np.exp(part)) for part in (change.mean, change.lower, change.upper)]
    return Interval(*ends), p if any(zero) else surprise


def require_same_model(first: Fitted, second: Fitted, names: Sequence[str]) -> tuple[str, ...]:
    """Raise unless both tell the same numbers; notes on what else is not the same."""
    if len(names) != 2 or len({*names, *OWN}) < 2 + len(OWN):
        raise InputError(
            f"two fits need two different names, none of them {', '.join(OWN)}; got {', '.join(map(repr, names))}"
        )
    one, two = names
    here, there = _assumed(first), _assumed(second)
    for what, value in here.items():
        if what not in there or value != there[what]:
            other = there.get(what, "nothing of the kind")
            raise InputError(
                f"{one} and {two} are fits of different models ({what}: {value} and {other}): fit both in the same way"
            )
    many, of = ratio(first.time_unit, second.time_unit)
    if many != of:
        raise InputError(
            f"{one} counts time in {first.time_unit!r}, {two} in {second.time_unit!r}: fit one of them again, with "
            "--time-unit"
        )
    notes = []
    for name, fit in ((one, first), (two, second)):
        if fit.uncertainty == "none":
            notes.append(f"{name} was fitted without intervals: how sure a change is cannot be told")
        elif fit.uncertainty == SPREAD:
            notes.append(f"{name} tells the {SPREAD}, which is no uncertainty: how sure a change is cannot be told")
    if first.value_names != second.value_names:
        called = (", ".join(fit.value_names) for fit in (first, second))
        notes.append(f"the values are called {' in one fit and '.join(called)} in the other: are they the same?")
    if isinstance(first, FittedMJP) and isinstance(second, FittedMJP):
        notes += _other_order(first, second, names)
    return tuple(notes)


def _assumed(fit: Fitted) -> dict[str, Any]:
    """What decides which numbers a fit tells, and what they mean; not what it took from the data."""
    if isinstance(fit, FittedNetwork):
        chosen = {"network": fit.network.name, "rate constants": fit.names, "values": len(fit.value_names)}
        return chosen | {"noise": fit.readings.noise, "known noise": fit.readings.fixed is not None}
    model, options = fit.model.rate_model, options_of(fit.emission)
    nuisance = {name: value for name, value in options.pop("nuisance", {}).items() if name in ("hum", "drift")}
    options.pop("clipped", None)
    rates = [[i, j, float(fit.rates[i, j])] for i, j in np.argwhere(_given(fit)).tolist()]
    return {
        "states": fit.n_states,
        "names of the states": fit.state_names,
        "emission": fit.emission.name,
        "values": len(fit.value_names),
        "assumed of the emission": {**options, **{name: value is not None for name, value in nuisance.items()}},
        "drift": nuisance.get("drift", 0),
        "rates": type(model).__name__,
        "parameters of the rates": model.names,
        "rates that are known": rates,
        "jumps that are allowed": int(model.allowed.sum()),
        "which jumps are allowed": np.argwhere(model.allowed).tolist(),
        "panel": fit.panel,
    }


def _turn(fit: Fitted, label: str) -> float | None:
    """A whole turn, where a number is an angle."""
    if isinstance(fit, FittedMJP) and isinstance(fit.emission, Torus) and "mean" in label:
        return fit.emission.period
    return None


def _other_order(first: FittedMJP, second: FittedMJP, names: Sequence[str]) -> list[str]:
    """A state that looks more like another one of the other fit: then they may not be the same states."""
    places = [fit.emission.locations(fit.parameters.emission) for fit in (first, second)]
    if any(place is None for place in places):
        return []
    one, two = (np.asarray(place, float) for place in places)
    apart = two[:, None] - one[None]
    if (turn := _turn(first, "mean")) is not None:
        apart = (apart + turn / 2) % turn - turn / 2
    nearest = np.abs(apart).argmin(1)
    return [
        f"state {second.state_names[k]} of {names[1]} ({two[k]:.3g}) looks more like state {first.state_names[other]} "
        f"of {names[0]} ({one[other]:.3g}) than like state {first.state_names[k]} ({one[k]:.3g}): are they the same?"
        for k, other in enumerate(nearest)
        if abs(apart[k, k]) > abs(apart[k, other])
    ]


def _tables(fit: Fitted) -> list[Table]:
    return tables_of(fit) if isinstance(fit, FittedMJP) else [constants_of(fit), *noise_of(fit)]


def _together(first: Fitted, second: Fitted) -> Together:
    """One test of all rates: a chi-square of those that are surely there, and those that may be zero one by one.

    The smallest p of these, times their number (Bonferroni).
    """
    if isinstance(first, FittedNetwork) or isinstance(second, FittedNetwork):
        assert isinstance(first, FittedNetwork)
        assert isinstance(second, FittedNetwork)
        apart = np.log(second.constants) - np.log(first.constants)
        squared, degrees = _squared(apart, first.log_covariance + second.log_covariance, len(apart))
        return Together(_p_of(squared, degrees), squared, degrees, ())
    sides = [interval_or_unknown(fit.intervals, "rates", fit.rates) for fit in (first, second)]
    allowed = first.model.rate_model.allowed & ~_given(first)
    zero = [allowed & (np.asarray(side.lower) <= 0) for side in sides]
    some = np.argwhere((zero[0] | zero[1]) & ~(first.unseen & second.unseen))  # of what neither shows, nothing differs
    squared, degrees = _of_rates(first, second, allowed & ~zero[0] & ~zero[1])
    each = [difference(_at(sides[0], i, j), _at(sides[1], i, j))[1] for i, j in some.tolist()]
    parts = [p for p in (_p_of(squared, degrees), *each) if np.isfinite(p)]
    p = min(1.0, len(parts) * min(parts)) if parts else np.nan
    return Together(p, squared, degrees, tuple(first.arrow(i, j) for i, j in some.tolist()))


def _at(side: Interval, i: int, j: int) -> Interval:
    return Interval(side.mean[i, j], side.lower[i, j], side.upper[i, j])


def _given(fit: FittedMJP) -> Bool[np.ndarray, "state state"]:
    """Jumps whose rate is known beforehand."""
    model = fit.model.rate_model
    return np.array(model.fixed) > 0 if isinstance(model, FreeRates) else np.zeros_like(model.allowed)


def _of_rates(first: FittedMJP, second: FittedMJP, both: Bool[np.ndarray, "state state"]) -> tuple[float, int]:
    """Of the logarithms of some rates, from what was drawn of each fit."""
    apart = np.log(second.rates[both]) - np.log(first.rates[both])
    drawn = [np.log(fit.rate_samples[:, both]) for fit in (first, second)]
    n, most = min(map(len, drawn)), min(len(apart), first.model.rate_model.n_parameters)
    if n < 2 or not most:
        return np.nan, 0
    covariance = np.sum([np.atleast_2d(np.cov(one, rowvar=False)) for one in drawn], axis=0)
    squared, degrees = _squared(apart, covariance, most)
    few = (n - degrees - 2) / (n - 1)
    return (squared * few, degrees) if few > 0 else (np.nan, 0)


def _squared(
    apart: Float[np.ndarray, "rate"], covariance: Float[np.ndarray, "rate rate"], most: int
) -> tuple[float, int]:
    """In the directions in which rates vary at all: those of a model with few parameters lie on a surface."""
    if not np.isfinite(covariance).all() or not np.isfinite(apart).all():
        return np.nan, 0
    sizes, axes = np.linalg.eigh(covariance)
    kept = sizes > FLAT * sizes[-1]
    kept[: len(sizes) - most] = False
    return float(((axes.T @ apart)[kept] ** 2 / sizes[kept]).sum()), int(kept.sum())


def _p_of(squared: float, degrees: int) -> float:
    return float(chi2.sf(squared, degrees)) if degrees else np.nan
