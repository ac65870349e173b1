"""A fitted model: what it says of data, its observables, its JSON, and the way to disk and back."""

import json
import zipfile
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from emissions.cases import CASES
from exact.test_enumeration import holed, scattered
from law import assert_mean
from neuralmjp import FittedMJP, InputError, Panel, TimeSeries, mjp
from neuralmjp.emissions import Categorical
from neuralmjp.exact.model import Model, Parameters
from neuralmjp.fitted_files import FORMAT_VERSION, summary
from neuralmjp.mjp import Interval
from neuralmjp.mjp.interval import LEVEL
from neuralmjp.priors import FreeRates, ParametricRates
from priors.test_rate_models import MODELS

THETA = np.log([0.8, 1.7])
RATES = np.array([[0, 0.8], [1.7, 0]])


def made(model, theta, params, n_values):
    """A fitted model without a fit: these parameters, with some spread in the rates."""
    rates = np.asarray(model.rate_model.rates(jnp.asarray(theta)))
    samples = rates * np.exp(0.1 * np.random.default_rng(0).normal(size=(200, 1, 1)))
    intervals = {"rates": Interval(rates, 0.8 * rates, 1.2 * rates)}
    for name, entry in model.emission.natural(params).items():
        intervals[f"emission.{name}"] = Interval(*[np.asarray(entry.value)] * 3)
    return FittedMJP(
        engine="exact",
        model=model,
        parameters=Parameters(np.asarray(theta), params, np.array([0.0, 0.6, 0.1])[: model.rate_model.n_states]),
        time_unit="ms",
        value_names=tuple(f"x{i}" for i in range(n_values)),
        log_likelihood=-123.4,
        n_parameters=7,
        n_observations=50,
        converged=True,
        message="converged",
        rate_samples=samples,
        intervals=intervals,
        uncertainty="observed information",
        warnings=("a warning",),
        seconds=1.5,
        seed=3,
        restarts=(-130.0, -123.4),
    )


def of_emission(name, **changes):
    case = CASES[name]
    n_values = case.draw(np.random.default_rng(0), 1).shape[1]
    return replace(made(Model(FreeRates(2), case.emission, "free"), THETA, case.params, n_values), **changes)


GAUSSIAN = of_emission("gaussian")
DATA = scattered(holed(CASES["gaussian"], seed=1))


class TestFiles:
    @pytest.mark.parametrize("name", [name for name in CASES if name != "custom"])
    def test_every_emission_comes_back(self, name, tmp_path):
        fitted, data = of_emission(name), scattered(holed(CASES[name], seed=2))
        fitted.save(tmp_path / "run")
        loaded = FittedMJP.load(tmp_path / "run")
        assert loaded.emission == fitted.emission
        assert loaded.score(data) == fitted.score(data)
        np.testing.assert_array_equal(loaded.decode(data).states, fitted.decode(data).states)

    @pytest.mark.parametrize("name", MODELS)
    def test_every_rate_model_comes_back_with_its_rates(self, name, tmp_path):
        theta = 0.3 * np.random.default_rng(1).normal(size=MODELS[name].n_parameters)
        params = {"logits": np.zeros((3, 3))}
        fitted = made(Model(MODELS[name], Categorical.exact((0.0, 1.0, 2.0)), "free"), theta, params, 1)
        fitted.save(tmp_path)
        loaded = FittedMJP.load(tmp_path)
        np.testing.assert_allclose(loaded.rates, fitted.rates, rtol=1e-12)
        if name != "parametric":  # a function is not data: its rates are kept
            assert loaded.model == fitted.model

    def test_as_many_parameters_as_jumps(self, tmp_path):
        """Parameters of a function must not be taken for the logarithms of its rates."""
        model = ParametricRates(
            lambda p: jnp.array([[0, 1.0], [0, 0]]) * p["a"] * p["b"] + jnp.array([[0, 0], [1.0, 0]]) * p["b"],
            {"a": 1.0, "b": 1.0},
        )
        case = CASES["poisson"]
        fitted = made(Model(model, case.emission, "stationary"), np.log([2.0, 3.0]), case.params, 2)
        fitted.save(tmp_path)
        np.testing.assert_allclose(FittedMJP.load(tmp_path).rates, [[0, 6.0], [3.0, 0]], rtol=1e-12)

    def test_nothing_is_lost(self, tmp_path):
        panel = Panel(first_known=True, censored={99.0: (3.0, 5.0)})
        given = Model(FreeRates(2), CASES["categorical"].emission, "given", (0.25, 0.75), (0.5, 2.0))
        fitted = of_emission("categorical", panel=panel, model=given)
        fitted.save(tmp_path)
        loaded = FittedMJP.load(tmp_path)
        assert loaded.model == fitted.model
        assert (loaded.panel.first_known, loaded.panel.exact_entry) == (True, None)
        assert {k: tuple(v) for k, v in loaded.panel.censored.items()} == panel.censored
        for name in ("time_unit", "value_names", "log_likelihood", "n_parameters", "n_observations", "converged"):
            assert getattr(loaded, name) == getattr(fitted, name)
        for name in ("message", "uncertainty", "warnings", "seconds", "seed", "restarts", "aic", "bic"):
            assert getattr(loaded, name) == getattr(fitted, name)
        np.testing.assert_array_equal(loaded.rate_samples, fitted.rate_samples)
        np.testing.assert_array_equal(loaded.initial, fitted.initial)
        for name, interval in fitted.intervals.items():
            for part in ("mean", "lower", "upper"):
                np.testing.assert_array_equal(getattr(loaded.intervals[name], part), getattr(interval, part))
        np.testing.assert_array_equal(loaded.timescales.upper, fitted.timescales.upper)

    def test_readable_without_this_library(self, tmp_path):
        GAUSSIAN.save(tmp_path)
        model = json.loads((tmp_path / "model.json").read_text())
        assert (model["format"], model["version"]) == ("neuralmjp fitted model", FORMAT_VERSION)
        assert json.loads((tmp_path / "result.json").read_text())["n_states"] == 2
        with np.load(tmp_path / "arrays.npz", allow_pickle=False) as arrays:
            np.testing.assert_array_equal(arrays["rates"], GAUSSIAN.rates)
            np.testing.assert_array_equal(arrays["emission/mean"], CASES["gaussian"].params["mean"])
        assert {file.name for file in tmp_path.iterdir()} == {"model.json", "result.json", "arrays.npz"}
        assert all(b"pickle" not in file.read_bytes() for file in tmp_path.iterdir())

    def test_a_custom_density_is_code(self, tmp_path):
        of_emission("custom").save(tmp_path)
        with pytest.raises(InputError, match="cannot be loaded: it was code, not data"):
            FittedMJP.load(tmp_path)

    @pytest.mark.parametrize(
        "damage",
        [
            lambda run: (run / "model.json").unlink(),
            lambda run: (run / "arrays.npz").unlink(),
            lambda run: (run / "arrays.npz").write_bytes(b""),
            lambda run: (run / "arrays.npz").write_bytes((run / "arrays.npz").read_bytes()[:300]),
            lambda run: (run / "arrays.npz").write_text("not an archive"),
            lambda run: (run / "model.json").write_text("{"),
            lambda run: (run / "model.json").write_text("[1, 2]"),
            lambda run: (run / "model.json").write_bytes(b"\xff\xfe\x00"),
            lambda run: (run / "model.json").write_text('{"format": "neuralmjp fitted model", "version": 1}'),
            lambda run: without(run, "theta.npy"),
            lambda run: without(run, "emission/mean.npy"),
        ],
    )
    def test_damage_is_one_line(self, damage, tmp_path):
        GAUSSIAN.save(tmp_path / "run")
        damage(tmp_path / "run")
        with pytest.raises(InputError, match="run") as raised:
            FittedMJP.load(tmp_path / "run")
        assert "\n" not in str(raised.value)

    def test_another_version(self, tmp_path):
        GAUSSIAN.save(tmp_path)
        with pytest.raises(InputError, match=r"there is no such folder; neuralmjp fit DATA --out .*none writes it"):
            FittedMJP.load(tmp_path / "none")
        file = tmp_path / "model.json"
        file.write_text(file.read_text().replace(f'"version": {FORMAT_VERSION}', '"version": 999'))
        with pytest.raises(InputError, match=r"model.json: not a fitted model of version 1; fit again"):
            FittedMJP.load(tmp_path)

    def test_a_pickle_is_never_opened(self, tmp_path):
        GAUSSIAN.save(tmp_path)
        np.savez(tmp_path / "arrays.npz", theta=np.array([{"a": 1}], dtype=object))
        with pytest.raises(InputError, match="holds no fitted model"):
            FittedMJP.load(tmp_path)


def without(run, member):
    """Take one array out of the archive."""
    with zipfile.ZipFile(run / "arrays.npz") as archive:
        kept = {name: archive.read(name) for name in archive.namelist() if name != member}
    with zipfile.ZipFile(run / "arrays.npz", "w") as archive:
        for name, content in kept.items():
            archive.writestr(name, content)


CONTRACT = {"engine", "posterior", "time_unit", "n_states", "log_likelihood", "seconds", "rates", "emission", "seed"}
CONTRACT |= {"stationary_distribution", "timescales", "mfpt", "uncertainty", "versions"}


class TestSummary:
    """The contract of the command line's JSON."""

    def test_keys(self):
        found = json.loads(json.dumps(summary(GAUSSIAN), allow_nan=False))
        assert set(found) >= CONTRACT
        for name in ("rates", "stationary_distribution", "timescales", "mfpt"):
            assert set(found[name]) >= {"mean", "lower", "upper"}
        assert np.shape(found["mfpt"]["lower"]) == (2, 2)
        assert found["rates"]["mean"] == GAUSSIAN.rates.tolist()
        assert found["emission"]["name"] == "gaussian"
        assert set(found["emission"]["sd"]) == {"mean", "lower", "upper"}
        assert "parameters" not in found

    def test_what_is_infinite_or_unknown_is_null(self):
        nowhere = Interval(RATES, np.zeros((2, 2)), np.full((2, 2), np.inf))
        wild = replace(GAUSSIAN, intervals={"rates": nowhere}, rate_samples=np.empty((0, 2, 2)), restarts=(np.nan,))
        found = json.loads(json.dumps(summary(wild), allow_nan=False))
        assert found["rates"]["upper"] == [[None, None], [None, None]]
        assert found["timescales"]["lower"] == [None]
        assert found["restarts"] == [None]

    def test_two_closed_classes_have_a_reason_instead_of_a_law(self):
        model = Model(FreeRates(3, mask=[[0, 1, 1], [0, 0, 0], [0, 0, 0]]), CASES["poisson"].emission, "free")
        params = {"log_mean": np.zeros((3, 2))}
        found = summary(made(model, np.zeros(2), params, 2))
        json.dumps(found, allow_nan=False)
        assert "closed classes" in found["stationary_distribution"]["reason"]

    def test_parameters_of_a_system_by_name(self):
        model = Model(MODELS["parametric"], CASES["poisson"].emission, "free")
        fitted = made(model, np.log([2.0, 0.5]), {"log_mean": np.zeros((3, 2))}, 2)
        values = np.array([2.0, 0.5])
        fitted = replace(fitted, intervals=fitted.intervals | {"parameters": Interval(values, values / 2, values * 2)})
        assert summary(fitted)["parameters"]["ratio"] == {"mean": 0.5, "lower": 0.25, "upper": 1.0}


class TestObservables:
    def test_rates_and_generator(self):
        np.testing.assert_allclose(GAUSSIAN.rates, RATES, rtol=1e-14)
        np.testing.assert_allclose(GAUSSIAN.generator, [[-0.8, 0.8], [1.7, -1.7]], rtol=1e-14)

    def test_intervals_are_quantiles_over_the_samples(self):
        found = GAUSSIAN.timescales
        speeds = GAUSSIAN.rate_samples.sum((1, 2))
        assert found.mean == pytest.approx(1 / 2.5)
        np.testing.assert_allclose([found.upper[0], found.lower[0]], 1 / np.quantile(speeds, [0.025, 0.975]), rtol=0.02)

    def test_any_function_of_the_rates(self):
        found = GAUSSIAN.observable(lambda rates: mjp.mfpt(rates, source=0, target=1))
        assert found.mean == pytest.approx(1 / 0.8)
        assert found.lower < found.mean < found.upper

    @pytest.mark.parametrize(
        "function", [lambda r: r[0, 1], lambda r: float(r[0, 1]), lambda r: r.T[1, 0], lambda r: r[..., 0, 1]]
    )
    def test_of_one_matrix_or_of_a_batch(self, function):
        found = GAUSSIAN.observable(function)
        tail = (1 - LEVEL) / 2
        ends = np.quantile(GAUSSIAN.rate_samples[:, 0, 1], [tail, 1 - tail], method="inverted_cdf")
        np.testing.assert_allclose([found.mean, found.lower, found.upper], [0.8, *ends])
        row = GAUSSIAN.observable(lambda r: r[0])
        assert row.lower.shape == (2,)

    def test_every_named_observable(self):
        for name in ("stationary_distribution", "timescales", "mfpt", "sojourn_times", "entropy_production"):
            found = getattr(GAUSSIAN, name)
            assert (found.lower <= found.mean).all()
            assert (found.mean <= found.upper).all()

    def test_infinite_is_not_nan(self):
        model = Model(FreeRates(2, mask=[[0, 1], [0, 0]]), CASES["gaussian"].emission, "free")
        found = made(model, np.zeros(1), CASES["gaussian"].params, 2).mfpt
        assert found.lower[1, 0] == found.mean[1, 0] == found.upper[1, 0] == np.inf

    def test_information_criteria(self):
        assert GAUSSIAN.aic == pytest.approx(2 * 7 + 2 * 123.4)
        assert GAUSSIAN.bic == pytest.approx(7 * np.log(50) + 2 * 123.4)

    @pytest.mark.parametrize(
        ("initial", "given", "law"),
        [
            ("free", None, np.array([1, np.exp(0.6)]) / (1 + np.exp(0.6))),
            ("stationary", None, [0.68, 0.32]),
            ("given", (0.1, 0.9), [0.1, 0.9]),
            ("known", None, [0.5, 0.5]),
        ],
    )
    def test_initial_law(self, initial, given, law):
        fitted = of_emission("gaussian", model=Model(FreeRates(2), CASES["gaussian"].emission, initial, given))
        np.testing.assert_allclose(fitted.initial, law, rtol=1e-12)


class TestData:
    def test_probabilities_and_path(self):
        decoded = GAUSSIAN.decode(DATA)
        assert decoded.probabilities.shape == (DATA.n_observations, 2)
        np.testing.assert_allclose(decoded.probabilities.sum(1), 1.0)
        np.testing.assert_array_equal(GAUSSIAN.predict_proba(DATA), decoded.probabilities)
        assert set(decoded.states.tolist()) <= {0, 1}

    def test_score_adds_over_series(self):
        assert GAUSSIAN.score(DATA) == pytest.approx(sum(GAUSSIAN.score(one) for one in (DATA[:2], DATA[2:])))

    def test_precision_does_not_depend_on_the_caller(self):
        expected = GAUSSIAN.score(DATA)
        with jax.enable_x64(False):
            assert GAUSSIAN.score(DATA) == expected

    def test_other_columns(self):
        with pytest.raises(InputError, match="fitted to 2 values, the data have 1"):
            GAUSSIAN.decode(TimeSeries.from_arrays([0.0, 1.0], [0.0, 1.0]))

    def test_labels_never_seen(self):
        with pytest.raises(InputError, match="the data hold the label 4"):
            of_emission("exact").decode(TimeSeries.from_arrays([0.0, 1.0], [3.0, 4.0]))

    def test_data_that_cannot_happen(self):
        """They have no likelihood, and no path; the observation is named."""
        forward = Model(FreeRates(2, mask=[[0, 1], [0, 0]]), CASES["exact"].emission, "free")
        fitted = made(forward, np.zeros(1), CASES["exact"].params, 1)
        data = TimeSeries.from_arrays([[0.0, 1.0], [0.0, 2.0]], [[3.0, 8.0], [8.0, 3.0]], names=("up", "down"))
        assert fitted.score(data) == -np.inf
        for question in (fitted.decode, fitted.predict_proba):
            with pytest.raises(InputError, match="series 'down', time 2: this observation cannot happen"):
                question(data)

    def test_sampled_paths(self):
        paths = GAUSSIAN.sample_paths(DATA, 3, key=jax.random.key(0))
        assert [len(one) for one in paths] == [3] * len(DATA)
        assert [one[0].duration for one in paths] == pytest.approx([one.times[-1] - one.times[0] for one in DATA])

    @pytest.mark.statistical
    @pytest.mark.parametrize("name", ["gaussian", "poisson", "categorical"])
    def test_simulated_data_have_the_moments_of_the_model(self, name):
        """One value per series, far from its start; a correct program fails in 1e-4 of all seeds."""
        fitted = of_emission(name)
        data = fitted.simulate(np.tile([5.0, 105.0], (4000, 1)), seed=1)
        law = np.array([1.7, 0.8]) / 2.5
        if name == "categorical":
            mean = np.asarray(fitted.emission.natural(fitted.parameters.emission)["probability"].value) @ [
                3.0,
                5.0,
                8.0,
            ]
        else:
            mean = np.asarray(fitted.emission.natural(fitted.parameters.emission)["mean"].value)[:, 0]
        assert data.time_unit == "ms"
        assert_mean(data.values[1::2, 0], law @ mean)
        first = np.array([1, np.exp(0.6)]) / (1 + np.exp(0.6))
        assert_mean(data.values[::2, 0], first @ mean)

    def test_one_seed_one_data_set(self):
        times = np.tile(np.arange(5.0), (3, 1))
        first, again, other = (GAUSSIAN.simulate(times, seed=seed) for seed in (1, 1, 2))
        assert first.equals(again)
        assert not first.equals(other)

    def test_simulated_data_score_best_under_their_own_model(self):
        data = GAUSSIAN.simulate(np.tile(np.arange(50) * 0.3, (20, 1)), seed=0)
        other = of_emission("gaussian", parameters=GAUSSIAN.parameters._replace(rates=THETA + 1.0))
        assert GAUSSIAN.score(data) > other.score(data)
