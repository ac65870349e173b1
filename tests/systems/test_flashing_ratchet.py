"""The flashing ratchet against the paper's formula, the exact answers, and paths simulated by other people."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from law import assert_counts_follow
from neuralmjp import InputError
from neuralmjp.systems import FlashingRatchet

PARAMETERS = [(1.0, 1.0, 1.0, 1.0), (2.0, 0.4, 1.7, 1.0), (0.5, 3.0, 0.2, 2.5), (-1.0, 1.0, 1.0, 0.7)]


def formula(V, r, b, temperature):
    """The paper's rates, one jump at a time; state = position + 3 (potential off)."""
    rates = np.zeros((6, 6))
    for i in range(3):
        for j in range(3):
            if i != j:
                rates[i, j] = np.exp(-V / temperature / 2 * (j - i))
                rates[3 + i, 3 + j] = b
        rates[i, 3 + i] = rates[3 + i, i] = r
    return rates


def joint_law(rates, time):
    """Probability of state i now and state j after `time`, in the long run."""
    generator = rates - np.diag(rates.sum(1))
    law = expm(generator * 200)[0]
    return law[:, None] * expm(generator * time)


def count_pairs(first, second):
    return np.bincount(6 * first + second, minlength=36)


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_rates_are_the_papers(parameters):
    np.testing.assert_allclose(FlashingRatchet(*parameters).rates, formula(*parameters), rtol=1e-14)


def test_exact_answers():
    answers = FlashingRatchet().answers()
    law = [0.3012, 0.1365, 0.0623, 0.2003, 0.1591, 0.1406]
    np.testing.assert_allclose(answers["stationary_distribution"], law, atol=5e-5)
    np.testing.assert_allclose(answers["timescales"], [0.500, 0.350, 0.281, 0.205, 0.159], atol=5e-4)
    assert answers["entropy_production"] == pytest.approx(0.1792, abs=5e-5)
    np.testing.assert_allclose(answers["rates"], formula(1, 1, 1, 1), rtol=1e-14)


def test_no_potential_produces_no_entropy():
    assert FlashingRatchet(V=0.0).answers()["entropy_production"] == pytest.approx(0, abs=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("parameters", [PARAMETERS[1], PARAMETERS[2]])
def test_simulated_pairs_of_states_follow_the_exact_law(parameters):
    """A correct program fails in 1e-4 of all seeds."""
    simulation = FlashingRatchet(*parameters).simulate(20_000, 2, grid="regular", duration=0.4, seed=11)
    states = simulation.states.reshape(-1, 2)
    np.testing.assert_array_equal(simulation.data.values[:, 0], simulation.states)
    assert_counts_follow(count_pairs(*states.T), joint_law(formula(*parameters), 0.4))


class TestRealPaths:
    """Paths and rates published by other people: same order of states, rows are origins, times in units of 2.5."""

    @pytest.fixture
    def published(self, shared_data):
        with np.load(shared_data / "flashing_ratchet" / "dfr_V1.npz") as file:
            return {name.removeprefix("fine_grid_"): np.squeeze(file[name]) for name in file.files}

    def test_rates_are_ours(self, published):
        theirs = published["intensity_matrices"]
        np.testing.assert_allclose(theirs.sum(1), 0, atol=1e-5)  # a generator with origins in rows
        np.testing.assert_allclose(np.where(np.eye(6), 0, theirs), FlashingRatchet().rates, rtol=1e-6)
        law = FlashingRatchet().answers()["stationary_distribution"]
        np.testing.assert_allclose(published["initial_distributions"], law, rtol=1e-5)
        assert published["time_normalization_factors"] == FlashingRatchet.default_duration

    @pytest.mark.statistical
    @pytest.mark.parametrize("lag", [1, 10, 60])
    def test_paths_follow_our_law(self, published, lag):
        """One pair of states per path, so that pairs are independent; correct data fail in 1e-4 of all draws."""
        paths, grid = published["sample_paths"].astype(int), published["grid"]
        start = np.random.default_rng(lag).integers(0, 100 - lag, len(paths))
        row = np.arange(len(paths))
        gaps = 2.5 * (grid[row, start + lag] - grid[row, start])
        np.testing.assert_allclose(gaps, gaps[0], rtol=1e-4)
        pairs = count_pairs(paths[row, start], paths[row, start + lag])
        assert_counts_follow(pairs, joint_law(FlashingRatchet().rates, gaps.mean()))


def test_gradient_through_the_rates():
    def total(p):
        return FlashingRatchet(V=p["V"], r=p["r"], b=p["b"]).rates.sum()

    gradient = jax.jit(jax.grad(total))({"V": jnp.array(1.3), "r": jnp.array(0.5), "b": jnp.array(2.0)})
    steps = [j - i for i in range(3) for j in range(3) if i != j]
    assert gradient["V"] == pytest.approx(sum(-s / 2 * np.exp(-1.3 * s / 2) for s in steps))
    assert (gradient["r"], gradient["b"]) == (6, 6)


@pytest.mark.parametrize("name", ["V", "temperature"])
def test_rates_with_one_traced_parameter(name):
    traced = jax.jit(lambda value: FlashingRatchet(**{name: value}).rates)(2.0)
    np.testing.assert_allclose(traced, FlashingRatchet(**{name: 2.0}).rates, rtol=1e-14)


def test_with_parameters():
    changed = FlashingRatchet().with_parameters(V=2.0, r=0.4)
    assert changed.parameters == {"V": 2.0, "r": 0.4, "b": 1.0, "temperature": 1.0}
    assert FlashingRatchet().parameters["V"] == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"v": 2.0}, r"no parameter 'v'; it has V, r, b, temperature"),
        ({"self": 2.0}, r"no parameter 'self'"),
        ({"r": 0.0}, r"r must be positive, got 0"),
        ({"b": -1.0}, r"b must be positive"),
        ({"temperature": float("inf")}, r"temperature must be positive"),
        ({"V": float("nan")}, r"V must be finite"),
    ],
)
def test_bad_parameters(changes, message):
    with pytest.raises(InputError, match=message):
        FlashingRatchet().with_parameters(**changes)


def test_rates_that_overflow_are_refused():
    with pytest.raises(InputError, match="rates must be finite"):
        FlashingRatchet(V=1e6).simulate(1, 2, seed=0)
