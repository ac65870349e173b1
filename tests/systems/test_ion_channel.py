"""The ion channel: noise, filter and sampling of the current; and the paper's numbers behind its rates."""

import numpy as np
import pytest
from scipy.signal import bessel, freqs, welch
from scipy.stats import kstest

from law import FAILURE, assert_counts_follow, assert_mean
from neuralmjp import InputError
from neuralmjp.systems import IonChannel

# Stationary law (bottom, middle, top), timescales and passage times as the paper's tables give them, in seconds.
PAPER = {
    "one-second": (
        [0.17672, 0.09472, 0.72856],
        [0.02116, 0.00295],
        [[0, 0.019, 0.031], [0.083, 0, 0.014], [0.119, 0.038, 0]],
    ),
    "full": (
        [0.19631, 0.07153, 0.73217],
        [0.0097, 0.00099],
        [[0, 0.008, 0.014], [0.031, 0, 0.006], [0.048, 0.018, 0]],
    ),
}
CUTOFF = 500.0


@pytest.mark.parametrize(
    ("recording", "scale_error", "passage_error"), [("one-second", 3e-4, 1.1e-3), ("full", 5e-6, 3e-4)]
)
def test_paper_rates_reproduce_the_paper(recording, scale_error, passage_error):
    """The paper averages each table over samples of its rates: no one rate matrix gives them all.

    For the full recording ours does to their last digit; for one second it misses the slowest timescale by 1.4 % and
    one passage time (top to bottom) by one unit of the last digit.
    """
    law, scales, passages = PAPER[recording]
    answers = IonChannel.paper(recording).answers()
    np.testing.assert_allclose(answers["stationary_distribution"], law, atol=1e-4)
    np.testing.assert_allclose(answers["timescales"], scales, atol=scale_error)
    np.testing.assert_allclose(answers["mfpt"], passages, atol=passage_error)


@pytest.mark.statistical
def test_current_is_level_plus_white_noise():
    """A correct program fails in 3e-4 of all seeds."""
    simulation = IonChannel(noise_sd=0.7).simulate(1, 50_000, seed=1)
    noise = simulation.data.values[:, 0] - np.array([0.0, 4.0, 6.0])[simulation.states]
    assert kstest(noise, "norm", args=(0, 0.7)).pvalue > FAILURE
    assert_mean(noise**2, 0.49)
    assert_mean(noise[1:] * noise[:-1], 0.0)


@pytest.mark.statistical
def test_states_start_in_the_stationary_law():
    """One state per series; a correct program fails in 1e-4 of all seeds."""
    simulation = IonChannel().simulate(5000, 2, seed=2)
    law = IonChannel().answers()["stationary_distribution"]
    assert_counts_follow(np.bincount(simulation.states[::2], minlength=3), law)


def test_samples_come_at_the_frequency():
    data = IonChannel(frequency=1000.0).simulate(2, duration=0.05, seed=0).data
    np.testing.assert_allclose(data.times.reshape(2, 50), np.tile(np.arange(50) / 1000, (2, 1)), rtol=1e-12)
    assert data.time_unit == "s"


@pytest.fixture(scope="module")
def noise():
    """A silent channel: 100 series of 1000 samples of filtered noise alone."""
    channel = IonChannel(levels=(0.0, 0.0, 0.0), noise_sd=0.4, cutoff=CUTOFF)
    return channel.simulate(100, 1000, seed=3).data.values.reshape(100, 1000)


class TestFilter:
    """A four-pole Bessel filter on signal and noise."""

    @pytest.mark.statistical
    def test_noise_keeps_its_standard_deviation(self, noise):
        """At the start of a series as well as over all of it; a correct program fails in 3e-4 of all seeds."""
        assert_mean((noise**2).mean(1), 0.16)
        assert_mean((noise[:, :5] ** 2).mean(1), 0.16)
        assert_mean(noise.mean(1), 0.0)

    @pytest.mark.statistical
    def test_spectrum_is_that_of_the_filter(self, noise):
        """Each series gives one spectrum; a correct program fails in 1e-4 of all seeds."""
        frequency, power = welch(noise, fs=5000, nperseg=250, detrend=False)
        sections = bessel(4, 2 * np.pi * CUTOFF, analog=True, norm="mag")
        gain = np.abs(freqs(*sections, worN=2 * np.pi * frequency)[1]) ** 2
        density = 0.16 * gain / (gain.sum() * frequency[1])
        chosen = np.isin(frequency, [100, 300, 500, 700, 1000])
        assert_mean(power[:, chosen] / density[chosen], 1.0)
        assert gain[frequency == CUTOFF] == pytest.approx(0.5, abs=1e-3)  # -3 dB at the cutoff

    def test_little_is_left_above_the_cutoff(self, noise):
        frequency, power = welch(noise, fs=5000, nperseg=250, detrend=False)
        power = power.mean(0)
        assert power[frequency > 2 * CUTOFF].sum() < 0.02 * power.sum()
        assert power[frequency > 4 * CUTOFF].max() < 0.002 * power[(frequency > 0) & (frequency < 100)].max()

    def test_a_step_settles_on_the_level(self):
        channel = IonChannel(rates=((0, 20.0), (20.0, 0)), levels=(1.0, 6.0), noise_sd=0.0, cutoff=CUTOFF)
        simulation = channel.simulate(5, 1000, seed=4)
        current, states = (x.reshape(5, 1000) for x in (simulation.data.values, simulation.states))
        levels = np.array(channel.levels)[states]
        settled = np.ones_like(states, bool)
        for shift in range(1, 26):  # no jump within the last 25 samples: 2.5 periods of the cutoff
            settled[:, shift:] &= states[:, shift:] == states[:, :-shift]
        assert (~settled).any()
        np.testing.assert_allclose(current[settled], levels[settled], atol=2e-3)
        np.testing.assert_allclose(current[:, 0], levels[:, 0], atol=1e-9)
        assert current.min() > 1 - 0.05  # a Bessel filter hardly overshoots
        assert current.max() < 6 + 0.05
        between = (current > 2) & (current < 5)
        assert between.any()  # the step itself is smooth

    def test_without_filter_a_step_is_sharp(self):
        channel = IonChannel(rates=((0, 20.0), (20.0, 0)), levels=(1.0, 6.0), noise_sd=0.0)
        assert np.isin(channel.simulate(1, 1000, seed=4).data.values, [1.0, 6.0]).all()


def test_with_parameters():
    channel = IonChannel().with_parameters(rate_0_2=7.0, level_1=3.0, noise_sd=0.1, cutoff=1000.0)
    assert channel.rates[0] == (0.0, IonChannel().rates[0][1], 7.0)
    assert (channel.levels, channel.noise_sd, channel.cutoff) == ((0.0, 3.0, 6.0), 0.1, 1000.0)
    assert channel.with_parameters(cutoff=np.inf).cutoff is None
    assert IonChannel().with_parameters() == IonChannel()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"levels": (0.0, 1.0)}, "2 levels need as many states"),
        ({"rates": ((0.0, -1.0), (1.0, 0.0)), "levels": (0.0, 1.0)}, "rates must not be negative"),
        ({"noise_sd": -1.0}, "noise_sd must not be negative"),
        ({"noise_sd": float("inf")}, "noise_sd must be finite"),
        ({"frequency": 0.0}, "frequency must be positive"),
        ({"levels": (0.0, 1.0, float("nan"))}, "level_2 must be finite"),
        ({"cutoff": 2500.0}, "between 0 and half the sampling frequency, got 2500"),
        ({"cutoff": 0.0}, "cutoff must lie between"),
    ],
)
def test_bad_channels(arguments, message):
    with pytest.raises(InputError, match=message):
        IonChannel(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": "irregular"}, "a filtered current is sampled on a regular grid only"),
        ({"length": 100, "duration": 1.0}, "1 s at 5000 Hz are 5000 samples, not 100"),
        ({"duration": float("inf")}, "duration must be positive and finite"),
        ({"duration": -1.0}, "duration must be positive and finite"),
        ({"duration": 1e-4}, "at least 2 observations"),
    ],
)
def test_bad_requests(arguments, message):
    with pytest.raises(InputError, match=message):
        IonChannel(cutoff=1000.0).simulate(1, seed=0, **arguments)


def test_two_closed_classes_are_refused():
    with pytest.raises(InputError, match="closed classes"):
        IonChannel(rates=((0.0, 0.0), (0.0, 0.0)), levels=(0.0, 1.0)).simulate(1, 10, seed=0)
