"""The estimator: choices in, a fitted model out; errors that teach; nothing compiled twice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exact.test_information import TWO, covers, simulated
from exact.test_recovery import changed
from neuralmjp import ExactMJP, InputError, Panel, TimeSeries, mjp
from neuralmjp.emissions import Categorical, CustomEmission, Gaussian
from neuralmjp.exact.em import _many_steps
from neuralmjp.exact.evidence import Scaling, make_evidence
from neuralmjp.exact.fit import objective
from neuralmjp.exact.model import value_and_gradient
from neuralmjp.exact.packing import Packing
from neuralmjp.priors import FreeRates, ParametricRates
from neuralmjp.systems import FlashingRatchet, TwoMode

LEVELS = simulated(TWO, 12, 40, 0.3, seed=0, levels=[1.5, -1.0], noise=0.5)  # state 0 is the high one
LABELS = simulated(TWO, 40, 20, 0.5, seed=0)


@pytest.fixture(scope="module")
def two_levels():
    return ExactMJP(2, "gaussian").fit(LEVELS)


class TestChoices:
    def test_get_and_set(self):
        estimator = ExactMJP(3, emission="poisson", seed=4)
        choices = estimator.get_params()
        assert (choices["n_states"], choices["emission"], choices["seed"]) == (3, "poisson", 4)
        assert estimator.set_params(n_states=2, restarts=1) is estimator
        assert ExactMJP(**estimator.get_params()) == estimator
        assert (estimator.n_states, estimator.restarts) == (2, 1)

    def test_unknown_choice(self):
        with pytest.raises(InputError, match="no parameter 'states'; it has n_states, emission"):
            ExactMJP(2).set_params(states=3)

    def test_fit_fetch(self, two_levels):
        found = ExactMJP(2, "gaussian").fit_fetch(LEVELS)
        np.testing.assert_array_equal(found.rates, two_levels.rates)

    def test_progress_is_told(self):
        told = []
        ExactMJP(2).fit(LABELS, lambda stage, share: told.append(stage))
        assert {"gradient", "intervals"} <= set(told)


@pytest.mark.parametrize(
    ("choices", "data", "message"),
    [
        ({"n_states": 1}, LEVELS, "at least 2 states, a whole number; got 1"),
        ({"n_states": 2, "restarts": 0}, LEVELS, "a fit has at least 1 start"),
        ({"n_states": 2, "mask": np.ones((3, 3))}, LEVELS, r"2 states is a 2 x 2 table, got shape \(3, 3\)"),
        ({"n_states": 2, "emission": "gauss"}, LEVELS, "no emission 'gauss'; there are categorical, gaussian"),
        ({"n_states": 2, "emission": "poisson"}, LEVELS, "counts must be whole numbers from 0"),
        ({"n_states": 2, "prior": "slow"}, LEVELS, "no rate model 'slow'; there are free, reversible, or a system"),
        ({"n_states": 2, "prior": "lotka-volterra"}, LEVELS, "is a reaction network: .* fit it by NetworkMJP"),
        ({"n_states": 5, "prior": "flashing-ratchet"}, LEVELS, "the rate model has 6 states, but 5 are asked for"),
        ({"n_states": 2, "prior": FreeRates(3)}, LEVELS, "the rate model has 3 states, but 2 are asked for"),
        ({"n_states": 2, "prior": TwoMode()}, LEVELS, "two-mode has too many states"),
        ({"n_states": 5, "prior": FlashingRatchet()}, LEVELS, "the rate model has 6 states, but 5 are asked for"),
        ({"n_states": 2, "initial": "even"}, LEVELS, "initial must be free, stationary or 2 probabilities, got 'even'"),
        ({"n_states": 2, "initial": [0.5, 0.6]}, LEVELS, "2 probabilities that sum to one"),
        (
            {"n_states": 2, "emission": Categorical((0.0, 1.0, 2.0), np.ones((3, 3)))},
            LABELS,
            "emission is for 3 states",
        ),
        ({"n_states": 2, "emission": "gaussian", "misread": np.eye(2)}, LEVELS, "misreadings is for categorical"),
        ({"n_states": 2, "emission": "gaussian", "panel": Panel(first_known=True)}, LEVELS, "for categorical observ"),
        ({"n_states": 40, "emission": "gaussian"}, LEVELS, "use at most"),
        ({"n_states": 2, "emission": "gaussian"}, changed(LEVELS, values=lambda v: 0 * v + 0.1), "never changes"),
        ({"n_states": 2, "prior": FreeRates(2), "mask": [[0, 1], [0, 0]]}, LABELS, "mask"),
        ({"n_states": 2, "emission": Categorical.exact((0.0, 1.0)), "misread": np.ones((2, 2))}, LABELS, "misread"),
        ({"n_states": 2, "rate_prior": (-1.0, 2.0)}, LABELS, "rate_prior"),
        (
            {"n_states": 3, "emission": "gaussian", "mask": [[0, 1, 1], [0, 0, 0], [0, 0, 0]], "initial": "stationary"},
            LEVELS,
            "closed classes",
        ),
    ],
)
def test_errors(choices, data, message):
    with pytest.raises(InputError, match=message):
        ExactMJP(**choices).fit(data)


def test_an_observation_that_cannot_happen_is_named():
    """Also in a recording that is cut into lanes."""
    values = np.zeros(300)
    values[150:200] = 1.0
    data = TimeSeries.from_arrays(np.arange(300.0), values, names=("patch",))
    with pytest.raises(InputError, match="series 'patch', time 200: this observation cannot happen under the model"):
        ExactMJP(2, mask=[[0, 1], [0, 0]]).fit(data)


class TestFit:
    def test_states_are_ordered_by_their_mean(self, two_levels):
        np.testing.assert_allclose(two_levels.intervals["emission.mean"].mean.ravel(), [-1.0, 1.5], atol=0.2)
        assert covers(two_levels.intervals["rates"], TWO[::-1, ::-1]).all()

    def test_hidden_labels_are_ordered_by_stationary_probability(self):
        flips = np.random.default_rng(0).random(LABELS.values.shape) < 0.1
        data = changed(LABELS, values=lambda v: np.where(flips, 1 - v, v))
        fitted = ExactMJP(2, Categorical((0.0, 1.0), np.ones((2, 2))), restarts=2).fit(data)
        law = fitted.stationary_distribution.mean
        assert law[0] > law[1]

    def test_score_is_the_likelihood_of_the_fit(self, two_levels):
        assert two_levels.score(LEVELS) == pytest.approx(two_levels.log_likelihood, abs=1e-8)
        assert two_levels.converged

    def test_one_seed_one_fit(self, two_levels):
        again = ExactMJP(2, "gaussian").fit(LEVELS)
        assert again.log_likelihood == two_levels.log_likelihood
        np.testing.assert_array_equal(again.rate_samples, two_levels.rate_samples)
        for name, interval in two_levels.intervals.items():
            np.testing.assert_array_equal(again.intervals[name].upper, interval.upper)

    def test_another_seed_finds_the_same_top(self, two_levels):
        again = ExactMJP(2, "gaussian", seed=9).fit(LEVELS)
        assert again.restarts != two_levels.restarts
        assert again.log_likelihood == pytest.approx(two_levels.log_likelihood, abs=1e-4)

    def test_unseen_data_are_decoded(self, two_levels):
        """The high state, 0 in the simulation, is state 1 here: states are ordered by their mean."""
        states = simulated(TWO, 3, 25, 0.3, seed=8)
        unseen = simulated(TWO, 3, 25, 0.3, seed=8, levels=[1.5, -1.0], noise=0.5)
        assert (two_levels.decode(unseen).states == 1 - states.values[:, 0]).mean() > 0.95

    def test_the_callers_precision_does_not_matter(self, two_levels):
        with jax.enable_x64(False):
            again = ExactMJP(2, "gaussian").fit(LEVELS)
            assert again.decode(LEVELS).probabilities.dtype == np.float64
        np.testing.assert_array_equal(again.rates, two_levels.rates)
        np.testing.assert_array_equal(again.intervals["rates"].upper, two_levels.intervals["rates"].upper)

    def test_numbers_of_parameters(self, two_levels):
        assert two_levels.n_parameters == 2 + 4 + 1  # rates, means and spreads, initial law
        assert two_levels.n_observations == 480
        assert len(two_levels.restarts) == 5


def never_below_its_starts(fitted):
    return fitted.log_likelihood > max(fitted.restarts) - 1e-6


class TestStatesWithNamesOfTheirOwn:
    """Where something names the states, they are not renumbered afterwards: that would change the likelihood."""

    def test_a_known_rate(self):
        fitted = ExactMJP(2, "gaussian", prior=FreeRates(2, fixed={(0, 1): 0.8})).fit(LEVELS)
        assert fitted.rates[0, 1] == 0.8
        assert never_below_its_starts(fitted)
        assert fitted.score(LEVELS) == pytest.approx(fitted.log_likelihood, abs=1e-8)

    def test_a_known_initial_law(self):
        """Series begin in state 0, the high one."""
        data = simulated_from(0, seed=1)
        fitted = ExactMJP(2, "gaussian", initial=[0.999, 0.001]).fit(data)
        assert never_below_its_starts(fitted)
        np.testing.assert_allclose(fitted.intervals["emission.mean"].mean.ravel(), [1.5, -1.0], atol=0.3)

    def test_a_density_that_knows_its_states(self):
        """State 0 of the density is the low one, which is the rarer."""
        centres = jnp.array([-1.0, 1.5])
        density = CustomEmission(
            lambda p, x: -0.5 * ((x[0] - centres) / jnp.exp(p["log_sd"])) ** 2 - p["log_sd"], {"log_sd": [0.0, 0.0]}
        )
        fitted = ExactMJP(2, density).fit(LEVELS)
        np.testing.assert_allclose(np.exp(fitted.parameters.emission["log_sd"]), 0.5, atol=0.1)
        assert covers(fitted.intervals["rates"], TWO[::-1, ::-1]).all()

    def test_labels_shared_by_two_states(self):
        """One label is shown by state 0, the other by states 1 and 2."""
        rates = np.array([[0, 0.5, 0], [1.0, 0, 1.0], [0, 0.2, 0]])
        data = changed(simulated(rates, 40, 60, 0.3, seed=2), values=lambda v: np.minimum(v, 1.0))
        emission = Categorical((0.0, 1.0), [[1, 0], [0, 1], [0, 1]])
        estimator = ExactMJP(3, emission, mask=rates > 0)
        assert estimator.model(data).initial == "free"
        fitted = estimator.fit(data)
        assert len(fitted.restarts) == 5
        assert never_below_its_starts(fitted)
        assert covers(fitted.intervals["rates"], rates).all()


def simulated_from(state, seed):
    times = np.tile(np.arange(20) * 0.3, (30, 1))
    states = mjp.simulate_states(TWO, times, initial=np.full(30, state), key=jax.random.key(seed))
    noise = np.random.default_rng(seed).normal(size=states.shape)
    return TimeSeries.from_arrays(times, np.array([1.5, -1.0])[states] + 0.5 * noise)


class TestModels:
    def test_two_states_are_always_reversible(self, two_levels):
        fitted = ExactMJP(2, "gaussian", prior="reversible", restarts=2).fit(LEVELS)
        assert fitted.log_likelihood == pytest.approx(two_levels.log_likelihood, abs=1e-4)
        np.testing.assert_allclose(fitted.rates, two_levels.rates, rtol=1e-2)

    def test_a_prior_pulls_rates(self):
        free = ExactMJP(2).fit(LABELS)
        pulled = ExactMJP(2, rate_prior=(10.0, 0.01)).fit(LABELS)
        np.testing.assert_allclose(pulled.rates[[0, 1], [1, 0]], 10.0, rtol=0.1)
        assert pulled.log_likelihood < free.log_likelihood

    def test_equal_rates(self):
        fitted = ExactMJP(2, prior=FreeRates(2, equal=[[(0, 1), (1, 0)]])).fit(LABELS)
        assert fitted.rates[0, 1] == fitted.rates[1, 0]
        assert fitted.n_parameters == 1

    def test_a_function_of_one_parameter(self):
        """The same model as equal rates, by another way."""
        equal = ExactMJP(2, prior=FreeRates(2, equal=[[(0, 1), (1, 0)]])).fit(LABELS)
        flip = jnp.array([[0.0, 1.0], [1.0, 0.0]])
        fitted = ExactMJP(2, prior=ParametricRates(lambda p: p["k"] * flip, {"k": 1.0})).fit(LABELS)
        assert fitted.log_likelihood == pytest.approx(equal.log_likelihood, abs=1e-6)
        for part in ("mean", "lower", "upper"):
            expected = getattr(equal.intervals["rates"], part)[0, 1]
            assert getattr(fitted.intervals["parameters"], part)[0] == pytest.approx(expected, rel=1e-3)

    def test_a_first_label_that_is_missing(self):
        """Where a first state is not seen there is nothing to condition on: its law is learned."""
        data = changed(LABELS, values=lambda v: np.where(np.arange(len(v))[:, None] == 20, np.nan, v))
        assert ExactMJP(2).model(LABELS).initial == "known"
        assert ExactMJP(2).model(data).initial == "free"


class TestCompilation:
    def test_a_second_fit_of_the_same_shape_compiles_nothing(self, two_levels):
        assert two_levels.converged
        before = value_and_gradient._cache_size(), _many_steps._cache_size()
        other = simulated(TWO, 12, 40, 0.3, seed=5, levels=[1.5, -1.0], noise=0.5)
        ExactMJP(2, "gaussian").fit(other)
        assert (value_and_gradient._cache_size(), _many_steps._cache_size()) == before

    def test_the_optimiser_is_one_program(self, two_levels):
        """Rates may change as they like: the shape of the work does not, on a grid whose gaps are short."""
        laid = make_evidence(LEVELS, Gaussian(), 2, Scaling.of(Gaussian(), LEVELS.values), Panel())
        packing = Packing(two_levels.model, two_levels.parameters)
        theta = packing.vector(two_levels.parameters)
        objective(two_levels.model, packing, laid, theta)
        before = value_and_gradient._cache_size()
        for change in (-1.0, 0.5):
            objective(two_levels.model, packing, laid, theta + change)
        assert value_and_gradient._cache_size() == before
