"""Every emission against scipy.stats: densities with missing parts, units, samples, renumbering."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from emissions.cases import (
    CASES,
    LABELS,
    LOG_SD,
    LOGISTIC,
    MEAN,
    SAMPLED,
    every_emission,
    example,
    label_rows,
    observations,
    rng,
    witnessed,
)
from law import assert_mean
from neuralmjp import InputError, emissions
from neuralmjp.emissions import Observations, reordered


@every_emission
@pytest.mark.parametrize("holes", [False, True])
def test_log_density_is_scipys(name, holes):
    case = CASES[name]
    rows, first, gaps = example(case, holes)
    found = case.emission.log_prob(case.params, observations(case, rows, first, gaps))
    np.testing.assert_allclose(found, witnessed(case, case.params, rows, first, gaps), rtol=1e-12, atol=1e-12)


@every_emission
def test_gradient_is_finite_where_values_are_missing(name):
    case = CASES[name]
    seen = observations(case, *example(case, holes=True))

    def total(params):
        logs = case.emission.log_prob(params, seen)
        return jnp.where(jnp.isfinite(logs), logs, 0.0).sum()

    gradient = jax.grad(total)({key: jnp.asarray(value) for key, value in case.params.items()})
    assert all(np.isfinite(part).all() for part in gradient.values())


def test_a_custom_density_is_never_asked_about_a_missing_value():
    """Log-normal: its derivative at the zero that stands for a missing value is not a number."""
    lognormal = emissions.CustomEmission(lambda p, x: -0.5 * (jnp.log(x[0]) - p["m"]) ** 2, {"m": [0.0, 1.0]})
    seen = Observations(
        jnp.array([[0.0], [2.0], [0.0]]), jnp.array([[False], [True], [False]]), *[jnp.zeros((3, 1))] * 2, jnp.zeros(3)
    )
    seen = seen._replace(has_previous=jnp.zeros((3, 1), bool))
    value, slope = jax.value_and_grad(lambda m: lognormal.log_prob({"m": m}, seen).sum())(jnp.array([0.0, 1.0]))
    np.testing.assert_allclose(value, -0.5 * (np.log(2) ** 2 + (np.log(2) - 1) ** 2))
    np.testing.assert_allclose(slope, [np.log(2), np.log(2) - 1])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.emission.real_valued])
def test_rescaled_parameters_give_the_density_in_other_units(name):
    case = CASES[name]
    rows, first, gaps = example(case, holes=True)
    shift, scale = np.array([3.0, -40.0]), np.array([0.01, 7.0])
    other = case.emission.rescaled(case.params, shift, scale)
    jacobian = (~np.isnan(rows) * np.log(scale)).sum(1)
    found = case.emission.log_prob(other, observations(case, shift + scale * rows, first, gaps))
    plain = case.emission.log_prob(case.params, observations(case, rows, first, gaps))
    np.testing.assert_allclose(found, plain - jacobian[:, None], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.emission.real_valued])
def test_emissions_without_units_are_left_alone(name):
    case = CASES[name]
    n = case.draw(np.random.default_rng(0), 1).shape[1]
    assert case.emission.rescaled(case.params, np.ones(n), np.full(n, 2.0)) == case.params


def moments(case):
    """Mean and variance of the first value in each state, by scipy, for emissions whose tails have them."""
    p = {key: np.exp(value) for key, value in case.params.items()}
    name = case.emission.name
    if name == "poisson":
        return stats.poisson.stats(p["log_mean"][:, 0])
    if name == "negative-binomial":
        return stats.nbinom.stats(p["log_size"][:, 0], p["log_size"][:, 0] / (p["log_size"] + p["log_mean"])[:, 0])
    if name == "student-t":
        return case.params["location"][:, 0], [stats.t.var(2.5, scale=0.5), stats.t.var(4.0, scale=0.9)]
    if name in ("gaussian-full", "neural-full"):
        return MEAN[:, 0], np.exp(2 * LOG_SD[:, 0])
    if name == "gaussian-shared":
        return MEAN[:, 0], np.exp(2 * LOG_SD[[0, 0], 0])
    if name == "mixture":
        weight = p["logits"] / p["logits"].sum(1, keepdims=True)
        mean, sd = case.params["mean"][..., 0], p["log_sd"][..., 0]
        centre = (weight * mean).sum(1)
        return centre, (weight * (sd**2 + mean**2)).sum(1) - centre**2
    if name == "dictionary":
        weight, centres = p["logits"] / p["logits"].sum(1, keepdims=True), case.params["shared_centres"][:, 0]
        return weight @ centres, weight @ (centres**2 + 0.4**2) - (weight @ centres) ** 2
    if name == "categorical":
        table = np.exp([case.witness(case.params)([label], None, None) for label in LABELS]).T
        centre = table @ LABELS
        return centre, table @ np.square(LABELS) - centre**2
    return MEAN[:, 0], np.exp(LOG_SD[:, 0]) ** 2


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in SAMPLED if name != "exact"])
def test_samples_have_the_right_mean(name):
    """A correct program fails in 1e-4 of all seeds."""
    case, states = CASES[name], np.repeat([0, 1], 4000)
    # Far apart, so that values with memory are independent.
    sample = case.emission.sample(case.params, states, np.full(8000, 100.0), np.random.default_rng(3))
    mean, _ = moments(case)
    for state in (0, 1):
        assert_mean(sample[states == state, 0], mean[state])


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in SAMPLED if name not in ("exact", "student-t")])
def test_samples_have_the_right_variance(name):
    """A correct program fails in 1e-4 of all seeds."""
    case, states = CASES[name], np.repeat([0, 1], 4000)
    sample = case.emission.sample(case.params, states, np.full(8000, 100.0), np.random.default_rng(4))
    mean, variance = moments(case)
    for state in (0, 1):
        assert_mean((sample[states == state, 0] - mean[state]) ** 2, variance[state])


def test_exact_labels_are_sampled_exactly():
    case = CASES["exact"]
    sample = case.emission.sample(case.params, np.array([1, 0, 1]), np.ones(3), np.random.default_rng(0))
    assert sample.ravel().tolist() == [8.0, 3.0, 8.0]


@pytest.mark.statistical
def test_memory_decays_at_its_rate():
    """Correlation of neighbours at a gap t is exp(-k t); a correct program fails in 1e-4 of all seeds."""
    case, gap = CASES["ornstein-uhlenbeck"], 0.5
    states = np.zeros(20_000, dtype=int)
    sample = case.emission.sample(case.params, states, np.full(len(states), gap), np.random.default_rng(5))
    z = (sample - MEAN[0]) / np.exp(LOG_SD[0])
    kept = np.exp(-np.array([0.4, 2.0]) * gap)
    innovation = (z[1:] - kept * z[:-1]) / np.sqrt(1 - kept**2)  # independent standard normals
    assert_mean(innovation * z[:-1], 0.0)
    assert_mean(innovation**2, 1.0)


@every_emission
def test_renumbered_states_swap_their_densities(name):
    case = CASES[name]
    if isinstance(case.emission, emissions.Categorical):
        case = case._replace(emission=emissions.Categorical(LABELS, np.ones((2, 3))))
        case = case._replace(params={"logits": rng.normal(size=(2, 3))}, draw=label_rows)
    seen = observations(case, *example(case, holes=True))
    swapped = case.emission.log_prob(reordered(case.params, np.array([1, 0])), seen)
    np.testing.assert_allclose(swapped, case.emission.log_prob(case.params, seen)[:, ::-1], rtol=1e-13)


@every_emission
def test_natural_parameters_are_what_people_know(name):
    case = CASES[name]
    for entry in case.emission.natural(case.params).values():
        value = np.asarray(entry.value)
        assert len(value) == 2
        assert np.isfinite(value).all()
        if entry.kind == "probability":
            np.testing.assert_allclose(value.sum(-1), 1.0, rtol=1e-14)
        if entry.kind == "positive":
            assert (value > 0).all()


def test_network_starts_at_the_gaussian_it_is_given():
    plain = CASES["neural"].emission.plain(CASES["neural"].params)
    np.testing.assert_allclose(plain["mean"], MEAN, rtol=1e-10)
    np.testing.assert_allclose(plain["log_sd"], LOG_SD, rtol=1e-10)


@pytest.mark.parametrize("name", ["neural", "neural-full"])
def test_a_network_reads_relaxed_samples(name):
    """At a corner it is the density of the state; between corners, of the Gaussian that the network makes there."""
    case = CASES[name]
    rows, first, gaps = example(case, holes=True)
    seen = observations(case, rows, first, gaps)
    params = {key: jnp.asarray(value) for key, value in case.params.items()}
    logs = case.emission.log_prob(params, seen)
    for state in range(2):
        corner = jnp.broadcast_to(jnp.eye(2)[state], (*logs.shape[:-1], 2))
        np.testing.assert_allclose(case.emission.relaxed(params, seen, corner), logs[..., state], rtol=1e-12)
    between = jnp.broadcast_to(jnp.array([0.3, 0.7]), (*logs.shape[:-1], 2))
    made = case.emission.plain(params, jnp.array([[0.3, 0.7]]))
    expected = case.emission.form.log_prob(made, seen)[..., 0]
    np.testing.assert_allclose(case.emission.relaxed(params, seen, between), expected, rtol=1e-12)


class TestErrors:
    def test_label_unknown(self):
        with pytest.raises(InputError, match="hold the label 4, which is not among 3, 5, 8"):
            emissions.Categorical(LABELS, np.ones((2, 3))).codes(np.array([[3.0], [4.0]]))

    def test_state_that_shows_nothing(self):
        with pytest.raises(InputError, match="state 1 shows no label at all"):
            emissions.Categorical(LABELS, [[1, 1, 1], [0, 0, 0]])

    def test_table_of_another_width(self):
        with pytest.raises(InputError, match="2 columns for 3 labels"):
            emissions.Categorical(LABELS, np.ones((2, 2)))

    @pytest.mark.parametrize("value", [-1.0, 0.5])
    def test_values_that_are_no_counts(self, value):
        with pytest.raises(InputError, match=f"whole numbers from 0, but the data hold {value:g}"):
            emissions.Poisson().start(np.array([[1.0], [np.nan], [value]]), 2, None)

    def test_mixture_of_one(self):
        with pytest.raises(InputError, match="at least 2 components, got 1"):
            emissions.GaussianMixture(1)

    def test_custom_parameters_for_another_number_of_states(self):
        with pytest.raises(InputError, match="'centre' of a custom emission must begin with an axis of 3 states"):
            LOGISTIC.start(np.zeros((3, 1)), 3, None)

    def test_custom_emission_cannot_be_drawn_from(self):
        with pytest.raises(InputError, match="no way to draw from it"):
            LOGISTIC.sample(CASES["custom"].params, np.zeros(2, int), np.zeros(2), rng)
