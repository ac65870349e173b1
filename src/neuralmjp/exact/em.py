"""Expectation maximisation: expected jumps over expected time, from many starts at once."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..mjp.precision import in_double_precision
from ..priors import FreeRates, rates_of
from .model import PSEUDO_STARTS, Evidence, Model, Parameters, expectations
from .transitions import Halving, halving_needed

# A rate never falls below this many expected jumps over the whole record: EM would take for ever to reach zero.
FEWEST_JUMPS = 1e-6
# A state that is never visited would have no rates: it counts as visited for this share of the record.
LEAST_TIME = 1e-12


class EMResult(NamedTuple):
    """Parameters of every start, and the log-likelihood after each iteration."""

    parameters: Parameters  # leading axis: starts
    log_likelihood: Float[np.ndarray, "iteration start"]


def em_step(
    model: Model, parameters: Parameters, evidence: Evidence, aligned: bool, halving: Halving
) -> tuple[Parameters, Float[Array, ""]]:
    """One iteration; returns the new parameters and the log-likelihood of the old ones."""
    expected = expectations(model, parameters, evidence, aligned, halving)
    rate_model = model.rate_model
    assert isinstance(rate_model, FreeRates), "EM needs free rates"
    time = jnp.maximum(expected.time, LEAST_TIME * expected.time.sum())[:, None]
    rates = jnp.maximum(expected.jumps, FEWEST_JUMPS) / time
    i, j = np.nonzero(rate_model.parameter_of >= 0)  # row-major, the order of the parameters
    theta = jnp.log(rates[i, j])
    emission = model.emission.maximised(parameters.emission, evidence.seen, expected.smoothed)
    first = expected.first + PSEUDO_STARTS / len(expected.first)
    initial = jnp.log(first) - jnp.log(first[0])
    new = Parameters(theta, parameters.emission if emission is None else emission, initial)
    return new, expected.log_likelihood


@partial(jax.jit, static_argnames=("model", "aligned", "halving"))
def _many_steps(model: Model, parameters: Parameters, evidence: Evidence, aligned: bool, halving: Halving):
    return jax.vmap(lambda one: em_step(model, one, evidence, aligned, halving))(parameters)


@in_double_precision
def run_em(
    model: Model,
    starts: Parameters,
    evidence: Evidence,
    aligned: bool,
    *,
    iterations: int,
    tolerance: float = 0.1,
) -> EMResult:
    """EM from several starts as one batch, until every one of them gains less than `tolerance` nats.

    Args:
        model: with free rates (no equal ones) and an emission that has an M step.
        starts: parameters with a leading axis of starts.
        iterations: most iterations.
    """
    parameters, history = starts, []
    gaps = np.asarray(evidence.gaps)
    for _ in range(iterations):
        halving = halving_needed(np.asarray(rates_of(model.rate_model, parameters.rates)), gaps)
        parameters, values = _many_steps(model, parameters, evidence, aligned, halving)
        history.append(np.asarray(values))
        if len(history) > 2 and (np.abs(history[-1] - history[-2]) < tolerance).all():
            break
    return EMResult(parameters, np.array(history))
