"""To deeptime and back."""

import numpy as np
import pytest

from neuralmjp import ExactMJP, InputError, TimeSeries

DTRAJS = [np.repeat([0, 1, 0, 1, 2, 1, 0], [9, 4, 8, 3, 5, 4, 7]), np.repeat([2, 1, 2, 0], [6, 3, 4, 9])]


@pytest.fixture(scope="module")
def fitted():
    return ExactMJP(3).fit(TimeSeries.from_dtrajs(DTRAJS, lag=0.5, time_unit="ns"))


def test_discrete_trajectories_are_states(fitted):
    assert fitted.emission.name == "categorical"
    assert fitted.time_unit == "ns"
    assert fitted.n_observations == sum(map(len, DTRAJS))


def test_the_same_process_at_a_lag(fitted):
    model = fitted.to_deeptime(2.0)
    np.testing.assert_allclose(model.timescales(), fitted.timescales.mean, rtol=1e-6)
    np.testing.assert_allclose(model.stationary_distribution, fitted.stationary_distribution.mean, rtol=1e-6)
    with pytest.raises(InputError, match="a lag is positive"):
        fitted.to_deeptime(0.0)


def test_one_trajectory_and_missing_frames():
    data = TimeSeries.from_dtrajs(np.array([0, -1, 1]))
    assert len(data) == 1
    assert np.isnan(data.values[1, 0])
    with pytest.raises(InputError, match="whole numbers"):
        TimeSeries.from_dtrajs([[0.5, 1.0]])
    with pytest.raises(InputError, match="lag between frames"):
        TimeSeries.from_dtrajs([[0, 1]], lag=0.0)
