"""The bound of a mean field of coupled processes, as a function of everything that is trained."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..emissions.emission import Params
from ..emissions.readings import Readings
from ..objective import Terms
from ..posteriors.backward_guess import Seen, backward_guess
from ..posteriors.coupling import Coupling, Motion, free_motion, path_divergence, tilted_motion
from ..posteriors.mean_field import FreeMeanField, TiltedMeanField, law_of
from ..posteriors.sweep import Beliefs, Swept, beliefs_of, swept, swept_divergence
from ..posteriors.tilted import NEVER
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

    def occupancy(self, found: Any, block: Any) -> Float[Array, "0"]:
        """Counts are no states that could be lost."""
        return jnp.zeros(0)


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


class Rules(NamedTuple):
    """The model's own parameters, in the form that the bound needs."""

    log_scales: Float[Array, "event"]
    noise: Params


def evaluate_counts(
    setup: CoupledSetup, networks: Networks, block: CountBlock, *, key: Array | None
) -> CountsEvaluated:
    """The bound, term by term. Without a key nothing is random."""
    keys = (None,) * 3 if key is None else tuple(jax.random.split(key, 3))
    coupling, posterior, durations = setup.coupling, networks.posterior, block.durations.T
    log_scales = coupling.log_scales(networks.prior.draw(keys[0])).astype(durations.dtype)
    rules = Rules(log_scales, networks.emission)
    if isinstance(posterior, FreeMeanField):
        logits, rates = posterior.process(coupling, block.inputs, block.pieces, key=keys[1])
        first = law_of(coupling, logits + first_law(setup, durations.dtype))
        motion = free_motion(coupling, first, rates * (durations / block.span)[..., None, None])
        terms = bound_of(setup, rules, block, motion, key=keys[2])
        return CountsEvaluated(terms, at_observations(block, motion.laws))
    assert isinstance(posterior, TiltedMeanField)
    held = jax.lax.stop_gradient(rules) if setup.config.sweeps else rules
    along, start = backward_guess(
        coupling, setup.readings, held.noise, held.log_scales, durations, block.seen_at_ends, block.at_start
    )
    potentials, at_first = posterior.potentials(coupling, block.inputs, block.pieces, along, start, key=keys[1])
    motion = moved(setup, held, block, potentials, at_first)
    if not setup.config.sweeps:
        return CountsEvaluated(bound_of(setup, rules, block, motion, key=None), at_observations(block, motion.laws))
    beliefs = beliefs_of(coupling, jax.lax.stop_gradient(motion), held.log_scales)
    found = improved(setup, held, block, beliefs)
    for _ in range(setup.config.sweeps - 1):
        found = improved(setup, held, block, found.beliefs)
    beliefs = found.beliefs
    path_kl = swept_divergence(coupling, found, rules.log_scales, durations)
    at_start = initial_divergence(setup, beliefs.laws[0])
    seen = seen_of(setup, rules.noise, block, beliefs.laws, relaxed=False)
    if key is not None:  # in training: parameters learn from what sweeps make of a proposal, networks from itself
        proposed = bound_of(setup, held, block, motion, key=None).elbo
        seen = seen + proposed - jax.lax.stop_gradient(proposed)
    return CountsEvaluated(Terms(seen, path_kl, at_start), at_observations(block, beliefs.laws))


def moved(setup: CoupledSetup, rules: Rules, block: CountBlock, potentials: Array, at_first: Array) -> Motion:
    """The mean field with these potentials."""
    first = law_of(setup.coupling, at_first + first_law(setup, at_first.dtype))
    tilts = setup.coupling.tilts(potentials)
    return tilted_motion(setup.coupling, first, tilts, rules.log_scales, block.durations.T)


def improved(setup: CoupledSetup, rules: Rules, block: CountBlock, beliefs: Beliefs) -> Swept:
    """After one sweep of coordinate ascent."""
    ends, start = (
        read_by_count(setup, rules.noise, laws, seen)
        for laws, seen in ((beliefs.laws[1:], block.seen_at_ends), (beliefs.laws[:1], block.at_start))
    )
    at_first = start[0] + first_law(setup, start.dtype)
    return swept(setup.coupling, beliefs, rules.log_scales, block.durations.T, ends, at_first)


def bound_of(setup: CoupledSetup, rules: Rules, block: CountBlock, motion: Motion, *, key: Array | None) -> Terms:
    """The terms of a mean field; with a key from a sample of its states, if so configured."""
    coupling, config = setup.coupling, setup.config
    fixed = jax.lax.stop_gradient(motion) if config.two_step else motion
    path_kl = path_divergence(coupling, fixed, rules.log_scales, block.durations.T)
    relaxed = key is not None and config.reconstruction != "expectation"
    shown = sampled(motion.laws, config.reconstruction, key) if relaxed else motion.laws
    seen = seen_of(setup, rules.noise, block, shown, relaxed=relaxed)
    return Terms(seen, path_kl, initial_divergence(setup, motion.laws[0]))


def initial_divergence(setup: CoupledSetup, first: Float[Array, "series species count"]) -> Float[Array, "series"]:
    """Of the laws at the start from the prior's."""
    away = jnp.log(jnp.where(first > 0, first, 1.0)) - jnp.where(first > 0, first_law(setup, first.dtype), 0.0)
    return (first * away).sum((-2, -1))


def seen_of(
    setup: CoupledSetup, noise: Params, block: CountBlock, laws: Float[Array, "node series species count"], *, relaxed
) -> Float[Array, "series"]:
    """Expected log density of all readings of a series."""
    later = reconstructed(setup, noise, laws[1:], block.seen_at_ends, relaxed=relaxed)
    return later.sum(0) + reconstructed(setup, noise, laws[:1], block.at_start, relaxed=relaxed).sum(0)


def at_observations(block: CountBlock, laws: Array) -> Float[Array, "series time species count"]:
    return jnp.take_along_axis(jnp.moveaxis(laws, 0, 1), block.nodes[:, :, None, None], axis=1)


def first_law(setup: CoupledSetup, dtype: Any) -> Float[Array, "species count"]:
    """Logarithm of the prior law at the first observation: even over the counts where a species may start."""
    counts = np.arange(setup.coupling.n_counts)
    rows = [np.where((counts >= low) & (counts <= high), -np.log(high - low + 1), NEVER) for low, high in setup.start]
    return jnp.asarray(np.stack(rows), dtype)


def read_by_count(
    setup: CoupledSetup, noise: Params, laws: Float[Array, "node series species count"], seen: Seen
) -> Float[Array, "node series species count"]:
    """Expected log density of the readings at each node by the count of each species, the others having their laws."""
    values, known = (jnp.broadcast_to(x, (*laws.shape[:2], x.shape[-1])) for x in seen)
    n, result = laws.shape[-1], [jnp.zeros((*laws.shape[:2], laws.shape[-1]), laws.dtype)] * laws.shape[2]
    for column, species in enumerate(setup.readings.columns):
        totals = jnp.arange(len(species) * (n - 1) + 1, dtype=laws.dtype)
        density = jnp.maximum(setup.readings.log_density(noise, column, values[..., column, None], totals), NEVER)
        there = known[..., column, None]
        for s in species:
            rest = [laws[..., r, :] for r in species if r != s]
            each = density
            if rest:
                each = correlated(density, law_of_sum(rest), n)
            result[s] = result[s] + jnp.where(there, each, 0.0)
    return jnp.stack(result, axis=-2)


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


def correlated(
    values: Float[Array, "*lead total"], law: Float[Array, "*lead count"], n: int
) -> Float[Array, "*lead shift"]:
    """Expected values[k + m] over m, for k below n; not by Fourier, which would not bear values as low as log 0."""

    def term(m, total):
        share = jax.lax.dynamic_slice_in_dim(law, m, 1, -1)
        return total + share * jax.lax.dynamic_slice_in_dim(values, m, n, -1)

    return jax.lax.fori_loop(0, law.shape[-1], term, jnp.zeros((*law.shape[:-1], n), law.dtype))


def law_of_sum(laws: list[Float[Array, "*lead count"]]) -> Float[Array, "*lead total"]:
    """Law of the sum of independent counts."""
    if len(laws) == 1:
        return laws[0]
    size = sum(law.shape[-1] - 1 for law in laws) + 1
    product = jnp.fft.rfft(laws[0], size)
    for law in laws[1:]:
        product = product * jnp.fft.rfft(law, size)
    return jnp.maximum(jnp.fft.irfft(product, size), 0.0)
