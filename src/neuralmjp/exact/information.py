"""Uncertainty from the curvature of the likelihood at its top, carried to whatever depends on the parameters."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from ..emissions import Gaussian, NeuralGaussian
from ..mjp.precision import in_double_precision
from .fit import ExactFit
from .packing import Packing

STEP = 1e-4  # of a finite difference, in log rates and standardised values
# A direction along which the log-likelihood bends by less than this many nats per squared unit teaches nothing.
LEAST_CURVATURE = 1e-3


@dataclass(frozen=True)
class Information:
    """Normal approximation around the top: theta ~ N(theta, covariance)."""

    theta: Float[np.ndarray, "free"]
    covariance: Float[np.ndarray, "free free"]  # zero for numbers that rest on a bound
    unidentified: Bool[np.ndarray, "free"]  # the data say nothing, or nothing on their own, about these

    def sample(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "sample free"]:
        """Draws from the normal approximation."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return self.theta + rng.normal(size=(n, len(self.theta))) @ root.T

    def standard_errors(
        self, function: Callable[[Array], dict[str, Array]]
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Named functions of theta and their standard errors, by the delta method."""
        values, slopes = jax.jit(lambda theta: (function(theta), jax.jacfwd(function)(theta)))(self.theta)
        result = {}
        for name, value in values.items():
            slope = np.asarray(slopes[name]).reshape(-1, len(self.theta))
            variance = np.einsum("af,fg,ag->a", slope, self.covariance, slope)
            result[name] = np.asarray(value), np.sqrt(np.maximum(variance, 0.0)).reshape(np.shape(value))
        return result


@in_double_precision
def observed_information(fit: ExactFit) -> Information:
    """Minus the Hessian of the log posterior at the top, inverted; by differences of the exact gradient."""
    theta = fit.theta
    moving = np.flatnonzero(~fit.at_bound)
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
    unidentified = np.zeros(len(theta), dtype=bool)
    unidentified[moving] = (np.abs(vectors[:, ~known]) > 0.1).any(1)
    return Information(theta, covariance, unidentified)


def with_plain_emission(fit: ExactFit) -> ExactFit:
    """A network's many weights say no more than the means and spreads they yield: count those as the parameters."""
    emission = fit.model.emission
    if not isinstance(emission, NeuralGaussian):
        return fit
    model = fit.model._replace(emission=Gaussian())
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
    )
