"""The likelihood of a hidden chain, and its derivative: forward and backward passes along lanes.

`log_mass` is log sum over all hidden paths of (initial law) x (transitions) x (emissions). Its derivative with respect
to the log emissions is the smoothed probability of each state, with respect to the transition matrices the expected
transitions; so one reverse pass is the E step of EM, and the exact gradient of everything upstream.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Chain(NamedTuple):
    """The fixed part of a data set's likelihood, on the device; arrays are (steps, lanes)."""

    starts: Bool[Array, "step lane"]
    gap_index: Int[Array, "step lane"]
    # Where this is a block of a longer recording: the law that the block before hands over, and how likely all that
    # follows is from each state, up to a factor. The derivative is then that of the whole recording; by `entry` it is
    # how likely this block and all that follows is from each state.
    entry: Float[Array, "state"] | None = None
    after: Float[Array, "state"] | None = None


class Passes(NamedTuple):
    """What the forward pass leaves: normalised filters, their normalisers, and how lanes hand over."""

    filtered: Float[Array, "step state lane"]
    totals: Float[Array, "step lane"]  # probability of each observation given those before it, up to a scale
    entries: Float[Array, "state lane"]  # law handed to each lane by the one before
    log_mass: Float[Array, ""]


@partial(jax.custom_vjp, nondiff_argnums=(4,))
def log_mass(
    table: Float[Array, "gap state state"],
    log_emissions: Float[Array, "step lane state"],
    initial: Float[Array, "state"],
    chain: Chain,
    aligned: bool,
) -> Float[Array, ""]:
    """Log-likelihood of all series together.

    Args:
        table: transition matrix of each distinct gap.
        log_emissions: log density of each observation in each state; 0 where nothing was observed.
        initial: law at the first observation of a series.
        chain: where series start and which gap precedes each observation.
        aligned: every lane begins with a series, so that lanes are independent.
    """
    return forward(table, log_emissions, initial, chain, aligned)[0].log_mass


def _emissions(log_emissions: Array) -> tuple[Array, Array]:
    """Emissions scaled to a largest value of one per step, lanes last, and the log of the scale."""
    top = log_emissions.max(-1)
    top = jnp.where(jnp.isfinite(top), top, 0.0)
    return jnp.exp(log_emissions - top[..., None]).swapaxes(1, 2), top


def forward(table: Array, log_emissions: Array, initial: Array, chain: Chain, aligned: bool):
    """Filter every lane; also returns what the backward pass needs."""
    emissions, scale = _emissions(log_emissions)
    moves = _Moves(table)
    n_states, n_lanes = emissions.shape[1:]
    entry = jnp.full(n_states, 1.0 / n_states) if chain.entry is None else chain.entry
    if aligned:
        entries = jnp.broadcast_to(entry[:, None], (n_states, n_lanes))
        joins = None
    else:
        joins = _transfers(moves, emissions, initial, chain)
        entries = _handed_over(joins, entry)

    def step(law, inputs):
        start, gap, emission = inputs
        moved = (law[:, None, :] * moves(gap)).sum(0)
        law = jnp.where(start, initial[:, None], moved) * emission
        total = law.sum(0)
        law = law / jnp.where(total > 0, total, 1.0)
        return law, (law, total)

    _, (filtered, totals) = jax.lax.scan(step, entries, (chain.starts, chain.gap_index, emissions))
    result = jnp.log(totals).sum() + scale.sum()
    return Passes(filtered, totals, entries, result), (emissions, moves, joins)


class _Moves(NamedTuple):
    """Transition matrices of one step in all lanes; lanes last, as everywhere, for vector units."""

    table: Float[Array, "gap state state"]

    def __call__(self, gap: Int[Array, "lane"]) -> Float[Array, "state state lane"]:
        return jnp.moveaxis(self.table[gap], 0, -1)


def _transfers(moves: _Moves, emissions: Array, initial: Array, chain: Chain) -> Array:
    """The (K, K) matrix that carries a law across each whole lane, up to a factor."""
    n_states, n_lanes = emissions.shape[1:]

    def step(matrix, inputs):
        start, gap, emission = inputs
        moved = (matrix[:, :, None, :] * moves(gap)[None]).sum(1)
        anew = matrix.sum(1)[:, None, :] * initial[None, :, None]
        matrix = jnp.where(start, anew, moved) * emission
        total = matrix.sum((0, 1))
        return matrix / jnp.where(total > 0, total, 1.0), None

    eye = jnp.broadcast_to(jnp.eye(n_states)[:, :, None], (n_states, n_states, n_lanes))
    matrix, _ = jax.lax.scan(step, eye, (chain.starts, chain.gap_index, emissions))
    return jnp.moveaxis(matrix, -1, 0)


def _products(matrices: Array, reverse: bool) -> Array:
    """Normalised running products of the lanes' transfer matrices, from the left or from the right."""

    def join(first, second):
        product = (second @ first) if reverse else (first @ second)
        total = product.sum((-2, -1), keepdims=True)
        return product / jnp.where(total > 0, total, 1.0)

    return jax.lax.associative_scan(join, matrices, reverse=reverse)


def _handed_over(joins: Array, entry: Array) -> Array:
    """The law that enters each lane: what all lanes before it leave of the first one."""
    laws = jnp.einsum("i,lij->lj", entry, _products(joins, reverse=False))
    laws = laws / _positive(laws.sum(-1, keepdims=True))
    return jnp.concatenate([entry[None], laws[:-1]]).T


def _expected_after(joins: Array, after: Array) -> Array:
    """For each lane, how likely everything after it is from each state, up to a factor."""
    each = jnp.einsum("lij,j->li", _products(joins, reverse=True), after)
    return jnp.concatenate([each[1:], after[None]]).T


def _fwd(table: Array, log_emissions: Array, initial: Array, chain: Chain, aligned: bool):
    passes, (emissions, moves, joins) = forward(table, log_emissions, initial, chain, aligned)
    return passes.log_mass, (passes, emissions, moves, joins, initial, chain)


def _bwd(aligned: bool, saved, cotangent: Array):
    passes, emissions, moves, joins, initial, chain = saved
    n_states, n_lanes = emissions.shape[1:]
    n_gaps = len(moves.table)
    last = jnp.ones(n_states) if chain.after is None else chain.after
    after = jnp.broadcast_to(last[:, None], (n_states, n_lanes)) if aligned else _expected_after(joins, last)
    before = jnp.concatenate([passes.entries[None], passes.filtered[:-1]])

    def step(after, inputs):
        start, gap, emission, law, previous = inputs
        ahead = emission * after  # likelihood of this observation and all later ones
        move = moves(gap)
        back = (move * ahead[None]).sum(1)
        smoothed = law * after
        smoothed = smoothed / _positive(smoothed.sum(0))
        joint = _positive((previous * back).sum(0))
        entered = jnp.where(start, 0.0, previous / joint)
        after = jnp.where(start, (initial[:, None] * ahead).sum(0), back)
        return after / _positive(after.sum(0)), (smoothed, entered, ahead)

    inputs = (chain.starts, chain.gap_index, emissions, passes.filtered, before)
    ahead_of_all, (smoothed, entered, ahead) = jax.lax.scan(step, after, inputs, reverse=True)
    d_initial = jnp.where(chain.starts[:, None, :], smoothed, 0.0).sum((0, 2)) / _positive(initial)
    d_table = _expected_moves(entered, ahead, chain.gap_index, n_gaps)
    d_entry = None
    if chain.entry is not None:
        d_entry = cotangent * ahead_of_all[:, 0] / _positive(chain.entry @ ahead_of_all[:, 0])
    d_chain = Chain(None, None, d_entry, None)  # type: ignore[arg-type]
    return cotangent * d_table, cotangent * smoothed.swapaxes(1, 2), cotangent * d_initial, d_chain


def _expected_moves(entered: Array, ahead: Array, gap_index: Array, n_gaps: int) -> Float[Array, "gap state state"]:
    """Sum of the outer products entered x ahead over all steps with the same gap."""
    n_states = entered.shape[1]
    left = jnp.moveaxis(entered, 1, -1).reshape(-1, n_states)
    right = jnp.moveaxis(ahead, 1, -1).reshape(-1, n_states)
    if n_gaps <= 4:  # regular grids: a product per gap beats a scatter
        chosen = gap_index.reshape(-1)
        return jnp.stack([(left * (chosen == g)[:, None]).T @ right for g in range(n_gaps)])
    outer = left[:, :, None] * right[:, None, :]
    return jax.ops.segment_sum(outer, gap_index.reshape(-1), num_segments=n_gaps)


def _positive(total: Array) -> Array:
    return jnp.where(total > 0, total, 1.0)


log_mass.defvjp(_fwd, _bwd)
