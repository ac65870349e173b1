"""Variational EM for reaction networks with independent species (Opper & Sanguinetti, NeurIPS 2007).

`fit_mean_field` finds rate constants and noise, `posterior` the laws of all species where these are known, `forecast`
what comes next. The bound that they raise lies below the log-likelihood of the network with its floor: a species that
an event needs, but does not change, never counts as less than that.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from ..emissions.emission import Params
from ..emissions.readings import Readings
from ..errors import InputError
from ..mjp.precision import in_double_precision
from ..systems.reaction_network import ReactionNetwork
from ..timeseries import TimeSeries
from .coordinate import Beliefs
from .curvature import log_covariance
from .problem import (
    Problem,
    Settings,
    Theta,
    check_problem,
    make_problem,
    maximised,
    middle_of,
    packed,
    settled,
    swept_all,
    unpacked,
)
from .rough import guess_constants, rough_counts

Progress = Callable[[str, float], None]
Initial = Literal["flat", "start"]
MOST_ROUNDS = 200
GAIN = 1e-3  # nats: a round of EM that gains less is the last; far below what a standard error is worth
FURTHEST = 1.0  # that an extrapolation may take a logarithm
MOST_PLANS = 5  # of substeps: constants that grow need finer ones, but some grow without end


@dataclass(frozen=True)
class MeanFieldPosterior:
    """What is known of the counts behind some data.

    Attributes:
        laws: for each species, its law at every observation, in the order of `data.times`.
        bounds: on the log-likelihood, one per series.
    """

    data: TimeSeries
    laws: tuple[Float[np.ndarray, "observation _"], ...]
    bounds: Float[np.ndarray, "series"]

    @property
    def means(self) -> Float[np.ndarray, "observation species"]:
        return np.stack([law @ np.arange(law.shape[1]) for law in self.laws], 1)

    @property
    def sds(self) -> Float[np.ndarray, "observation species"]:
        squares = np.stack([law @ np.arange(law.shape[1]) ** 2 for law in self.laws], 1)
        return np.sqrt(np.maximum(squares - self.means**2, 0.0))


@dataclass(frozen=True)
class MeanFieldFit:
    """Rate constants and noise that the bound prefers.

    Attributes:
        network: with the constants that were found.
        noise: parameters of the readings.
        elbo: the bound, a sum over all series.
        posterior: laws of all species at the observations.
        log_covariance: of the logarithms of the constants, from the curvature of the bound; NaN where it has none, or
            where it was not asked for.
        rounds: of EM; `sweeps` are updates of all species.
        substeps: in all series together.
    """

    network: ReactionNetwork
    readings: Readings
    noise: Params
    elbo: float
    posterior: MeanFieldPosterior
    log_covariance: Float[np.ndarray, "constant constant"]
    converged: bool
    message: str
    rounds: int
    sweeps: int
    substeps: int
    seconds: float
    uncertainty: str = "curvature of the bound"

    @property
    def constants(self) -> dict[str, float]:
        return self.network.parameters


@in_double_precision
def fit_mean_field(
    data: TimeSeries,
    network: ReactionNetwork,
    readings: Readings | None = None,
    noise: Params | None = None,
    *,
    initial: Initial = "flat",
    start: dict[str, float] | None = None,
    settings: Settings | None = None,
    intervals: bool = True,
    progress: Progress = lambda *_: None,
) -> MeanFieldFit:
    """Fit rate constants, and noise where the readings learn it, by variational EM.

    Args:
        data: readings of counts.
        network: its reactions; its constants are not looked at.
        readings: how counts are read; the network's own, with their noise, if left out.
        noise: where the noise starts, or what it is if the readings do not learn it; guessed if left out.
        initial: law at the first observation, "flat" over the box or within the network's "start".
        start: constants to start from; guessed from increments if left out.
        settings: how finely to compute.
        intervals: whether to work out the covariance, which costs about as much as the fit.
        progress: told what is being done, and how far it is.

    >>> from neuralmjp.systems import immigration_death
    >>> network = immigration_death(2.0, 0.1)
    >>> data = network.simulate(20, 20, seed=4).data
    >>> fit = fit_mean_field(data, network, intervals=False)
    >>> {name: round(value, 1) for name, value in fit.constants.items()}
    {'immigration': 2.0, 'death': 0.1}
    """
    began = time.perf_counter()
    settings = settings or Settings()
    if readings is None:
        readings, noise = network.readings()
    check_problem(data, network, readings)
    theta = _start(data, network, readings, noise, start)
    rounds = sweeps = plans = 0
    while True:
        problem, beliefs = make_problem(data, network, readings, theta, initial, settings)
        found = _expectation_maximisation(problem, theta, beliefs, MOST_ROUNDS - rounds, progress)
        theta, rounds, sweeps, plans = found.theta, rounds + found.rounds, sweeps + found.sweeps, plans + 1
        if rounds >= MOST_ROUNDS or plans == MOST_PLANS or not found.outgrown:
            break
    covariance = np.full((len(theta.constants),) * 2, np.nan)
    if intervals:
        progress("intervals", 1.0)
        covariance = log_covariance(problem, theta, found.beliefs)
    found_constants = dict(zip(network.parameters, theta.constants.tolist(), strict=True))
    return MeanFieldFit(
        network=replace(network, constants={**network.constants, **found_constants}),
        readings=readings,
        noise=theta.noise,
        elbo=float(found.bounds.sum()),
        posterior=_collected(problem, found.beliefs, found.bounds),
        log_covariance=covariance,
        converged=found.converged,
        message=_message(found, rounds),
        rounds=rounds,
        sweeps=sweeps,
        substeps=problem.n_substeps,
        seconds=time.perf_counter() - began,
    )


@in_double_precision
def posterior(
    data: TimeSeries,
    network: ReactionNetwork,
    readings: Readings | None = None,
    noise: Params | None = None,
    *,
    initial: Initial = "flat",
    settings: Settings | None = None,
) -> MeanFieldPosterior:
    """Laws of all species at the observations, for the network's own constants and noise that is known."""
    if readings is None:
        readings, noise = network.readings()
    if noise is None and readings.parameter is not None and readings.fixed is None:
        raise InputError(f"a posterior needs to know the noise: give {readings.parameter} of each value")
    check_problem(data, network, readings)
    noise = readings.start(np.zeros(len(readings.columns))) if noise is None else noise
    theta = Theta(np.array(list(network.parameters.values())), noise)
    problem, beliefs = make_problem(data, network, readings, theta, initial, settings or Settings())
    beliefs, bounds, _ = settled(problem, theta, beliefs)
    return _collected(problem, beliefs, bounds)


def _start(
    data: TimeSeries, network: ReactionNetwork, readings: Readings, noise: Params | None, start: dict[str, float] | None
) -> Theta:
    """What is given, and guesses of the rest."""
    first = readings.start(np.ones(len(readings.columns))) if noise is None else noise
    counts = rough_counts(data, readings, first, middle_of(network), network.box)
    guess = guess_constants(data, network.events(), readings, counts)
    known = start or {}
    for name, value in network.with_parameters(**known).parameters.items():
        if name in known and not value > 0:
            raise InputError(f"{name} must start above 0, got {value}")
    constants = [known.get(name, value) for name, value in zip(network.parameters, guess.constants, strict=True)]
    return Theta(np.array(constants), readings.start(guess.noise) if noise is None else noise)


class _Found(NamedTuple):
    theta: Theta
    beliefs: list[Beliefs]
    bounds: Float[np.ndarray, "series"]
    rounds: int
    sweeps: int
    converged: bool
    outgrown: bool  # constants that need finer substeps


def _message(found: _Found, rounds: int) -> str:
    if found.converged:
        return "the bound settled"
    if found.outgrown:
        return "constants grew without end: the data do not hold them, or independent species do not"
    return f"the bound still rose after {rounds} rounds"


def _expectation_maximisation(
    problem: Problem, theta: Theta, beliefs: list[Beliefs], most: int, progress: Progress
) -> _Found:
    """Rounds of one sweep and one M step, every third of them from an extrapolated point (Varadhan & Roland 2008)."""
    reached, rounds, converged, outgrown = -np.inf, 0, False, False
    while rounds < most and not converged and not outgrown:
        once, beliefs, _ = _round(problem, theta, beliefs)
        twice, beliefs, bounds = _round(problem, once, beliefs)
        ahead, further, beyond = _round(problem, _extrapolated(problem, theta, once, twice), beliefs)
        theta = twice
        if beyond.sum() >= bounds.sum():
            theta, beliefs, bounds = ahead, further, beyond
        rounds += 3
        outgrown = problem.outgrown(theta)
        converged = bool(bounds.sum() - reached < GAIN) and not outgrown
        reached = bounds.sum()
        progress(f"EM, bound {reached:.2f}", rounds / most)
    beliefs, bounds, last = settled(problem, theta, beliefs)
    return _Found(theta, beliefs, bounds, rounds, rounds + last, converged, outgrown)


def _round(
    problem: Problem, theta: Theta, beliefs: list[Beliefs]
) -> tuple[Theta, list[Beliefs], Float[np.ndarray, "series"]]:
    """New parameters and beliefs, and the bound between their updates."""
    beliefs, bounds = swept_all(problem, theta, beliefs)
    return maximised(problem, theta, beliefs), beliefs, bounds


def _extrapolated(problem: Problem, start: Theta, once: Theta, twice: Theta) -> Theta:
    """Where two steps in a row lead, if each is the same part of what remains."""
    first, second, third = (packed(problem, one) for one in (start, once, twice))
    step, bend = second - first, third - 2 * second + first
    length = max(1.0, float(np.linalg.norm(step) / max(np.linalg.norm(bend), 1e-12)))
    ahead = first + 2 * length * step + length**2 * bend
    return unpacked(problem, np.clip(ahead, third - FURTHEST, third + FURTHEST), twice)


def _collected(problem: Problem, beliefs: list[Beliefs], bounds: Float[np.ndarray, "series"]) -> MeanFieldPosterior:
    """Laws in the order of the data."""
    data = problem.data
    laws = [np.zeros((data.n_observations, n)) for n in problem.events.box]
    for laid, belief in zip(problem.laid, beliefs, strict=True):
        for b, i in enumerate(laid.series):
            for law, part in zip(laws, belief.laws, strict=True):
                law[data.offsets[i] : data.offsets[i + 1]] = part[b, : data.lengths[i]]
    return MeanFieldPosterior(data, tuple(laws), bounds)
