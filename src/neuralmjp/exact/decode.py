"""What the hidden process did: smoothed probabilities, the most likely path, and paths drawn from the posterior."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..mjp import JumpPath, sample_bridges
from ..mjp.generators import generator_from_rates
from ..mjp.paths import joined
from ..mjp.precision import in_double_precision
from ..priors import rates_of
from ..timeseries import TimeSeries
from .chain import log_mass
from .evidence import Laid
from .model import Evidence, Model, Parameters, initial_law, log_emissions
from .transitions import Halving, halving_needed, transition_table


class Prepared:
    """The pieces that every way of decoding needs, for one model and one data set."""

    def __init__(self, model: Model, parameters: Parameters, laid: Laid):
        rates = np.asarray(rates_of(model.rate_model, parameters.rates))
        self.laid, self.rates = laid, rates
        self.table, self.logs, self.law = _pieces(
            model, parameters, laid.evidence, halving_needed(rates, laid.layout.gaps)
        )


@partial(jax.jit, static_argnames=("model", "halving"))
def _pieces(model: Model, parameters: Parameters, evidence: Evidence, halving: Halving):
    rates = model.rate_model.rates(jnp.asarray(parameters.rates))
    table = transition_table(jnp.asarray(generator_from_rates(rates)), evidence.gaps, halving)
    return table, log_emissions(model, parameters, rates, evidence), initial_law(model, parameters, rates)


@partial(jax.jit, static_argnames="aligned")
def _smooth(table: Array, logs: Array, law: Array, chain, aligned: bool):
    return jax.value_and_grad(log_mass, argnums=1)(table, logs, law, chain, aligned)


@in_double_precision
def smooth(prepared: Prepared) -> tuple[float, Float[np.ndarray, "row state"]]:
    """Log-likelihood (standardised values) and the probability of each state at each observation, given all data."""
    laid = prepared.laid
    value, smoothed = _smooth(prepared.table, prepared.logs, prepared.law, laid.evidence.chain, laid.layout.aligned)
    return float(value), _with_entries(laid, laid.layout.scatter(np.asarray(smoothed)))


def _with_entries(laid: Laid, probabilities: np.ndarray) -> np.ndarray:
    """Where the absorbing state was entered, the likelihood speaks of the state before: the state after is known."""
    evidence = laid.evidence
    if evidence.entered is None or evidence.absorbing is None:
        return probabilities
    dead = laid.layout.scatter(np.asarray(evidence.entered))
    return np.where(dead[:, None], np.eye(probabilities.shape[1])[int(evidence.absorbing)], probabilities)


@jax.jit
def _best_path(log_table: Array, logs: Array, log_law: Array, starts: Array, gap_index: Array):
    """Max-product pass over one chain; a start forgets what was before."""

    def ahead(score, inputs):
        start, gap, log_emission = inputs
        candidates = score[:, None] + log_table[gap]
        moved = jnp.where(start, score.max() + log_law, candidates.max(0))
        came_from = jnp.where(start, score.argmax(), candidates.argmax(0))
        return moved + log_emission, came_from

    last, came_from = jax.lax.scan(ahead, jnp.zeros(len(log_law)), (starts, gap_index, logs))

    def back(state, came_from):
        return came_from[state], state

    _, states = jax.lax.scan(back, last.argmax(), came_from, reverse=True)
    return states


@in_double_precision
def viterbi(prepared: Prepared) -> Int[np.ndarray, "row"]:
    """The single most likely sequence of states at the observations."""
    laid, layout = prepared.laid, prepared.laid.layout
    logs, starts, gap = (layout.scatter(np.asarray(x)) for x in (prepared.logs, layout.starts, layout.gap_index))
    log_table, log_law = (jnp.log(jnp.maximum(x, 1e-300)) for x in (prepared.table, prepared.law))
    states = np.asarray(_best_path(log_table, jnp.asarray(logs), log_law, jnp.asarray(starts), jnp.asarray(gap)))
    return _with_entries(laid, np.eye(len(log_law))[states]).argmax(-1)


@partial(jax.jit, static_argnames="n")
def _draw(table: Array, logs: Array, law: Array, starts: Array, gap_index: Array, key: Array, n: int):
    """Filter forwards, sample backwards: n joint draws of the states at the observations."""

    def ahead(filtered, inputs):
        start, gap, log_emission = inputs
        moved = jnp.where(start, law, filtered @ table[gap])
        new = moved * jnp.exp(log_emission - jnp.where(jnp.isfinite(log_emission.max()), log_emission.max(), 0.0))
        new = new / new.sum()
        return new, new

    _, filtered = jax.lax.scan(ahead, law / law.sum(), (starts, gap_index, logs))

    def back(after, inputs):
        law_here, gap_after, start_after, key = inputs
        # Where the next observation begins a series, it tells nothing about this one.
        weights = law_here * jnp.where(start_after, 1.0, table[gap_after].T[after])
        state = jax.random.categorical(key, jnp.log(weights))
        return state, state

    def one(key):
        keys = jax.random.split(key, len(starts))
        gap_after, start_after = jnp.roll(gap_index, -1), jnp.roll(starts, -1).at[-1].set(True)
        _, states = jax.lax.scan(back, 0, (filtered, gap_after, start_after, keys), reverse=True)
        return states

    return jax.vmap(one)(jax.random.split(key, n))


@in_double_precision
def sample_paths(prepared: Prepared, data: TimeSeries, n: int, key: Array) -> list[list[JumpPath]]:
    """Whole paths from the posterior: `n` for each series, starting at its first observation.

    States at the observations by filtering forwards and sampling backwards, bridges in between.
    """
    layout = prepared.laid.layout
    logs, starts, gap = (layout.scatter(np.asarray(x)) for x in (prepared.logs, layout.starts, layout.gap_index))
    key, bridge_key = jax.random.split(key)
    states = np.asarray(
        _draw(prepared.table, jnp.asarray(logs), prepared.law, jnp.asarray(starts), jnp.asarray(gap), key, n)
    )
    paths = []
    for series in range(len(data)):
        rows = slice(data.offsets[series], data.offsets[series + 1])
        times = data.times[rows] - data.times[rows.start]
        bridge_key, this = jax.random.split(bridge_key)
        paths.append(
            [
                _bridged(prepared.rates, draw[rows], times, k)
                for draw, k in zip(states, jax.random.split(this, n), strict=True)
            ]
        )
    return paths


def _bridged(rates: np.ndarray, states: np.ndarray, times: np.ndarray, key: Array) -> JumpPath:
    if len(times) == 1:
        return JumpPath(np.empty(0), states, 0.0)
    bridges = sample_bridges(rates, states[:-1], states[1:], np.diff(times), key=key)
    pieces = [bridges[i] for i in range(len(bridges))]
    jump_times = np.concatenate([start + piece.jump_times for start, piece in zip(times, pieces, strict=False)])
    visited = np.concatenate([[states[0]], *(piece.states[1:] for piece in pieces)])
    return joined(jump_times, visited, float(times[-1]))
