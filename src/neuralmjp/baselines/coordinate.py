"""A reaction network as a product of ladders, one species each: the variational E step of Opper & Sanguinetti (2007).

The rate of an event is k T_1(x_1) T_2(x_2) ..., and it moves one species alone. The posterior is sought among
independent species. Where all but one are held fixed, the best law of that one is known: its paths are weighed by

    product of base rates k T_s(n) exp(sum of E[log T_s'] over the others) over its jumps
    x exp(- integral of V(n, t)),   V = sum of E[f] given n over all events - sum of N_e log T_s(n) over others' events

and by the observations, with N_e the expected events per time. All that species tell each other is taken as constant
over a substep (its mean there), so that these weights are products of small exponentials, their sum Z is one scan, and
every expectation is a derivative of log Z. Then each update can only raise the bound

    sum_s H_s + E[log p(y)] + sum over events and substeps of N_e (log k + sum E[log T]) - k prod E[T] x duration,

where H_s = log Z less the mean of its own log weights. It is the variational bound up to the square of the substep.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jaxtyping import Array, Bool, Float, Int

from ..emissions.emission import Params
from ..emissions.readings import Readings
from ..mjp.ladder import expected
from ..systems.events import Events


class Ladders(eqx.Module):
    """The network as each species sees it.

    Attributes:
        ways: for each species, the factors of every event at every count.
        logs: their logarithms where the species takes part without being changed, else 0.
        initial: law of each species at the first observation.
        moves: for each species, the events that change it.
        needs: for each species, the events that need it and leave it as it is.
        changes: by how much each event changes its species.
    """

    ways: tuple[Float[Array, "event _"], ...]
    logs: tuple[Float[Array, "event _"], ...]
    initial: tuple[Float[Array, "_"], ...]
    moves: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    needs: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    changes: tuple[int, ...] = eqx.field(static=True)

    @property
    def n_species(self) -> int:
        return len(self.ways)


def make_ladders(events: Events, floor: float, initial: list[Float[np.ndarray, "_"]]) -> Ladders:
    """The ladders of a network whose events change one species each, with bystanders raised to a floor."""
    factors = np.asarray(events.with_floor(floor).factors)
    changes = np.array(events.changes)
    ways = [factors[:, s, :n] for s, n in enumerate(events.box)]
    still = [changes[:, s] == 0 for s in range(len(ways))]
    logs = [np.log(np.where(one[:, None], w, 1.0)) for one, w in zip(still, ways, strict=True)]
    return Ladders(
        ways=tuple(map(jnp.asarray, ways)),
        logs=tuple(map(jnp.asarray, logs)),
        initial=tuple(map(jnp.asarray, initial)),
        moves=tuple(tuple(np.flatnonzero(~one).tolist()) for one in still),
        needs=tuple(
            tuple(np.flatnonzero(one & (np.ptp(w, 1) > 0)).tolist()) for one, w in zip(still, ways, strict=True)
        ),
        changes=tuple(changes.sum(1).tolist()),
    )


class Block(NamedTuple):
    """Some series cut into substeps; an observation is made at the beginning of the substep `at`."""

    durations: Float[Array, "step series"]  # 0 for padding, and for the last observation
    seen: Int[Array, "step series"]  # observation that begins the substep, or -1
    at: Int[Array, "series time"]
    values: Float[Array, "series time column"]
    mask: Bool[Array, "series time column"]


class Beliefs(NamedTuple):
    """What species know of each other: means over substeps, and laws at the observations."""

    means: Float[Array, "event species step series"]  # E[T]
    logs: Float[Array, "event species step series"]  # E[log T] of those that are needed and stay
    numbers: Float[Array, "event step series"]  # expected events
    laws: tuple[Float[Array, "series time _"], ...]
    entropies: Float[Array, "species series"]


def swept(
    ladders: Ladders,
    block: Block,
    beliefs: Beliefs,
    scales: Float[Array, "event"],
    readings: Readings,
    noise: Params,
    terms: int,
) -> tuple[Beliefs, Float[Array, "series"]]:
    """Every species once in its turn; and the bound for each series, which does not fall.

    `terms` of the exponential series must be enough for what leaves in a substep; see `spread`.
    """
    for species in range(ladders.n_species):
        weights = expected_log_density(readings, noise, block, beliefs.laws, species)
        beliefs = _updated(ladders, block, beliefs, scales, weights, species, terms)
    return beliefs, bound(ladders, block, beliefs, scales, readings, noise)


@eqx.filter_jit
def spread(ladders: Ladders, block: Block, beliefs: Beliefs, scales: Float[Array, "event"]) -> Float[Array, ""]:
    """Half the difference between the counts that lose most and least in a substep: what the series has to bear."""
    each = [_leaving(ladders, block, beliefs, scales, s) for s in range(ladders.n_species)]
    return 0.5 * jnp.stack([jnp.ptp(one, -1).max() for one in each]).max()


def _leaving(
    ladders: Ladders, block: Block, beliefs: Beliefs, scales: Float[Array, "event"], species: int
) -> Float[Array, "step series count"]:
    """V of one species, times the duration of the substep; less what is the same for all counts."""
    own, others = ladders.moves[species], ladders.needs[species]
    known, needed = np.array([*own, *others], int), np.array(others, int)
    rest = np.array([s for s in range(ladders.n_species) if s != species], int)
    alone = scales[known, None, None] * beliefs.means[known][:, rest].prod(1) * block.durations
    lost = jnp.einsum("ejb,en->jbn", alone, ladders.ways[species][known])
    return lost - jnp.einsum("ejb,en->jbn", beliefs.numbers[needed], ladders.logs[species][needed])


@eqx.filter_jit
def _updated(
    ladders: Ladders,
    block: Block,
    beliefs: Beliefs,
    scales: Float[Array, "event"],
    weights: Float[Array, "series time count"],
    species: int,
    terms: int,
) -> Beliefs:
    """The best law of one species, given the others, and what they learn from it."""
    own = np.array(ladders.moves[species], int)
    rest = np.array([s for s in range(ladders.n_species) if s != species], int)
    leaving = _leaving(ladders, block, beliefs, scales, species)
    log_base = jnp.log(scales[own])[:, None, None] + beliefs.logs[own][:, rest].sum(1)
    kicks = jnp.where((block.seen >= 0)[..., None], _at(weights, block.seen), 0.0)
    ways, changes = ladders.ways[species], tuple(ladders.changes[e] for e in own)

    def total(log_jumps, leaving, kicks):
        each = _log_partition(log_jumps, leaving, kicks, ways[own], changes, ladders.initial[species], terms)
        return each.sum(), each

    slopes, log_z = jax.grad(total, argnums=(0, 1, 2), has_aux=True)(
        jnp.log(block.durations) + log_base, leaving, kicks
    )
    numbers, dwelt, nodes = slopes[0], -slopes[1], slopes[2]
    energy = (numbers * log_base).sum((0, 1)) - (dwelt * leaving).sum((0, 2)) + (nodes * kicks).sum((0, 2))
    laws = jnp.take_along_axis(jnp.moveaxis(nodes, 0, 1), block.at[..., None], 1)
    return Beliefs(
        means=beliefs.means.at[:, species].set(jnp.einsum("en,jbn->ejb", ways, dwelt)),
        logs=beliefs.logs.at[:, species].set(jnp.einsum("en,jbn->ejb", ladders.logs[species], dwelt)),
        numbers=beliefs.numbers.at[own].set(numbers),
        laws=(*beliefs.laws[:species], laws, *beliefs.laws[species + 1 :]),
        entropies=beliefs.entropies.at[species].set(log_z - energy),
    )


def _at(
    values: Float[Array, "series time count"], index: Int[Array, "step series"]
) -> Float[Array, "step series count"]:
    return jnp.take_along_axis(jnp.moveaxis(values, 1, 0), jnp.maximum(index, 0)[..., None], 0)


def _log_partition(
    log_jumps: Float[Array, "move step series"],
    leaving: Float[Array, "step series count"],
    kicks: Float[Array, "step series count"],
    ways: Float[Array, "move count"],
    changes: tuple[int, ...],
    initial: Float[Array, "count"],
    terms: int,
) -> Float[Array, "series"]:
    """Log of the sum of all weights of paths, from the last substep to the first."""

    distinct = tuple(dict.fromkeys(changes))
    alike = jnp.array([[change == one for change in changes] for one in distinct], float)

    @jax.checkpoint
    def back(future, now):
        log_jumps, leaving, kick = now
        jumps = jnp.einsum("ce,en,eb->cbn", alike, ways, jnp.exp(log_jumps))
        future = _weighed_back(future, jumps, leaving, distinct, terms)
        top = jax.lax.stop_gradient(kick.max(-1, keepdims=True))
        future = future * jnp.exp(kick - top)
        size = jax.lax.stop_gradient(future.max(-1, keepdims=True))
        return future / size, (top + jnp.log(size))[..., 0]

    end = jnp.ones_like(leaving[0])
    future, logs = jax.lax.scan(back, end, (jnp.moveaxis(log_jumps, 1, 0), leaving, kicks), reverse=True)
    return jnp.log(future @ initial) + logs.sum(0)


def _weighed_back(
    values: Float[Array, "series count"],
    jumps: Float[Array, "move series count"],
    leaving: Float[Array, "series count"],
    changes: tuple[int, ...],
    terms: int,
) -> Float[Array, "series count"]:
    """exp(J - diag(leaving)) values, by its series about the middle of what leaves, which need not be what jumps."""
    middle = jax.lax.stop_gradient(0.5 * (leaving.max(-1, keepdims=True) + leaving.min(-1, keepdims=True)))
    stay = middle - leaving

    def term(total, k):
        return values + (stay * total + expected(total, jumps, changes)) / k, None

    total, _ = jax.lax.scan(term, values, jnp.arange(terms, 0, -1.0))  # unrolled, it is slower in every way
    return total * jnp.exp(-middle)


@eqx.filter_jit
def expected_log_density(
    readings: Readings,
    noise: Params,
    block: Block,
    laws: tuple[Float[Array, "series time _"], ...],
    species: int,
) -> Float[Array, "series time count"]:
    """Log density of what was read given one species' count, in the mean over the others that are read with it."""
    counts = jnp.arange(laws[species].shape[-1])
    total = jnp.zeros_like(laws[species])
    for column, shown in enumerate(readings.columns):
        if species not in shown:
            continue
        value = block.values[..., column, None]
        rest = [laws[s] for s in shown if s != species]
        if rest:
            law = _sum_law(rest)
            sums = counts[:, None] + jnp.arange(law.shape[-1])
            logs = readings.log_density(noise, column, value[..., None], sums)
            mean = jnp.einsum("btnm,btm->btn", logs, law)
        else:
            mean = readings.log_density(noise, column, value, counts)
        total = total + jnp.where(block.mask[..., column, None], mean, 0.0)
    return total


def _sum_law(laws: list[Float[Array, "series time _"]]) -> Float[Array, "series time total"]:
    """Law of a sum of independent counts."""
    convolve = jax.vmap(jax.vmap(jnp.convolve))
    result = laws[0]
    for law in laws[1:]:
        result = convolve(result, law)
    return result


def total_law(
    readings: Readings, column: int, laws: tuple[Float[Array, "series time _"], ...]
) -> Float[Array, "series time total"]:
    """Law of what a value would show without noise."""
    return _sum_law([laws[s] for s in readings.columns[column]])


def expected_log_likelihood(
    readings: Readings, noise: Params, block: Block, laws: tuple[Float[Array, "series time _"], ...]
) -> Float[Array, "series"]:
    """E[log p(y)] of each series."""
    result = jnp.zeros(len(block.values))
    for column in range(len(readings.columns)):
        law = total_law(readings, column, laws)
        logs = readings.log_density(noise, column, block.values[..., column, None], jnp.arange(law.shape[-1]))
        result = result + jnp.where(block.mask[..., column], (law * logs).sum(-1), 0.0).sum(1)
    return result


@eqx.filter_jit
def bound(
    ladders: Ladders, block: Block, beliefs: Beliefs, scales: Float[Array, "event"], readings: Readings, noise: Params
) -> Float[Array, "series"]:
    """The bound on the log-likelihood of each series."""
    numbers, ways = events_and_ways(block, beliefs)
    of_rates = xlogy(numbers, scales[:, None]) - scales[:, None] * ways
    of_logs = (beliefs.numbers * beliefs.logs.sum(1)).sum(1)
    seen = expected_log_likelihood(readings, noise, block, beliefs.laws)
    return beliefs.entropies.sum(0) + seen + (of_rates + of_logs).sum(0)


def events_and_ways(
    block: Block, beliefs: Beliefs
) -> tuple[Float[Array, "event series"], Float[Array, "event series"]]:
    """Expected number of events, and the integral of their rates per constant: all that the constants need to know."""
    return beliefs.numbers.sum(1), (beliefs.means.prod(1) * block.durations).sum(1)
