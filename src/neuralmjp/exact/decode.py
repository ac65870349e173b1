"""What the hidden process did: smoothed probabilities, the most likely path, and paths drawn from the posterior."""

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.special import logsumexp

from ..errors import InputError
from ..mjp import JumpPath, sample_bridges
from ..mjp.paths import joined
from ..mjp.precision import in_double_precision
from ..priors import rates_of
from ..timeseries import TimeSeries
from .chain import forward, log_mass
from .evidence import Laid
from .model import Evidence, Model, Parameters, expectations, ingredients, log_emissions
from .transitions import Halving, halving_needed, transition_table

BRIDGES_AT_ONCE = 1 << 17  # keeps the memory for sampled paths below some hundred MB


class Prepared:
    """The pieces that every way of decoding needs, for one model and one data set."""

    def __init__(self, model: Model, parameters: Parameters, laid: Laid):
        rates = np.asarray(rates_of(model.rate_model, parameters.rates))
        self.model, self.parameters, self.laid, self.rates = model, parameters, laid, rates
        self.halving = halving_needed(rates, laid.layout.gaps)
        self.table, self.logs, self.law = _pieces(model, parameters, laid.evidence, self.halving)


@partial(jax.jit, static_argnames=("model", "halving"))
def _pieces(model: Model, parameters: Parameters, evidence: Evidence, halving: Halving):
    made = ingredients(model, evidence, parameters)
    logs = made.logs
    if model.emission.hidden_level:  # a path of states alone is judged by each observation given the one before
        logs = log_emissions(model, parameters, jnp.asarray(model.rate_model.rates(parameters.rates)), evidence)
    return transition_table(made.generator, evidence.gaps, halving), logs, made.law


@partial(jax.jit, static_argnames="aligned")
def _smooth(table: Array, logs: Array, law: Array, chain, aligned: bool):
    return jax.value_and_grad(log_mass, argnums=1)(table, logs, law, chain, aligned)


@in_double_precision
def smooth(prepared: Prepared) -> tuple[float, Float[np.ndarray, "row state"]]:
    """Log-likelihood (standardised values) and the probability of each state at each observation, given all data."""
    laid = prepared.laid
    if prepared.model.emission.hidden_level:
        found = expectations(prepared.model, prepared.parameters, laid.evidence, laid.layout.aligned, prepared.halving)
        return float(found.log_likelihood), laid.layout.scatter(np.asarray(found.smoothed))
    value, smoothed = _smooth(prepared.table, prepared.logs, prepared.law, laid.evidence.chain, laid.layout.aligned)
    return float(value), _with_entries(laid, laid.layout.scatter(np.asarray(smoothed)))


class Ahead(NamedTuple):
    """What was expected at each observation, before it was made."""

    states: Float[np.ndarray, "row state"]  # law of the state, given the observations before
    log_density: Float[np.ndarray, "row"]  # of the observation itself, given those before


@partial(jax.jit, static_argnames="aligned")
def _filtered(table: Array, logs: Array, law: Array, chain, aligned: bool):
    return forward(table, logs, law, chain, aligned)[0].filtered.swapaxes(1, 2)


@in_double_precision
def one_step_ahead(prepared: Prepared) -> Ahead:
    """The filter, carried to the next observation by exp(F gap); a series begins with the initial law."""
    laid, layout = prepared.laid, prepared.laid.layout
    if prepared.model.emission.hidden_level:
        raise InputError(f"one step ahead, the emission {prepared.model.emission.name} has no law of states alone")
    found = _filtered(prepared.table, prepared.logs, prepared.law, laid.evidence.chain, layout.aligned)
    filtered, logs, starts, gap = (
        layout.scatter(np.asarray(each)) for each in (found, prepared.logs, layout.starts, layout.gap_index)
    )
    moved = np.einsum("ti,tij->tj", np.roll(filtered, 1, axis=0), np.asarray(prepared.table)[gap])
    law = np.asarray(prepared.law)
    states = np.where(starts[:, None], law / law.sum(), moved)
    with np.errstate(divide="ignore"):
        density = logsumexp(np.log(np.where(starts[:, None], law, moved)) + logs, axis=1)
    return Ahead(states, np.asarray(density))


def _entries(laid: Laid) -> tuple[Bool[np.ndarray, "row"], int]:
    """Where the absorbing state was entered, and which it is."""
    evidence = laid.evidence
    if evidence.entered is None or evidence.absorbing is None:
        return np.zeros((laid.layout.rows >= 0).sum(), dtype=bool), 0
    return laid.layout.scatter(np.asarray(evidence.entered)), int(evidence.absorbing)


def _with_entries(laid: Laid, probabilities: Float[np.ndarray, "row state"]) -> Float[np.ndarray, "row state"]:
    """Where the absorbing state was entered, the likelihood speaks of the state before: the state after is known."""
    entered, absorbing = _entries(laid)
    return np.where(entered[:, None], np.eye(probabilities.shape[1])[absorbing], probabilities)


@in_double_precision
def require_possible(prepared: Prepared, data: TimeSeries) -> None:
    """Raise one line that names the first observation that the model says cannot happen, if there is one."""
    laid = prepared.laid
    passes, _ = forward(prepared.table, prepared.logs, prepared.law, laid.evidence.chain, laid.layout.aligned)
    impossible = np.flatnonzero(~(laid.layout.scatter(np.asarray(passes.totals)) > 0))
    if impossible.size:
        row = int(impossible[0])
        series = int(np.searchsorted(data.offsets, row, side="right")) - 1
        raise InputError(
            f"series {data.names[series]!r}, time {data.times[row]:g}: this observation cannot happen under the model; "
            "allow more jumps in the mask, or readings in the table of misreadings"
        )


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
    log_table, log_law = jnp.log(prepared.table), jnp.log(prepared.law)
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

    States at the observations by filtering forwards and sampling backwards, bridges in between. The jump into an
    absorbing state whose time is known is the end of its path.
    """
    layout = prepared.laid.layout
    logs, starts, gap = (layout.scatter(np.asarray(x)) for x in (prepared.logs, layout.starts, layout.gap_index))
    key, bridge_key = jax.random.split(key)
    states = np.asarray(
        _draw(prepared.table, jnp.asarray(logs), prepared.law, jnp.asarray(starts), jnp.asarray(gap), key, n)
    )
    at_once = max(BRIDGES_AT_ONCE // len(data.gaps), 1)
    paths: list[list[JumpPath]] = [[] for _ in range(len(data))]
    for some in np.split(states, range(at_once, n, at_once)):
        bridge_key, this = jax.random.split(bridge_key)
        for series, found in enumerate(_bridged(prepared, data, some, this)):
            paths[series] += found
    return paths


def _bridged(
    prepared: Prepared, data: TimeSeries, states: Int[np.ndarray, "draw row"], key: Array
) -> list[list[JumpPath]]:
    """Paths of every series through the drawn states, all bridges at once."""
    n = len(states)
    inner = np.delete(np.arange(data.n_observations), data.offsets[:-1])  # rows with one before them
    bridges = sample_bridges(
        prepared.rates, states[:, inner - 1].ravel(), states[:, inner].ravel(), np.tile(data.gaps, n), key=key
    )
    began = np.repeat(data.times[data.offsets[:-1]], data.lengths)
    events = bridges.event_times.reshape(n, len(inner), -1) + (data.times - began)[inner - 1][:, None]
    visits = bridges.states[:, 1:].reshape(events.shape)
    entered, absorbing = _entries(prepared.laid)
    paths = []
    for series, (start, stop) in enumerate(pairwise(data.offsets)):
        gaps = slice(start - series, stop - series - 1)  # every series before has one gap fewer than rows
        length = float(data.times[stop - 1] - data.times[start])
        times = events[:, gaps].reshape(n, -1)
        visited = np.concatenate([states[:, [start]], visits[:, gaps].reshape(n, -1)], axis=1)
        if entered[stop - 1]:  # what was drawn is the state before
            times = np.concatenate([times, np.full((n, 1), length)], axis=1)
            visited = np.concatenate([visited, np.full((n, 1), absorbing)], axis=1)
        paths.append([joined(t, v, length) for t, v in zip(times, visited, strict=True)])
    return paths
