"""Switching diffusions: the likelihood where it is known in closed form, and what a fit finds."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from neuralmjp import ExactMJP, FittedMJP, NeuralMJP, TimeSeries
from neuralmjp.emissions import Diffusion, Gaussian, Levels
from neuralmjp.errors import InputError
from neuralmjp.exact.evidence import Panel, Scaling, make_evidence
from neuralmjp.exact.model import Model, Parameters, expectations, value_and_gradient
from neuralmjp.exact.transitions import halving_needed
from neuralmjp.priors import FreeRates
from neuralmjp.systems import TwoMode

LAW = (0.3, 0.7)
SHARED = {
    "shared_log_sd": np.log([0.4]),
    "shared_log_noise": np.log([0.25]),
    "shared_log_relaxation": np.log([1.3]),
}


def series(n=8, missing=False):
    rng = np.random.default_rng(3)
    times = rng.exponential(0.4, (2, n)).cumsum(1)
    values = rng.normal(0.2, 0.7, (2, n, 1))
    if missing:
        values[0, 3] = np.nan
    return TimeSeries.from_arrays(times, values)


def likelihood(data, mean, rate):
    model = Model(FreeRates(2), Diffusion(), "given", LAW)
    parameters = Parameters(np.log([rate, rate]), {"mean": np.array(mean)[:, None], **SHARED}, np.zeros(2))
    laid = make_evidence(data, model.emission, 2, Scaling(np.zeros(1), np.ones(1)), Panel())
    assert laid.layout.aligned
    halving = halving_needed(np.full((2, 2), rate), laid.layout.gaps)
    return model, parameters, laid, halving


def gaussian(one, mean):
    """Log density of a series whose state never changes, by the covariance of the whole."""
    here = one.mask[:, 0]
    times, values = one.times[here], one.values[here, 0]
    lag = np.abs(times[:, None] - times)
    covariance = 0.4**2 * np.exp(-1.3 * lag) + 0.25**2 * np.eye(len(times))
    return multivariate_normal.logpdf(values, np.full(len(times), mean), covariance)


@pytest.mark.parametrize("missing", [False, True])
def test_without_difference_it_is_one_gaussian(missing):
    """If both states rest at one place, jumps change nothing."""
    data = series(missing=missing)
    model, parameters, laid, halving = likelihood(data, [0.5, 0.5], 2.0)
    found = value_and_gradient(model, parameters, laid.evidence, True, halving)
    assert float(found.log_likelihood) == pytest.approx(sum(gaussian(one, 0.5) for one in data), abs=1e-9)


def test_without_jumps_it_is_a_mixture_of_two():
    data = series(missing=True)
    model, parameters, laid, halving = likelihood(data, [-0.4, 1.1], 1e-12)
    found = expectations(model, parameters, laid.evidence, True, halving)
    each = [[gaussian(one, -0.4) + np.log(LAW[0]), gaussian(one, 1.1) + np.log(LAW[1])] for one in data]
    assert float(found.log_likelihood) == pytest.approx(logsumexp(each, axis=1).sum(), abs=1e-6)
    posterior = np.exp(np.array(each) - logsumexp(each, axis=1, keepdims=True))
    smoothed = laid.layout.scatter(np.asarray(found.smoothed)).reshape(2, 8, 2)
    np.testing.assert_allclose(smoothed, np.broadcast_to(posterior[:, None], smoothed.shape), atol=1e-6)


def test_slopes_are_those_of_the_height():
    data = series()
    model, parameters, laid, halving = likelihood(data, [-0.4, 1.1], 0.7)

    def height(parameters):
        return float(value_and_gradient(model, parameters, laid.evidence, True, halving).log_likelihood)

    slope = value_and_gradient(model, parameters, laid.evidence, True, halving).gradient
    for name in ("mean", *SHARED):
        step = np.zeros_like(parameters.emission[name])
        step[0] = 1e-5
        ends = [
            height(parameters._replace(emission={**parameters.emission, name: parameters.emission[name] + sign * step}))
            for sign in (1, -1)
        ]
        assert float(np.asarray(slope.emission[name])[0].sum()) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4)


def test_fast_followers_are_a_plain_chain():
    """A level that follows at once is a Gaussian emission of both spreads together."""
    data = series(n=20)
    model, parameters, laid, halving = likelihood(data, [-0.4, 1.1], 0.7)
    quick = {**parameters.emission, "shared_log_relaxation": np.log([1e7])}
    found = value_and_gradient(model, parameters._replace(emission=quick), laid.evidence, True, halving)
    plain = {"mean": parameters.emission["mean"], "log_sd": np.full((2, 1), 0.5 * np.log(0.4**2 + 0.25**2))}
    exact = value_and_gradient(
        model._replace(emission=Gaussian()), parameters._replace(emission=plain), laid.evidence, True, halving
    )
    assert float(found.log_likelihood) == pytest.approx(float(exact.log_likelihood), abs=1e-3)


def test_density_given_the_value_before():
    x = jnp.asarray([[0.3], [0.9]])
    data = TimeSeries.from_arrays([[0.0, 0.5]], np.asarray(x)[None])
    model, parameters, laid, halving = likelihood(data, [0.5, 0.5], 2.0)
    logs = np.asarray(model.emission.log_prob(parameters.emission, laid.evidence.seen))
    seen = laid.layout.scatter(logs)[:, 0].sum()  # of two observations the first order is all there is
    found = value_and_gradient(model, parameters, laid.evidence, True, halving)
    assert seen == pytest.approx(float(found.log_likelihood), abs=1e-9)


@pytest.fixture(scope="module")
def fitted():
    data = TwoMode().simulate(1, 1500, seed=1)
    return data, ExactMJP(2, emission="diffusion").fit(data.data)


def test_what_a_fit_finds(fitted):
    simulated, found = fitted
    np.testing.assert_allclose(found.rates[[0, 1], [1, 0]], 0.2, rtol=0.4)
    natural = {
        name: np.asarray(one.value).ravel() for name, one in found.emission.natural(found.parameters.emission).items()
    }
    np.testing.assert_allclose(natural["mean"], [-1, 1], atol=0.15)
    np.testing.assert_allclose(natural["shared_relaxation"], 1.5, rtol=0.4)
    np.testing.assert_allclose(natural["shared_noise"], np.sqrt(0.1), rtol=0.1)
    decoded = found.decode(simulated.data)
    assert (decoded.probabilities.argmax(1) == simulated.states).mean() > 0.9
    assert found.score(simulated.data) == pytest.approx(found.log_likelihood, abs=1e-6)


def test_it_is_kept_simulated_and_forecast(fitted, tmp_path):
    simulated, found = fitted
    found.save(tmp_path / "run")
    again = FittedMJP.load(tmp_path / "run")
    assert again.score(simulated.data) == found.score(simulated.data)
    ahead = again.predict(simulated.data, simulated.data.times[-1] + np.array([1.0, 100.0]), samples=4000)
    law = found.stationary_distribution.mean @ np.asarray(found.parameters.emission["mean"])
    np.testing.assert_allclose(ahead.readings.mean[1], law, atol=0.1)
    drawn = again.simulate(np.linspace(0, 300, 600)[None], seed=0)
    assert drawn.values.std() == pytest.approx(simulated.data.values.std(), rel=0.15)


def test_what_it_is_not_for():
    data = series(n=30)
    with pytest.raises(InputError, match="is for the exact engine"):
        NeuralMJP(2, emission="diffusion").fit(data)
    with pytest.raises(InputError, match="neither shared levels nor hum"):
        Levels(Diffusion(), (0, 0, 1))


@pytest.mark.slow
def test_intervals_hold_the_truth():
    """Forty data sets of the paper's size, every one of them counted."""
    held = []
    for seed in range(40):
        found = ExactMJP(2, emission="diffusion").fit(TwoMode().simulate(1, seed=100 + seed).data)
        interval = found.intervals["rates"]
        held.append([interval.lower[i, j] <= 0.2 <= interval.upper[i, j] for i, j in ((0, 1), (1, 0))])
    assert 0.85 <= np.mean(held) <= 0.99
    means = [
        ExactMJP(2, emission="diffusion", intervals=False).fit(TwoMode().simulate(1, 2000, seed=s).data).rates
        for s in range(10)
    ]
    np.testing.assert_allclose(np.mean(means, axis=0)[[0, 1], [1, 0]], 0.2, rtol=0.1)
