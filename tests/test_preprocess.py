"""Thinning, burn-in, angles and scales."""

import numpy as np
import pytest

from neuralmjp import TimeSeries
from neuralmjp.errors import InputError
from neuralmjp.preprocess import decimated, shortened, sine_cosine, thinned, to_unit_interval, without_burn_in


def two_series():
    return TimeSeries.from_arrays([np.arange(7.0), np.arange(4.0)], [np.arange(7.0) ** 2, 10 + np.arange(4.0)])


def test_thinning_begins_anew_with_every_series():
    found = thinned(two_series(), 3)
    assert found.times.tolist() == [0, 3, 6, 0, 3]
    assert found.values[:, 0].tolist() == [0, 9, 36, 10, 13]
    assert found.lengths.tolist() == [3, 2]
    assert thinned(two_series(), 1).equals(two_series())
    with pytest.raises(InputError, match="at least 1"):
        thinned(two_series(), 0)


def test_burn_in_leaves_out_short_series():
    found = without_burn_in(two_series(), 4)
    assert found.times.tolist() == [4, 5, 6]
    assert found.names == two_series().names[:1]
    assert without_burn_in(two_series(), 0).equals(two_series())
    with pytest.raises(InputError, match="nothing is left"):
        without_burn_in(two_series(), 7)
    with pytest.raises(InputError, match="number of observations"):
        without_burn_in(two_series(), -1)


def test_the_first_of_each_series():
    assert shortened(two_series(), 2).times.tolist() == [0, 1, 0, 1]
    assert shortened(two_series(), 7).equals(two_series())
    with pytest.raises(InputError, match="at least 1"):
        shortened(two_series(), 0)


def test_angles_that_are_neighbours():
    angles = np.array([[179.0, 90.0], [-179.0, 90.0]])
    found = sine_cosine(TimeSeries.from_arrays(np.arange(2.0), angles, value_names=("phi", "psi")), degrees=True)
    assert found.value_names == ("sin_phi", "cos_phi", "sin_psi", "cos_psi")
    assert np.abs(np.diff(found.values, axis=0)).max() < 0.04
    np.testing.assert_allclose(np.arctan2(found.values[:, 0], found.values[:, 1]), np.deg2rad([179, -179]))


def test_there_and_back():
    data = two_series()
    unit, scale = to_unit_interval(data)
    assert (unit.values.min(), unit.values.max()) == (0.0, 1.0)
    np.testing.assert_allclose(scale.back(unit.values), data.values)
    with pytest.raises(InputError, match="never changes"):
        to_unit_interval(TimeSeries.from_arrays(np.arange(3.0), np.ones(3), value_names=("flat",)))


class TestDecimated:
    """A low-pass filter that moves nothing, then every n-th sample."""

    def test_slow_waves_stay_where_they_are(self):
        times = np.arange(4000) / 1000
        slow = np.cos(2 * np.pi * 3 * times)
        data = decimated(TimeSeries.from_arrays(times, slow), 10)
        np.testing.assert_array_equal(data.times, times[::10])
        np.testing.assert_allclose(data.values[5:-5, 0], slow[::10][5:-5], atol=3e-3)

    def test_fast_waves_are_not_aliased(self):
        """97 Hz seen 100 times a second would look like 3 Hz."""
        times = np.arange(4000) / 1000
        data = decimated(TimeSeries.from_arrays(times, np.cos(2 * np.pi * 97 * times)), 10)
        assert np.abs(data.values[5:-5]).max() < 0.01

    def test_levels_reach_the_ends(self):
        data = decimated(
            TimeSeries.from_arrays([np.arange(11.0), np.arange(30.0)], [np.full(11, -40.0), np.full(30, 7.0)]), 4
        )
        np.testing.assert_allclose(data.values[:, 0], [-40.0] * 3 + [7.0] * 8, rtol=1e-3)
        assert data.lengths.tolist() == [3, 8]

    def test_refused(self):
        with pytest.raises(InputError, match="equal distances, but those of series '0' are not"):
            decimated(TimeSeries.from_arrays([0.0, 1.0, 3.0], [1.0, 2.0, 3.0]), 2)
        with pytest.raises(InputError, match="some are missing"):
            decimated(TimeSeries.from_arrays([0.0, 1.0, 2.0], [1.0, np.nan, 3.0]), 2)
        with pytest.raises(InputError, match="n at least 1; got 0"):
            decimated(TimeSeries.from_arrays([0.0, 1.0], [1.0, 2.0]), 0)
