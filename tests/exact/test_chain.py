"""Lanes side by side, lanes cut and joined, and a plain pass in logarithms: three ways to one likelihood."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from exact.test_layout import ragged
from neuralmjp import TimeSeries
from neuralmjp.exact.chain import Chain, log_mass
from neuralmjp.exact.layout import Layout, lay_out

ALIGNED = 9  # states for which no recording is cut


class Problem(NamedTuple):
    """A random chain: transition matrices per gap, log emissions per observation, initial law."""

    data: TimeSeries
    layout: Layout
    table: np.ndarray
    logs: np.ndarray
    law: np.ndarray


def problem(lengths, n_states, seed=0, spread=3.0, aligned=None):
    data = ragged(lengths, seed)
    layout = lay_out(data, ALIGNED if aligned else n_states)
    assert aligned is None or layout.aligned == aligned
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(n_states, 0.5), (len(layout.gaps), n_states))
    table[0] = np.eye(n_states)  # no time, no change: the gap of padding
    logs = spread * rng.normal(size=(data.n_observations, n_states)) - 5.0
    logs[rng.random(logs.shape) < 0.1] = -np.inf  # some states cannot show some observations
    logs[np.isinf(logs).all(1)] = 0.0
    return Problem(data, layout, table, logs, rng.dirichlet(np.ones(n_states)))


def by_lanes(p):
    """Value, and derivatives with respect to the table (of true gaps), log emissions (per row) and initial law."""
    chain = Chain(jnp.asarray(p.layout.starts), jnp.asarray(p.layout.gap_index))
    laid = jnp.asarray(p.layout.gather(p.logs, 0.0))
    run = jax.jit(jax.value_and_grad(log_mass, argnums=(0, 1, 2)), static_argnums=4)
    value, (moves, smoothed, first) = run(jnp.asarray(p.table), laid, jnp.asarray(p.law), chain, p.layout.aligned)
    return float(value), np.asarray(moves)[1:], p.layout.scatter(np.asarray(smoothed)), np.asarray(first)


def forward_backward(p):
    """The textbook, in logarithms, one observation after the other."""
    index = np.empty(p.data.n_observations, dtype=int)
    index[p.layout.rows[p.layout.rows >= 0]] = p.layout.gap_index[p.layout.rows >= 0]
    total, moves, smoothed = 0.0, np.zeros_like(p.table), np.empty_like(p.logs)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_table, log_law = np.log(p.table), np.log(p.law)
        for start, stop in zip(p.data.offsets[:-1], p.data.offsets[1:], strict=True):
            ahead = np.empty((stop - start, len(p.law)))
            for t in range(start, stop):
                came = log_law if t == start else logsumexp(ahead[t - start - 1][:, None] + log_table[index[t]], axis=0)
                ahead[t - start] = came + p.logs[t]
            here = logsumexp(ahead[-1])
            total += here
            back = np.zeros(len(p.law))
            for t in reversed(range(start, stop)):
                smoothed[t] = np.exp(ahead[t - start] + back - here)
                if t > start:
                    seen = p.logs[t] + back
                    # The derivative: expected transitions over their probability, so zeros count too.
                    moves[index[t]] += np.exp(ahead[t - start - 1][:, None] + seen - here)
                    back = logsumexp(log_table[index[t]] + seen, axis=1)
    return total, moves[1:], smoothed, smoothed[p.data.offsets[:-1]].sum(0) / p.law


SHAPES = {
    "tiny": ([2], 2),
    "one": ([400], 3),
    "one-cut": ([1001], 2),
    "ragged-cut": ([60, 1, 90, 33, 2, 1, 150, 64], 3),
    "many": ([int(n) for n in np.random.default_rng(5).integers(1, 7, 300)], 2),
}


@pytest.mark.parametrize("name", SHAPES)
def test_likelihood_and_derivatives_are_the_textbooks(name):
    p = problem(*SHAPES[name], seed=len(name))
    for ours, theirs in zip(by_lanes(p), forward_backward(p), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["one", "ragged-cut"])
def test_cut_lanes_equal_whole_ones(name):
    """Joined by an associative scan over transfer matrices, or one long pass."""
    cut, whole = (problem(*SHAPES[name], seed=1, aligned=aligned) for aligned in (False, True))
    assert cut.layout.rows.shape != whole.layout.rows.shape
    for ours, theirs in zip(by_lanes(cut), by_lanes(whole), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("aligned", [False, True])
def test_observations_that_shout(aligned):
    """Log densities thousands of nats apart: scaled numbers vanish, the likelihood must not."""
    p = problem(*SHAPES["ragged-cut"], seed=2, spread=2000.0, aligned=aligned)
    for ours, theirs in zip(by_lanes(p)[::2], forward_backward(p)[::2], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("aligned", [False, True])
def test_impossible_data_have_no_likelihood(aligned):
    p = problem([60, 70], 2, aligned=aligned)
    logs = p.logs.copy()
    logs[100] = -np.inf
    assert by_lanes(p._replace(logs=logs))[0] == -np.inf


@pytest.mark.parametrize(("lengths", "aligned"), [([200_000], False), ([50] * 4000, True)])
def test_two_hundred_thousand_observations(lengths, aligned):
    """Neither under- nor overflow: densities around exp(-300) each, 60 million nats in all."""
    rng = np.random.default_rng(0)
    data = regular(lengths)
    layout = lay_out(data, 2)
    assert layout.aligned == aligned
    table = np.stack([np.eye(2), np.array([[0.95, 0.05], [0.1, 0.9]])])
    logs = 20 * rng.normal(size=(sum(lengths), 2)) - 300
    p = Problem(data, layout, table, logs, np.array([0.3, 0.7]))
    value, moves, smoothed, first = by_lanes(p)
    assert value == pytest.approx(scaled_filter(p, lengths), rel=1e-12)
    assert np.isfinite(moves).all()
    np.testing.assert_allclose(smoothed.sum(1), 1.0, rtol=1e-12)
    assert (moves[0] * table[1]).sum() == pytest.approx(sum(lengths) - len(lengths), rel=1e-9)
    assert (first * p.law).sum() == pytest.approx(len(lengths), rel=1e-9)


def regular(lengths):
    times = np.concatenate([np.arange(n, dtype=float) for n in lengths])
    offsets = np.append(0, np.cumsum(lengths))
    return TimeSeries(times, np.zeros((len(times), 1)), offsets, tuple(map(str, range(len(lengths)))), ("x",))


def scaled_filter(p, lengths):
    """Series of one length side by side, one observation after the other."""
    logs = p.logs.reshape(len(lengths), lengths[0], 2)
    law, total = np.tile(p.law, (len(lengths), 1)), 0.0
    for t in range(lengths[0]):
        top = logs[:, t].max(1, keepdims=True)
        law = (law if t == 0 else law @ p.table[1]) * np.exp(logs[:, t] - top)
        mass = law.sum(1, keepdims=True)
        law, total = law / mass, total + np.log(mass).sum() + top.sum()
    return total
