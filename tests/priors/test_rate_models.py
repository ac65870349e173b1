"""Rate models: names, rates from logarithms and back, structure that holds for any parameters."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralmjp import InputError
from neuralmjp.mjp import stationary_distribution
from neuralmjp.priors import FreeRates, ParametricRates, ReversibleRates, rates_of, system_rates
from neuralmjp.systems import FlashingRatchet, TwoMode

RING = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
CHAIN = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def two_speeds(p):
    """A chain of three states with one speed each way."""
    return jnp.array([[0.0, 1, 0], [0, 0, 1], [0, 0, 0]]) * p["up"] + jnp.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]) * (
        p["up"] * p["ratio"]
    )


MODELS = {
    "free": FreeRates(3),
    "masked": FreeRates(3, mask=RING),
    "fixed": FreeRates(3, fixed={(0, 1): 2.0, (2, 0): 0.0}),
    "equal": FreeRates(3, mask=CHAIN, equal=[[(2, 1), (0, 1)]], fixed={(1, 0): 0.3}),
    "reversible": ReversibleRates(3),
    "reversible-chain": ReversibleRates(3, mask=CHAIN),
    "parametric": ParametricRates(two_speeds, {"up": 1.0, "ratio": 0.5}),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def thetas(model, n=20):
    return np.random.default_rng(0).normal(size=(n, model.n_parameters))


@every_model
def test_rates_are_positive_where_allowed_and_zero_elsewhere(model):
    for theta in thetas(model):
        rates = np.asarray(model.rates(jnp.asarray(theta)))
        np.testing.assert_array_equal(rates > 0, model.allowed)
        assert not rates.diagonal().any()


@every_model
def test_nearest_finds_the_parameters_of_its_own_rates(model):
    for theta in thetas(model, 5):
        rates = np.asarray(model.rates(jnp.asarray(theta)))
        np.testing.assert_allclose(model.rates(jnp.asarray(model.nearest(rates))), rates, rtol=1e-6)
        if not isinstance(model, ParametricRates):
            np.testing.assert_allclose(model.nearest(rates), theta, atol=1e-10)


@every_model
def test_nearest_bears_zeros(model):
    theta = model.nearest(np.array([[0, 1.0, 0], [0, 0, 2.0], [0.5, 0, 0]]))
    assert theta.shape == (model.n_parameters,)
    assert np.isfinite(theta).all()


@every_model
def test_models_are_static_arguments(model):
    """Equal models hash alike, so that what was compiled for one serves the other."""
    traces = []

    @partial(jax.jit, static_argnames="model")
    def total(model, theta):
        traces.append(1)
        return model.rates(theta).sum()

    again = jax.tree.unflatten(jax.tree.structure(model), jax.tree.leaves(model))
    assert model == again
    assert hash(model) == hash(again)
    for same in (model, again):
        total(same, jnp.zeros(model.n_parameters))
    assert len(traces) == 1


def test_different_models_differ():
    assert len(set(MODELS.values())) == len(MODELS)
    assert FreeRates(3) == FreeRates(3, mask=~np.eye(3, dtype=bool))
    assert FreeRates(3) != FreeRates(4)


@every_model
def test_rates_of_many(model):
    many = thetas(model, 4)
    one_by_one = [model.rates(jnp.asarray(theta)) for theta in many]
    np.testing.assert_allclose(rates_of(model, many), one_by_one, rtol=1e-14)
    np.testing.assert_allclose(rates_of(model, many[0]), one_by_one[0], rtol=1e-14)


class TestFree:
    def test_names_follow_the_rows(self):
        assert MODELS["free"].names == ("0->1", "0->2", "1->0", "1->2", "2->0", "2->1")
        assert MODELS["masked"].names == ("0->1", "1->2", "2->0")

    def test_fixed_rates_stay(self):
        rates = MODELS["fixed"].rates(jnp.zeros(4))
        assert rates.tolist() == [[0, 2, 1], [1, 0, 1], [0, 1, 0]]
        assert MODELS["fixed"].names == ("0->2", "1->0", "1->2", "2->1")

    def test_equal_rates_share_a_parameter(self):
        model = MODELS["equal"]
        assert model.names == ("0->1=2->1", "1->2")
        assert model.rates(jnp.log(jnp.array([5.0, 7.0]))).tolist() == pytest.approx(
            [pytest.approx([0, 5, 0]), pytest.approx([0.3, 0, 7]), pytest.approx([0, 5, 0])]
        )
        assert not model.closed_form
        assert MODELS["fixed"].closed_form

    @pytest.mark.parametrize("name", ["free", "masked", "fixed", "equal"])
    def test_tables_make_the_same_model_again(self, name):
        model = MODELS[name]
        again = FreeRates.from_tables(model.parameter_of, np.array(model.fixed))
        assert again == model
        assert again.names == model.names

    def test_order_inside_a_group_does_not_matter(self):
        assert FreeRates(3, equal=[[(2, 1), (0, 1)]]) == FreeRates(3, equal=[[(0, 1), (2, 1)]])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"mask": np.ones((2, 2))}, r"3 states is a 3 x 3 table, got shape \(2, 2\)"),
            ({"mask": np.full((3, 3), 0.5)}, "holds 1 where a jump is allowed and 0 where it is not"),
            ({"mask": np.eye(3)}, "forbids every jump"),
            ({"fixed": {(0, 1): -1.0}}, "fixed rate of jump 0->1 must not be negative, got -1"),
            ({"fixed": {(0, 1): np.inf}}, "fixed rate of jump 0->1"),
            ({"fixed": {(0, 0): 1.0}}, "jump 0->0 is not among the allowed"),
            ({"fixed": {(0, 3): 1.0}}, "jump 0->3 is not among the allowed"),
            ({"mask": RING, "equal": [[(1, 0), (0, 1)]]}, "jump 1->0 is not among the allowed"),
            ({"equal": [[(0, 1), (1, 2)], [(1, 2), (2, 0)]]}, "jump 1->2 is tied twice"),
            ({"equal": [[(0, 1), (1, 2)]], "fixed": {(0, 1): 1.0}}, "jump 0->1 is tied twice, or tied and fixed"),
            ({"mask": RING, "fixed": {(0, 1): 1, (1, 2): 1, (2, 0): 1}}, "no rate is left to find"),
        ],
    )
    def test_errors(self, options, message):
        with pytest.raises(InputError, match=message):
            FreeRates(3, **options)


class TestReversible:
    @pytest.mark.parametrize("name", ["reversible", "reversible-chain"])
    def test_detailed_balance(self, name):
        model = MODELS[name]
        for theta in thetas(model):
            rates = np.asarray(model.rates(jnp.asarray(theta)))
            law = stationary_distribution(rates)
            flow = law[:, None] * rates
            np.testing.assert_allclose(flow, flow.T, rtol=1e-12)
            np.testing.assert_allclose(np.log(law[1:] / law[0]), theta[:2], atol=1e-12)

    def test_any_two_states_are_reversible(self):
        rates = np.array([[0, 3.0], [0.2, 0]])
        model = ReversibleRates(2)
        np.testing.assert_allclose(model.rates(jnp.asarray(model.nearest(rates))), rates, rtol=1e-12)

    def test_names(self):
        assert MODELS["reversible-chain"].names == ("log weight 1", "log weight 2", "0<->1", "1<->2")

    @pytest.mark.parametrize(
        ("mask", "message"),
        [
            (RING, "the mask must be symmetric"),
            (np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]), "cuts the states apart"),
            (np.ones((2, 2)), "3 x 3 table"),
        ],
    )
    def test_errors(self, mask, message):
        with pytest.raises(InputError, match=message):
            ReversibleRates(3, mask=mask)


class TestParametric:
    def test_rates_of_the_function(self):
        rates = MODELS["parametric"].rates(jnp.log(jnp.array([2.0, 0.25])))
        np.testing.assert_allclose(rates, [[0, 2, 0], [0.5, 0, 2], [0, 0.5, 0]])

    @pytest.mark.parametrize("start", [{}, {"k": 0.0}, {"k": -1.0}])
    def test_parameters_are_positive(self, start):
        with pytest.raises(InputError, match="needs parameters, all of them positive"):
            ParametricRates(two_speeds, start)

    def test_system(self):
        truth = FlashingRatchet(V=2.0, r=0.4, b=1.7)
        model = system_rates(FlashingRatchet())
        assert model.names == ("V", "r", "b")
        np.testing.assert_allclose(model.rates(jnp.log(jnp.array([2.0, 0.4, 1.7]))), truth.rates, rtol=1e-14)
        np.testing.assert_allclose(np.exp(model.nearest(np.asarray(truth.rates))), [2.0, 0.4, 1.7], rtol=1e-6)

    def test_one_model_per_system(self):
        assert system_rates(FlashingRatchet()) is system_rates(FlashingRatchet())

    def test_temperature_is_the_systems_own(self):
        hot = system_rates(FlashingRatchet(temperature=2.0))
        np.testing.assert_allclose(hot.rates(jnp.zeros(3)), FlashingRatchet(temperature=2.0).rates)

    def test_system_without_a_rate_matrix(self):
        with pytest.raises(InputError, match="two-mode has too many states, or states of its own kind"):
            system_rates(TwoMode())
