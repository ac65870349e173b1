"""The two-mode switching diffusion: its modes, its exact diffusion, its observation times, its noise."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import expon, kstest, norm

from law import FAILURE, assert_counts_follow, assert_mean
from neuralmjp import InputError
from neuralmjp.systems import TwoMode

GAP = 0.35
FROZEN = TwoMode(up=1e-9, down=1e-9, noise_sd=0.0)


def test_paper_values():
    system = TwoMode()
    np.testing.assert_array_equal(system.rates, [[0, 0.2], [0.2, 0]])
    assert (system.low, system.high, system.relaxation, system.dispersion) == (-1, 1, 1.5, 0.5)
    assert system.noise_sd**2 == pytest.approx(0.1)
    assert system.default_length == 67


def test_exact_answers():
    answers = TwoMode(up=0.3, down=0.1).answers()
    np.testing.assert_allclose(answers["stationary_distribution"], [0.25, 0.75])
    np.testing.assert_allclose(answers["timescales"], [2.5])
    np.testing.assert_array_equal(answers["mode_means"], [-1, 1])
    assert answers["mode_sd"] == pytest.approx(np.sqrt(0.5**2 / 3))


@pytest.fixture(scope="module")
def switching():
    """2000 series of 67 observations at gaps of 0.35, without noise."""
    simulation = TwoMode(noise_sd=0.0).simulate(2000, grid="regular", seed=8)
    return simulation.states.reshape(2000, 67), simulation.data.values.reshape(2000, 67)


@pytest.mark.statistical
@pytest.mark.parametrize("lag", [1, 10])
def test_modes_jump_at_their_rates(switching, lag):
    """A correct program fails in 1e-4 of all seeds."""
    modes, _ = switching
    jumps = 0.5 * expm(np.array([[-0.2, 0.2], [0.2, -0.2]]) * GAP * lag)
    assert_counts_follow(np.bincount(2 * modes[:, 50] + modes[:, 50 + lag], minlength=4), jumps)


@pytest.mark.statistical
def test_asymmetric_modes_are_occupied_by_their_law():
    """A correct program fails in 1e-4 of all seeds."""
    modes = TwoMode(up=0.3, down=0.1).simulate(2000, grid="regular", seed=9).states.reshape(2000, 67)
    assert_counts_follow(np.bincount(modes[:, 0], minlength=2), [0.25, 0.75])
    assert_counts_follow(np.bincount(modes[:, -1], minlength=2), [0.25, 0.75])


@pytest.mark.statistical
@pytest.mark.parametrize("lag", [0, 1, 3, 12])
def test_autocovariance_of_the_switching_level(switching, lag):
    """Against the closed form of the symmetric case; a correct program fails in 1e-4 of all seeds.

    The mode m(t) = -1, 1 has covariance exp(-k t), k = up + down; the level is m filtered by a exp(-a t), which gives
    a (a exp(-k t) - k exp(-a t)) / (a^2 - k^2), plus the diffusion's own s^2 exp(-a t) / (2 a).
    """
    _, level = switching
    a, k, s, t = 1.5, 0.4, 0.5, lag * GAP
    exact = a * (a * np.exp(-k * t) - k * np.exp(-a * t)) / (a**2 - k**2) + s**2 * np.exp(-a * t) / (2 * a)
    assert_mean(level[:, 50] * level[:, 50 + lag], exact)


@pytest.mark.statistical
def test_level_lags_behind_the_mode(switching):
    """E[level x mode] = a / (a + k), where modes count -1 and 1; a correct program fails in 1e-4 of all seeds."""
    modes, level = switching
    assert_mean(level[:, 60] * (2 * modes[:, 60] - 1), 1.5 / 1.9)


@pytest.mark.statistical
def test_level_given_the_mode_is_an_ornstein_uhlenbeck_process():
    """Stationary law, and innovations given the level before; a correct program fails in 3e-4 of all seeds."""
    simulation = FROZEN.simulate(2000, grid="regular", seed=10)
    modes, level = simulation.states.reshape(2000, 67), simulation.data.values.reshape(2000, 67)
    assert (modes == modes[:, :1]).all()
    away = level - np.where(modes == 1, 1.0, -1.0)
    sd, decay = 0.5 / np.sqrt(3), np.exp(-1.5 * GAP)
    assert kstest(away[:, 30], norm(0, sd).cdf).pvalue > FAILURE
    innovations = (away[:, 1:] - decay * away[:, :-1]).ravel()
    assert kstest(innovations, norm(0, sd * np.sqrt(1 - decay**2)).cdf).pvalue > FAILURE
    assert_mean(innovations * away[:, :-1].ravel(), 0.0)


@pytest.mark.statistical
@pytest.mark.parametrize(("reading", "gap"), [("gap", 0.35), ("intensity", 1 / 0.35)])
def test_observations_come_as_a_poisson_process(reading, gap):
    """Gaps, the first from time 0; a correct program fails in 1e-4 of all seeds."""
    data = TwoMode(reading=reading).simulate(100, seed=12).data
    gaps = np.diff(data.times.reshape(100, 67), prepend=0.0)
    assert kstest(gaps.ravel(), expon(scale=gap).cdf).pvalue > FAILURE


def test_regular_observations_come_at_the_mean_gap():
    data = TwoMode(reading="intensity").simulate(2, 10, grid="regular", seed=0).data
    np.testing.assert_allclose(data.times[:10], np.arange(10) / 0.35)


@pytest.mark.statistical
def test_observation_noise_has_variance_one_tenth():
    """The same seed without noise gives the levels; a correct program fails in 2e-4 of all seeds."""
    noisy, clean = (TwoMode(noise_sd=sd).simulate(100, seed=13) for sd in (np.sqrt(0.1), 0.0))
    noise = (noisy.data.values - clean.data.values).ravel()
    assert_mean(noise, 0.0)
    assert_mean(noise**2, 0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"up": 0.0}, "up must be positive"),
        ({"relaxation": -1.0}, "relaxation must be positive"),
        ({"noise_sd": -0.1}, "noise_sd must not be negative"),
        ({"noise_sd": float("nan")}, "noise_sd must be finite"),
        ({"high": float("inf")}, "high must be finite"),
        ({"reading": 1.0}, "no parameter 'reading'"),
    ],
)
def test_bad_parameters(changes, message):
    with pytest.raises(InputError, match=message):
        TwoMode().with_parameters(**changes)
