"""Recordings as they come: coloured noise, outliers, clipping, missing stretches, states of which one is rare.

Hum and drift have tests of their own, beside their emission.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from neuralmjp import ExactMJP, FittedMJP, TimeSeries
from neuralmjp.emissions import Gaussian, Measured, Observations, SharedGaussian
from neuralmjp.emissions.clipped import Clipped, rails_of
from neuralmjp.errors import InputError
from neuralmjp.exact.evidence import Panel, Scaling, make_evidence
from neuralmjp.exact.model import Model, Parameters
from neuralmjp.exact.reseed import reseeded
from neuralmjp.exact.slowness import slowest_times, slowness_told
from neuralmjp.mjp import simulate_states
from neuralmjp.priors import FreeRates

RATES = np.array([[0.0, 20.0], [40.0, 0.0]])
LEVELS = np.array([0.0, 1.0])
DT = 2e-3


def channel(n=8000, *, rates=RATES, law=(0.5, 0.5), seed=0):
    """Times and true states."""
    times = DT * np.arange(n)
    states = simulate_states(rates, times[None], initial=np.array(law), key=jax.random.key(seed))[0]
    return times, np.asarray(states), np.random.default_rng(seed)


def recording(times, values):
    return TimeSeries.from_arrays(times, values, time_unit="s", value_names=("current",))


def off(fitted, rates=RATES):
    """Errors of both rates, in units of half their 95 % intervals on a log scale."""
    found = fitted.intervals["rates"]
    at = ([0, 1], [1, 0])
    half = np.log(found.upper[at] / found.lower[at]) / 2
    return np.abs(np.log(found.mean[at] / rates[at])) / half


def test_coloured_noise():
    """White noise is assumed: its colour is taken for jumps. An emission with memory is not misled."""
    times, states, rng = channel()
    kept = np.exp(-150 * DT)
    noise = np.zeros(len(times))
    for t, kick in enumerate(rng.normal(0, 0.5 * np.sqrt(1 - kept**2), len(times))):
        noise[t] = kept * noise[t - 1] + kick
    data = recording(times, LEVELS[states] + noise)
    memory = ExactMJP(2, emission="ornstein-uhlenbeck").fit(data)
    white = ExactMJP(2, emission="gaussian").fit(data)
    assert off(memory).max() < 1.5
    assert off(white).max() > 2
    assert memory.log_likelihood > white.log_likelihood + 100


def test_outliers():
    times, states, rng = channel()
    values = LEVELS[states] + rng.normal(0, 0.15, len(times))
    wild = rng.random(len(times)) < 0.01
    values[wild] += rng.normal(0, 5.0, wild.sum())
    data = recording(times, values)
    found = ExactMJP(2, emission="student-t").fit(data)
    assert off(found).max() < 1.5
    assert (found.decode(data).states == states)[~wild].mean() > 0.99


def test_missing_stretches():
    """What is missing is skipped: rates stay, and nothing is said about states in the middle of a long gap."""
    times, states, rng = channel()
    values = LEVELS[states] + rng.normal(0, 0.2, len(times))
    for begin in range(500, 8000, 1000):
        values[begin : begin + 300] = np.nan
    data = recording(times, values)
    found = ExactMJP(2).fit(data)
    assert off(found).max() < 1.5
    inside = found.predict_proba(data)[650]
    np.testing.assert_allclose(inside, found.stationary_distribution.mean, atol=0.02)


def test_a_rare_state():
    """A state that holds 1 % of the time, and lasts for five samples, is found from evenly spaced levels."""
    rates = np.array([[0.0, 1.0], [100.0, 0.0]])
    times, states, rng = channel(20_000, rates=rates, seed=3)
    data = recording(times, 2 * LEVELS[states] + rng.normal(0, 0.25, len(times)))
    found = ExactMJP(2).fit(data)
    assert off(found, rates).max() < 1.5
    assert found.stationary_distribution.mean[1] == pytest.approx(0.01, abs=0.005)


def test_a_state_too_many_is_named():
    """Three states for two levels: one of them explains next to nothing, or splits a level in two."""
    times, states, rng = channel(3000)
    data = recording(times, LEVELS[states] + rng.normal(0, 0.1, len(times)))
    found = ExactMJP(3, restarts=1, intervals=False).fit(data)
    share = found.predict_proba(data).mean(0)
    named = [word for word in found.warnings if "it has collapsed" in word]
    assert len(named) == (share < 1e-3).sum()


def test_a_dead_state_begins_anew_where_data_are_explained_worst():
    """Two states on the lowest level, none on the highest: EM alone would leave it so."""
    times, states, rng = channel(4000, rates=np.array([[0, 30, 20.0], [30, 0, 20], [40, 40, 0]]), law=(0.4, 0.4, 0.2))
    data = recording(times, 2.0 * states + rng.normal(0, 0.2, len(times)))
    model = Model(FreeRates(3), Gaussian(), "free")
    laid = make_evidence(data, Gaussian(), 3, Scaling(np.zeros(1), np.ones(1)), Panel())
    rates = np.array([[0, 30, 1e-4], [30, 0, 1e-4], [50, 50, 0]])
    emission = {"mean": np.array([[0.0], [2.0], [90.0]]), "log_sd": np.log([[0.2], [0.4], [0.1]])}
    start = Parameters(FreeRates(3).nearest(rates), emission, np.zeros(3))
    found, moved = reseeded(model, jax.tree.map(lambda x: jnp.asarray(x)[None], start), laid.evidence)
    assert moved.tolist() == [True]
    assert float(found.emission["mean"][0, 2, 0]) == pytest.approx(4.0, abs=0.6)  # the farthest of that level
    np.testing.assert_allclose(found.emission["mean"][0, :2], emission["mean"][:2])
    again, moved = reseeded(model, found, laid.evidence)
    assert not moved.any()
    assert again is not None


@pytest.fixture(scope="module")
def clipped():
    """Half of the noise of the open level is beyond what the converter can show."""
    times, states, rng = channel()
    values = np.minimum(LEVELS[states] + rng.normal(0, 0.2, len(times)), 1.05)
    return recording(times, values), states


def test_clipping_is_noticed(clipped):
    data, _ = clipped
    rails = rails_of(data.values)
    assert rails == ((-np.inf,), (1.05,))
    assert rails_of(np.random.default_rng(0).normal(size=(1000, 1))) is None
    assert rails_of(np.tile([0.0, 1.0], 500)[:, None]) is None  # labels


def test_a_clipped_recording(clipped, tmp_path):
    data, states = clipped
    found = ExactMJP(2).fit(data)
    assert off(found).max() < 1.5
    assert (found.decode(data).states == states).mean() > 0.98
    np.testing.assert_allclose(np.asarray(found.parameters.emission["mean"])[:, 0], LEVELS, atol=0.02)
    np.testing.assert_allclose(np.exp(np.asarray(found.parameters.emission["log_sd"]))[:, 0], 0.2, rtol=0.1)
    assert any("clipped" in word for word in found.warnings)
    found.save(tmp_path / "run")
    assert FittedMJP.load(tmp_path / "run").score(data) == pytest.approx(found.score(data))
    assert found.simulate(data.times[None, :500], seed=0).values.max() == pytest.approx(1.05)


def test_a_clipped_recording_with_one_noise(clipped, tmp_path):
    """The same measure of the same values, so that the two can be compared: here one parameter more says nothing."""
    data, _ = clipped
    own, shared = ExactMJP(2).fit(data), ExactMJP(2, "gaussian-shared").fit(data)
    assert any("clipped" in word for word in shared.warnings)
    assert off(shared).max() < 1.5
    np.testing.assert_allclose(np.exp(np.asarray(shared.parameters.emission["shared_log_sd"])), 0.2, rtol=0.1)
    assert 0 <= own.log_likelihood - shared.log_likelihood < 6  # chi-square: 12, once in 2000
    shared.save(tmp_path / "run")
    again = FittedMJP.load(tmp_path / "run")
    assert again.emission == shared.emission
    assert again.score(data) == pytest.approx(shared.score(data))


def test_density_of_clipped_values():
    emission = Clipped((-1.0,), (1.5,))
    params = {"mean": np.array([[0.0], [1.0]]), "log_sd": np.log([[0.5], [0.7]])}
    params |= {"shared_low": np.array([-1.0]), "shared_high": np.array([1.5])}
    values = jnp.asarray([[-1.0], [0.3], [1.5]])
    nothing = jnp.zeros((3, 1))
    seen = Observations(values, None, nothing, nothing > 0, nothing[:, 0])
    logs = np.asarray(emission.log_prob(params, seen))
    law = [stats.norm(0.0, 0.5), stats.norm(1.0, 0.7)]
    expected = [[one.logcdf(-1.0) for one in law], [one.logpdf(0.3) for one in law], [one.logsf(1.5) for one in law]]
    np.testing.assert_allclose(logs, expected, rtol=1e-9)


@pytest.mark.parametrize("base", [Gaussian(), SharedGaussian()])
def test_the_m_step_of_clipped_values_never_does_harm(base):
    rng = np.random.default_rng(0)
    values = jnp.asarray(np.clip(rng.normal(0.4, 1.0, (200, 1)), -1.0, 1.0))
    nothing = jnp.zeros((200, 1))
    seen = Observations(values, None, nothing, nothing > 0, nothing[:, 0])
    weights = jnp.asarray(rng.dirichlet([1, 1], 200))
    emission = Clipped((-1.0,), (1.0,), base)
    params = {**emission.start(np.asarray(values), 2, None)}
    heights = []
    for _ in range(15):
        heights.append(float((weights * emission.log_prob(params, seen)).sum()))
        params = emission.maximised(params, seen, weights)
    assert (np.diff(heights) > -1e-9).all()
    whole = emission.maximised(params, seen, jnp.ones((200, 2)) / 2)
    for _ in range(200):
        whole = emission.maximised(whole, seen, jnp.ones((200, 2)) / 2)
    assert float(whole["mean"][0, 0]) == pytest.approx(0.4, abs=0.15)
    assert float(jnp.exp(base.log_sd(whole)).ravel()[0]) == pytest.approx(1.0, abs=0.2)


def test_likelihood_and_slowness_are_both_told():
    reached, slowest = np.array([-10.0, -30.0, -20.0]), np.array([0.1, 0.3, np.nan])
    (word,) = slowness_told(reached, slowest, "ns")
    assert "the likeliest of 3 starts relaxes in 0.1 ns, another one, 20 nats below, in 0.3 ns" in word
    assert slowness_told(reached, np.array([0.28, 0.3, np.nan]), "ns") == ()
    assert slowness_told(np.array([]), np.array([]), "ns") == ()


def test_relaxations_that_the_record_cannot_show():
    data = recording(*(np.arange(1000.0), np.zeros(1000)))
    rates = np.array([[[0, 0.5], [0.5, 0]], [[0, 1e-5], [1e-5, 0]], [[0, 0], [0, 0]]])
    found = slowest_times(rates, data)
    assert found[0] == pytest.approx(1.0)
    assert np.isnan(found[1:]).all()


@pytest.fixture(scope="module")
def measured():
    """Half of the samples are ten times as noisy, and say so; some errors are missing."""
    times, states, rng = channel(6000)
    error = np.where(rng.random(6000) < 0.5, 0.1, 1.0)
    values = LEVELS[states] + 0.15 * rng.normal(size=6000) + error * rng.normal(size=6000)
    error[::100] = np.nan
    both = np.stack([values, error], axis=1)
    return TimeSeries.from_arrays(times, both, time_unit="s", value_names=("current", "error")), states


def test_errors_that_are_known(measured, tmp_path):
    data, states = measured
    found = ExactMJP(2, emission="measured").fit(data)
    blind = ExactMJP(2, emission="gaussian", intervals=False).fit(TimeSeries.from_arrays(data.times, data.values[:, 0]))
    assert off(found).max() < 1.5
    np.testing.assert_allclose(np.exp(np.asarray(found.parameters.emission["log_sd"])), 0.15, atol=0.03)
    right = (found.decode(data).states == states).mean()
    assert right > 0.95
    assert right > (blind.decode(TimeSeries.from_arrays(data.times, data.values[:, 0])).states == states).mean() + 0.02
    assert found.score(data) == pytest.approx(found.log_likelihood, abs=1e-6)
    found.save(tmp_path / "run")
    assert FittedMJP.load(tmp_path / "run").score(data) == pytest.approx(found.score(data))


def test_density_with_known_errors(measured):
    data, _ = measured
    params = {"mean": np.array([[0.0], [1.0]]), "log_sd": np.log([[0.2], [0.3]]), "shared_error": np.array([0.1])}
    rows = data.values[:200]
    mask = ~np.isnan(rows)
    nothing = jnp.zeros((200, 2))
    seen = Observations(jnp.asarray(np.where(mask, rows, 0)), jnp.asarray(mask), nothing, nothing > 0, nothing[:, 0])
    logs = np.asarray(Measured().log_prob(params, seen))
    sd = np.sqrt(np.array([0.2, 0.3]) ** 2 + rows[:, 1:] ** 2)
    expected = np.where(mask.all(1, keepdims=True), stats.norm.logpdf(rows[:, :1], [0.0, 1.0], sd), 0.0)
    np.testing.assert_allclose(logs, expected, rtol=1e-9)
    weights = jnp.asarray(np.random.default_rng(0).dirichlet([1, 1], 200))
    heights = []
    for _ in range(10):
        heights.append(float((weights * Measured().log_prob(params, seen)).sum()))
        params = Measured().maximised(params, seen, weights)
    assert (np.diff(heights) > -1e-9).all()


def test_errors_that_cannot_be():
    data = TimeSeries.from_arrays(np.arange(60.0), np.random.default_rng(0).normal(size=(60, 2)))
    with pytest.raises(InputError, match="negative numbers"):
        ExactMJP(2, emission="measured").fit(data)
    with pytest.raises(InputError, match="do not pair up"):
        ExactMJP(2, emission="measured").fit(TimeSeries.from_arrays(data.times, data.values[:, 0]))
