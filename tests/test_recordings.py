"""Recordings of gating that was simulated and played through a real amplifier: the path behind them is known."""

import numpy as np
import pytest

from neuralmjp import ExactMJP, TimeSeries

pytestmark = pytest.mark.slow


@pytest.fixture
def recording(shared_data):
    def named(name):
        table = np.loadtxt(shared_data / "ion_channel" / name, delimiter=",")
        return TimeSeries.from_arrays(table[:, 0], table[:, 1], time_unit="s", value_names=("current",)), table[:, 2]

    return named


@pytest.mark.parametrize("seed", range(3))
def test_one_channel(recording, seed):
    data, opened = recording("1channel_outfinaltest10.csv")
    plain = ExactMJP(2, seed=seed, intervals=False).fit(data)
    assert (plain.decode(data).states == opened).mean() >= 0.999
    found = ExactMJP(3, levels=(0, 0, 1), hum="50Hz", seed=seed, intervals=False).fit(data)
    assert (found.decode(data).levels == opened).mean() >= 0.9995


@pytest.mark.parametrize("seed", range(3))
def test_three_channels(recording, seed):
    data, opened = recording("3channels_outfinaltest1.csv")
    found = ExactMJP(4, seed=seed, intervals=False).fit(data)
    assert (found.decode(data).states == opened).mean() >= 0.985
    path = TimeSeries.from_arrays(data.times, opened, time_unit="s")
    known = ExactMJP(4, emission="categorical", intervals=False).fit(path)
    np.testing.assert_allclose(found.rates.sum(1), known.rates.sum(1), rtol=0.06)


def test_three_channels_with_two_states_per_level(recording):
    data, opened = recording("3channels_outfinaltest1.csv")
    found = ExactMJP(8, levels=(0, 0, 1, 1, 2, 2, 3, 3), hum="50Hz", intervals=False, restarts=3).fit(data)
    assert (found.decode(data).levels == opened).mean() >= 0.988
