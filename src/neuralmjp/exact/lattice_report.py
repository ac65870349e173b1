"""How well the data determine the constants of a reaction network: intervals, and warnings in plain words."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError
from ..mjp.interval import Interval
from ..mjp.precision import in_double_precision
from .information import ALLOWED_LOSS, Absent, Information
from .lattice_fit import LatticeFit
from .report import FROM_EVEN, TO_EVEN, Z

STEP = 1e-4  # of a finite difference
# A direction along which the log-likelihood bends by less than this many nats per squared unit teaches nothing.
LEAST_CURVATURE = 1e-2
FEWEST_EVENTS = 0.5  # a reaction that explains less than that in all the data is indistinguishable from none
SILENT = 1e-8  # a slope that is rounding
AT_EDGE = 1e-3
LOW, FARTHER, HALVINGS = (
    -7.0,
    float(np.log(4.0)),
    5,
)  # where the search for an upper limit begins, its steps, its refinement


@dataclass(frozen=True)
class LatticeInformation:
    """A normal approximation around the top, and limits of constants that may as well be zero."""

    normal: Information
    limits: dict[int, float]  # by position among the constants


@in_double_precision
def lattice_information(fit: LatticeFit) -> LatticeInformation:
    """Minus the second derivatives at the top, inverted; by differences of the exact slope."""
    theta, n = fit.theta, fit.packing.n_constants
    here = fit.packing.vector(fit.evaluation.constants, fit.evaluation.noise)
    rows = np.stack([(here - fit.slope(theta + step)) / STEP for step in STEP * np.eye(len(theta))])
    curvature = (rows + rows.T) / 2
    held = (theta <= fit.bounds[:, 0] + 1e-6) | (theta >= fit.bounds[:, 1] - 1e-6)
    # The curvature by the logarithm of a constant counts the events that show it.
    unseen = held | (curvature.diagonal() < FEWEST_EVENTS) & (np.arange(len(theta)) < n)
    moving = np.flatnonzero(~unseen)
    values, vectors = np.linalg.eigh(curvature[np.ix_(moving, moving)])
    known = values > LEAST_CURVATURE
    inverse = (vectors[:, known] / values[known]) @ vectors[:, known].T
    covariance = np.zeros((len(theta), len(theta)))
    covariance[np.ix_(moving, moving)] = inverse
    silent = (np.abs(here) < SILENT) & (np.abs(curvature.diagonal()) < SILENT / STEP)  # the likelihood does not hear
    limits = {int(k): _upper_limit(fit, int(k), moving, inverse) for k in np.flatnonzero((unseen & ~silent)[:n])}
    limits = {k: limit for k, limit in limits.items() if np.isfinite(limit)}
    each, open_ = np.eye(len(theta)), [k for k in np.flatnonzero(unseen[:n]) if k not in limits]
    flat = np.concatenate([each[:, moving] @ vectors[:, ~known], each[:, open_]], axis=1)
    nothing = Absent(np.array([], dtype=int), np.array([]), np.array([]))
    return LatticeInformation(Information(theta, covariance, flat, nothing, np.array([], dtype=int)), limits)


def _upper_limit(
    fit: LatticeFit, k: int, moving: Int[np.ndarray, "free"], inverse: Float[np.ndarray, "free free"]
) -> float:
    """Where the profile has fallen by what a 95 % interval allows, others following by one Newton step; or infinity."""

    def loss(log_constant: float) -> float:
        place = fit.theta.copy()
        place[k] = log_constant
        found = fit.likelihood.evaluate(*fit.packing.split(place))
        slope = fit.packing.vector(found.constants, found.noise)[moving]
        return float(fit.evaluation.total - found.total - slope @ inverse @ slope / 2)

    start, stop = fit.bounds[k].mean() + LOW, fit.bounds[k, 1]
    low = float(max(fit.theta[k], start))
    try:
        while loss(low + FARTHER) < ALLOWED_LOSS:
            low += FARTHER
            if low >= stop:
                return float("inf")
    except InputError:  # too fast for any gap, and still no worse
        return float("inf")
    high = low + FARTHER
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if loss(middle) < ALLOWED_LOSS else (low, middle)
    return float(np.exp((low + high) / 2))


@in_double_precision
def lattice_intervals(fit: LatticeFit, information: LatticeInformation) -> dict[str, Interval]:
    """Intervals for the constants and the noise, each on the scale where its error is even."""
    n, readings = fit.packing.n_constants, fit.likelihood.readings
    kinds: dict[str, str] = {"parameters": "positive"}

    def on_even_scales(theta: Float[np.ndarray, "free"]) -> dict[str, np.ndarray]:
        values = {"parameters": theta[:n]}
        for name, entry in readings.natural(fit.packing.split(theta)[1]).items():
            kinds[f"emission.{name}"] = entry.kind
            values[f"emission.{name}"] = np.asarray(TO_EVEN[entry.kind](entry.value))
        return values

    intervals = {}
    for name, (value, error) in information.normal.standard_errors(on_even_scales).items():
        back = FROM_EVEN[kinds[name]]
        with np.errstate(over="ignore"):
            intervals[name] = Interval(back(value), back(value - Z * error), back(value + Z * error))
    found = intervals["parameters"]
    lower, upper = np.array(found.lower), np.array(found.upper)
    for k, limit in information.limits.items():
        lower[k], upper[k] = 0.0, limit
    intervals["parameters"] = Interval(found.mean, lower, upper)
    return intervals


def log_covariance(fit: LatticeFit, information: LatticeInformation) -> Float[np.ndarray, "constant constant"]:
    """Of the logarithms of the constants; NaN where the data say nothing."""
    n = fit.packing.n_constants
    result = information.normal.covariance[:n, :n].copy()
    unknown = information.normal.unidentified[:n].copy()
    unknown[list(information.limits)] = True
    result[unknown], result[:, unknown] = np.nan, np.nan
    return result


def lattice_warnings(
    fit: LatticeFit, information: LatticeInformation | None, at_edge: dict[str, float], largest: tuple[int, ...]
) -> tuple[str, ...]:
    """What a careful reader should know, in plain words."""
    words, events = [], fit.likelihood.events
    if not fit.converged:
        words.append(f"the fit {fit.message}")
    if information is not None:
        unknown = information.normal.unidentified
        for k in information.limits:
            name = events.names[k]
            words.append(f"no sign of the reaction at {name}: its rate constant is given as an upper limit")
        for k in np.flatnonzero(unknown[: len(events.names)]):
            words.append(f"the data do not determine {events.names[k]}: its interval is unbounded")
        if unknown[len(events.names) :].any():
            words.append("the data do not determine the noise of the readings: its interval is unbounded")
    seen = {shown[0] for shown in fit.likelihood.readings.columns if len(shown) == 1}
    for s in (s for s in range(len(events.species)) if s not in seen and fit.likelihood.initial == "flat"):
        words.append(
            f"{events.species[s]} is not seen by itself: at the first observation it is taken to be anything in its "
            "box; if you know better, give its start and initial start"
        )
    held = fit.theta <= fit.bounds[:, 0] + 1e-6
    if held[len(events.names) :].any():
        words.append("the noise of the readings has vanished: if they are exact counts, fit them with noise none")
    for (name, chance), most in zip(at_edge.items(), largest, strict=True):
        if chance > AT_EDGE and most > 1:  # what is on or off is meant to be either
            words.append(f"{name} reaches the end of its box 0..{most} with probability {chance:.2g}: enlarge the box")
    if len(fit.restarts) > 1:
        same = int((fit.restarts > fit.restarts.max() - 1.0).sum())
        if same < len(fit.restarts):
            words.append(f"{same} of {len(fit.restarts)} starts reached the best likelihood within 1 nat")
    return tuple(words)
