"""Two fits side by side: which rates differ, by how much, and how sure one can be of it.

Zou & Donner 2008, https://doi.org/10.1002/sim.3095: an interval for a difference from the intervals of its two sides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import chi2, norm

from .errors import InputError
from .fitted import FittedMJP
from .fitted_network import FittedNetwork
from .mjp.interval import Interval, Z
from .mjp.precision import in_double_precision
from .priors.generator import SPREAD
from .report.networks import constants_of, noise_of
from .report.tables import Table, tables_of
from .units import ratio

if TYPE_CHECKING:
    import pandas as pd

Fitted = FittedMJP | FittedNetwork
LOOKS = ("emission", "noise")  # of which the difference is told, not the ratio


class Entry(NamedTuple):
    """One number of both fits, and how the second differs from the first."""

    section: str
    name: str
    first: Interval
    second: Interval
    measure: str  # "ratio" or "difference"
    change: Interval  # second / first, or second - first
    p: float  # that no change at all would look like this or worse; NaN where an interval is not known


@dataclass(frozen=True)
class Contrast:
    """Every number that two fits of the same model tell, with the change from one to the other."""

    names: tuple[str, str]
    entries: tuple[Entry, ...]
    statistic: float  # of all rates together: how far they are apart, squared, in standard errors
    n_directions: int  # in which they may differ
    p: float
    notes: tuple[str, ...]

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
    entries = []
    for one, two in zip(_tables(first), _tables(second), strict=True):
        for row, other in zip(one.rows, two.rows, strict=True):
            at = one.headings.index("value")
            label = " ".join(str(word) for word in row[:at])
            here, there = (Interval(*map(float, each[at : at + 3])) for each in (row, other))
            looks = one.name.startswith(LOOKS)
            if looks and _known(here) and _known(there):
                continue
            change, p = difference(here, there) if looks else ratio_of(here, there)
            entries.append(Entry(one.title, label, here, there, "difference" if looks else "ratio", change, p))
    statistic, directions = _apart(first, second)
    p = float(chi2.sf(statistic, directions)) if directions else float("nan")
    return Contrast((names[0], names[1]), tuple(entries), statistic, directions, p, notes)


def difference(first: Interval, second: Interval) -> tuple[Interval, float]:
    """Second minus first, with its interval, and how surprising that would be without a difference.

    >>> change, p = difference(Interval(1.0, 0.0, 2.0), Interval(4.0, 3.0, 6.0))
    >>> round(float(change.mean), 2), round(float(change.lower), 2), round(float(change.upper), 2)
    (3.0, 1.59, 5.24)
    """
    mean = float(second.mean - first.mean)
    down = float(np.hypot(second.mean - second.lower, first.upper - first.mean))
    up = float(np.hypot(second.upper - second.mean, first.mean - first.lower))
    towards = down if mean > 0 else up
    known = np.isfinite(mean) and towards > 0
    surprise = float(2 * norm.sf(Z * abs(mean) / towards)) if known else float("nan")
    return Interval(mean, mean - down, mean + up), surprise


def ratio_of(first: Interval, second: Interval) -> tuple[Interval, float]:
    """Second divided by first: the difference of their logarithms.

    Where one of both may be zero, the ratio has a limit on one side, and no p to speak of; where both may be, nothing
    is known.
    """
    if first.lower <= 0 and second.lower <= 0:
        return Interval(np.nan, np.nan, np.nan), np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [Interval(*np.log([side.mean, side.lower, side.upper])) for side in (first, second)]
        change, p = difference(*logs)
        ends = [float(np.exp(part)) for part in (change.mean, change.lower, change.upper)]
    return Interval(*ends), np.nan if min(first.lower, second.lower) <= 0 else p


def require_same_model(first: Fitted, second: Fitted, names: Sequence[str]) -> tuple[str, ...]:
    """Raise unless both tell the same numbers; notes on what else is not the same."""
    if len(names) != 2 or names[0] == names[1]:
        raise InputError(f"two fits need two different names, got {', '.join(map(repr, names))}")
    sides = [(name, _assumed(fit)) for name, fit in zip(names, (first, second), strict=True)]
    (one, here), (two, there) = sides
    for what, value in here.items():
        if what not in there or value != there[what]:
            raise InputError(
                f"{one} and {two} are fits of different models ({what}: {value} and {there.get(what, 'none')}): "
                "fit both in the same way"
            )
    many, of = ratio(first.time_unit, second.time_unit)
    if many != of:
        raise InputError(
            f"{one} counts time in {first.time_unit!r}, {two} in {second.time_unit!r}: fit one of them again, with "
            "--time-unit"
        )
    notes = []
    for name, fit in zip(names, (first, second), strict=True):
        if fit.uncertainty == "none":
            notes.append(f"{name} was fitted without intervals: how sure a change is cannot be told")
        elif fit.uncertainty == SPREAD:
            notes.append(f"{name} tells the {SPREAD}, which is no uncertainty: neither are the intervals of a change")
    if isinstance(first, FittedMJP) and isinstance(second, FittedMJP):
        notes += _other_order(first, second, names)
    return tuple(notes)


def _assumed(fit: Fitted) -> dict[str, object]:
    """What decides which numbers a fit tells."""
    if isinstance(fit, FittedNetwork):
        return {"network": fit.network.name, "rate constants": fit.names, "values": fit.value_names}
    allowed = np.argwhere(fit.model.rate_model.allowed).tolist()
    return {
        "states": fit.n_states,
        "names of the states": fit.state_names,
        "emission": fit.emission.name,
        "values": fit.value_names,
        "jumps that are allowed": len(allowed),
        "which jumps are allowed": allowed,
    }


def _other_order(first: FittedMJP, second: FittedMJP, names: Sequence[str]) -> list[str]:
    """A state that looks more like another one of the other fit: then they may not be the same states."""
    places = [fit.emission.locations(fit.parameters.emission) for fit in (first, second)]
    if any(place is None for place in places):
        return []
    one, two = (np.asarray(place, float) for place in places)
    nearest = np.abs(two[:, None] - one[None]).argmin(1)
    return [
        f"state {second.state_names[k]} of {names[1]} ({two[k]:.3g}) looks more like state {first.state_names[other]} "
        f"of {names[0]} ({one[other]:.3g}) than like state {first.state_names[k]} ({one[k]:.3g}): are they the same?"
        for k, other in enumerate(nearest)
        if abs(two[k] - one[k]) > abs(two[k] - one[other])
    ]


def _known(side: Interval) -> bool:
    """Of a number that was not learned, such as how labels are read that are the states themselves."""
    return side.lower == side.upper


def _tables(fit: Fitted) -> list[Table]:
    return tables_of(fit) if isinstance(fit, FittedMJP) else [constants_of(fit), *noise_of(fit)]


def _apart(first: Fitted, second: Fitted) -> tuple[float, int]:
    """Squared distance of the logarithms of all rates, in standard errors, and in how many directions they may differ.

    Jumps of which one of both saw no sign have no logarithm to speak of, and are left out.
    """
    if isinstance(first, FittedNetwork) or isinstance(second, FittedNetwork):
        assert isinstance(first, FittedNetwork)
        assert isinstance(second, FittedNetwork)
        means = [np.log(fit.constants) for fit in (first, second)]
        covariance, directions = first.log_covariance + second.log_covariance, len(means[0])
    else:
        both = first.model.rate_model.allowed & ~first.unseen & ~second.unseen
        means = [np.log(fit.rates[both]) for fit in (first, second)]
        drawn = [np.log(fit.rate_samples[:, both]) for fit in (first, second)]
        directions = min(int(both.sum()), first.model.rate_model.n_parameters)
        if any(len(one) <= directions for one in drawn):
            return float("nan"), 0
        covariance = np.sum([np.atleast_2d(np.cov(one, rowvar=False)) for one in drawn], axis=0)
    return _squared(means[1] - means[0], covariance, directions)


def _squared(
    apart: Float[np.ndarray, "rate"], covariance: Float[np.ndarray, "rate rate"], directions: int
) -> tuple[float, int]:
    """In the directions in which rates vary at all: those of a model with few parameters lie on a surface."""
    if not directions or not np.isfinite(covariance).all():
        return float("nan"), 0
    sizes, axes = np.linalg.eigh(covariance)
    kept = slice(len(sizes) - directions, None)
    return float(((axes.T @ apart)[kept] ** 2 / sizes[kept]).sum()), directions
