"""Everything that is trained, and the bound as a function of it."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..emissions import Categorical, NeuralGaussian
from ..encoders import ODERNN, Encoder, GRUEncoder, StateSpace
from ..exact.model import Model, Parameters, initial_law, log_emissions
from ..mjp.generators import generator_from_rates
from ..objective import Terms
from ..posteriors import Capacity, FreePosterior, TiltedPosterior, tilted_terms, transition_matrices
from ..posteriors.mean_field import FreeMeanField, TiltedMeanField
from ..posteriors.tilted import NEVER
from ..priors.generator import ExplicitParameters, GeneratorParameters
from .blocks import Block, encoder_inputs
from .config import Config


class Networks(eqx.Module):
    """What is learned: the model itself, and the posterior that helps to learn it."""

    prior: ExplicitParameters | GeneratorParameters
    emission: dict[str, Array]
    initial: Float[Array, "state"]  # of nothing, where the law at the start is given
    posterior: TiltedPosterior | FreePosterior | TiltedMeanField | FreeMeanField


class Setup(NamedTuple):
    """What is assumed and chosen; hashable, so that one compiled program serves all runs that agree on it."""

    model: Model
    config: Config
    n_features: int
    capacity: Capacity  # for jumps in the longest gap
    masked: bool = False  # the encoder reads which values are missing: some were, in training
    shared: bool = False  # all series are seen at the same times, which the paper's posterior then embeds once

    def reading(self, block: Block) -> "Setup":
        """For a block whose series may be seen at other times than those it was made for."""
        return self._replace(shared=self.config.posterior == "paper" and block.shared)

    def with_capacity(self, capacity: tuple[int, ...]) -> "Setup":
        return self._replace(capacity=Capacity(*capacity))

    def evaluate(self, networks: "Networks", block: Any, *, key: Array | None) -> "Evaluated":
        return evaluate(self, networks, block, key=key)

    def occupancy(self, found: Any, block: Any) -> Float[Array, "state"]:
        """Share of the observations in each state."""
        weights = block.valid[..., None]
        return (found.marginals * weights).sum((0, 1)) / jnp.maximum(weights.sum(), 1)


class Evaluated(NamedTuple):
    terms: Terms
    marginals: Float[Array, "series time state"]  # of the posterior, at the observations


def make_networks(setup: Setup, start: Parameters, *, key: Array) -> Networks:
    """Fresh networks around starting values of the model."""
    config, model = setup.config, setup.model
    keys = jax.random.split(key, 3)
    prior = make_prior(config, start.rates, keys[0])
    encoder = make_encoder(config, setup.n_features, keys[1])
    n_states = model.rate_model.n_states
    if config.posterior == "tilted":
        posterior = TiltedPosterior(encoder, n_states, key=keys[2])
    else:
        allowed = model.rate_model.allowed if config.masked else ~np.eye(n_states, dtype=bool)
        posterior = FreePosterior(
            encoder,
            allowed,
            initial_hidden=config.initial_hidden,
            rates_hidden=config.rates_hidden,
            dropout=config.dropout,
            embedded=config.embedded,
            key=keys[2],
        )
    emission = {name: jnp.asarray(value, float) for name, value in start.emission.items()}
    return Networks(prior, emission, jnp.asarray(start.initial, float), posterior)


def make_prior(config: Config, start: Any, key: Array) -> ExplicitParameters | GeneratorParameters:
    """Where the parameters of the rates come from, around starting values."""
    theta = jnp.asarray(start, float)
    if config.prior == "generator":
        return GeneratorParameters(theta, noise_sd=config.noise_sd, dropout=config.dropout, key=key)
    return ExplicitParameters(theta)


def make_encoder(config: Config, n_features: int, key: Array) -> Encoder:
    """The encoder that the configuration names."""
    if config.encoder == "ode-rnn":
        choices = {"hidden": config.dynamics, "steer": config.steer, "order": config.runge_kutta}
        return ODERNN(n_features, config.width, key=key, kernel=config.kernel, **choices)
    if config.encoder == "gru":
        return GRUEncoder(n_features, config.width, key=key, kernel=config.kernel)
    return StateSpace(n_features, config.width, key=key)


def n_labels(model: Model) -> int | None:
    """Categories that the encoder reads as one-hot, if observations are labels."""
    return len(model.emission.labels) if isinstance(model.emission, Categorical) else None


def n_encoder_features(model: Model, config: Config, block: Block) -> int:
    """Width of the encoder's input; see `encoder_inputs`."""
    labels = n_labels(model)
    n = block.evidence.seen.values.shape[-1] if labels is None else labels
    n += 2 + (0 if block.evidence.seen.mask is None else block.evidence.seen.mask.shape[-1])
    return n + (model.rate_model.n_states if config.posterior == "tilted" else 0)


def evaluate(setup: Setup, networks: Networks, block: Block, *, key: Array | None) -> Evaluated:
    """The bound, term by term. Without a key nothing is random: no dropout, no samples, the generator without noise."""
    keys = (None,) * 4 if key is None else tuple(jax.random.split(key, 4))
    model = setup.model
    theta = networks.prior.draw(keys[0])
    parameters = Parameters(theta, networks.emission, networks.initial)
    rates = jnp.asarray(model.rate_model.rates(theta), block.times.dtype)
    logs = log_emissions(model, parameters, rates, block.evidence)
    if isinstance(networks.posterior, TiltedPosterior):
        return _tilted(setup, networks, networks.posterior, parameters, rates, logs, block, keys[1])
    assert isinstance(networks.posterior, FreePosterior)
    return _free(setup, networks.posterior, parameters, rates, logs, block, keys[1:])


def _tilted(
    setup: Setup,
    networks: Networks,
    posterior: TiltedPosterior,
    parameters: Parameters,
    rates: Array,
    logs: Array,
    block: Block,
    key: Array | None,
) -> Evaluated:
    valid = block.evidence.valid
    generator = jnp.asarray(generator_from_rates(rates))
    table = transition_matrices(generator, block.raw_gaps[:, :-1], setup.capacity)
    logs_read = jax.lax.stop_gradient(logs)
    inputs = encoder_inputs(block, logs_read, n_labels(setup.model), setup.config.horizon, setup.masked)
    law = initial_law(setup.model, parameters, rates)
    log_law = jnp.where(law > 0, jnp.log(jnp.where(law > 0, law, 1.0)), NEVER).astype(logs.dtype)
    tilted = tilted_terms(
        logs,
        table,
        log_law,
        posterior.corrections(inputs, key=key),
        valid,
    )
    return Evaluated(tilted.terms, tilted.marginals)


def _free(
    setup: Setup,
    posterior: FreePosterior,
    parameters: Parameters,
    rates: Array,
    logs: Array,
    block: Block,
    keys: tuple[Array | None, ...],
) -> Evaluated:
    config, model, valid = setup.config, setup.model, block.evidence.valid
    inputs = encoder_inputs(block, None, n_labels(setup.model), config.horizon, setup.masked)
    whole = posterior.encoder(inputs, key=keys[0]).whole
    first = posterior.initial_law(whole, key=keys[1])
    normalised = jnp.maximum(rates * block.span, config.forbidden_rate) * (1 - jnp.eye(len(rates), dtype=rates.dtype))
    if config.masked:
        normalised = jnp.where(setup.model.rate_model.allowed, normalised, 0.0)
    solved = posterior.solve(
        whole,
        first,
        block.times[:1] if setup.shared else block.times,
        normalised,
        horizon=config.horizon,
        substeps=config.substeps,
        order=config.order,
        n_quadrature=config.quadrature,
        solver=config.solver,
        tolerance=config.tolerance,
        fixed=config.two_step,
    )
    if isinstance(model.emission, Categorical) and model.emission.is_exact:
        # Without an emission model, the cross-entropy of the labels.
        seen = (jnp.exp(jnp.maximum(logs, NEVER)) * solved.marginals).sum(-1)
        each = jnp.log(jnp.maximum(seen, jnp.finfo(seen.dtype).tiny))
    else:
        weights = sampled(solved.marginals, config.reconstruction, keys[2])
        if isinstance(model.emission, NeuralGaussian) and weights is not solved.marginals:
            each = model.emission.relaxed(parameters.emission, block.evidence.seen, weights)
        else:
            each = (weights * jnp.maximum(logs, NEVER)).sum(-1)
    reconstruction = jnp.where(valid, each, 0.0).sum(-1)
    law = initial_law(model, parameters, rates)
    away = jnp.log(jnp.maximum(first, 1e-30)) - jnp.log(jnp.maximum(law, 1e-30))
    initial_kl = (first * away).sum(-1)
    return Evaluated(Terms(reconstruction, solved.path_kl, initial_kl), solved.marginals)


def sampled(marginals: Array, how: str, key: Array | None) -> Float[Array, "*lead state"]:
    """The posterior's states as weights: their probabilities, or one relaxed or hard sample of them."""
    if how == "expectation" or key is None:
        return marginals
    logits = jnp.log(jnp.maximum(marginals, 1e-20))
    soft = jax.nn.softmax(logits + jax.random.gumbel(key, logits.shape, logits.dtype), axis=-1)
    if how == "gumbel":
        return soft
    hard = jax.nn.one_hot(soft.argmax(-1), soft.shape[-1], dtype=soft.dtype)
    return soft + jax.lax.stop_gradient(hard - soft)
