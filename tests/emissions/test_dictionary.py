"""Kernels that all states share: what they weigh, where they lie, what EM makes of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import i0e, i1e

from emissions.cases import CASES, example, observations
from neuralmjp import ExactMJP, FittedMJP, NeuralMJP, TimeSeries, mjp
from neuralmjp.emissions import GaussianDictionary, Observations, Torus
from neuralmjp.emissions.dictionary import LEAST_WEIGHT, ROWS_AT_ONCE, weights_of
from neuralmjp.emissions.kernels import cells_with_data, spread_centres
from neuralmjp.emissions.named import named_emission

RATES = np.array([[0.0, 0.15, 0.05], [0.1, 0.0, 0.1], [0.05, 0.1, 0.0]])
TURN = 2 * np.pi


def seen(rows):
    zero = jnp.zeros(rows.shape)
    return Observations(jnp.asarray(rows), None, zero, zero > 0, zero[:, 0])


@pytest.mark.parametrize("period", [TURN, 360.0])
def test_a_torus_holds_a_mass_of_one(period):
    side = np.linspace(0, period, 120, endpoint=False)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    params = CASES["torus"].params
    params = params | {name: params[name] * period / TURN for name in ("shared_centres", "shared_width")}
    density = np.exp(Torus(period).log_prob(params, seen(grid)))
    np.testing.assert_allclose(density.sum(0) * (period / 120) ** 2, 1.0, rtol=1e-10)


def test_a_dictionary_of_real_values_holds_a_mass_of_one():
    side = np.linspace(-8, 8, 160)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    density = np.exp(GaussianDictionary().log_prob(CASES["dictionary"].params, seen(grid)))
    np.testing.assert_allclose(density.sum(0) * (side[1] - side[0]) ** 2, 1.0, rtol=1e-8)


def test_chunks_change_nothing():
    rows = np.random.default_rng(0).normal(size=(ROWS_AT_ONCE + 7, 2))
    case = CASES["torus"]
    whole = case.emission.log_prob(case.params, seen(rows))
    np.testing.assert_allclose(whole[-9:], case.emission.log_prob(case.params, seen(rows[-9:])), rtol=1e-13)


def test_far_from_all_kernels_no_state_is_impossible():
    logs = GaussianDictionary().log_prob(CASES["dictionary"].params, seen(np.array([[300.0, -300.0]])))
    assert np.isfinite(logs).all()


def test_at_the_top_a_step_moves_nothing():
    case = CASES["torus"]
    data = observations(case, *example(case, holes=True, n=40))
    weights = jnp.asarray(np.random.default_rng(2).dirichlet([1, 1], 40))
    step = jax.jit(lambda params: case.emission.maximised(params, data, weights))
    params = step(case.params)
    for _ in range(3000):
        params = step(params)
    again = step(params)
    np.testing.assert_allclose(weights_of(again), weights_of(params), atol=1e-6)


def test_weights_never_vanish():
    case = CASES["torus"]
    far = seen(np.tile(case.params["shared_centres"][:1], (20, 1)))
    step = jax.jit(lambda params: case.emission.maximised(params, far, jnp.ones((20, 2))))
    params = step(case.params)
    for _ in range(200):
        params = step(params)
    assert np.asarray(weights_of(params)).min() > LEAST_WEIGHT / 2


@pytest.mark.statistical
def test_angles_are_drawn_around_the_circle():
    """Mean of cos and sin; a correct program misses by 5 standard errors in 1e-6 of all seeds."""
    case = CASES["torus"]
    drawn = case.emission.sample(case.params, np.ones(20_000, int), np.zeros(20_000), np.random.default_rng(0))
    kappa = 1 / case.params["shared_width"] ** 2
    weight = np.asarray(weights_of(case.params))[1]
    for part in (np.cos, np.sin):
        expected = weight @ part(case.params["shared_centres"]) * i1e(kappa) / i0e(kappa)
        assert (np.abs(part(drawn).mean(0) - expected) < 5 * part(drawn).std(0) / np.sqrt(20_000)).all()


def test_a_state_across_the_seam_has_its_mean_there():
    params = {
        "logits": np.zeros((1, 2)),
        "shared_centres": np.array([[170.0], [-170.0]]),
        "shared_width": np.array([12.0]),
    }
    assert abs(float(Torus(360.0).natural(params)["mean"].value[0, 0])) == pytest.approx(180.0)


def test_kernels_lie_only_where_data_are():
    angles = np.random.default_rng(0).normal([1.0, -2.0], 0.1, (1000, 2))
    centres, width = cells_with_data(angles)
    assert len(centres) < 20
    assert width == pytest.approx(np.radians(12))
    assert np.abs(centres - [1.0, -2.0]).max() < 0.7
    many, _ = cells_with_data(np.random.default_rng(0).normal(0.5, 0.1, (1000, 4)))  # no grid for four angles
    assert np.abs(many - 0.5).max() < 0.6


def test_a_single_signal_gets_few_kernels():
    centres, width = spread_centres(np.random.default_rng(0).normal(size=(500, 1)))
    assert centres.shape == (24, 1)
    assert 0 < width[0] < 0.5


@pytest.mark.parametrize(("top", "period"), [(3.0, TURN), (170.0, 360.0)])
def test_degrees_are_told_from_radians(top, period):
    data = TimeSeries.from_arrays(np.arange(4.0), np.array([-1.0, 2.0, top, 0.5]))
    emission = named_emission("torus", data, 2)
    assert isinstance(emission, Torus)
    assert emission.period == period


def simulated(n=20_000, gap=0.5):
    """Three places on the torus, two of them with the same first angle and one across the seam."""
    states = mjp.simulate_states(RATES, gap * np.arange(n)[None], initial=np.ones(3) / 3, key=jax.random.key(1))[0]
    rng = np.random.default_rng(3)
    centres = np.array([[-1.5, 2.6], [-1.5, -0.5], [1.0, 3.1]])
    angles = centres[states] + rng.normal(0, 0.45, (n, 2))
    return TimeSeries.from_arrays(gap * np.arange(n), (angles + np.pi) % TURN - np.pi), states


@pytest.fixture(scope="module")
def world():
    data, states = simulated()
    return data, states, ExactMJP(3, emission="torus").fit(data)


@pytest.mark.statistical
def test_rates_are_recovered(world):
    """Six rates within 4.5 standard errors: a correct program fails in 1e-4 of all seeds."""
    data, states, fitted = world
    decoded = fitted.decode(data).states
    match = [int(np.bincount(decoded[states == k]).argmax()) for k in range(3)]
    assert sorted(match) == [0, 1, 2]
    assert (np.array(match)[states] == decoded).mean() > 0.98
    found = fitted.intervals["rates"]
    off = ~np.eye(3, dtype=bool)
    mean, upper = (part[np.ix_(match, match)][off] for part in (found.mean, found.upper))
    error = np.log(upper / mean) / 1.96
    assert (np.abs(np.log(mean / RATES[off])) < 4.5 * error).all()


def test_the_climb_takes_the_weights_as_given(world):
    _, _, fitted = world
    weights = np.size(fitted.parameters.emission["logits"]) - 3
    assert fitted.n_parameters == weights + 6 + 2
    assert fitted.uncertainty == "observed information, given the emission"
    assert not [name for name in fitted.intervals if name.startswith("emission")]
    assert fitted.converged


def test_saved_and_loaded(world, tmp_path):
    data, _, fitted = world
    fitted.save(tmp_path)
    again = FittedMJP.load(tmp_path)
    assert again.emission == fitted.emission
    some = data[:1].windows(200)[:1]
    assert again.score(some) == fitted.score(some)
    forecast = again.predict(some, some.times[-1:] + 1.0, samples=20)
    assert np.isfinite(forecast.samples).all()


@pytest.mark.slow
def test_the_neural_engine_learns_the_same_weights(world):
    data, _, exact = world
    few = data.windows(200)[:40]
    fitted = NeuralMJP(3, emission="torus", changes={"steps": 150}).fit(few)
    assert (fitted.decode(few).states == exact.decode(few).states).mean() > 0.95
