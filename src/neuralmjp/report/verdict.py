"""What to think of a fit, in sentences."""

from typing import NamedTuple

import numpy as np

from ..fitted import FittedMJP
from ..mjp.interval import interval_or_unknown
from ..training.trained import VISITED

LOOSE = 3.0  # upper over lower end of an interval that tells little


class Finding(NamedTuple):
    """One sentence: good, to be looked at (None), or bad."""

    good: bool | None
    words: str


def findings_of(fitted: FittedMJP) -> list[Finding]:
    """Did it converge, are all states there, what do the data determine; then what the fit itself warned of."""
    ended = fitted.message if fitted.converged else f"not converged: {fitted.message}"
    found = [Finding(fitted.converged, f"{ended[:1].upper()}{ended[1:]}.")]
    law = np.asarray(fitted.stationary_distribution.mean)
    rare = np.flatnonzero(law < VISITED)
    if len(rare):
        names = ", ".join(map(str, rare))
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


def _determined(fitted: FittedMJP) -> Finding:
    rates = interval_or_unknown(fitted.intervals, "rates", fitted.rates)
    allowed = fitted.model.rate_model.allowed
    if fitted.uncertainty == "none":
        return Finding(None, "No intervals were computed: nothing is known of how well the data determine the rates.")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(rates.lower > 0, rates.upper / rates.lower, np.inf)[allowed]
    loose = int((ratio > LOOSE).sum())
    if loose == 0:
        return Finding(True, f"Every rate is known within a factor of {LOOSE:g} from end to end of its 95 % interval.")
    return Finding(None, f"{loose} of {allowed.sum()} rates are known less well than within a factor of {LOOSE:g}.")


def sentence(findings: list[Finding]) -> str:
    """The verdict above all."""
    if any(one.good is False for one in findings):
        return "Do not rely on this fit yet: see what is marked below."
    if any(one.good is None for one in findings):
        return "The fit holds; look at the remarks before you use its numbers."
    return "The fit holds."
