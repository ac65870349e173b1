"""A hidden jump process as a function of one vector of numbers: what is fitted, and the likelihood of it."""

from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.special import log_softmax, softmax

from ..emissions import Emission, Observations
from ..mjp.generators import generator_from_rates
from ..priors import RateModel
from . import switching
from .chain import Chain, forward, log_mass
from .transitions import Halving, transition_table

InitialLaw = Literal["free", "stationary", "given", "known"]
# A whole pseudo-observation, shared by all states, keeps a free initial law inside the simplex.
PSEUDO_STARTS = 1.0


class Model(NamedTuple):
    """What is assumed: hashable, so that one compiled program serves all fits that assume the same."""

    rate_model: RateModel
    emission: Emission
    initial: InitialLaw  # "known": series are conditioned on their first state, which is seen
    given: tuple[float, ...] | None = None  # the law, if it is given
    rate_prior: tuple[float, float] | None = None  # mean and sd of a normal law on every rate parameter, for MAP


class Parameters(NamedTuple):
    """What is learned; NumPy arrays outside compiled functions, traced ones inside."""

    rates: Any  # (parameter,) of the rate model, logarithms
    emission: dict[str, Any]
    initial: Any  # (state,) logits; not used unless the initial law is free


class Evidence(NamedTuple):
    """Data in lanes, on the device. Leading axes (steps, lanes)."""

    seen: Observations
    valid: Bool[Array, "step lane"]  # false where a lane is padded
    override: Float[Array, "step lane state"] | None  # log density that replaces the emission's where it is not NaN
    entered: Bool[Array, "step lane"] | None  # the absorbing state was entered at exactly this time
    absorbing: Int[Array, ""] | Int[np.ndarray, ""] | None
    chain: Chain
    gaps: Float[Array, "gap"]
    logs: Float[Array, "step lane state"] | None = None  # log densities, where the emission is settled already


def initial_law(model: Model, parameters: Parameters, rates: Float[Array, "state state"]) -> Float[Array, "state"]:
    """The law at the first observation of a series."""
    if model.initial == "known":
        return jnp.ones(len(rates))
    if model.initial == "given":
        return jnp.asarray(model.given)
    if model.initial == "free":
        return jax.nn.softmax(parameters.initial)
    # Stationary: p F = 0 with the last equation replaced by sum p = 1.
    system = jnp.asarray(generator_from_rates(rates)).T.at[-1].set(1.0)
    return jnp.linalg.solve(system, jnp.zeros(len(rates)).at[-1].set(1.0))


def log_emissions(
    model: Model, parameters: Parameters, rates: Float[Array, "state state"], evidence: Evidence
) -> Float[Array, "step lane state"]:
    """Log density of every observation in every state, with what is known for certain in place."""
    logs = evidence.logs
    if logs is None:
        logs = model.emission.log_prob(parameters.emission, evidence.seen)
    if evidence.override is not None:
        logs = jnp.where(jnp.isnan(evidence.override), logs, evidence.override)
    if evidence.entered is not None:
        into = rates[:, evidence.absorbing]
        log_into = jnp.where(into > 0, jnp.log(jnp.where(into > 0, into, 1.0)), -jnp.inf)
        logs = jnp.where(evidence.entered[..., None], log_into, logs)
    return jnp.where(evidence.valid[..., None], logs, 0.0)


def log_prior(model: Model, parameters: Parameters) -> tuple[float, Parameters]:
    """Log density of the weakly informative priors, where there are any, and its gradient; in NumPy."""
    value, theta, logits = 0.0, np.asarray(parameters.rates), np.asarray(parameters.initial)
    d_theta, d_logits = np.zeros_like(theta), np.zeros_like(logits)
    if model.rate_prior is not None:
        mean, sd = model.rate_prior
        value, d_theta = float(-0.5 * (((theta - mean) / sd) ** 2).sum()), -(theta - mean) / sd**2
    if model.initial == "free":
        value += PSEUDO_STARTS * float(log_softmax(logits).mean())
        d_logits = PSEUDO_STARTS * (1 / len(logits) - softmax(logits))
    nothing = {name: np.zeros(np.shape(each)) for name, each in parameters.emission.items()}
    return value, Parameters(d_theta, nothing, d_logits)


class Evaluation(NamedTuple):
    """The log-likelihood at one place, and what its derivative says."""

    log_likelihood: Any
    gradient: Any  # as Parameters
    jumps: Any  # (state, state) expected, given the data
    time: Any  # (state,) expected
    entry: Any = None  # (state,) derivative by the law that a block of a recording is entered with


class Ingredients(NamedTuple):
    """What the parameters make and the likelihood needs; also the derivative of the log-likelihood by each of it."""

    generator: Float[Array, "state state"]  # every entry by itself, diagonal included
    logs: Float[Array, "step lane state"]
    law: Float[Array, "state"]
    entry: Float[Array, "state"] | None
    emission: dict[str, Any] | None = None  # its parameters, where a hidden level makes more of them than `logs`


def ingredients(model: Model, evidence: Evidence, parameters: Parameters) -> Ingredients:
    """Generator, log emissions and initial law from the parameters."""
    rates = jnp.asarray(model.rate_model.rates(parameters.rates))
    generator = jnp.asarray(generator_from_rates(rates))
    law = initial_law(model, parameters, rates)
    if model.emission.hidden_level:
        nothing = jnp.zeros((*evidence.valid.shape, len(rates)))
        return Ingredients(generator, nothing, law, evidence.chain.entry, parameters.emission)
    logs = log_emissions(model, parameters, rates, evidence)
    return Ingredients(generator, logs, law, evidence.chain.entry)


def _slopes(
    made: Ingredients, evidence: Evidence, aligned: bool, halving: Halving
) -> tuple[Float[Array, ""], Ingredients]:
    """Log-likelihood, and its derivative by generator, log emissions and initial law."""

    def likelihood(made: Ingredients):
        table = transition_table(made.generator, evidence.gaps, halving)
        if made.emission is not None:
            there = (evidence.seen, evidence.valid, evidence.chain, evidence.gaps)
            return switching.log_mass(made.emission, table, made.logs, made.law, *there)
        return log_mass(table, made.logs, made.law, evidence.chain._replace(entry=made.entry), aligned)

    return jax.value_and_grad(likelihood)(made)


def _jumps(made: Ingredients, slopes: Ingredients, evidence: Evidence) -> tuple[Float[Array, "state state"], Array]:
    """Expected jumps and times: d log L / d F_ij = E[jumps i -> j] / F_ij and d log L / d F_ii = E[time in i]."""
    off = 1 - jnp.eye(len(made.generator))
    jumps = off * made.generator * slopes.generator
    if evidence.entered is not None:
        last = jnp.where((evidence.entered & evidence.valid)[..., None], slopes.logs, 0.0).sum((0, 1))
        jumps = jumps.at[:, evidence.absorbing].add(last)
    return jumps, jnp.diagonal(slopes.generator)


@partial(jax.jit, static_argnames=("model", "aligned", "halving"))
def value_and_gradient(
    model: Model, parameters: Parameters, evidence: Evidence, aligned: bool, halving: Halving
) -> Evaluation:
    """Log-likelihood with its gradient, and what one backward pass yields besides."""
    made, pull = jax.vjp(partial(ingredients, model, evidence), parameters)
    likelihood, slopes = _slopes(made, evidence, aligned, halving)
    return Evaluation(likelihood, pull(slopes)[0], *_jumps(made, slopes, evidence), slopes.entry)


@partial(jax.jit, static_argnames=("model", "aligned", "halving"))
def exit_law(
    model: Model, parameters: Parameters, evidence: Evidence, aligned: bool, halving: Halving
) -> Float[Array, "state"]:
    """The law at the end of a block of a recording, which the next block is entered with."""
    made = ingredients(model, evidence, parameters)
    table = transition_table(made.generator, evidence.gaps, halving)
    return forward(table, made.logs, made.law, evidence.chain, aligned)[0].filtered[-1, :, -1]


class Expectations(NamedTuple):
    """What the E step yields: posterior expectations given the data."""

    log_likelihood: Float[Array, ""]
    jumps: Float[Array, "state state"]
    time: Float[Array, "state"]
    smoothed: Float[Array, "step lane state"]
    first: Float[Array, "state"]  # expected number of series that start in each state


@partial(jax.jit, static_argnames=("model", "aligned", "halving"))
def expectations(
    model: Model, parameters: Parameters, evidence: Evidence, aligned: bool, halving: Halving
) -> Expectations:
    """Expected jumps, dwell times and states, all as derivatives of the log-likelihood."""
    made = ingredients(model, evidence, parameters)
    value, slopes = _slopes(made, evidence, aligned, halving)
    smoothed = jnp.where(evidence.valid[..., None], slopes.logs, 0.0)
    if evidence.entered is not None:
        smoothed = jnp.where(evidence.entered[..., None], 0.0, smoothed)  # seen exactly: it teaches no emission
    jumps, time = _jumps(made, slopes, evidence)
    return Expectations(value, jumps, time, smoothed, slopes.law * made.law)
