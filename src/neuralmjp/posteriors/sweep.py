"""One sweep of coordinate ascent: the best process of every species, given what the others do.

Where all other species are held, the posterior of one is its prior in their field, tilted by its readings and by every
event whose rate it sets (Opper & Sanguinetti 2007). That is a hidden Markov process on one ladder, solved by a forward
and a backward pass: with b_e = exp(E[log f_e]) for its own events, L_e the expected number of all events per time,

    -dr/dt(n) = sum_own b_e(n) (r(n + d_e) - r(n)) - D(n) r(n)
    D(n)      = sum_e E[f_e | n] - sum_own b_e(n) - sum_other L_e log T_e(n)

and rates g_e = b_e r(n + d_e) / r(n) that change inside a piece of time as r does, though the field is constant there.
Along the way the path divergence follows from r at the ends of pieces, because d/dt E[log r] is known.
All species are swept at once. Nothing here has derivatives but by the model's parameters: the posterior is given.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..mjp.ladder import carried, looked_back, shifted
from .coupling import TERMS, Coupling, Motion

LEAST = 1e-35  # of a message, beside its largest
FARTHEST = 30.0  # largest logarithm of what a piece does to a message


class Beliefs(NamedTuple):
    """What one sweep hands to the next: the laws, and how often everything happens."""

    laws: Float[Array, "node series species count"]
    average: Float[Array, "piece series species count"]
    events: Float[Array, "piece series event"]  # expected in each piece


class Swept(NamedTuple):
    beliefs: Beliefs
    held: Float[Array, "series"]  # the path divergence, less what the model's parameters say of these beliefs
    field: Float[Array, "piece series event"]  # logarithm of the rate that each event had but for its own count


def beliefs_of(coupling: Coupling, motion: Motion, log_scales: Float[Array, "event"]) -> Beliefs:
    """Of a mean field with rates of its own."""
    halfway = carried(motion.laws[:-1], motion.jumps / 2, coupling.ways, TERMS)
    average = _simpson(motion.laws[:-1], halfway, motion.laws[1:])
    felt = coupling.felt(average)
    base = coupling.base(felt, log_scales)
    share = jnp.where(base > 0, motion.jumps / jnp.where(base > 0, base, 1.0), 0.0)
    return Beliefs(motion.laws, average, _counted(coupling, share * average, felt + log_scales))


def swept(
    coupling: Coupling,
    beliefs: Beliefs,
    log_scales: Float[Array, "event"],
    durations: Float[Array, "piece series"],
    at_ends: Float[Array, "piece series species count"],
    at_start: Float[Array, "series species count"],
) -> Swept:
    """Every species anew in the field of the others.

    Args:
        at_ends: expected log density of the readings where a piece ends, by count; 0 where nothing is read.
        at_start: the same at the first node, with the logarithm of the law at the start.
    """
    lasting = durations[..., None, None]
    field = coupling.felt(beliefs.average) + log_scales
    base = coupling.base(field, jnp.zeros_like(log_scales))
    log_others = jnp.asarray(coupling.log_others, base.dtype)
    answered = jnp.einsum("pbe,esn->pbsn", beliefs.events, log_others, precision="highest")
    decay = (exits_felt(coupling, beliefs.average, log_scales) - base.sum(0)) * lasting - answered
    jumps = base * lasting

    def over(log_message, jumps, decay, move, share):
        """A message through a share of a piece."""
        peak = log_message.max(-1, keepdims=True)
        half = jnp.exp(jnp.clip(-share * decay / 2, -FARTHEST, FARTHEST))
        moved = half * move(half * jnp.exp(log_message - peak), share * jumps, coupling.ways, TERMS)
        return jnp.log(jnp.maximum(moved, LEAST)) + peak

    def back(after, piece):
        jumps, decay, seen = piece
        before = after + seen  # just before the reading
        earlier = over(before, jumps, decay, looked_back, 1.0)
        return earlier, (earlier, before)

    def ahead(message, piece):
        jumps, decay, seen = piece
        arrived = over(message, jumps, decay, carried, 1.0)
        arrived = arrived - arrived.max(-1, keepdims=True)
        return arrived + seen, (message, arrived)

    by_piece = jnp.moveaxis(jumps, 0, 1)
    _, (early, late) = jax.lax.scan(back, jnp.zeros_like(at_start), (by_piece, decay, at_ends), reverse=True)
    _, (message, arrived) = jax.lax.scan(ahead, at_start, (by_piece, decay, at_ends))
    middle = over(late, jumps, decay, looked_back, 0.5)
    first, halfway, last = (
        jax.nn.softmax(a + b, axis=-1)
        for a, b in ((message, early), (over(message, jumps, decay, carried, 0.5), middle), (arrived, late))
    )
    average = _simpson(first, halfway, last)
    share = _simpson(*(laws * _tilts(coupling, r) for laws, r in ((first, early), (halfway, middle), (last, late))))
    events = _counted(coupling, share * lasting, field)
    risen = (last * late - first * early).sum((-2, -1))
    held = risen - (average * (jumps.sum(0) + decay)).sum((-2, -1)) + (events * field).sum(-1)
    laws = jnp.concatenate([first[:1], last])
    return Swept(Beliefs(laws, average, events), held.sum(0), field)


def swept_divergence(
    coupling: Coupling, found: Swept, log_scales: Float[Array, "event"], durations: Float[Array, "piece series"]
) -> Float[Array, "series"]:
    """Path divergence of what a sweep found, from the prior with these parameters."""
    beliefs = found.beliefs
    ways = coupling.expected_ways(beliefs.average) * durations[..., None]
    felt = coupling.felt(beliefs.average)
    return found.held + (ways * jnp.exp(log_scales) - beliefs.events * (felt + log_scales)).sum((0, -1))


def exits_felt(
    coupling: Coupling, laws: Float[Array, "*lead species count"], log_scales: Float[Array, "event"]
) -> Float[Array, "*lead species count"]:
    """Expected rate of all events together, by the count of each species: the others have their laws."""
    table = jnp.asarray(coupling.table, laws.dtype)
    each = jnp.einsum("...sn,esn->...es", laws, table, precision="highest")
    without = [
        jnp.stack([each[..., r] for r in range(coupling.n_species) if r != s] or [jnp.ones_like(each[..., 0])]).prod(0)
        for s in range(coupling.n_species)
    ]
    rates = jnp.stack(without, axis=-1) * jnp.exp(log_scales)[:, None]  # (..., event, species)
    return jnp.einsum("...es,esn->...sn", rates, table, precision="highest")


def _tilts(coupling: Coupling, log_r: Array) -> Float[Array, "way piece series species count"]:
    """r(n + change) / r(n); nothing from outside the ladder."""
    peak = log_r.max(-1, keepdims=True)
    there = jnp.exp(log_r - peak)
    ratios = [shifted(there, -change) * jnp.exp(jnp.minimum(peak - log_r, 80.0)) for change in coupling.ways]
    return jnp.stack(ratios)


def _counted(coupling: Coupling, share: Array, field: Array) -> Float[Array, "piece series event"]:
    """Expected events, from the weight of each count along each way."""
    own = jnp.asarray(coupling.own, share.dtype)
    return jnp.einsum("wpbsn,ewsn->pbe", share, own, precision="highest") * jnp.exp(field)


def _simpson(first: Array, middle: Array, last: Array) -> Array:
    return (first + 4 * middle + last) / 6
