"""Brownian folding: the Euler chain against the paper's potential, and against the exact law of its radius."""

import numpy as np
import pytest
from scipy.stats import kstest, ncx2

from law import FAILURE, assert_counts_follow, assert_mean
from neuralmjp import InputError
from neuralmjp.systems import BrownianFolding
from neuralmjp.systems.brownian_folding import slope

STEP = 0.1


def potential(x):
    """U of the paper, at points (..., 5)."""
    out = np.linalg.norm(x, axis=-1) - 3
    return np.where(out < 0, -2.5 * out**2, 0.5 * out**3 - out**2)


def gradient(x, h=1e-5):
    """Of the potential, by central differences."""
    steps = h * np.eye(5)
    return np.stack([(potential(x + s) - potential(x - s)) / (2 * h) for s in steps], axis=-1)


def radial_law(edges):
    """Stationary probability of the radius between `edges`, by powers of the chain on small cells of equal width."""
    cells = np.linspace(0, 9, 721)
    middle = (cells[1:] + cells[:-1]) / 2
    centre = middle - STEP * np.gradient(potential(np.outer(middle, np.eye(5)[0])), middle)
    below = ncx2.cdf(cells[None, :] ** 2 / 0.2, 5, centre[:, None] ** 2 / 0.2)
    move = np.diff(below, axis=1)
    for _ in range(14):
        move = move @ move
    return np.add.reduceat(move[0], np.searchsorted(cells[:-1], edges[:-1]))


@pytest.fixture(scope="module")
def simulation():
    return BrownianFolding().simulate(1000, seed=21)


def test_exact_answers_are_those_of_the_design():
    answers = BrownianFolding().answers()
    np.testing.assert_allclose(answers["stationary_distribution"], [0.727, 0.273], atol=5e-4)
    np.testing.assert_allclose(answers["rates"], [[0, 0.0169], [0.0449, 0]], atol=5e-5)
    np.testing.assert_allclose(answers["timescales"], [16.18], atol=5e-3)


def test_slope_is_the_derivative_of_the_potential():
    radius = np.linspace(0.1, 8, 80)
    points = np.outer(radius, [0.6, 0, 0, 0.8, 0])
    radial = (gradient(points) * points).sum(-1) / radius
    np.testing.assert_allclose(slope(radius), radial, atol=1e-5)


@pytest.mark.statistical
def test_steps_are_euler_steps(simulation):
    """What a step adds to the drift is N(0, 0.2) and knows nothing of it; a correct program fails in 4e-4."""
    x = simulation.data.values.reshape(1000, 100, 5)
    drift = -gradient(x[:, :-1])
    added = x[:, 1:] - x[:, :-1] - STEP * drift
    assert kstest(added.ravel()[::7], "norm", args=(0, np.sqrt(0.2))).pvalue > FAILURE
    inside = np.linalg.norm(x[:, :-1], axis=-1) < 3
    for here in (inside, ~inside):
        assert_mean((added * drift).sum(-1)[here], 0.0)
    assert_mean(added.reshape(-1, 5) ** 2, 0.2)


@pytest.mark.statistical
def test_radius_follows_its_exact_law(simulation):
    """One radius per series; a correct program fails in 1e-4 of all seeds.

    After 1000 steps the start is forgotten up to exp(-100 / 16.18) = 0.002, a tenth of the statistical error.
    """
    radius = np.linalg.norm(simulation.data.values.reshape(1000, 100, 5)[:, -1], axis=-1)
    edges = np.linspace(0, 9, 31)
    assert_counts_follow(np.histogram(radius, edges)[0], radial_law(edges))


def test_hidden_states_are_the_two_sides_of_the_boundary(simulation):
    boundary = BrownianFolding().answers()["boundary"]
    radius = np.linalg.norm(simulation.data.values, axis=-1)
    np.testing.assert_array_equal(simulation.states, radius > boundary)
    assert 2.5 < boundary < 3.2


def test_boundary_splits_the_law_as_the_answers_say():
    boundary = BrownianFolding().answers()["boundary"]
    outside = radial_law(np.array([0, round(boundary * 80) / 80, 9.0]))[1]
    assert outside == pytest.approx(0.273, abs=0.02)


@pytest.mark.statistical
def test_starts_are_the_papers():
    """Mean -1 and variance 4 in each direction, seen after one Euler step from the same draws; fails in 2e-4."""
    start = np.random.default_rng(22).normal(-1, 2, (500, 5))
    first = BrownianFolding(burn_in=0).simulate(500, 2, seed=22).data.values.reshape(500, 2, 5)[:, 0]
    added = first - start + STEP * gradient(start)
    assert_mean(added.ravel(), 0.0)
    assert_mean(added.ravel() ** 2, 0.2)


def test_a_longer_duration_thins_the_steps():
    system = BrownianFolding(burn_in=5)
    data = system.simulate(2, 10, duration=3.0, seed=0).data
    np.testing.assert_allclose(data.times[:10], 0.3 * np.arange(10), atol=1e-12)
    every = system.simulate(2, 30, seed=0).data
    np.testing.assert_array_equal(data.values[:10], every.values[:30:3])


@pytest.mark.parametrize(
    ("length", "duration", "message"),
    [
        (100, 5.0, "100 observations do not fit into 50 steps of 0.1"),
        (100, 19.9, "need a duration that is a multiple of 10, got 19.9"),
        (100, float("inf"), "duration must be positive and finite"),
        (100, -1.0, "duration must be positive and finite"),
        (1, None, "at least 2 observations"),
    ],
)
def test_bad_requests(length, duration, message):
    with pytest.raises(InputError, match=message):
        BrownianFolding().simulate(1, length, duration=duration, seed=0)


def test_it_has_no_parameters():
    assert BrownianFolding().with_parameters() == BrownianFolding()
    with pytest.raises(InputError, match="no parameter 'burn_in'; it has none"):
        BrownianFolding().with_parameters(burn_in=5.0)
    with pytest.raises(InputError, match="burn_in must not be negative"):
        BrownianFolding(burn_in=-1)
