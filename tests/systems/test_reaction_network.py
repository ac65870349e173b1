"""Reaction networks: simulation and the generator on the lattice against each other and against solved cases."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse.linalg import expm_multiply
from scipy.stats import poisson

from law import assert_counts_follow, assert_mean
from neuralmjp import InputError
from neuralmjp.mjp import uniformised_action
from neuralmjp.systems import Reaction, ReactionNetwork, lattice_flow, lotka_volterra, parse_network, sparse_generator
from neuralmjp.systems.lattice import event_rates

TRIMER = "3 X -> Y @ c = 0.1\nY -> 3 X @ d = 1\nbox X 7\nbox Y 3\nbirths-at-zero 0.01"
OUTWARDS = "X -> 2 X @ a = 1\nX + Y -> 2 Y @ b = 0.5\nY -> 0 @ c = 2\n0 -> 3 Y @ d = 0.3\nbox X 4\nbox Y 6"


def small_lotka_volterra() -> ReactionNetwork:
    return replace(lotka_volterra(), largest=(11, 11), start=((6, 6), (4, 4)), noise="none")


NETWORKS = [small_lotka_volterra(), parse_network(TRIMER), parse_network(OUTWARDS)]


def point_mass(network: ReactionNetwork) -> np.ndarray:
    mass = np.zeros(network.box)
    mass[tuple(low for low, _ in network.start)] = 1.0
    return mass


def test_lotka_volterra_rates_are_the_papers():
    network = lotka_volterra(2.0, 3.0, 5.0, 7.0)
    rates = np.asarray(event_rates(network, network.process()))
    x, y = np.meshgrid(np.arange(60), np.arange(60), indexing="ij")
    expected = [2 * x * (x < 59), 3 * x * y, 5 * x * y * (y < 59), 7 * y, 1e-6 * (x == 0), 1e-6 * (y == 0)]
    np.testing.assert_allclose(rates, expected, rtol=1e-14)
    assert network.changes.tolist() == [[1, 0], [-1, 0], [0, 1], [0, -1], [1, 0], [0, 1]]


def test_lotka_volterra_defaults_are_the_papers():
    network = lotka_volterra()
    assert network.parameters == {"alpha": 5e-4, "beta": 1e-4, "delta": 1e-4, "gamma": 5e-4}
    assert network.start == ((5, 20), (5, 20))
    assert (network.duration, network.noise, network.noise_scale) == (1500, "gaussian", 1)


@pytest.mark.parametrize("consumed", [1, 2, 3])
def test_mass_action_counts_combinations(consumed):
    network = parse_network(f"{consumed} X -> 0 @ c = 0.5\nbox X 9")
    rates = np.asarray(event_rates(network, network.process()))[0]
    ways = {1: lambda x: x, 2: lambda x: x * (x - 1) / 2, 3: lambda x: x * (x - 1) * (x - 2) / 6}[consumed]
    np.testing.assert_allclose(rates, [0.5 * ways(x) for x in range(10)])


def test_catalysts_that_are_missing_stop_the_reaction():
    network = parse_network("2 X -> 2 X + Y @ c = 1\nbox X 4\nbox Y 2")
    rates = np.asarray(event_rates(network, network.process()))[0]
    np.testing.assert_allclose(rates[:, 0], [0, 0, 1, 3, 6])


def test_births_happen_at_zero_only():
    network = parse_network("X -> 0 @ d = 0\nbox X 5\nbirths-at-zero 0.25")
    np.testing.assert_allclose(event_rates(network, network.process())[1], [0.25, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("network", NETWORKS, ids=["lotka-volterra", "trimer", "outwards"])
class TestLattice:
    def test_generator_keeps_all_mass_inside_the_box(self, network):
        generator = sparse_generator(network)
        assert generator.shape == (np.prod(network.box),) * 2
        np.testing.assert_allclose(generator.sum(1), 0, atol=1e-12)
        assert (generator - np.diag(generator.diagonal())).min() >= 0

    def test_generator_cell_by_cell(self, network):
        """Every jump as the definition says, by loops over cells and events."""
        expected = np.zeros((np.prod(network.box),) * 2)
        rates = np.asarray(event_rates(network, network.process()))
        for cell in np.ndindex(*network.box):
            for rate, change in zip(rates, network.changes, strict=True):
                after = tuple(np.array(cell) + change)
                inside = all(0 <= n <= most for n, most in zip(after, network.largest, strict=True))
                assert inside or rate[cell] == 0
                if inside:
                    here, there = (np.ravel_multi_index(c, network.box) for c in (cell, after))
                    expected[here, there] += rate[cell]
                    expected[here, here] -= rate[cell]
        np.testing.assert_allclose(sparse_generator(network).toarray(), expected, atol=1e-14)

    def test_flow_is_the_generator(self, network):
        mass = np.random.default_rng(0).random(network.box)
        flow, fastest = lattice_flow(network)
        generator = sparse_generator(network)
        np.testing.assert_allclose(np.asarray(flow(jnp.asarray(mass))).ravel(), mass.ravel() @ generator, atol=1e-12)
        assert fastest == pytest.approx(-generator.diagonal().min())

    def test_propagation_agrees_with_scipy(self, network):
        start = point_mass(network)
        flow, fastest = lattice_flow(network)
        time = 12 / fastest
        ours = uniformised_action(flow, jnp.asarray(start), time, fastest=fastest)
        theirs = expm_multiply(sparse_generator(network).T * time, start.ravel())
        np.testing.assert_allclose(np.asarray(ours.vector).ravel(), theirs, atol=1e-9)
        assert ours.error < 1e-9


@pytest.mark.statistical
def test_simulated_lotka_volterra_follows_the_exact_joint_law():
    """Both species at one time, 20,000 series; a correct program fails in 1e-4 of all seeds."""
    network, time = small_lotka_volterra(), 600.0
    counts = network.simulate(20_000, 2, grid="regular", duration=time, seed=5).states.reshape(-1, 2, 2)
    assert (counts[:, 0] == (6, 4)).all()
    flow, fastest = lattice_flow(network)
    exact = uniformised_action(flow, jnp.asarray(point_mass(network)), time, fastest=fastest).vector
    seen = np.zeros(network.box)
    np.add.at(seen, tuple(counts[:, 1].T), 1)
    assert_counts_follow(seen, exact)


@pytest.mark.statistical
def test_immigration_and_death_give_a_poisson_law():
    """After 20 lifetimes the start is forgotten (to e^-20); a correct program fails in 1e-4 of all seeds."""
    network = parse_network("0 -> X @ k = 2\nX -> 0 @ d = 0.5\nnoise none")
    counts = network.simulate(20_000, 2, grid="regular", duration=40.0, seed=3).states.reshape(-1, 2)
    assert (counts[:, 0] == 10).all()
    assert_counts_follow(np.bincount(counts[:, 1], minlength=60), poisson.pmf(np.arange(60), 4.0))


@pytest.mark.statistical
def test_starts_are_uniform_over_their_range():
    """A correct program fails in 1e-4 of all seeds."""
    network = parse_network("X -> 0 @ d = 0\nY -> 0 @ e = 0\nstart X 5..7\nstart Y 0..1\nnoise none")
    counts = network.simulate(5000, 2, seed=2).states.reshape(-1, 2, 2)
    np.testing.assert_array_equal(counts[:, 0], counts[:, 1])
    assert_counts_follow(np.bincount(2 * (counts[:, 0, 0] - 5) + counts[:, 0, 1], minlength=6), np.ones(6))


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_two_sided_exponential_noise(scale):
    """Whole numbers n with probability proportional to exp(-|n| / scale); a correct program fails in 1e-4."""
    network = parse_network(f"X -> 0 @ d = 0\nnoise two-sided-exponential {scale}")
    simulation = network.simulate(10_000, 2, seed=4)
    noise = simulation.data.values[:, 0] - simulation.states[:, 0]
    numbers = np.arange(-60, 61)
    assert np.isin(noise, numbers).all()
    counts = np.bincount((noise + 60).astype(int), minlength=121)
    assert_counts_follow(counts, np.exp(-np.abs(numbers) / scale))


@pytest.mark.statistical
def test_gaussian_noise():
    """Mean and variance; a correct program fails in 2e-4 of all seeds."""
    simulation = replace(lotka_volterra(), noise_scale=2.0).simulate(5000, 2, seed=1)
    noise = simulation.data.values - simulation.states
    assert_mean(noise.ravel(), 0.0)
    assert_mean(noise.ravel() ** 2, 4.0)


def test_no_noise():
    simulation = replace(lotka_volterra(), noise_scale=0.0).simulate(5, 10, seed=1)
    np.testing.assert_array_equal(simulation.data.values, simulation.states)


def test_constants_may_be_traced():
    network = lotka_volterra()
    values = {name: jnp.asarray(2 * value) for name, value in network.constants.items()}
    twice = event_rates(network, network.process(values))[:4]
    np.testing.assert_allclose(twice, 2 * event_rates(network, network.process())[:4], rtol=1e-14)


def test_with_parameters():
    assert lotka_volterra().with_parameters(beta=0.5).constants["beta"] == 0.5
    with pytest.raises(InputError, match="no parameter 'zeta'; it has alpha, beta, delta, gamma"):
        lotka_volterra().with_parameters(zeta=1.0)
    with pytest.raises(InputError, match="alpha must not be negative"):
        lotka_volterra().with_parameters(alpha=-1.0)


DEATH = Reaction({"X": 1}, {}, "d")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reactions": (Reaction({"Z": 1}, {}, "d"),)}, "names 'Z', which is not among the species"),
        ({"constants": {}}, "no value is given for the rate constant 'd'"),
        ({"constants": {"d": float("nan")}}, "d must not be negative"),
        ({"constants": {"d": 1.0, "noise": -1.0}}, "noise must not be negative"),
        ({"births_at_zero": -1.0}, "births_at_zero must not be negative"),
        ({"noise_scale": -1.0}, "noise_scale must not be negative"),
        ({"start": ((3, 10),)}, r"X must start inside its box 0..9, got 3..10"),
    ],
)
def test_bad_networks(changes, message):
    good = {"species": ("X",), "reactions": (DEATH,), "constants": {"d": 1.0}, "largest": (9,), "start": ((3, 3),)}
    with pytest.raises(InputError, match=message):
        ReactionNetwork(**{**good, **changes})
