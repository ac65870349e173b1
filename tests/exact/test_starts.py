"""Where fits begin: every numbering of the states that a mask tells apart, and starts to which data are impossible."""

import jax
import numpy as np
import pytest

from neuralmjp import ExactMJP, InputError, TimeSeries, mjp
from neuralmjp.exact.starts import labellings
from neuralmjp.exact.transitions import halving_needed

DOWN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
CHAIN = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def staircase(levels, n_series=30, length=60):
    """Two steps from one level to the next, after ten units of time each; noise a fifth of a step."""
    rng = np.random.default_rng(0)
    times = np.arange(float(length))
    ends = np.cumsum(rng.exponential(10, size=(n_series, 2)), axis=1)
    states = (times[None, :, None] > ends[:, None, :]).sum(-1)
    return TimeSeries.from_arrays(
        np.tile(times, (n_series, 1)), np.array(levels)[states] + 0.2 * rng.normal(size=states.shape)
    )


@pytest.mark.parametrize("levels", [(2.0, 1.0, 0.0), (0.0, 1.0, 2.0), (1.0, 0.0, 2.0)])
def test_levels_find_their_states(levels):
    """Bleaching goes down, and nobody says so: the mask alone tells which level comes first."""
    fitted = ExactMJP(3, "gaussian", mask=DOWN, restarts=1, intervals=False).fit(staircase(levels))
    assert fitted.converged
    np.testing.assert_allclose(np.asarray(fitted.parameters.emission["mean"])[:, 0], levels, atol=0.05)
    np.testing.assert_allclose(fitted.rates[DOWN > 0], 0.1, rtol=0.4)
    assert len(fitted.restarts) == 1


def test_which_numberings_matter():
    assert len(labellings(DOWN > 0, None)) == 6
    assert [order.tolist() for order in labellings(CHAIN > 0, None)] == [[0, 1, 2], [0, 2, 1], [1, 0, 2]]
    assert len(labellings(CHAIN > 0, (1.0, 0.0, 0.0))) == 6
    assert len(labellings(~np.eye(3, dtype=bool), (1.0, 0.0, 0.0))) == 1
    assert len(labellings(np.triu(np.ones((5, 5)), 1) > 0, None)) == 1


@pytest.mark.parametrize("noise", [0.01, 0.1, 1.0])
def test_data_that_contradict_the_mask(noise):
    """They jump both ways, which is allowed one way: an answer all the same, and no start takes the others with it."""
    times = np.arange(2000.0)
    states = mjp.simulate_states([[0, 0.05], [0.1, 0]], times, initial=[0.5, 0.5], key=jax.random.key(0), n_series=1)
    values = 4.0 * states[0] + noise * np.random.default_rng(0).normal(size=2000)
    fitted = ExactMJP(2, mask=[[0, 1], [0, 0]]).fit(TimeSeries.from_arrays(times, values))
    assert np.isfinite(fitted.log_likelihood)
    assert np.isfinite(fitted.rates).all()
    assert fitted.warnings


@pytest.mark.parametrize("rate", [np.inf, np.nan, 1e300])
def test_rates_beyond_all_numbers_are_one_line(rate):
    with pytest.raises(InputError, match="start from slower rates"):
        halving_needed(np.array([[0, rate], [0, 0]]), np.array([0.0, 1.0]))
