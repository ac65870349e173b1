"""What to think of a fit, in sentences."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..fitted import FittedMJP
from ..fitted_network import FittedNetwork
from ..mjp.interval import interval_or_unknown
from ..training.trained import VISITED

LOOSE = 3.0  # upper over lower end of an interval that tells little
AT_EDGE = 1e-3  # probability of the largest count of a species that is too much


class Finding(NamedTuple):
    """One sentence: good, to be looked at (None), or bad."""

    good: bool | None
    words: str


def findings_of(fitted: FittedMJP) -> list[Finding]:
    """Did it converge, are all states there, what do the data determine; then what the fit itself warned of."""
    ended = fitted.message if fitted.converged else f"not converged: {fitted.message}"
    found = [Finding(fitted.converged, f"{ended[:1].upper()}{ended[1:]}.")]
    law = np.asarray(fitted.stationary_distribution.mean)
    rare, last = np.flatnonzero(law < VISITED), np.flatnonzero(~fitted.model.rate_model.allowed.any(1))
    if len(last):  # where all end says nothing of the way there; what is never visited is among the warnings
        names = ", ".join(fitted.state_names[k] for k in last)
        found.append(Finding(True, f"State {names} is never left, as the mask says: in the end all are there."))
    elif len(rare):
        names = ", ".join(fitted.state_names[k] for k in rare)
        found.append(Finding(False, f"State {names} is as good as never visited: try fewer states."))
    else:
        found.append(
            Finding(True, f"All {fitted.n_states} states are visited, the rarest {law.min():.2%} of the time.")
        )
    found.append(_determined(fitted))
    if fitted.elbo is not None:
        below = (fitted.log_likelihood - fitted.elbo) / max(fitted.n_observations, 1)
        words = f"The trained bound lies {below:.3g} nats per observation below the exact likelihood of its result."
        found.append(Finding(below < 0.05, words))
    found += [Finding(None, f"{word[:1].upper()}{word[1:]}.") for word in fitted.warnings]
    return found


def network_findings(fitted: FittedNetwork) -> list[Finding]:
    """Did it converge, what do the data determine, is the box large enough; then what the fit itself warned of."""
    ended = fitted.message if fitted.converged else f"not converged: {fitted.message}"
    found = [Finding(fitted.converged, f"{ended[:1].upper()}{ended[1:]}.")]
    constants = interval_or_unknown(fitted.intervals, "parameters", fitted.constants)
    found.append(_known(fitted.uncertainty, np.asarray(constants.lower), np.asarray(constants.upper), "constant"))
    full = [f"{name} ({share:.2g})" for name, share in fitted.at_edge.items() if share > AT_EDGE]
    if full:
        found.append(Finding(False, f"Counts press against the edge of the box: {', '.join(full)}; make it larger."))
    return found + [Finding(None, f"{word[:1].upper()}{word[1:]}.") for word in fitted.warnings]


def _determined(fitted: FittedMJP) -> Finding:
    rates, allowed = interval_or_unknown(fitted.intervals, "rates", fitted.rates), fitted.model.rate_model.allowed
    return _known(fitted.uncertainty, rates.lower[allowed], rates.upper[allowed], "rate")


def _known(uncertainty: str, lower: np.ndarray, upper: np.ndarray, what: str) -> Finding:
    """How many intervals tell little."""
    if uncertainty == "none":
        return Finding(
            None, f"No intervals were computed: nothing is known of how well the data determine the {what}s."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(lower > 0, upper / lower, np.inf)
    loose = int((ratio > LOOSE).sum())
    if loose == 0:
        return Finding(
            True, f"Every {what} is known within a factor of {LOOSE:g} from end to end of its 95 % interval."
        )
    return Finding(None, f"{loose} of {len(ratio)} {what}s are known less well than within a factor of {LOOSE:g}.")


def sentence(findings: Sequence[Finding]) -> str:
    """The verdict above all."""
    if any(one.good is False for one in findings):
        return "Do not rely on this fit yet: see what is marked below."
    if any(one.good is None for one in findings):
        return "No fault was found; look at the remarks before you use the numbers."
    return "No fault was found."
