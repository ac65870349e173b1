"""Thinning, burn-in, angles and scales."""

import numpy as np
import pytest

from neuralmjp import TimeSeries
from neuralmjp.errors import InputError
from neuralmjp.preprocess import shortened, sine_cosine, thinned, to_unit_interval, without_burn_in


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
