"""What every check ends with: a verdict in one plain sentence; and how observed curves are judged by simulated ones."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..arguments import require_seed
from ..errors import InputError
from ..fitted import FittedMJP
from ..mjp.interval import LEVEL

REJECTED = 0.02  # a p-value below this speaks against the model
FEWEST_SIMULATIONS = 50  # the smallest p-value is 1 / (1 + simulations): fewer could never speak against it
NARROWEST = 1e-6  # spread of simulations that all agree; shares and correlations are of order one


@dataclass(frozen=True)
class Verdict:
    """How one check ended."""

    check: str
    passed: bool | None  # None where the data or the model do not allow the check
    sentence: str


@dataclass(frozen=True)
class Band:
    """A curve that the data show, beside what data simulated from the model show at the same times."""

    observed: Float[np.ndarray, "curve place"]
    lower: Float[np.ndarray, "curve place"]  # 2.5 % of the simulations
    median: Float[np.ndarray, "curve place"]
    upper: Float[np.ndarray, "curve place"]
    deviations: Float[np.ndarray, "curve place"]  # from the mean of the simulations, in their standard deviations
    spread: Float[np.ndarray, "curve place"]  # that standard deviation
    p_value: float  # rank of the observed curve's largest deviation among those of the simulations

    @property
    def outside(self) -> float:
        """Share of the places at which the observed curve leaves the band; about 5 % if the model is right."""
        known = ~np.isnan(self.deviations)
        beyond = (self.observed < self.lower) | (self.observed > self.upper)
        return float(beyond[known].mean()) if known.any() else 0.0


def require_hidden_states(fitted: object, check: str) -> None:
    """Raise unless a model is one of hidden states, for the checks that need them."""
    if not isinstance(fitted, FittedMJP):
        raise InputError(
            f"{check} is a check of a fit with hidden states (FittedMJP), got {type(fitted).__name__}: for a fitted "
            "reaction network there is validation.coverage, its forecasts against what came"
        )


def require_enough(simulations: int, seed: int = 0) -> None:
    """Raise unless so many simulations can be made from this seed and speak against a model at all."""
    require_seed(seed)
    if not isinstance(simulations, int | np.integer) or simulations < FEWEST_SIMULATIONS:
        raise InputError(
            f"{simulations} simulations cannot reject a model, whatever the data: "
            f"ask for at least {FEWEST_SIMULATIONS} simulations"
        )


def band(observed: Float[np.ndarray, "curve place"], simulated: Float[np.ndarray, "run curve place"]) -> Band:
    """Judge a curve by simulated ones: by its largest deviation from their mean, in their standard deviations.

    Every simulated curve is judged by the same rule, so that the rank is a p-value: (1 + those that deviate as much) /
    (1 + simulations). NaN marks places that a data set says nothing about. The model was fitted to the observed data
    and not to the simulated ones: the p-value errs towards passing.
    """
    tail = (1 - LEVEL) / 2
    lower, median, upper, centre, spread = (np.full(observed.shape, np.nan) for _ in range(5))
    known = (~np.isnan(simulated)).sum(0) > 1
    if known.any():
        some = simulated[:, known]
        lower[known], median[known], upper[known] = np.nanquantile(some, [tail, 0.5, 1 - tail], axis=0)
        centre[known], spread[known] = np.nanmean(some, axis=0), np.nanstd(some, axis=0, ddof=1)
    spread = np.maximum(spread, NARROWEST)

    def furthest(deviations: np.ndarray) -> float:
        return float(np.abs(deviations[~np.isnan(deviations)]).max(initial=0.0))

    deviations = (observed - centre) / spread
    as_far = sum(furthest((one - centre) / spread) >= furthest(deviations) for one in simulated)
    return Band(observed, lower, median, upper, deviations, spread, float((1 + as_far) / (1 + len(simulated))))
