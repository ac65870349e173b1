"""Reaction networks from data: recovery, decoding, forecasts, files, and one line for everything that is wrong."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse.linalg import expm_multiply

from lattice_witness import brute_force
from neuralmjp import FittedNetwork, InputError, NetworkMJP, TimeSeries
from neuralmjp.exact.lattice_decode import reading_law
from neuralmjp.exact.lattice_fit import located
from neuralmjp.exact.lattice_report import lattice_information
from neuralmjp.exact.lattice_start import check_readable
from neuralmjp.fitted_network_files import summary
from neuralmjp.systems import Reaction, lotka_volterra, parse_network, sir, sparse_generator, telegraph

BIRTHS = "0 -> X @ birth = 2\nX -> 0 @ death = 0.2\nbox X 30\nstart X 3..12\nduration 20\nunit h"


@pytest.fixture(scope="module")
def network():
    return parse_network(BIRTHS)


@pytest.fixture(scope="module")
def data(network):
    return network.simulate(12, 25, seed=1).data


@pytest.fixture(scope="module")
def fitted(network, data) -> FittedNetwork:
    return NetworkMJP(network.with_parameters(birth=77.0, death=5.0)).fit(data)


def test_constants_and_noise_are_found(fitted):
    found, sd = fitted.intervals["parameters"], fitted.intervals["emission.sd"]
    error = np.log(found.upper / found.lower) / (2 * 1.96)
    assert (np.abs(np.log(found.mean / [2.0, 0.2])) < 3 * error).all()
    assert sd.lower[0] < 1.0 < sd.upper[0]
    assert (error < 0.3).all()
    assert fitted.converged
    assert fitted.warnings == ()
    assert (fitted.engine, fitted.posterior, fitted.uncertainty) == ("exact", "exact", "observed information")
    assert (fitted.n_parameters, fitted.time_unit, fitted.value_names) == (3, "h", ("X",))
    assert "exact, since the likelihood is tractable" in fitted.message
    assert fitted.truncated < 1e-7
    np.testing.assert_allclose(np.sqrt(fitted.log_covariance.diagonal()), error, rtol=1e-4)


def test_the_likelihood_is_the_networks_own(fitted, data):
    expected, _ = brute_force(fitted.network, fitted.readings, fitted.noise, data)
    np.testing.assert_allclose(fitted.per_series_log_likelihood(data), expected, atol=1e-8)
    assert fitted.score(data) == pytest.approx(fitted.log_likelihood, abs=1e-7)


def test_a_located_fit_has_the_same_information(fitted, data):
    """What another engine finds is judged by the same curvature."""
    found = located(data, fitted.network, fitted.readings, fitted.noise, initial="flat")
    assert found.evaluation.total == pytest.approx(fitted.log_likelihood, abs=1e-7)
    covariance = lattice_information(found).normal.covariance[:2, :2]
    np.testing.assert_allclose(covariance, fitted.log_covariance, rtol=1e-3)


def test_decoding(fitted, data):
    decoded = fitted.decode(data)
    _, laws = brute_force(fitted.network, fitted.readings, fitted.noise, data)
    law = laws[(0,)]
    np.testing.assert_allclose(decoded.mean[:, 0], law @ np.arange(31), atol=1e-6)
    np.testing.assert_array_equal(decoded.most_probable[:, 0], law.argmax(1))
    below = np.cumsum(law, axis=1)
    rows = np.arange(len(law))
    for quantile, level in ((decoded.lower, 0.025), (decoded.median, 0.5), (decoded.upper, 0.975)):
        assert (below[rows, quantile[:, 0]] >= level - 1e-6).all()
        assert (below[rows, np.maximum(quantile[:, 0] - 1, 0)] <= level + 1e-6)[quantile[:, 0] > 0].all()


@pytest.mark.statistical
def test_forecasts(fitted, data):
    """Against the matrix exponential; the samples' means are 5 standard errors wide: 1e-5 of all seeds fail."""
    some = data[:2]
    later = [np.array([25.0, 40.0]), np.array([30.0])]
    forecast = fitted.predict(some, later, samples=4000, seed=3)
    np.testing.assert_array_equal(forecast.series, [0, 0, 1])
    np.testing.assert_array_equal(forecast.times, [25.0, 40.0, 30.0])
    _, laws = brute_force(fitted.network, fitted.readings, fitted.noise, some)
    generator, counts = sparse_generator(fitted.network), np.arange(31)
    row = 0
    for series, times in zip((0, 1), later, strict=True):
        last = int(some.offsets[series + 1]) - 1
        for time in times:
            law = expm_multiply(generator.T * (time - some.times[last]), laws[(0,)][last])
            assert forecast.counts.mean[row, 0] == pytest.approx(law @ counts, abs=1e-6)
            assert forecast.readings.mean[row, 0] == pytest.approx(law @ counts, abs=1e-6)
            drawn = forecast.samples[:, row, 0]
            spread = np.sqrt(law @ counts**2 - (law @ counts) ** 2 + np.exp(2 * fitted.noise["log_sd"][0]))
            assert abs(drawn.mean() - law @ counts) < 5 * spread / np.sqrt(len(drawn))
            assert (drawn <= forecast.readings.upper[row, 0]).mean() == pytest.approx(0.95, abs=0.02)
            row += 1


def test_the_law_of_a_reading():
    """Of each kind of noise, against its own samples and by hand."""
    law = np.array([[0.2, 0.0, 0.5, 0.3]])
    rng = np.random.default_rng(0)
    totals = rng.choice(4, 200_000, p=law[0])[:, None]
    for noise in ("none", "gaussian", "poisson", "binomial", "two-sided-exponential"):
        network = parse_network(f"X -> 0 @ d = 1\nbox X 3\nstart X 1\nnoise {noise} 0.6")
        readings, params = network.readings()
        mean, lower, median, upper = reading_law(readings, params, 0, law)
        drawn = readings.sample(params, totals, rng)[:, 0]
        assert mean[0] == pytest.approx(drawn.mean(), abs=0.02)
        np.testing.assert_allclose([lower[0], median[0], upper[0]], np.quantile(drawn, [0.05, 0.5, 0.95]), atol=0.03)


def test_simulation_is_of_the_fitted_network(fitted):
    times = np.linspace(0, 30, 40)[None] + np.zeros((50, 1))
    new = fitted.simulate(times, seed=4)
    assert (new.value_names, new.time_unit, len(new)) == (("X",), "h", 50)
    mean = fitted.parameters["birth"] / fitted.parameters["death"]
    assert new.values[new.times > 20].mean() == pytest.approx(mean, rel=0.1)
    assert new.equals(fitted.simulate(times, seed=4))


def test_files(fitted, data, tmp_path):
    fitted.save(tmp_path / "run")
    again = FittedNetwork.load(tmp_path / "run")
    assert again.network == fitted.network
    assert again.score(data[:3]) == fitted.score(data[:3])
    np.testing.assert_array_equal(again.log_covariance, fitted.log_covariance)
    np.testing.assert_array_equal(again.intervals["parameters"].upper, fitted.intervals["parameters"].upper)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result == json.loads(json.dumps(summary(again)))
    assert result["parameters"]["birth"]["lower"] < result["parameters"]["birth"]["mean"]
    assert set(result) >= {"engine", "emission", "versions", "seed", "at_edge", "truncated", "warnings", "converged"}
    (tmp_path / "run" / "model.json").write_text("{}")
    with pytest.raises(InputError, match="not a fitted network of version 1"):
        FittedNetwork.load(tmp_path / "run")
    with pytest.raises(InputError, match="holds no fitted network that can be read"):
        FittedNetwork.load(tmp_path)


def test_damaged_files(fitted, tmp_path):
    fitted.save(tmp_path)
    known = json.loads((tmp_path / "model.json").read_text())
    del known["network"]["species"]
    (tmp_path / "model.json").write_text(json.dumps(known))
    with pytest.raises(InputError, match="parts missing or damaged"):
        FittedNetwork.load(tmp_path)


def test_functions_are_not_stored(fitted, tmp_path):
    own = Reaction({"X": 1}, {}, "death", propensity={"X": lambda n: n / (1 + n)})
    odd = replace(fitted, network=replace(fitted.network, reactions=(fitted.network.reactions[0], own)))
    with pytest.raises(InputError, match="the reaction at death has a propensity of its own"):
        odd.save(tmp_path / "odd")
    assert not (tmp_path / "odd").exists()


def test_a_reaction_that_never_happens_gets_an_upper_limit(network, data):
    wider = replace(
        network,
        reactions=(*network.reactions, Reaction({"X": 2}, {}, "pairs")),
        constants={**network.constants, "pairs": 1.0},
    )
    fitted = NetworkMJP(wider, noise_scale=1.0).fit(data)
    pairs = fitted.intervals["parameters"]
    if "no sign of the reaction at pairs" in " ".join(fitted.warnings):
        assert pairs.lower[2] == 0
    assert 0 <= pairs.lower[2] < 0.01
    assert pairs.upper[2] < 0.1
    below = fitted.log_likelihood - NetworkMJP(network, noise_scale=1.0).fit(data).log_likelihood
    assert below > -1e-3  # the smaller network is contained in the larger one


def test_what_the_data_do_not_determine():
    """Births and deaths of something that is never seen."""
    network = parse_network(BIRTHS + "\n0 -> Y @ make = 1\nY -> 0 @ lose = 0.5\nbox Y 4\nstart Y 1\nseen X")
    data = network.simulate(5, 12, seed=2).data
    fitted = NetworkMJP(network).fit(data)
    words = " ".join(fitted.warnings)
    assert "the data do not determine make: its interval is unbounded" in words
    assert "the data do not determine lose: its interval is unbounded" in words
    assert "Y is not seen by itself: at the first observation it is taken to be anything in its box" in words
    upper = dict(zip(fitted.names, fitted.intervals["parameters"].upper, strict=True))
    assert upper["make"] == np.inf
    assert upper["birth"] < 10
    assert np.isnan(fitted.log_covariance[2, 2])


def test_the_end_of_the_box_is_noticed():
    network = parse_network("0 -> X @ birth = 4\nX -> 0 @ death = 0.2\nbox X 12\nstart X 3..12\nduration 20")
    fitted = NetworkMJP(network, intervals=False).fit(network.simulate(6, 15, seed=0).data)
    assert any("X reaches the end of its box 0..12 with probability" in words for words in fitted.warnings)
    assert fitted.at_edge["X"] > 1e-3
    assert fitted.intervals == {}


def with_value(data: TimeSeries, row: int, value: float) -> TimeSeries:
    values = data.values.copy()
    values[row] = value
    return replace(data, values=values)


def test_bad_data(network, data):
    estimator = NetworkMJP(network)
    where = f"series 0, time {data.times[3]:g}: X reads 500, but its box ends at 30: enlarge the box"
    with pytest.raises(InputError, match=where):
        estimator.fit(with_value(data, 3, 500.0))
    with pytest.raises(InputError, match="X reads -200, but counts are not negative"):
        estimator.fit(with_value(data, 3, -200.0))
    with pytest.raises(InputError, match="no value changes between neighbouring observations"):
        estimator.fit(replace(data, values=np.full_like(data.values, 4.0)))
    with pytest.raises(InputError, match="is no count, but poisson readings are"):
        NetworkMJP(network, noise="poisson").fit(data)
    with pytest.raises(InputError, match="'Z' is seen, but is not among the species X"):
        NetworkMJP(network, seen=["Z"]).fit(data)
    with pytest.raises(InputError, match="NetworkMJP has no parameter 'noisy'"):
        estimator.set_params(noisy=1)
    deaths = parse_network("X -> 0 @ death = 0.2\nbox X 30\nnoise none")
    whole = TimeSeries.from_arrays([[0.0, 1.0, 2.0]], [[5.0, 4.0, 6.0]])
    with pytest.raises(InputError, match="series '0', time 2: this observation cannot happen under the network"):
        NetworkMJP(deaths).fit(whole)


@pytest.fixture(scope="module")
def crowded() -> TimeSeries:
    """Of a network whose box is larger: prey from 150 on."""
    larger = replace(lotka_volterra(), largest=(300, 300), start=((150, 200), (5, 30)))
    return larger.simulate(10, 20, seed=1).data


class TestTheBox:
    """Readings beyond the box are noise, or too much for it."""

    @pytest.mark.parametrize("engine", ["auto", "exact", "neural", "meanfield"])
    def test_far_beyond(self, crowded, engine):
        message = (
            r"prey reads \d.*, but its box ends at 59: enlarge the box, in a network file by 'box prey \d+', in Python"
        )
        with pytest.raises(InputError, match=message):
            NetworkMJP(lotka_volterra(), engine=engine).fit(crowded)

    def test_the_advice_holds(self, crowded):
        most = np.ceil(crowded.values.max(0)).astype(int)
        with pytest.raises(InputError, match=rf"replace\(network, largest=\({most[0]}, 59\)\); if it is noise, say"):
            NetworkMJP(lotka_volterra()).choose(crowded)
        enlarged = replace(lotka_volterra(), largest=tuple(most.tolist()))
        check_readable(*NetworkMJP(enlarged).observed(crowded), enlarged.box)

    @pytest.mark.parametrize(("noise_scale", "reading"), [(None, 34.0), (1.0, 35.5), (3.0, 47.0)])
    def test_a_little_beyond(self, network, data, noise_scale, reading):
        NetworkMJP(network, noise_scale=noise_scale).choose(with_value(data, 3, reading))

    @pytest.mark.parametrize(("noise_scale", "reading"), [(None, 60.0), (1.0, 36.5), (3.0, 49.0)])
    def test_more_than_noise(self, network, data, noise_scale, reading):
        """Six standard deviations where it is known; else what steps between neighbours bear, half the box at most."""
        with pytest.raises(InputError, match="its box ends at 30: enlarge the box"):
            NetworkMJP(network, noise_scale=noise_scale).choose(with_value(data, 3, reading))

    @pytest.mark.parametrize("noise", ["gaussian 8", "two-sided-exponential 5"])
    def test_strong_noise(self, noise):
        """That is shown below zero as well; 1e-6 of all seeds fail."""
        network = parse_network(BIRTHS + f"\nnoise {noise}")
        NetworkMJP(network).choose(network.simulate(30, 30, seed=3).data)

    def test_readings_of_sums(self, network):
        two = parse_network("A -> B @ f = 1\nB -> A @ b = 1\nbox A 5\nbox B 5\nstart A 5\nstart B 0\nseen A+B")
        data = TimeSeries.from_arrays([0.0, 1.0, 2.0], [5.0, 6.0, 80.0], value_names=["A+B"])
        with pytest.raises(InputError, match=r"A\+B reads 80.* ends at 10: .* by 'box A 80', 'box B 80', in Python"):
            NetworkMJP(two).choose(data)


def test_one_line_of_a_fit(fitted):
    said = repr(fitted)
    assert "\n" not in said
    assert len(said) < 200
    assert said.startswith("FittedNetwork(reaction-network, birth ")
    assert f"300 observations, log-likelihood {fitted.log_likelihood:.2f}, converged)" in said
    large = replace(fitted, log_likelihood=None, elbo=-12.5, engine="neural")
    assert "neural engine, 300 observations, bound -12.50" in repr(large)


def test_later_times_are_checked(fitted, data):
    with pytest.raises(InputError, match="later times must increase and begin after its last"):
        fitted.predict(data[:1], [1.0, 30.0])
    with pytest.raises(InputError, match="12 series need as many lists of later times, got 1"):
        fitted.predict(data, [[30.0]])


def test_columns_by_name_and_by_order():
    network = lotka_volterra()
    data = network.simulate(2, 3, seed=0).data
    turned = TimeSeries(data.times, data.values[:, ::-1], data.offsets, data.names, ("predator", "prey"))
    read, readings = NetworkMJP(network).observed(turned)
    assert (read.value_names, readings.columns) == (("predator", "prey"), ((1,), (0,)))
    read, readings = NetworkMJP(network, seen=["prey"]).observed(turned)
    np.testing.assert_array_equal(read.values[:, 0], data.values[:, 0])
    plain = TimeSeries(data.times, data.values, data.offsets, data.names, ("value_0", "value_1"))
    read, readings = NetworkMJP(network).observed(plain)
    assert (read.value_names, readings.columns) == (("prey", "predator"), ((0,), (1,)))
    capitals = TimeSeries(data.times, data.values[:, ::-1], data.offsets, data.names, ("Predator", "PREY"))
    assert NetworkMJP(network).observed(capitals)[1].columns == ((1,), (0,))
    others = TimeSeries(data.times, data.values[:, ::-1], data.offsets, data.names, ("foxes", "prey"))
    with pytest.raises(InputError, match="no species is called 'foxes', there are prey, predator: say what each value"):
        NetworkMJP(network).observed(others)
    read, readings = NetworkMJP(network, seen=["predator", "prey"]).observed(others)
    assert readings.columns == ((1,), (0,))
    summed = TimeSeries(data.times, data.values[:, :1], data.offsets, data.names, ("prey+predator",))
    assert NetworkMJP(network).observed(summed)[1].columns == ((0, 1),)
    with pytest.raises(InputError, match="the data have 1 values"):
        NetworkMJP(network).observed(TimeSeries(data.times, data.values[:, :1], data.offsets, data.names, ("value",)))


def test_choices_by_name(network):
    estimator = NetworkMJP(network, noise="poisson", seed=4)
    assert NetworkMJP(**estimator.get_params()) == estimator
    assert estimator.set_params(seed=5).seed == 5
    assert estimator.observed(network.simulate(1, 3, seed=0).data)[1].noise == "poisson"
    assert (
        NetworkMJP(replace(network, noise_scale=0.0)).observed(network.simulate(1, 3, seed=0).data)[1].noise == "none"
    )


@pytest.mark.slow
@pytest.mark.statistical
def test_lotka_volterra_is_recovered():
    """The paper's network, 128 series; 3.5 standard errors for each of 4 constants: 2e-3 of all seeds fail."""
    network = lotka_volterra()
    fitted = NetworkMJP(network.with_parameters(alpha=1.0, beta=1.0, delta=1.0, gamma=1.0)).fit(
        network.simulate(128, seed=2).data
    )
    off = np.log(fitted.constants / list(network.parameters.values())) / np.sqrt(fitted.log_covariance.diagonal())
    assert np.abs(off).max() < 3.5
    assert fitted.converged
    assert fitted.truncated < 1e-6


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("network", [sir(), telegraph()])
def test_other_networks_are_recovered(network):
    """An epidemic, and a gene whose switch is not seen; 4 standard errors: 4e-4 of all seeds fail."""
    data = network.simulate(30, 30, seed=5).data
    fitted = NetworkMJP(network, initial="start").fit(data)
    assert fitted.n_observations == data.n_observations
    off = np.log(fitted.constants / list(network.parameters.values())) / np.sqrt(fitted.log_covariance.diagonal())
    assert np.abs(off).max() < 4
    assert fitted.converged


class TestStarts:
    """One for all restarts, or one for each."""

    def test_one_for_each_restart(self, network, data):
        starts = [{"birth": 1.0, "death": 0.1}, {"birth": 4.0, "death": 0.4}]
        still = {"learning_rate": 1e-9, "model_learning_rate": 1e-9, "polish": False}
        changes = {"steps": 1, "round_steps": 1, "width": 4, "batch": 2, **still}
        neural = NetworkMJP(network, engine="neural", start=starts, restarts=2, changes=changes, intervals=False)
        trained = neural.train(data[:2])
        for history, start in zip(trained.histories, starts, strict=True):
            np.testing.assert_allclose(np.exp(history[0]["theta"]), list(start.values()), rtol=1e-4)

    def test_as_many_as_restarts(self, network, data):
        neural = NetworkMJP(network, engine="neural", start=[{"birth": 1.0, "death": 0.1}], restarts=2)
        with pytest.raises(InputError, match="there are 1 starts for 2 restarts: give one for each"):
            neural.train(data)

    @pytest.mark.parametrize("engine", ["exact", "meanfield"])
    def test_others_take_one(self, network, data, engine):
        with pytest.raises(InputError, match="is for the neural engine; give one"):
            NetworkMJP(network, engine=engine, start=[{"birth": 1.0, "death": 0.1}]).fit(data)
