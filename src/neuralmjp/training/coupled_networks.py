"""The bound of a mean field of coupled processes, as a function of everything that is trained."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..emissions.emission import Params
from ..emissions.readings import Readings
from ..objective import Terms
from ..posteriors.backward_guess import Seen, backward_guess
from ..posteriors.coupling import Coupling, free_motion, path_divergence, tilted_motion
from ..posteriors.mean_field import NEVER, FreeMeanField, TiltedMeanField, law_of
from .config import Config
from .coupled_blocks import CountBlock
from .networks import Networks, make_encoder, make_prior, sampled


class CountsEvaluated(NamedTuple):
    terms: Terms
    laws: Float[Array, "series time species count"]  # of the posterior, at the observations


class CoupledSetup(NamedTuple):
    """What is assumed and chosen; hashable, so that one compiled program serves all runs that agree on it."""

    coupling: Coupling
    readings: Readings
    config: Config
    n_features: int
    start: tuple[tuple[int, int], ...]  # smallest and largest count of each species at the first observation

    @property
    def capacity(self) -> tuple[int, ...]:
        """Rates of any size run in one program: they are capped."""
        return ()

    def with_capacity(self, capacity: tuple[int, ...]) -> "CoupledSetup":
        return self

    def evaluate(self, networks: Networks, block: Any, *, key: Array | None) -> CountsEvaluated:
        return evaluate_counts(self, networks, block, key=key)


def make_coupled_networks(setup: CoupledSetup, theta: Any, noise: Params, *, key: Array) -> Networks:
    """Fresh networks around starting values of the model."""
    config, keys = setup.config, jax.random.split(key, 4)
    encoder = make_encoder(config, setup.n_features, keys[1])
    if config.posterior == "tilted":
        forward = make_encoder(config, setup.n_features, keys[3])
        posterior = TiltedMeanField(encoder, forward, setup.coupling, kind=config.potentials, key=keys[2])
    else:
        posterior = FreeMeanField(
            encoder,
            setup.coupling,
            initial_hidden=config.initial_hidden,
            rates_hidden=config.rates_hidden,
            dropout=config.dropout,
            key=keys[2],
        )
    emission = {name: jnp.asarray(value, float) for name, value in noise.items()}
    return Networks(make_prior(config, theta, keys[0]), emission, jnp.zeros(0), posterior)


def evaluate_counts(
    setup: CoupledSetup, networks: Networks, block: CountBlock, *, key: Array | None
) -> CountsEvaluated:
    """The bound, term by term. Without a key nothing is random."""
    keys = (None,) * 3 if key is None else tuple(jax.random.split(key, 3))
    coupling, posterior = setup.coupling, networks.posterior
    log_scales = coupling.log_scales(networks.prior.draw(keys[0])).astype(block.durations.dtype)
    durations, pieces, seen = block.durations.T, block.pieces, block.seen_at_ends
    log_prior = jnp.asarray(first_law(setup), durations.dtype)
    if isinstance(posterior, TiltedMeanField):
        along, start = backward_guess(
            coupling, setup.readings, networks.emission, log_scales, durations, seen, block.at_start
        )
        potentials, at_first = posterior.potentials(coupling, block.inputs, pieces, along, start, key=keys[1])
        first = law_of(coupling, at_first + log_prior)
        motion = tilted_motion(coupling, first, coupling.tilts(potentials), log_scales, durations)
    else:
        assert isinstance(posterior, FreeMeanField)
        logits, rates = posterior.process(coupling, block.inputs, pieces, key=keys[1])
        first = law_of(coupling, logits + log_prior)
        motion = free_motion(coupling, first, rates * (durations / block.span)[..., None, None])
    fixed = jax.lax.stop_gradient(motion) if setup.config.two_step else motion
    path_kl = path_divergence(coupling, fixed, log_scales, durations)
    away = jnp.log(jnp.where(first > 0, first, 1.0)) - jnp.where(first > 0, log_prior, 0.0)
    initial_kl = (first * away).sum((-2, -1))
    how = "expectation" if keys[2] is None else setup.config.reconstruction
    shown = motion.laws if how == "expectation" else sampled(motion.laws, how, keys[2])
    later = reconstructed(setup, networks.emission, shown[1:], seen, relaxed=how != "expectation")
    at_once = reconstructed(setup, networks.emission, shown[:1], block.at_start, relaxed=how != "expectation")
    terms = Terms(later.sum(0) + at_once.sum(0), path_kl, initial_kl)
    laws = jnp.take_along_axis(jnp.moveaxis(motion.laws, 0, 1), block.nodes[:, :, None, None], axis=1)
    return CountsEvaluated(terms, laws)


def first_law(setup: CoupledSetup) -> Float[Array, "species count"]:
    """Logarithm of the prior law at the first observation: even over the counts where a species may start."""
    counts = jnp.arange(setup.coupling.n_counts)
    rows = [
        jnp.where((counts >= low) & (counts <= high), -jnp.log(high - low + 1.0), NEVER) for low, high in setup.start
    ]
    return jnp.stack(rows)


def reconstructed(
    setup: CoupledSetup, noise: Params, laws: Float[Array, "node series species count"], seen: Seen, *, relaxed: bool
) -> Float[Array, "node series"]:
    """Expected log density of the readings at each node; of the mean count where laws are relaxed samples."""
    total = jnp.zeros(laws.shape[:2], laws.dtype)
    counts = jnp.arange(laws.shape[-1], dtype=laws.dtype)
    values, known = (jnp.broadcast_to(x, (*laws.shape[:2], x.shape[-1])) for x in seen)
    for column, species in enumerate(setup.readings.columns):
        value = values[..., column]
        if relaxed:
            mean = sum((laws[..., s, :] @ counts for s in species), jnp.zeros_like(value))
            each = setup.readings.log_density(noise, column, value, mean)
        else:
            law = law_of_sum([laws[..., s, :] for s in species])
            totals = jnp.arange(law.shape[-1], dtype=laws.dtype)
            density = setup.readings.log_density(noise, column, value[..., None], totals)
            each = (law * jnp.maximum(density, NEVER)).sum(-1)
        total = total + jnp.where(known[..., column], each, 0.0)
    return total


def law_of_sum(laws: list[Float[Array, "*lead count"]]) -> Float[Array, "*lead total"]:
    """Law of the sum of independent counts."""
    if len(laws) == 1:
        return laws[0]
    size = sum(law.shape[-1] - 1 for law in laws) + 1
    product = jnp.fft.rfft(laws[0], size)
    for law in laws[1:]:
        product = product * jnp.fft.rfft(law, size)
    return jnp.maximum(jnp.fft.irfft(product, size), 0.0)
