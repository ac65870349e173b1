"""States that look alike, and signals that hum and drift: densities, M steps, and what a fit finds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralmjp import ExactMJP, FittedMJP, NeuralMJP, TimeSeries, emissions
from neuralmjp.emissions import Gaussian, Levels, Nuisance, Observations
from neuralmjp.emissions.hum import frequency, tuned
from neuralmjp.emissions.named import from_options, options_of
from neuralmjp.errors import InputError
from neuralmjp.mjp import simulate_states

LEVELS = Levels(Gaussian(), (0, 1, 0))
RATES = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 60.0], [6.0, 30.0, 0.0]])  # per second; closed, closed, open
HUM = 50.03


def observations(n=50, seed=0):
    rng = np.random.default_rng(seed)
    gap = rng.exponential(0.004, n)
    values = rng.normal(size=(n, 1))
    return Observations(
        jnp.asarray(values),
        None,
        jnp.asarray(np.roll(values, 1, 0)),
        jnp.asarray(np.arange(n)[:, None] > 0),
        jnp.asarray(gap),
        jnp.asarray(gap.cumsum()),
    )


def two_levels():
    return {"shared_mean": np.array([[-1.0], [1.5]]), "shared_log_sd": np.array([[0.1], [-0.3]])}


def nuisance():
    emission = Nuisance(Gaussian(), 50.0, 2, 2, (0.0, 0.2))
    params = {"mean": np.array([[-1.0], [1.5]]), "log_sd": np.array([[0.1], [-0.3]])}
    own = {"shared_hum": np.array([[0.3], [0.0], [-0.2], [0.1]]), "shared_tune": np.array([1e-3])}
    return emission, {**params, **own, "shared_drift": np.array([[0.4], [-0.1]])}


def recording(seed=0, n=6000, hum=0.4, drift=0.5, dt=1e-3):
    """A channel with two closed states behind one level, hum and a wandering baseline."""
    times = dt * np.arange(n)
    states = simulate_states(RATES, times[None], initial=np.array([1.0, 0, 0]), key=jax.random.key(seed))[0]
    rng = np.random.default_rng(seed)
    values = np.array([0.0, 0.0, 2.0])[states] + rng.normal(0, 0.3, n)
    values = values + hum * np.cos(2 * np.pi * HUM * times + 0.7) + drift * np.cos(np.pi * times / times[-1])
    return TimeSeries.from_arrays(times, values, time_unit="s", value_names=("current",)), np.asarray(states)


def test_states_of_a_level_share_its_density():
    seen = observations()
    plain = {"mean": two_levels()["shared_mean"], "log_sd": two_levels()["shared_log_sd"]}
    logs = np.asarray(LEVELS.log_prob(two_levels(), seen))
    np.testing.assert_array_equal(logs, np.asarray(Gaussian().log_prob(plain, seen))[:, [0, 1, 0]])
    assert LEVELS.locations(two_levels()).tolist() == [-1.0, 1.5, -1.0]
    assert LEVELS.natural(two_levels())["mean"].value[:, 0].tolist() == [-1.0, 1.5, -1.0]


def test_a_level_learns_from_all_its_states():
    seen, weights = observations(), np.random.default_rng(1).dirichlet([1, 1, 1], 50)
    found = LEVELS.maximised(two_levels(), seen, jnp.asarray(weights))
    assert found is not None
    together = weights[:, [0, 1]] + np.stack([weights[:, 2], np.zeros(50)], axis=1)
    mean = (together[:, :, None] * np.asarray(seen.values)[:, None]).sum(0) / together.sum(0)[:, None]
    np.testing.assert_allclose(found["shared_mean"], mean)


def test_only_states_of_one_level_change_places():
    order = LEVELS.order(two_levels(), np.array([3.0, 1.0, 2.0]))
    assert order.tolist() == [2, 1, 0]
    assert emissions.reordered(two_levels(), order)["shared_mean"].shape == (2, 1)


@pytest.mark.parametrize(
    ("levels", "word"), [((0, 2), "without a gap"), ((0, 0), "at least two"), ((), "at least two")]
)
def test_levels_that_mean_nothing(levels, word):
    with pytest.raises(InputError, match=word):
        Levels(Gaussian(), levels)


def test_what_has_no_levels():
    with pytest.raises(InputError, match="not of categorical"):
        Levels(emissions.Categorical.exact((0.0, 1.0)), (0, 1))
    with pytest.raises(InputError, match="not for categorical"):
        Nuisance(emissions.Categorical.exact((0.0, 1.0)), 50.0)
    data, _ = recording(n=100)
    with pytest.raises(InputError, match="2 levels are given, but 3 states"):
        ExactMJP(3, levels=(0, 1)).fit(data)


def test_hum_and_drift_shift_every_state_alike():
    emission, params = nuisance()
    seen = observations()
    t = np.asarray(seen.time)
    angle = 2 * np.pi * 50 * np.exp(1e-3) * t
    shift = 0.3 * np.cos(angle) - 0.2 * np.sin(angle) + 0.1 * np.sin(2 * angle)
    along = np.clip(t / 0.2, 0, 1)
    shift = shift + 0.4 * np.cos(np.pi * along) - 0.1 * np.cos(2 * np.pi * along)
    np.testing.assert_allclose(np.asarray(emission.offset(params, seen.time))[:, 0], shift, atol=1e-9)
    clean = seen._replace(values=seen.values - shift[:, None])
    inner = {name: params[name] for name in ("mean", "log_sd")}
    np.testing.assert_allclose(emission.log_prob(params, seen), Gaussian().log_prob(inner, clean), atol=1e-9)


def test_the_m_step_of_hum_and_drift_is_least_squares():
    """For Gaussians one step, given the states' own parameters, is the top: nothing is left of the slope."""

    emission, params = nuisance()
    seen, weights = observations(), jnp.asarray(np.random.default_rng(1).dirichlet([1, 1], 50))
    found = emission.maximised(params, seen, weights)
    assert found is not None

    def total(p):
        return (weights * emission.log_prob(p, seen)).sum()

    slopes = jax.grad(total)(found)
    assert max(float(jnp.abs(slopes[name]).max()) for name in ("shared_hum", "shared_drift")) < 1e-5
    assert total(found) > total(params)


def test_frequencies():
    assert frequency("50Hz", "ms") == 0.05
    assert frequency("0.05", "ms") == 0.05
    assert frequency("1 kHz", "s") == 1000.0
    for wrong in ("fifty", "-3Hz", "Hz", "0"):
        with pytest.raises(InputError, match="such as 50Hz"):
            frequency(wrong, "s")
    with pytest.raises(InputError, match="unit of time is 'time unit'"):
        frequency("50Hz", "time unit")


def test_the_mains_are_found():
    data, _ = recording(n=20_000)
    assert tuned(data, 50.0, 2) == pytest.approx(HUM, abs=0.01)
    short = data.between(0.0, 0.5)  # no record of half a second tells 50 from 50.1
    assert tuned(short, 50.0, 2) == 50.0


def test_hum_that_cannot_be_told():
    data = TimeSeries.from_arrays(0.1 * np.arange(50), np.random.default_rng(0).normal(size=50), time_unit="s")
    with pytest.raises(InputError, match="too far apart"):
        ExactMJP(2, hum="50Hz").fit(data)
    twice = TimeSeries.from_arrays([np.arange(30.0)] * 2, np.random.default_rng(0).normal(size=(2, 30)))
    with pytest.raises(InputError, match="drift is for one recording"):
        ExactMJP(2, drift=2).fit(twice)


@pytest.fixture(scope="module")
def fitted():
    data, states = recording()
    return data, states, ExactMJP(3, levels=(0, 0, 1), hum="50Hz", harmonics=1, drift=1).fit(data)


def test_rates_behind_hum_and_drift(fitted):
    """Two closed states behind one level, none of it visible by eye."""
    data, states, found = fitted
    truth = RATES[np.ix_([0, 1, 2], [0, 1, 2])]
    interval = found.intervals["rates"]
    inside = (interval.lower <= truth) & (truth <= interval.upper)
    assert inside[truth > 0].sum() >= 3
    assert (found.rates[:2, :2] == 0).all()
    assert found.rates[0].sum() < found.rates[1].sum()  # states that last come first
    decoded = found.decode(data)
    assert ((decoded.states == 2) == (states == 2)).mean() > 0.995
    assert decoded.levels is not None
    assert (decoded.levels == (states == 2)).mean() > 0.995
    natural = found.emission.natural(found.parameters.emission)
    assert float(natural["shared_hum_frequency"].value[0]) == pytest.approx(HUM, abs=0.01)
    assert float(natural["shared_hum_amplitude"].value[0, 0]) == pytest.approx(0.4, abs=0.03)
    assert float(np.asarray(natural["shared_drift"].value)[0, 0]) == pytest.approx(0.5, abs=0.05)


def test_models_with_hum_are_kept(fitted, tmp_path):
    data, _, found = fitted
    found.save(tmp_path / "run")
    again = FittedMJP.load(tmp_path / "run")
    assert again.score(data) == pytest.approx(found.score(data))
    assert from_options(found.emission.name, options_of(found.emission)) == found.emission


def test_forecasts_hum_along(fitted):
    data, _, found = fitted
    last = float(data.times[-1])
    times = last + 1e-3 * np.arange(1, 21)
    ahead = found.predict(data, times, samples=4000, seed=0)
    expected = np.asarray(found.emission.offset(found.parameters.emission, times))[:, 0]
    rest = ahead.readings.mean[:, 0] - ahead.probabilities[:, 2] * 2.0
    assert np.ptp(expected) > 0.5
    np.testing.assert_allclose(rest, expected, atol=0.15)


@pytest.mark.parametrize(
    "base", ["ornstein-uhlenbeck", *(pytest.param(name, marks=pytest.mark.slow) for name in ("neural", "student-t"))]
)
def test_around_any_signal(base):
    data, states = recording(n=1500, drift=0.0)
    found = ExactMJP(3, emission=base, levels=(0, 0, 1), hum="50Hz", harmonics=1, intervals=False, restarts=1).fit(data)
    assert ((np.asarray(found.decode(data).states) == 2) == (states == 2)).mean() > 0.97
    assert np.isfinite(found.log_likelihood)


def test_the_neural_engine_takes_them_too():
    data, _ = recording(n=600, drift=0.0)
    small = {"width": 8, "batch": 4, "steps": 6, "round_steps": 3, "dynamics": (8,)}
    engine = NeuralMJP(3, levels=(0, 0, 1), hum="50Hz", harmonics=1, changes=small, intervals=False)
    found = engine.fit(data)
    assert found.elbo is not None
    assert found.elbo <= found.log_likelihood + 1e-6
    assert found.n_states == 3
