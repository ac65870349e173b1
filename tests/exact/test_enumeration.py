"""The likelihood against the sum over all hidden sequences, one by one; and its gradient against that sum's."""

from itertools import pairwise, product

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm, null_space
from scipy.special import logsumexp

from emissions.cases import CASES, with_holes, witnessed
from neuralmjp import Panel, TimeSeries
from neuralmjp.emissions import Gaussian
from neuralmjp.exact.evidence import Scaling, make_evidence
from neuralmjp.exact.fit import objective
from neuralmjp.exact.model import Model, Parameters
from neuralmjp.exact.packing import Packing
from neuralmjp.priors import FreeRates
from priors.test_rate_models import MODELS

THETA = np.log([0.8, 1.7])
LENGTHS = (6, 1, 5, 2)


def generator(rates):
    return rates - np.diag(rates.sum(1))


def sequences(n_states, length):
    return np.array(list(product(range(n_states), repeat=length)))


def paths(rates, law, log_density, times):
    """Every sequence of states and the log of its probability together with the observations."""
    states = sequences(len(rates), len(times))
    with np.errstate(divide="ignore"):
        total = np.log(law)[states[:, 0]] + log_density[np.arange(len(times)), states].sum(1)
        gaps, which = np.unique(np.diff(times), return_inverse=True)
        moves = [np.log(expm(generator(rates) * gap)) for gap in gaps]
        for t, k in enumerate(which):
            total = total + moves[k][states[:, t], states[:, t + 1]]
    return states, total


def enumerated(rates, law, log_density, data):
    """Log-likelihood of all series."""
    cuts = data.offsets[1:-1]
    parts = zip(np.split(log_density, cuts), np.split(data.times, cuts), strict=True)
    return sum(logsumexp(paths(rates, law, density, times)[1]) for density, times in parts)


def scattered(rows, seed=0, longest=np.inf):
    """Rows cut into series of different lengths at irregular times, with gaps of few digits and all magnitudes."""
    rng = np.random.default_rng(seed)
    gaps = np.round(np.minimum(np.exp(rng.normal(-0.5, 1.5, len(rows))), longest), 6) + 1e-6
    offsets = np.append(0, np.cumsum(LENGTHS))
    times = np.concatenate([np.cumsum(gaps[a:b]) for a, b in pairwise(offsets)])
    names = tuple(str(i) for i in range(len(LENGTHS)))
    return TimeSeries(times, rows, offsets, names, tuple(f"x{i}" for i in range(rows.shape[1])))


def holed(case, seed):
    """Rows with parts missing, though no series without any value."""
    rng = np.random.default_rng(seed)
    rows = case.draw(rng, sum(LENGTHS))
    holes = with_holes(rows, rng)
    holes[[6, 13]] = rows[[6, 13]]
    return holes


def unscaled(n):
    return Scaling(np.zeros(n), np.ones(n))


def engine(model, parameters, data, panel=None):
    """Log posterior, its gradient and the log-likelihood by the exact engine, as functions of the free numbers."""
    laid = make_evidence(data, model.emission, model.rate_model.n_states, unscaled(data.n_features), panel or Panel())
    packing = Packing(model, parameters)
    return packing, lambda theta: objective(model, packing, laid, theta)


def assert_slopes(gradient, function, theta, step=1e-5, directions=4):
    """The gradient against central differences along random directions, so that every entry counts in each."""
    ways = np.random.default_rng(0).normal(size=(directions, len(theta)))
    slopes = [(function(theta + step * way) - function(theta - step * way)) / (2 * step) for way in ways]
    np.testing.assert_allclose(ways @ gradient, slopes, rtol=1e-6, atol=1e-6)


def gaps_before(data):
    first = np.isin(np.arange(data.n_observations), data.offsets[:-1])
    return first, np.where(first, 0.0, np.diff(data.times, prepend=0.0))


@pytest.mark.parametrize("name", CASES)
def test_every_emission(name):
    """Value to 1e-10, and the gradient with respect to rates, emission and initial law."""
    case = CASES[name]
    data = scattered(holed(case, seed=11))
    model = Model(FreeRates(2), case.emission, "free")
    parameters = Parameters(THETA, case.params, np.array([0.0, 0.6]))
    packing, ours = engine(model, parameters, data)

    def brute(theta):
        rates_theta, params, logits = packing.parameters(theta)
        logs = witnessed(case, params, data.values, *gaps_before(data))
        rates = np.array([[0.0, np.exp(rates_theta[0])], [np.exp(rates_theta[1]), 0.0]])
        return enumerated(rates, np.exp(logits) / np.exp(logits).sum(), logs, data)

    def brute_posterior(theta):  # one pseudo-observation of the initial state, shared by both
        logits = packing.parameters(theta).initial
        return brute(theta) + (logits - logsumexp(logits)).mean()

    theta = packing.vector(parameters)
    posterior, gradient, likelihood, *_ = ours(theta)
    assert likelihood == pytest.approx(brute(theta), abs=1e-10)
    assert posterior == pytest.approx(brute_posterior(theta), abs=1e-10)
    assert_slopes(gradient, brute_posterior, theta)


@pytest.mark.parametrize("rates_name", MODELS)
def test_every_rate_model(rates_name):
    """Three states; the stationary law follows the rates, so that its derivative counts too."""
    rate_model, emission = MODELS[rates_name], Gaussian()
    params = {"mean": np.array([[-1.0], [0.3], [1.2]]), "log_sd": np.log([[0.5], [0.4], [0.8]])}
    rng = np.random.default_rng(3)
    data = scattered(rng.normal(0, 1, (sum(LENGTHS), 1)))
    theta_rates = 0.3 * rng.normal(size=rate_model.n_parameters)
    model = Model(rate_model, emission, "stationary")
    packing, ours = engine(model, Parameters(theta_rates, params, np.zeros(3)), data)

    def brute(theta):
        found = packing.parameters(theta)
        rates = np.asarray(rate_model.rates(jnp.asarray(found.rates)))
        z = (data.values - found.emission["mean"][:, 0]) / np.exp(found.emission["log_sd"][:, 0])
        logs = -0.5 * z**2 - found.emission["log_sd"][:, 0] - 0.5 * np.log(2 * np.pi)
        law = null_space(generator(rates).T)[:, 0]
        return enumerated(rates, law / law.sum(), logs, data)

    theta = packing.vector(Parameters(theta_rates, params, np.zeros(3)))
    value, gradient, likelihood, *_ = ours(theta)
    assert value == likelihood == pytest.approx(brute(theta), abs=1e-10)
    assert_slopes(gradient, brute, theta)


class TestInitialLaw:
    case = CASES["gaussian"]
    data = scattered(holed(case, seed=4))
    rates = np.array([[0, 0.8], [1.7, 0]])

    def value(self, initial, given=None):
        model = Model(FreeRates(2), self.case.emission, initial, given)
        parameters = Parameters(THETA, self.case.params, np.array([0.0, 0.6]))
        packing, ours = engine(model, parameters, self.data)
        return ours(packing.vector(parameters))[2]

    @pytest.mark.parametrize(
        ("initial", "given", "law"),
        [
            ("free", None, np.array([1, np.exp(0.6)]) / (1 + np.exp(0.6))),
            ("stationary", None, np.array([1.7, 0.8]) / 2.5),
            ("given", (0.2, 0.8), np.array([0.2, 0.8])),
            ("given", (1.0, 0.0), np.array([1.0, 0.0])),
            ("known", None, np.ones(2)),  # a condition, not a law: what is seen first decides
        ],
    )
    def test_laws(self, initial, given, law):
        logs = witnessed(self.case, self.case.params, self.data.values, *gaps_before(self.data))
        expected = enumerated(self.rates, law, logs, self.data)
        assert self.value(initial, given) == pytest.approx(expected, abs=1e-10)


def test_prior_on_rates_adds_a_normal_law():
    case, rows = CASES["gaussian"], CASES["gaussian"].draw(np.random.default_rng(6), sum(LENGTHS))
    model = Model(FreeRates(2), case.emission, "stationary", None, (0.5, 2.0))
    parameters = Parameters(THETA, case.params, np.zeros(2))
    packing, ours = engine(model, parameters, scattered(rows))
    posterior, _, likelihood, *_ = ours(packing.vector(parameters))
    assert posterior - likelihood == pytest.approx(-0.5 * (((THETA - 0.5) / 2.0) ** 2).sum())


def test_an_observation_with_nothing_in_it_changes_nothing():
    case = CASES["gaussian"]
    data = scattered(case.draw(np.random.default_rng(8), sum(LENGTHS)))
    extra = TimeSeries(
        np.insert(data.times, 4, (data.times[3] + data.times[4]) / 2),
        np.insert(data.values, 4, np.nan, axis=0),
        data.offsets + (np.arange(5) > 0),
        data.names,
        data.value_names,
    )
    model = Model(FreeRates(2), case.emission, "stationary")
    parameters = Parameters(THETA, case.params, np.zeros(2))
    values = []
    for some in (data, extra):
        packing, ours = engine(model, parameters, some)
        values.append(ours(packing.vector(parameters))[2])
    assert values[1] == pytest.approx(values[0], abs=1e-9)
