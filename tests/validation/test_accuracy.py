"""The paper's three root mean squared errors, by hand."""

import numpy as np
import pytest

from neuralmjp import InputError
from neuralmjp.validation import accuracy

OBSERVED = np.array([[[1.0, 2.0], [0.0, 0.0]], [[3.0, 0.0], [1.0, 1.0]]])  # series, step, feature
EXPECTED = np.zeros((2, 2, 2))


def test_by_hand():
    found = accuracy(EXPECTED, OBSERVED)
    np.testing.assert_allclose(found.at, np.sqrt([(5 + 9) / 2, (0 + 2) / 2]))
    assert found.overall == pytest.approx(np.sqrt(16 / 4))
    assert found.first(1) == found.at[0]
    assert found.first(2) == pytest.approx(found.at.mean())


def test_what_is_missing_does_not_count():
    observed = OBSERVED.copy()
    observed[1, 0, 1] = np.nan
    found = accuracy(EXPECTED, observed)
    np.testing.assert_allclose(found.at, np.sqrt([5, 1]))
    assert found.overall == pytest.approx(np.sqrt((5 + 0 + 2) / 3))
    observed[0, 0, 0] = np.nan
    assert np.isnan(accuracy(EXPECTED, observed).at[0])
    assert accuracy(EXPECTED, observed).overall == pytest.approx(1.0)


def test_nothing_to_judge():
    with pytest.raises(InputError, match="nothing was observed"):
        accuracy(EXPECTED, np.full((2, 2, 2), np.nan))
    with pytest.raises(InputError, match="there are 2 steps"):
        accuracy(EXPECTED, OBSERVED).first(3)
