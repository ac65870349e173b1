"""The mean field of a small reaction network against enumeration of its whole lattice."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from neuralmjp import InputError
from neuralmjp.posteriors.coupling import Coupling, Motion, free_motion, path_divergence, tilted_motion
from neuralmjp.posteriors.mean_field import law_of
from neuralmjp.systems import lotka_volterra, parse_network

CASCADE = """
    0 -> A          @ make = 0.8
    A -> 0          @ lose = 0.3
    A -> A + B      @ copy = 0.5
    B -> 0          @ fade = 0.4
    box A 5
    box B 6
"""


def small_network():
    return replace(lotka_volterra(0.4, 0.15, 0.12, 0.5), largest=(6, 5), start=((2, 4), (1, 3)), births_at_zero=0.02)


def whole_generator(network, theta=None, floor=1e-3) -> np.ndarray:
    """(cells, cells): the generator of the floored network on all cells."""
    events = network.events().with_floor(floor)
    constants = jnp.asarray(network.process().constants if theta is None else np.exp(theta))
    cells = np.stack(np.meshgrid(*(np.arange(n) for n in network.box), indexing="ij"), -1).reshape(-1, len(network.box))
    place = {tuple(cell): k for k, cell in enumerate(cells.tolist())}
    ways = np.stack(events.ways([jnp.asarray(x) for x in cells.T]))
    rates = np.asarray(events.scales(constants))[:, None] * ways
    matrix = np.zeros((len(cells), len(cells)))
    for rate, change in zip(rates, events.changes, strict=True):
        for k in np.flatnonzero(rate):
            matrix[k, place[tuple(cells[k] + np.array(change))]] += rate[k]
    return matrix - np.diag(matrix.sum(1))


def some_motion(network, n_pieces=40, duration=2.0, seed=0, tilt=0.4):
    """A mean field with random potentials over a stretch of time."""
    coupling = Coupling.of(network.events())
    rng = np.random.default_rng(seed)
    shape = (coupling.n_species, coupling.n_counts)
    first = law_of(coupling, jnp.asarray(rng.normal(size=(3, *shape))))
    smooth = rng.normal(size=(1, 3, *shape)) * np.linspace(0.5, 1, n_pieces)[:, None, None, None]
    durations = jnp.full((n_pieces, 3), duration / n_pieces)
    log_scales = coupling.log_scales(jnp.log(network.process().constants))
    tilts = coupling.tilts(jnp.asarray(tilt * smooth))
    return coupling, tilted_motion(coupling, first, tilts, log_scales, durations), log_scales, durations


def rates_of_motion(coupling, motion: Motion, durations, piece: int, series: int) -> np.ndarray:
    """(cells, cells): the mean field's own generator in one piece, on the whole lattice."""
    jumps = np.asarray(motion.jumps[:, piece, series]) / float(durations[piece, series])
    cells = [tuple(c) for c in np.stack(np.meshgrid(*map(np.arange, coupling.box), indexing="ij"), -1).reshape(-1, 2)]
    place = {cell: k for k, cell in enumerate(cells)}
    matrix = np.zeros((len(cells), len(cells)))
    for w, way in enumerate(coupling.ways):
        for cell, k in place.items():
            for s in range(coupling.n_species):
                there = tuple(x + way * (i == s) for i, x in enumerate(cell))
                if there in place:
                    matrix[k, place[there]] += jumps[w, s, cell[s]]
    return matrix - np.diag(matrix.sum(1))


@pytest.mark.parametrize("network", [small_network(), parse_network(CASCADE)], ids=["predators", "cascade"])
def test_laws_are_those_of_a_product_process(network):
    coupling, motion, _, durations = some_motion(network, n_pieces=12)
    joint = np.einsum("a,b->ab", *np.asarray(motion.laws[0, 1])[:, :])[: coupling.box[0], : coupling.box[1]].ravel()
    for piece in range(len(durations)):
        joint = joint @ expm(rates_of_motion(coupling, motion, durations, piece, 1) * float(durations[piece, 1]))
    joint = joint.reshape(coupling.box)
    found = np.asarray(motion.laws[-1, 1])
    np.testing.assert_allclose(found[0, : coupling.box[0]], joint.sum(1), atol=1e-6)
    np.testing.assert_allclose(found[1, : coupling.box[1]], joint.sum(0), atol=1e-6)


@pytest.mark.parametrize("network", [small_network(), parse_network(CASCADE)], ids=["predators", "cascade"])
def test_divergence_is_that_of_paths_on_the_whole_lattice(network):
    """Gathered along the joint law, with the rates of both processes between all cells."""
    coupling, motion, log_scales, durations = some_motion(network, n_pieces=200)
    prior = whole_generator(network)
    gathered = 0.0
    for piece in range(len(durations)):
        own = rates_of_motion(coupling, motion, durations, piece, 0)
        ends = []
        for node in (piece, piece + 1):
            joint = np.einsum("a,b->ab", *np.asarray(motion.laws[node, 0]))
            joint = joint[: coupling.box[0], : coupling.box[1]].ravel()
            off = ~np.eye(len(prior), dtype=bool) & (own > 0)
            term = np.where(off, own * np.log(np.where(off, own / np.where(off, prior, 1), 1)) - own, 0).sum(1)
            ends.append(joint @ (term - np.diag(prior)))
        gathered += float(durations[piece, 0]) * np.mean(ends)
    found = path_divergence(coupling, motion, log_scales, durations)[0]
    np.testing.assert_allclose(found, gathered, rtol=1e-5)
    assert found > 0


def test_divergence_converges_with_the_pieces():
    values = []
    for n in (20, 40, 80):
        coupling, motion, log_scales, durations = some_motion(small_network(), n_pieces=n)
        values.append(float(path_divergence(coupling, motion, log_scales, durations)[0]))
    assert abs(values[2] - values[1]) < 0.7 * abs(values[1] - values[0])
    assert abs(values[2] - values[1]) < 0.02 * values[2]


def test_no_divergence_for_one_species_without_tilt():
    network = parse_network("0 -> X @ make = 2\nX -> 0 @ lose = 0.3\nbox X 20")
    coupling, motion, log_scales, durations = some_motion(network, tilt=0.0)
    np.testing.assert_allclose(path_divergence(coupling, motion, log_scales, durations), 0.0, atol=1e-12)


def test_free_rates_give_the_same_laws():
    coupling, motion, _, _ = some_motion(small_network())
    again = free_motion(coupling, motion.laws[0], motion.jumps)
    np.testing.assert_allclose(again.laws, motion.laws, atol=1e-12)


def test_gradients_are_finite_differences():
    network = small_network()

    def value(theta):
        coupling = Coupling.of(network.events())
        _, motion, _, durations = some_motion(network, n_pieces=40)  # few jumps in each: the series does not end early
        log_scales = coupling.log_scales(theta)
        moved = tilted_motion(coupling, motion.laws[0], jnp.log1p(motion.jumps), log_scales, durations)
        return path_divergence(coupling, moved, log_scales, durations).sum()

    theta = jnp.log(network.process().constants)
    slope = jax.grad(value)(theta)
    for k in range(len(theta)):
        step = jnp.zeros_like(theta).at[k].set(1e-5)
        difference = (value(theta + step) - value(theta - step)) / 2e-5
        np.testing.assert_allclose(slope[k], difference, rtol=1e-6, atol=1e-8)


def test_reactions_that_change_two_species_are_refused():
    with pytest.raises(InputError, match="change a single species"):
        Coupling.of(parse_network("S + I -> 2 I @ beta = 1\nI -> R @ gamma = 1").events())
