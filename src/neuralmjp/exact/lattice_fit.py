"""Maximum likelihood for the constants of a reaction network and the noise of its readings."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..emissions.emission import Params
from ..emissions.readings import Readings
from ..errors import InputError
from ..mjp.precision import in_double_precision
from ..systems import ReactionNetwork
from ..timeseries import TimeSeries
from .climb import FLAT, climb_hill, measured
from .lattice_likelihood import Evaluation, Likelihood
from .lattice_start import crude_start

FIRST = 2000  # observations that the first climb sees
LONGEST = 200  # and the most of them in one series
FARTHEST = 10.0  # from the start, in logarithms of constants
LEAST_LOG_NOISE = float(np.log(0.05))  # below that, counts are read exactly
MOST_LOG_NOISE = 10.0
FIRST_HEADROOM, HEADROOM = 1.5, 1.15  # for rates that grow on the way
LOSS = 1e3  # nats that an impossible step seems to lose
SCATTER = 1.0  # of random starts, in logarithms of constants

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Packing:
    """Everything that is free in one vector: logarithms of the constants, then what the readings learn."""

    n_constants: int
    noise: Params  # with the values that are not learned
    learned: Params

    def vector(self, log_constants: Float[np.ndarray, "constant"], noise: Params) -> Float[np.ndarray, "free"]:
        return np.concatenate([log_constants, *(np.asarray(noise[name])[free] for name, free in self.learned.items())])

    def split(self, theta: Float[np.ndarray, "free"]) -> tuple[Float[np.ndarray, "constant"], Params]:
        noise, place = {}, self.n_constants
        for name, free in self.learned.items():
            noise[name] = np.array(self.noise[name], dtype=float)
            noise[name][free] = theta[place : place + free.sum()]
            place += int(free.sum())
        return theta[: self.n_constants], noise


@dataclass(frozen=True)
class LatticeFit:
    """The top that was found."""

    likelihood: Likelihood
    packing: Packing
    theta: Float[np.ndarray, "free"]
    bounds: Float[np.ndarray, "free 2"]
    evaluation: Evaluation
    converged: bool
    message: str
    restarts: Float[np.ndarray, "start"]  # log-likelihood that the first climb reached from each start

    @property
    def log_constants(self) -> Float[np.ndarray, "constant"]:
        return self.packing.split(self.theta)[0]

    @property
    def noise(self) -> Params:
        return self.packing.split(self.theta)[1]

    def slope(self, theta: Float[np.ndarray, "free"]) -> Float[np.ndarray, "free"]:
        """Of the log-likelihood, anywhere."""
        found = self.likelihood.evaluate(*self.packing.split(theta))
        return self.packing.vector(found.constants, found.noise)


class Hill:
    """The log-likelihood with its slope, as an optimiser sees it; it counts how often it is asked."""

    def __init__(self, likelihood: Likelihood, packing: Packing, what: str, progress: Progress):
        self.likelihood, self.packing, self.what, self.progress = likelihood, packing, what, progress
        self.count, self.lowest = 0, 0.0

    def __call__(self, theta: Float[np.ndarray, "free"]) -> tuple[float, Float[np.ndarray, "free"]]:
        self.count += 1
        self.progress(self.what, self.count / 50)
        cliff = self.lowest - LOSS, np.zeros_like(theta)  # optimisers turn back from a cliff, but not from infinity
        try:
            found = self.likelihood.evaluate(*self.packing.split(theta))
        except InputError:  # reactions too fast for any gap
            return cliff
        slope = self.packing.vector(found.constants, found.noise)
        if found.impossible is not None or not (np.isfinite(found.total) and np.isfinite(slope).all()):
            return cliff
        self.lowest = min(self.lowest, found.total)
        return found.total, slope


@in_double_precision
def fit_lattice(
    data: TimeSeries,
    network: ReactionNetwork,
    readings: Readings,
    *,
    initial: str = "flat",
    start: dict[str, float] | None = None,
    restarts: int = 1,
    seed: int = 0,
    progress: Progress = lambda *_: None,
) -> LatticeFit:
    """Find the constants and the noise that make the data most likely; the network's own constants are not used.

    Args:
        start: constants to climb from; without it, moments of the data give them.
        restarts: starts of the first climb, on a part of the data; all but the first are scattered at random.
    """
    logs, noise = crude_start(data, network.events(), readings)
    if start is not None:
        logs = np.log([start[name] for name in network.parameters])
    packing = Packing(len(logs), noise, readings.learned(noise))
    theta = packing.vector(logs, noise)
    bounds = _bounds(packing, theta, readings)
    part, reached, curvature = _part(data), np.array([]), None
    near = part is not data or restarts > 1
    if near:
        whole = set(part.names) <= set(data.names)  # pieces of a series do not begin where it does
        likelihood = Likelihood(part, network, readings, initial if whole else "flat", headroom=FIRST_HEADROOM)
        likelihood.possible(*packing.split(theta))
        hill, found = Hill(likelihood, packing, "first climb", progress), []
        for k in range(restarts):
            scatter = SCATTER * np.random.default_rng((seed, k)).normal(size=len(logs)) * (k > 0)
            begin = np.clip(theta + np.pad(scatter, (0, len(theta) - len(logs))), bounds[:, 0], bounds[:, 1])
            best, _ = climb_hill(hill, begin, bounds)
            found.append((hill(best)[0], best))
        reached = np.array([height for height, _ in found])
        theta = found[int(reached.argmax())][1]
        curvature = measured(hill, theta, bounds)[2] * data.n_observations / part.n_observations
    likelihood = Likelihood(data, network, readings, initial, headroom=HEADROOM if near else FIRST_HEADROOM)
    likelihood.possible(*packing.split(theta))
    hill = Hill(likelihood, packing, "climb", progress)
    best, steepest = climb_hill(hill, theta, bounds, curvature)
    flat = steepest < FLAT
    verdict = "converged" if flat else "stopped before the top"
    message = f"{verdict}: steepest slope {steepest:.1e} nats per standard error, {hill.count} evaluations"
    top = likelihood.possible(*packing.split(best))
    return LatticeFit(likelihood, packing, best, bounds, top, flat, message, reached)


@in_double_precision
def located(
    data: TimeSeries,
    network: ReactionNetwork,
    readings: Readings,
    noise: Params,
    *,
    initial: str = "flat",
    converged: bool = True,
    message: str = "located",
) -> LatticeFit:
    """What something else has found, as if it were the top: the network's constants and this noise, not improved."""
    logs = np.log(np.maximum(list(network.parameters.values()), np.finfo(float).tiny))
    packing = Packing(len(logs), noise, readings.learned(noise))
    theta = packing.vector(logs, noise)
    likelihood = Likelihood(data, network, readings, initial, headroom=HEADROOM)
    found = likelihood.possible(logs, noise)
    bounds = _bounds(packing, theta, readings)
    return LatticeFit(likelihood, packing, theta, bounds, found, converged, message, np.array([]))


def _bounds(packing: Packing, theta: np.ndarray, readings: Readings) -> Float[np.ndarray, "free 2"]:
    """Nothing runs off: constants stay within a factor of their start, noise within what can be told from none."""
    bounds = theta[:, None] + np.array([-FARTHEST, FARTHEST])
    least = -FARTHEST if readings.noise == "binomial" else LEAST_LOG_NOISE
    bounds[packing.n_constants :] = [least, MOST_LOG_NOISE]
    return bounds


def _part(data: TimeSeries) -> TimeSeries:
    """Evenly chosen series, or windows of long ones, with about `FIRST` observations; or all, if they are not more."""
    if data.n_observations <= 1.5 * FIRST:
        return data
    pieces = data.windows(LONGEST) if data.lengths.max() > 2 * LONGEST else data
    n = max(round(len(pieces) * FIRST / pieces.n_observations), 1)
    return pieces[np.unique(np.linspace(0, len(pieces) - 1, n).round().astype(int))]
