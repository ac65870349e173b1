"""How well the data determine the constants of a reaction network: intervals, and warnings in plain words."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..errors import InputError
from ..mjp.interval import Interval, Z
from ..mjp.precision import in_double_precision
from .information import ALLOWED_LOSS, Absent, Information
from .lattice_fit import LatticeFit

STEP = 1e-4  # of a finite difference
# A direction along which the log-likelihood bends by less than this many nats per squared unit teaches nothing.
LEAST_CURVATURE = 1e-2
FEWEST_EVENTS = 0.5  # a reaction that explains less than that in all the data is indistinguishable from none
SILENT = 1e-8  # a slope that is rounding
AT_EDGE = 1e-3
# The search for an upper limit: where it begins, in logarithms from the start of the fit; its steps; its refinement.
LOW, FARTHER, HALVINGS = -7.0, float(np.log(4.0)), 5
FOLLOWING, FARTHEST_STEP = 2, 1.0  # Newton steps of the others there


@dataclass(frozen=True)
class Profile:
    """A constant that may as well be zero: its upper limit, and how everything else follows on the way there."""

    limit: float
    losses: Float[np.ndarray, "place"]  # nats below the top
    shifts: Float[np.ndarray, "place free"]  # of all parameters from the top


@dataclass(frozen=True)
class LatticeInformation:
    """A normal approximation around the top, and profiles of constants that may as well be zero."""

    normal: Information
    profiles: dict[int, Profile]  # by position among the constants


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
    found = {int(k): _profile(fit, int(k), covariance) for k in np.flatnonzero((unseen & ~silent)[:n])}
    profiles = {k: profile for k, profile in found.items() if profile is not None}
    each, open_ = np.eye(len(theta)), [k for k in np.flatnonzero(unseen[:n]) if k not in profiles]
    flat = np.concatenate([each[:, moving] @ vectors[:, ~known], each[:, open_]], axis=1)
    nothing = Absent(np.array([], dtype=int), np.array([]), np.array([]))
    return LatticeInformation(Information(theta, covariance, flat, nothing, np.array([], dtype=int)), profiles)


def _profile(fit: LatticeFit, k: int, covariance: Float[np.ndarray, "free free"]) -> Profile | None:
    """Upwards until the profile has fallen by what a 95 % interval allows; None if it never does."""
    losses, shifts = [], []

    def loss(log_constant: float) -> float:
        """With all others following, by Newton steps."""
        place, lost = fit.theta.copy(), 0.0
        place[k] = log_constant
        for _ in range(FOLLOWING):
            found = fit.likelihood.evaluate(*fit.packing.split(place))
            slope = fit.packing.vector(found.constants, found.noise)
            step = np.clip(covariance @ slope, -FARTHEST_STEP, FARTHEST_STEP)
            place, lost = place + step, float(fit.evaluation.total - found.total - slope @ step / 2)
        losses.append(lost)
        shifts.append(place - fit.theta)
        return losses[-1]

    low, stop = max(float(fit.theta[k]), float(fit.bounds[k].mean()) + LOW), fit.bounds[k, 1]
    try:
        while loss(low + FARTHER) < ALLOWED_LOSS:
            low += FARTHER
            if low >= stop:
                return None
    except InputError:  # too fast for any gap, and still no worse
        return None
    high = low + FARTHER
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if loss(middle) < ALLOWED_LOSS else (low, middle)
    return Profile(float(np.exp((low + high) / 2)), np.array(losses), np.array(shifts))


@in_double_precision
def lattice_intervals(fit: LatticeFit, information: LatticeInformation) -> dict[str, Interval]:
    """Intervals for the constants and the noise, each on the scale where its error is even.

    Where a constant may as well be zero, those of the others hold for every value that it may have.
    """
    theta, n, normal = fit.theta, fit.packing.n_constants, information.normal
    error = np.where(normal.unidentified, np.inf, np.sqrt(normal.covariance.diagonal()))
    lower, upper = theta - Z * error, theta + Z * error
    for profile in information.profiles.values():
        left = np.sqrt(np.maximum(1 - profile.losses / ALLOWED_LOSS, 0.0))[:, None]  # of the half width
        near = profile.losses[:, None] <= ALLOWED_LOSS
        there = theta + np.where(near, profile.shifts, 0.0)
        with np.errstate(invalid="ignore"):  # nothing left of an infinite width
            half = np.where(left > 0, left * Z * error, 0.0)
        lower, upper = np.minimum(lower, (there - half).min(0)), np.maximum(upper, (there + half).max(0))
    with np.errstate(over="ignore"):
        mean, least, most = (np.exp(each[:n]) for each in (theta, lower, upper))
    for k, profile in information.profiles.items():
        least[k], most[k] = 0.0, profile.limit
    intervals = {"parameters": Interval(mean, least, most)}
    natural = [fit.likelihood.readings.natural(fit.packing.split(each)[1]) for each in (theta, lower, upper)]
    for name in natural[0]:
        middle, bottom, top = (np.asarray(each[name].value) for each in natural)
        intervals[f"emission.{name}"] = Interval(middle, bottom, top)
    return intervals


def log_covariance(fit: LatticeFit, information: LatticeInformation) -> Float[np.ndarray, "constant constant"]:
    """Of the logarithms of the constants; NaN where the data say nothing."""
    n = fit.packing.n_constants
    result = information.normal.covariance[:n, :n].copy()
    unknown = information.normal.unidentified[:n].copy()
    unknown[list(information.profiles)] = True
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
        for k in information.profiles:
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
