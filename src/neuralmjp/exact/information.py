"""Uncertainty from the curvature of the likelihood at its top, carried to whatever depends on the parameters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import chi2

from ..emissions import NeuralGaussian
from ..mjp.precision import in_double_precision
from ..priors import FreeRates, ReversibleRates
from .fit import ExactFit, Height
from .packing import Packing

STEP = 1e-4  # of a finite difference, in log rates and standardised values
DELTA_STEP = 1e-5  # the same, of quantities that are smooth functions of them
# A direction along which the log-likelihood bends by less than this many nats per squared unit teaches nothing.
LEAST_CURVATURE = 1e-3
TOUCHES = 0.01  # share of a quantity's slope that must lie along such a direction for it to count as unknown
# A rate that explains less than half a jump in all the data is indistinguishable from zero.
FEWEST_JUMPS = 0.5
SHORTEST_TIME = 1e-6  # share of all time below which a state counts as never visited
SMALLEST_LOG_RATE = -100.0
# A rate whose logarithm is known better than this rests on a dozen jumps: it is not zero, and need not be asked.
CERTAIN_LOG_ERROR = 0.3
FOLLOWING_STEPS, FARTHEST_STEP = 4, 1.0
ALLOWED_LOSS = float(chi2.isf(0.05, 1)) / 2


@dataclass(frozen=True)
class Absent:
    """Rates that the data show no sign of: the likelihood falls from zero on, exp(slope f - curvature f^2 / 2)."""

    which: Int[np.ndarray, "rate"]  # among the free numbers
    slope: Float[np.ndarray, "rate"]  # of the log-likelihood at rate zero, not positive
    curvature: Float[np.ndarray, "rate"]  # with everything else following

    @property
    def upper(self) -> Float[np.ndarray, "rate"]:
        """The rate at which the log-likelihood has fallen by what a 95 % interval allows; infinite if never."""
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(self.slope**2 + 2 * self.curvature * ALLOWED_LOSS)
            return np.where(self.curvature > 0, (root + self.slope) / self.curvature, ALLOWED_LOSS / abs(self.slope))

    def sample(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "sample rate"]:
        """Rates from that law, cut at ten times the upper limit where it is too flat to have a mean."""
        places = np.linspace(0.0, 1.0, 2001)
        drawn = np.empty((n, len(self.which)))
        for k, (slope, curvature, upper) in enumerate(zip(self.slope, self.curvature, self.upper, strict=True)):
            rates = places * 10 * (upper if np.isfinite(upper) else 0.0)
            weight = np.cumsum(np.exp(slope * rates - curvature * rates**2 / 2))
            drawn[:, k] = np.interp(rng.random(n) * weight[-1], weight, rates)
        return drawn


@dataclass(frozen=True)
class Information:
    """Normal approximation around the top: theta ~ N(theta, covariance), apart from rates that are absent."""

    theta: Float[np.ndarray, "free"]
    covariance: Float[np.ndarray, "free free"]  # zero for numbers that rest on a bound, and for absent rates
    flat: Float[np.ndarray, "free direction"]  # unit vectors along which the data say nothing
    absent: Absent
    may_be_zero: Int[np.ndarray, "rate"]  # among the free numbers: rates that are seen, but whose interval holds zero

    def sample(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "sample free"]:
        """Draws from the approximation."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        drawn = self.theta + rng.normal(size=(n, len(self.theta))) @ root.T
        drawn = drawn + rng.normal(size=(n, self.flat.shape[1])) @ self.flat.T / np.sqrt(LEAST_CURVATURE)
        # A rate that may be zero is known on its own scale, not on that of its logarithm.
        near = self.may_be_zero
        share = 1 + drawn[:, near] - self.theta[near]
        drawn[:, near] = self.theta[near] + np.log(np.maximum(share, np.exp(SMALLEST_LOG_RATE)))
        drawn[:, self.absent.which] = np.log(np.maximum(self.absent.sample(n, rng), np.exp(SMALLEST_LOG_RATE)))
        return drawn

    def standard_errors(
        self, function: Callable[[np.ndarray], dict[str, Any]]
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Named functions of theta and their standard errors, by the delta method; infinite where nothing is known."""
        steps = DELTA_STEP * np.eye(len(self.theta))
        ends = [(function(self.theta + step), function(self.theta - step)) for step in steps]
        result = {}
        for name, value in function(self.theta).items():
            with np.errstate(invalid="ignore"):  # log odds of an impossible reading
                moved = np.stack([np.asarray(up[name]) - np.asarray(down[name]) for up, down in ends], axis=-1)
            slope = np.where(np.isfinite(moved), moved, 0.0).reshape(-1, len(ends)) / (2 * DELTA_STEP)
            variance = np.einsum("af,fg,ag->a", slope, self.covariance, slope)
            error = np.where(self._open(slope), np.inf, np.sqrt(np.maximum(variance, 0.0)))
            result[name] = np.asarray(value), error.reshape(np.shape(value))
        return result

    def _open(self, slope: Float[np.ndarray, "quantity free"]) -> Bool[np.ndarray, "quantity"]:
        """Whether a quantity changes along a direction about which the data say nothing."""
        along = np.abs(slope @ self.flat).max(-1, initial=0.0)
        return along > TOUCHES * np.linalg.norm(slope, axis=-1)

    @property
    def unidentified(self) -> Bool[np.ndarray, "free"]:
        """The data say nothing, or nothing on their own, about these."""
        return self._open(np.eye(len(self.theta)))


@in_double_precision
def observed_information(fit: ExactFit) -> Information:
    """Minus the Hessian of the log posterior at the top, inverted; by differences of the exact gradient."""
    theta = fit.theta
    top = fit.objective(theta)
    jumps, time = _expected_per_parameter(fit, top)
    never = (
        time < SHORTEST_TIME * time[np.isfinite(time)].sum()
    )  # the state is not visited: its rates say nothing, and hear nothing
    absent = np.flatnonzero((jumps < FEWEST_JUMPS) & ~never)
    held = np.union1d(np.flatnonzero(fit.at_bound), np.flatnonzero(never))
    moving = np.setdiff1d(np.arange(len(theta)), np.union1d(held, absent))
    hessian = np.empty((len(moving), len(moving)))
    for row, k in enumerate(moving):
        step = np.zeros_like(theta)
        step[k] = STEP
        slopes = [fit.objective(theta + sign * step)[1][moving] for sign in (1, -1)]
        hessian[row] = (slopes[0] - slopes[1]) / (2 * STEP)
    curvature = -(hessian + hessian.T) / 2
    values, vectors = np.linalg.eigh(curvature)
    known = values > LEAST_CURVATURE
    inverse = (vectors[:, known] / values[known]) @ vectors[:, known].T
    covariance = np.zeros((len(theta), len(theta)))
    covariance[np.ix_(moving, moving)] = inverse
    # A number that rests on a bound, though not for want of jumps, could lie anywhere beyond it.
    each = np.eye(len(theta))
    flat = np.concatenate([each[:, moving] @ vectors[:, ~known], each[:, np.setdiff1d(held, absent)]], axis=1)
    error = np.sqrt(np.diag(covariance))
    unsure = [int(k) for k in moving if k < len(time) and np.isfinite(time[k]) and error[k] > CERTAIN_LOG_ERROR]
    heights = {k: _height_at_zero(fit, k, float(time[k]), moving, curvature) for k in unsure}
    zero = [k for k, height in heights.items() if top.value - height < ALLOWED_LOSS]
    beyond = _absent(fit, absent, time[absent], moving, inverse)
    return Information(theta, covariance, flat, beyond, np.array(zero, dtype=int))


def _height_at_zero(fit: ExactFit, k: int, time: float, moving: np.ndarray, curvature: np.ndarray) -> float:
    """What is left of the log posterior when a rate vanishes and all others follow, by a few Newton steps."""
    others = moving[moving != k]
    inside = np.isin(moving, others)
    values, vectors = np.linalg.eigh(curvature[np.ix_(inside, inside)])
    known = values > LEAST_CURVATURE
    place = fit.theta.copy()
    place[k] = np.log(1e-3 / time)
    best = -np.inf
    for _ in range(FOLLOWING_STEPS):
        here = fit.objective(place)
        if not here.value > best:
            break
        best = here.value
        step = vectors[:, known] @ ((here.gradient[others] @ vectors[:, known]) / values[known])
        place[others] += np.clip(step, -FARTHEST_STEP, FARTHEST_STEP)
    return float(best)


def _expected_per_parameter(fit: ExactFit, top: Height) -> tuple[np.ndarray, np.ndarray]:
    """Expected jumps at each free rate, and the time in which they could happen; infinite where that has no meaning."""
    model = fit.model.rate_model
    if isinstance(model, ReversibleRates):
        return _expected_per_flow(model, top)
    if not isinstance(model, FreeRates):
        return np.full(len(fit.packing.rates), np.inf), np.full(len(fit.packing.rates), np.inf)
    table = model.parameter_of
    here, jumps = table[table >= 0], top.jumps[table >= 0]
    time = np.broadcast_to(top.time[:, None], table.shape)[table >= 0]
    per_parameter = [np.bincount(here, weights=x, minlength=model.n_parameters) for x in (jumps, time)]
    return per_parameter[0], per_parameter[1]


def _expected_per_flow(model: ReversibleRates, top: Height) -> tuple[np.ndarray, np.ndarray]:
    """The same for rates s_ij / p_i: jumps either way at each s, and the time over p in which they could happen."""
    i, j = np.array(model.pairs).T
    law = top.time / top.time.sum()  # close to p, and all that is asked for is a magnitude
    per_law = np.where(law > 0, top.time / np.where(law > 0, law, 1.0), 0.0)
    weights = np.full(model.n - 1, np.inf)
    jumps = np.append(weights, top.jumps[i, j] + top.jumps[j, i])
    return jumps, np.append(weights, per_law[i] + per_law[j])


def _absent(fit: ExactFit, which: np.ndarray, time: np.ndarray, moving: np.ndarray, inverse: np.ndarray) -> Absent:
    """How the likelihood falls as each absent rate leaves zero, while all others follow."""
    slopes, curvatures = np.empty(len(which)), np.empty(len(which))
    for row, (k, t) in enumerate(zip(which, time, strict=True)):
        near, far = 1e-3 / t, 0.5 / t  # expected jumps over the time observed
        gradients = []
        for rate in (near, far):
            moved = fit.theta.copy()
            moved[k] = np.log(rate)
            gradients.append(fit.objective(moved)[1])
        first, second = gradients[0][k] / near, gradients[1][k] / far
        follow = (gradients[1] - gradients[0])[moving] / (far - near)
        curvatures[row] = (first - second) / (far - near) - follow @ inverse @ follow
        slopes[row] = first
    return Absent(which, np.minimum(slopes, 0.0), np.maximum(curvatures, 0.0))


def with_plain_emission(fit: ExactFit) -> ExactFit:
    """A network's many weights say no more than the means and spreads they yield: count those as the parameters."""
    emission = fit.model.emission
    if not isinstance(emission, NeuralGaussian):
        return fit
    model = fit.model._replace(emission=emission.form)
    plain = {name: np.asarray(value) for name, value in emission.plain(fit.parameters.emission).items()}
    parameters = fit.parameters._replace(emission=plain)
    packing = Packing(model, parameters)
    at_bound = np.zeros(len(packing.free), dtype=bool)
    at_bound[packing.rates] = fit.at_bound[fit.packing.rates]
    return ExactFit(
        model,
        parameters,
        fit.scaling,
        fit.laid,
        packing,
        fit.log_likelihood,
        at_bound,
        fit.converged,
        fit.message,
        fit.restarts,
        fit.slowest,
    )
