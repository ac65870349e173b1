"""Expectation maximisation: expected jumps over expected time, from many starts at once."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..mjp.precision import in_double_precision
from ..priors import FreeRates, ReversibleRates, rates_of
from .model import PSEUDO_STARTS, Evidence, Expectations, Model, Parameters, expectations
from .transitions import Halving, halving_needed

# A rate never falls below this many expected jumps over the whole record: EM would take for ever to reach zero.
FEWEST_JUMPS = 1e-6
# A state that is never visited would have no rates: it counts as visited for this share of the record.
LEAST_TIME = 1e-12
BALANCING = 30  # rounds for rates in detailed balance; they go on in the next iteration


class EMResult(NamedTuple):
    """Parameters of every start, and the log-likelihood after each iteration."""

    parameters: Parameters  # leading axis: starts
    log_likelihood: Float[np.ndarray, "iteration start"]


def em_step(
    model: Model, parameters: Parameters, evidence: Evidence, aligned: bool, halving: Halving
) -> tuple[Parameters, Float[Array, ""]]:
    """One iteration; returns the new parameters and the log-likelihood of the old ones."""
    expected = expectations(model, parameters, evidence, aligned, halving)
    emission = model.emission.maximised(parameters.emission, evidence.seen, expected.smoothed)
    new = with_new_rates(model, parameters, expected)
    return (new if emission is None else new._replace(emission=emission)), expected.log_likelihood


def with_new_rates(model: Model, parameters: Parameters, expected: Expectations) -> Parameters:
    """The M step of rates and initial law."""
    time = jnp.maximum(expected.time, LEAST_TIME * expected.time.sum())
    jumps = jnp.maximum(expected.jumps, FEWEST_JUMPS)
    if isinstance(model.rate_model, ReversibleRates):
        theta = balanced(model.rate_model, parameters.rates, jumps, time)
    else:
        assert isinstance(model.rate_model, FreeRates), "EM needs free or reversible rates"
        i, j = np.nonzero(model.rate_model.parameter_of >= 0)  # row-major, the order of the parameters
        theta = jnp.log(jumps / time[:, None])[i, j]
    first = expected.first + PSEUDO_STARTS / len(expected.first)
    return Parameters(theta, parameters.emission, jnp.log(first) - jnp.log(first[0]))


def balanced(
    model: ReversibleRates,
    theta: Float[Array, "parameter"],
    jumps: Float[Array, "state state"],
    time: Float[Array, "state"],
) -> Float[Array, "parameter"]:
    """Rates s_ij / p_i in detailed balance: s given p, then p given s, each the best for the other.

    s_ij = (n_ij + n_ji) / (t_i / p_i + t_j / p_j) and p_i = t_i sum_j s_ij / sum_j n_ij.
    """
    allowed = model.allowed
    jumps = jnp.where(allowed, jumps, 0.0)
    both, away = jumps + jumps.T, jumps.sum(1)

    def once(_, law):
        flow = both / (time / law + (time / law)[:, None])
        law = time * flow.sum(1) / away
        return law / law.sum()

    law = jax.nn.softmax(jnp.concatenate([jnp.zeros(1, theta.dtype), theta[: model.n - 1]]))
    law = jax.lax.fori_loop(0, BALANCING, once, law)
    flow = both / (time / law + (time / law)[:, None])
    i, j = np.array(model.pairs).T
    return jnp.concatenate([jnp.log(law[1:]) - jnp.log(law[0]), jnp.log(flow[i, j])])


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
        ahead, values = _many_steps(model, parameters, evidence, aligned, halving)
        parameters = _where_finite(ahead, parameters)
        history.append(np.asarray(values))
        if len(history) > 2 and _at_rest(history[-2], history[-1], tolerance):
            break
    return EMResult(parameters, np.array(history))


def _where_finite(ahead: Parameters, before: Parameters) -> Parameters:
    """New parameters; a start to which the data are impossible has no new rates, and stays where it was."""
    sound = np.isfinite(np.asarray(ahead.rates)).all(-1)
    if sound.all():
        return ahead
    return jax.tree.map(lambda a, b: jnp.where(sound.reshape(-1, *(1,) * (a.ndim - 1)), a, b), ahead, before)


def _at_rest(before: Float[np.ndarray, "start"], now: Float[np.ndarray, "start"], tolerance: float) -> bool:
    """No start gains any more, those apart to which the data are impossible."""
    possible = np.isfinite(before) & np.isfinite(now)
    return bool((np.abs(now[possible] - before[possible]) < tolerance).all())
