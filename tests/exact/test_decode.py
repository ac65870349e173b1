"""Hidden paths: the best one by trying all, and sampled ones by their law."""

import jax
import numpy as np
import pytest

from emissions.cases import witnessed
from exact.test_enumeration import CASES, THETA, gaps_before, holed, paths, scattered, unscaled
from law import assert_counts_follow, assert_mean
from neuralmjp import Panel, TimeSeries
from neuralmjp.emissions import Categorical, Gaussian
from neuralmjp.exact.decode import Prepared, sample_paths, smooth, viterbi
from neuralmjp.exact.evidence import make_evidence
from neuralmjp.exact.model import Model, Parameters, expectations
from neuralmjp.exact.transitions import halving_needed
from neuralmjp.priors import FreeRates

RATES = np.array([[0, 0.8], [1.7, 0]])
LAW = np.array([0.3, 0.7])


def prepared(name, data):
    case = CASES[name]
    model = Model(FreeRates(2), case.emission, "given", (0.3, 0.7))
    laid = make_evidence(data, case.emission, 2, unscaled(data.n_features), Panel())
    return Prepared(model, Parameters(THETA, case.params, np.zeros(2)), laid)


def each_series(name, data):
    """All sequences of states of each series with the log of their weights."""
    logs = witnessed(CASES[name], CASES[name].params, data.values, *gaps_before(data))
    cuts = data.offsets[1:-1]
    return [
        paths(RATES, LAW, part, t) for part, t in zip(np.split(logs, cuts), np.split(data.times, cuts), strict=True)
    ]


@pytest.mark.parametrize("name", ["gaussian", "categorical", "exact", "ornstein-uhlenbeck"])
def test_viterbi_is_the_best_of_all_paths(name):
    data = scattered(holed(CASES[name], seed=3), seed=3)
    best = [states[weights.argmax()] for states, weights in each_series(name, data)]
    np.testing.assert_array_equal(viterbi(prepared(name, data)), np.concatenate(best))


@pytest.mark.parametrize("name", ["gaussian", "categorical"])
def test_smoothed_probabilities_are_marginals_of_all_paths(name):
    data = scattered(holed(CASES[name], seed=5), seed=5)
    expected = []
    for states, weights in each_series(name, data):
        weights = np.exp(weights - weights.max())
        expected.append([[(weights * (column == k)).sum() / weights.sum() for k in (0, 1)] for column in states.T])
    np.testing.assert_allclose(smooth(prepared(name, data))[1], np.concatenate(expected), atol=1e-12)


def test_the_best_path_never_takes_a_forbidden_jump():
    """An outlier thousands of nats from the only state that is possible there."""
    values = np.array([0.0, 0.0, 5.0, 5.0, 0.0, 5.0])[:, None]
    data = TimeSeries.from_arrays(np.arange(6.0), values)
    params = {"mean": np.array([[0.0], [5.0]]), "log_sd": np.full((2, 1), np.log(0.05))}
    model = Model(FreeRates(2, mask=[[0, 1], [0, 0]]), Gaussian(), "given", (1.0, 0.0))
    laid = make_evidence(data, model.emission, 2, unscaled(1), Panel())
    assert viterbi(Prepared(model, Parameters(np.zeros(1), params, np.zeros(2)), laid)).tolist() == [0, 0, 1, 1, 1, 1]


ALONE = scattered(holed(CASES["gaussian"], seed=7), seed=7)[:1]  # one series, so that draws are independent


@pytest.fixture(scope="module")
def drawn():
    return sample_paths(prepared("gaussian", ALONE), ALONE, 4000, jax.random.key(1))[0]


@pytest.mark.statistical
def test_sampled_states_at_observations_follow_the_posterior(drawn):
    """Whole sequences against their exact weights: a correct program fails in 1e-4 of all seeds."""
    ((states, weights),) = each_series("gaussian", ALONE)
    code = 2 ** np.arange(states.shape[1])
    found = np.stack([path.at(ALONE.times - ALONE.times[0]) for path in drawn])
    counts = np.bincount(found @ code, minlength=len(weights))
    assert_counts_follow(counts[states @ code], np.exp(weights - weights.max()))


@pytest.mark.statistical
def test_sampled_jumps_and_times_are_those_of_the_e_step(drawn):
    """A correct program fails in 2e-4 of all seeds."""
    case = CASES["gaussian"]
    model = Model(FreeRates(2), case.emission, "given", (0.3, 0.7))
    laid = make_evidence(ALONE, case.emission, 2, unscaled(2), Panel())
    halving = halving_needed(RATES, laid.layout.gaps)
    parameters = Parameters(THETA, case.params, np.zeros(2))
    expected = expectations(model, parameters, laid.evidence, laid.layout.aligned, halving)
    assert_mean([path.time_in_states(2) for path in drawn], np.asarray(expected.time))
    jumps = np.array([path.jump_counts(2)[[0, 1], [1, 0]] for path in drawn])
    assert_mean(jumps, np.asarray(expected.jumps)[[0, 1], [1, 0]])


def test_sampled_paths_are_paths(drawn):
    for path in drawn[:200]:
        assert path.duration == pytest.approx(ALONE.times[-1] - ALONE.times[0])
        assert (np.diff(path.jump_times, prepend=0.0) > 0).all()
        assert (np.diff(path.states) != 0).all()
        assert len(path.states) == len(path.jump_times) + 1


def test_paths_of_several_series_pass_through_what_is_known():
    """States seen exactly: every draw passes through them, whatever happens in between."""
    data = scattered(CASES["exact"].draw(np.random.default_rng(0), 14), seed=1)
    found = sample_paths(prepared("exact", data), data, 5, jax.random.key(2))
    assert [len(one) for one in found] == [5] * len(data)
    for series, draws in zip(data, found, strict=True):
        for path in draws:
            seen = (series.values[:, 0] == 8.0).astype(int)
            np.testing.assert_array_equal(path.at(np.minimum(series.times - series.times[0], path.duration)), seen)


# State 2 is entered at a known time and never left.
LIVES = TimeSeries.from_arrays(
    [[0.0, 0.5, 1.2, 2.0], [0.0, 0.4, 1.5, 1.9], [0.3, 0.7, np.nan, np.nan]],
    [[0, 1, 0, 2.0], [1, 1, 0, 1], [0, 2, np.nan, np.nan]],
)


@pytest.fixture(scope="module")
def dying():
    emission = Categorical.exact((0.0, 1.0, 2.0))
    model = Model(FreeRates(3, mask=[[0, 1, 1], [1, 0, 1], [0, 0, 0]]), emission, "known")
    laid = make_evidence(LIVES, emission, 3, unscaled(1), Panel(exact_entry=2.0))
    params = {"logits": np.zeros((3, 3))}
    return Prepared(model, Parameters(np.log([1.0, 0.4, 2.0, 0.8]), params, np.zeros(3)), laid)


def test_dead_is_dead(dying):
    states = LIVES.values[:, 0].astype(int)
    np.testing.assert_array_equal(viterbi(dying), states)
    np.testing.assert_array_equal(smooth(dying)[1], np.eye(3)[states])


def test_paths_end_with_the_jump_into_death(dying):
    for series, draws in zip(LIVES, sample_paths(dying, LIVES, 20, jax.random.key(0)), strict=True):
        dies = series.values[-1, 0] == 2
        for path in draws:
            np.testing.assert_array_equal(path.at(series.times - series.times[0]), series.values[:, 0])
            assert (path.states == 2).sum() == dies
            assert not dies or path.jump_times[-1] == path.duration
