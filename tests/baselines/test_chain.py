"""A transition matrix and all that follows from it, against a jump process that is known."""

import jax
import numpy as np
import pytest
from scipy.linalg import expm

from neuralmjp import TimeSeries, mjp
from neuralmjp.baselines.chain import make_chain, rates_of, timescales_of
from neuralmjp.baselines.features import Features, whole
from neuralmjp.baselines.lagged import chosen_lag, lagged_pairs, propagator, vamp2
from neuralmjp.errors import InputError

RATES = np.array([[0.0, 0.2, 0.05], [0.4, 0.0, 0.3], [0.1, 0.5, 0.0]])
LAG = 0.5


def transitions(rates=RATES, lag=LAG):
    return expm(lag * np.asarray(mjp.generator_from_rates(rates)))


def labelled(n_series=40, length=500):
    """States of the process itself, seen once a lag."""
    times = np.tile(LAG * np.arange(length), (n_series, 1))
    states = mjp.simulate_states(RATES, times, initial=np.ones(3) / 3, key=jax.random.key(0))
    return TimeSeries.from_arrays(times, np.asarray(states, dtype=float), time_unit="s")


def one_hot(data):
    return np.eye(3)[data.values[:, 0].astype(int)]


def known(matrix=None):
    def scored(some):
        return vamp2(one_hot(some), lagged_pairs(some, LAG))

    data = TimeSeries.from_arrays(np.arange(4.0), np.arange(4.0), time_unit="s")
    return make_chain("known", transitions() if matrix is None else matrix, LAG, data, one_hot, scored, "VAMP-2")


def test_observables_are_those_of_the_jump_process():
    chain = known()
    law = mjp.stationary_distribution(RATES)
    order = np.argsort(-law)
    np.testing.assert_allclose(chain.stationary_distribution, law[order])
    np.testing.assert_allclose(chain.timescales, mjp.timescales(RATES))
    np.testing.assert_allclose(chain.rates, RATES[np.ix_(order, order)], atol=1e-8)
    assert chain.warnings == ()
    assert chain.time_unit == "s"
    assert "slowest timescale" in repr(chain)


def test_passage_times_solve_their_equation():
    """From i to j it takes one lag, and what is left from where that leads."""
    chain = known()
    for j in range(3):
        others = np.arange(3) != j
        expected = LAG + (chain.transition @ chain.mfpt[:, j])[others]
        np.testing.assert_allclose(chain.mfpt[others, j], expected)
    assert (np.diag(chain.mfpt) == 0).all()


def test_states_are_numbered_by_how_often_they_are_visited():
    data = labelled(2, 20)
    chain = known()
    order = np.argsort(-mjp.stationary_distribution(RATES))
    assert (order[chain.states(data)] == data.values[:, 0]).all()
    np.testing.assert_allclose(chain.probabilities(data).sum(1), 1.0)


def test_chapman_and_kolmogorov_agree_on_a_markov_chain():
    data = labelled()
    test = known().chapman_kolmogorov(data, 3)
    np.testing.assert_allclose(test.lags, LAG * np.arange(1, 4))
    np.testing.assert_allclose(test.predicted[1], test.predicted[0] @ test.predicted[0])
    np.testing.assert_allclose(test.predicted, test.estimated, atol=0.03)


def test_forecasts_begin_at_the_last_observation():
    data = labelled(3, 5)
    chain = known()
    forecast = chain.forecast(data, 200)
    assert forecast.shape == (3, 200, 3)
    np.testing.assert_allclose(forecast[:, 0], chain.transition[chain.states(data)[data.offsets[1:] - 1]])
    np.testing.assert_allclose(forecast[:, -1], np.tile(chain.stationary_distribution, (3, 1)), atol=1e-8)
    with pytest.raises(InputError, match="at least 1 step"):
        chain.forecast(data, 0)


def test_a_matrix_without_generator_is_told():
    turning = np.array([[0.1, 0.9, 0.0], [0.0, 0.1, 0.9], [0.9, 0.0, 0.1]])
    rates, notes = rates_of(turning, 1.0)
    assert "no generator" in notes[0]
    assert (rates >= 0).all()
    assert (np.diag(rates) == 0).all()
    flipping = known(np.array([[0.2, 0.8, 0.0], [0.9, 0.1, 0.0], [0.3, 0.3, 0.4]]))
    assert "not real" in flipping.warnings[-1]


def test_what_overlap_makes_negative_is_clipped():
    chain = known(np.array([[0.9, 0.12, -0.02], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]))
    assert "overlap" in chain.warnings[0]
    assert (chain.transition >= 0).all()
    np.testing.assert_allclose(chain.transition.sum(1), 1.0)


def test_eigenvalues_that_have_no_time_scale():
    assert timescales_of(np.eye(2), 1.0).tolist() == [np.inf]
    np.testing.assert_allclose(timescales_of(np.full((2, 2), 0.5), 1.0), 0.0, atol=0.05)


def test_counts_are_the_propagator_of_labels():
    data = labelled(3, 60)
    pairs = lagged_pairs(data, 2 * LAG)
    assert len(pairs.first) == 3 * 58
    assert pairs.lag == 2 * LAG
    counts = np.zeros((3, 3))
    labels = data.values[:, 0].astype(int)
    np.add.at(counts, (labels[pairs.first], labels[pairs.second]), 1)
    estimate = propagator(one_hot(data), pairs, reversible=False)
    np.testing.assert_allclose(estimate, counts / counts.sum(1, keepdims=True), atol=1e-6)
    both = counts + counts.T
    estimate = propagator(one_hot(data), pairs, reversible=True)
    np.testing.assert_allclose(estimate, both / both.sum(1, keepdims=True), atol=1e-6)


def test_a_state_that_nobody_visits_is_told():
    data = labelled(3, 60)
    memberships = np.pad(one_hot(data), ((0, 0), (0, 1)))
    pairs = lagged_pairs(data, LAG)
    matrix = propagator(memberships, pairs, reversible=True)
    np.testing.assert_allclose(matrix.sum(1), 1.0)
    chain = make_chain("four", matrix, LAG, data, lambda _: memberships, lambda _: 0.0, "none")
    assert "state 3 is never visited" in chain.warnings
    assert chain.stationary_distribution[3] < 1e-9


def test_score_of_labels_is_the_sum_of_squared_singular_values():
    """In equilibrium and in detailed balance these are the eigenvalues."""
    rates = np.array([[0.0, 1.0], [2.0, 0.0]])
    times = np.tile(0.1 * np.arange(1000.0), (40, 1))
    states = mjp.simulate_states(rates, times, initial=np.array([2, 1]) / 3, key=jax.random.key(1))
    data = TimeSeries.from_arrays(times, np.asarray(states, dtype=float))
    score = vamp2(np.eye(2)[states.reshape(-1)], lagged_pairs(data, 0.1))
    assert score == pytest.approx(1 + np.exp(-0.3) ** 2, abs=0.02)


def test_pairs_on_uneven_gaps_come_near_the_lag():
    times = np.array([0.0, 1.0, 2.1, 5.0, 6.0])
    data = TimeSeries.from_arrays([times, times[:2]], [times, times[:2]])
    pairs = lagged_pairs(data, 2.0)
    assert (pairs.first.tolist(), pairs.second.tolist()) == ([0], [2])
    assert pairs.lag == 2.1
    with pytest.raises(InputError, match="no two observations"):
        lagged_pairs(data, 50.0)


@pytest.mark.parametrize(("n", "lag"), [(1000, 20.0), (101, 10.0), (4, 1.0)])
def test_the_lag_suits_the_series(n, lag):
    data = TimeSeries.from_arrays(np.arange(float(n)), np.arange(float(n)))
    assert chosen_lag(data, None) == lag
    assert chosen_lag(data, 3.0) == 3.0
    with pytest.raises(InputError, match="above 0"):
        chosen_lag(data, 0.0)


def test_angles_lie_on_circles():
    data = TimeSeries.from_arrays(np.arange(2.0), [[np.pi - 1e-9], [-np.pi + 1e-9]])
    rows = Features.of(data, True)(data)
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-8)
    standard = Features.of(data, False)(data)
    np.testing.assert_allclose([standard.mean(), standard.std()], [0.0, 1.0], atol=1e-12)


def test_what_cannot_be_used_is_named():
    holes = TimeSeries.from_arrays([[0.0, 1.0], [0.0, 1.0]], [[1.0, 2.0], [3.0, np.nan]], names=["a", "b"])
    with pytest.raises(InputError, match=r"series 'b', time 1.*missing"):
        whole(holes)
    constant = TimeSeries.from_arrays(np.arange(3.0), np.ones(3))
    with pytest.raises(InputError, match="never changes"):
        Features.of(constant, False)
    other = TimeSeries.from_arrays(np.arange(3.0), np.arange(3.0), value_names=["x"])
    with pytest.raises(InputError, match="was fitted to values"):
        Features.of(other, False)(constant)
