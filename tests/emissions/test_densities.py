"""Every emission against scipy.stats: densities with missing parts, units, samples, renumbering."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from law import assert_mean
from neuralmjp import InputError, emissions
from neuralmjp.emissions import Observations, reordered

rng = np.random.default_rng(1)
MEAN = np.array([[-0.7, 0.4], [1.1, -0.2]])
LOG_SD = np.log([[0.5, 1.3], [0.9, 0.6]])
COUNT_MEAN = np.log([[0.7, 4.0], [5.0, 1.5]])
LABELS = (3.0, 5.0, 8.0)


def gaussian(mean, sd):
    return lambda x, *_: stats.norm.logpdf(x, mean, sd)


def full_gaussian(params):
    triangles = np.asarray(emissions.FullGaussian().triangles(params))

    def log_density(x, *_):
        here = ~np.isnan(x)
        if not here.any():
            return np.zeros(2)
        blocks = [
            (m[here], (root @ root.T)[np.ix_(here, here)]) for m, root in zip(params["mean"], triangles, strict=True)
        ]
        return [stats.multivariate_normal.logpdf(x[here], m, c) for m, c in blocks]

    return log_density


def mixture(params):
    weight = np.exp(params["logits"]) / np.exp(params["logits"]).sum(1, keepdims=True)
    sd = np.exp(params["log_sd"])

    def log_density(x, *_):
        parts = np.nansum(stats.norm.logpdf(x, params["mean"], sd), -1)
        return np.log((weight * np.exp(parts)).sum(1))

    return log_density


def network(params):
    layer = np.maximum(params["first"], 0)
    layer = np.maximum(layer @ params["shared_weight_0"] + params["shared_bias_0"], 0)
    out = layer @ params["shared_last"] + params["shared_last_bias"]
    return gaussian(out[:, :2], np.exp(out[:, 2:]))


def ornstein_uhlenbeck(params):
    def log_density(x, previous, gap):
        kept = np.exp(-np.exp(params["log_relaxation"]) * gap)
        kept = np.where(np.isnan(previous), 0.0, kept)
        mean = params["mean"] + (np.nan_to_num(previous) - params["mean"]) * kept
        return stats.norm.logpdf(x, mean, np.exp(params["log_sd"]) * np.sqrt(1 - kept**2))

    return log_density


def labels(params):
    def log_density(x, *_):
        with np.errstate(divide="ignore"):
            return np.zeros(2) if np.isnan(x[0]) else np.log(params["table"][:, LABELS.index(x[0])])

    return log_density


class Case(NamedTuple):
    """An emission for two states, parameters, and its density by other means: (row, row before, gap) -> (K,) or (K, D).

    Per component where components are independent, so that the sum over those present is the density of what was seen.
    """

    emission: emissions.Emission
    params: dict[str, Any]
    witness: Callable[[dict], Callable]
    draw: Callable[[np.random.Generator, int], np.ndarray]  # some values in its range


def real_rows(rng, n):
    return rng.normal(0.2, 1.2, (n, 2)).round(3)


def count_rows(rng, n):
    return rng.poisson(2.5, (n, 2)).astype(float)


def label_rows(rng, n):
    return rng.choice(LABELS, (n, 1))


def misread_table(params):
    weights = np.exp(params["logits"]) * np.array([[1, 1, 0], [1, 1, 1]])
    return labels({"table": weights / weights.sum(1, keepdims=True)})


LOGISTIC = emissions.CustomEmission(
    lambda p, x: jax.nn.log_sigmoid(_away(p, x)) + jax.nn.log_sigmoid(-_away(p, x)) - p["log_width"],
    {"centre": [-1.0, 1.5], "log_width": [-0.9, -1.3]},
)


def _away(p, x):
    return (x[0] - p["centre"]) * jnp.exp(-p["log_width"])


CASES = {
    "exact": Case(
        emissions.Categorical.exact((3.0, 8.0)),
        {"logits": np.zeros((2, 2))},
        lambda p: labels({"table": np.array([[1.0, 0, 0], [0, 0, 1.0]])}),
        lambda rng, n: rng.choice((3.0, 8.0), (n, 1)),
    ),
    "categorical": Case(
        emissions.Categorical(LABELS, [[1, 1, 0], [1, 1, 1]]),
        {"logits": np.array([[0.0, -1.2, 0.0], [0.7, 0.0, -0.4]])},
        misread_table,
        label_rows,
    ),
    "gaussian": Case(
        emissions.Gaussian(),
        {"mean": MEAN, "log_sd": LOG_SD},
        lambda p: gaussian(p["mean"], np.exp(p["log_sd"])),
        real_rows,
    ),
    "gaussian-full": Case(
        emissions.FullGaussian(),
        {"mean": MEAN, "log_diagonal": LOG_SD, "lower": np.array([[0.4], [-0.7]])},
        full_gaussian,
        real_rows,
    ),
    "student-t": Case(
        emissions.StudentT(),
        {"location": MEAN, "log_scale": LOG_SD, "log_df": np.log([[2.5, 30.0], [4.0, 1.2]])},
        lambda p: lambda x, *_: stats.t.logpdf(x, np.exp(p["log_df"]), p["location"], np.exp(p["log_scale"])),
        real_rows,
    ),
    "poisson": Case(
        emissions.Poisson(),
        {"log_mean": COUNT_MEAN},
        lambda p: lambda x, *_: stats.poisson.logpmf(x, np.exp(p["log_mean"])),
        count_rows,
    ),
    "negative-binomial": Case(
        emissions.NegativeBinomial(),
        {"log_mean": COUNT_MEAN, "log_size": np.log([[3.0, 0.8], [20.0, 2.0]])},
        lambda p: (
            lambda x, *_: stats.nbinom.logpmf(
                x, np.exp(p["log_size"]), np.exp(p["log_size"]) / (np.exp(p["log_size"]) + np.exp(p["log_mean"]))
            )
        ),
        count_rows,
    ),
    "mixture": Case(
        emissions.GaussianMixture(n_components=2),
        {
            "logits": np.array([[0.0, 0.8], [0.0, -1.5]]),
            "mean": np.stack([MEAN, MEAN + 1.0], 1),
            "log_sd": np.stack([LOG_SD, LOG_SD - 0.3], 1),
        },
        mixture,
        real_rows,
    ),
    "neural": Case(
        emissions.NeuralGaussian(hidden=(6, 5)),
        emissions.NeuralGaussian(hidden=(6, 5)).around({"mean": MEAN, "log_sd": LOG_SD}, None),
        network,
        real_rows,
    ),
    "ornstein-uhlenbeck": Case(
        emissions.OrnsteinUhlenbeck(),
        {"mean": MEAN, "log_sd": LOG_SD, "log_relaxation": np.log([[0.4, 2.0], [3.0, 0.7]])},
        ornstein_uhlenbeck,
        real_rows,
    ),
    "custom": Case(
        LOGISTIC,
        {"centre": np.array([-1.0, 1.5]), "log_width": np.array([-0.9, -1.3])},
        lambda p: lambda x, *_: stats.logistic.logpdf(x[0], p["centre"], np.exp(p["log_width"])),
        lambda rng, n: rng.normal(0.2, 1.2, (n, 1)),
    ),
}
SAMPLED = [name for name in CASES if name != "custom"]
every_emission = pytest.mark.parametrize("name", CASES)


def with_holes(rows, rng):
    """Some components missing, and some rows altogether."""
    rows = np.where(rng.random(rows.shape) < 0.25, np.nan, rows)
    rows[3] = np.nan
    return rows


def witnessed(case, params, rows, first, gaps):
    """Log densities (N, K), one row at a time."""
    density = case.witness(params)
    logs = np.empty((len(rows), 2))
    for t, row in enumerate(rows):
        previous = np.full_like(row, np.nan) if first[t] else rows[t - 1]
        value = np.asarray(density(row, previous, gaps[t]))
        logs[t] = np.nansum(value, -1) if value.ndim == 2 else np.nan_to_num(value, nan=0.0, neginf=-np.inf)
    return logs


def observations(case, rows, first, gaps):
    """As the engines hand them over: zeros where nothing was seen."""
    values = case.emission.codes(rows) if isinstance(case.emission, emissions.Categorical) else rows
    mask = ~np.isnan(values)
    filled = np.where(mask, values, 0.0)
    return Observations(
        jnp.asarray(filled),
        None if mask.all() else jnp.asarray(mask),
        jnp.asarray(np.roll(filled, 1, axis=0)),
        jnp.asarray(np.roll(mask, 1, axis=0) & ~first[:, None]),
        jnp.asarray(gaps),
    )


def example(case, holes, seed=0, n=12):
    rng = np.random.default_rng(seed)
    rows = case.draw(rng, n)
    first = np.arange(n) % 5 == 0
    gaps = np.where(first, 0.0, rng.exponential(0.7, n))
    return (with_holes(rows, rng) if holes else rows), first, gaps


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
    if name == "gaussian-full":
        return MEAN[:, 0], p["log_diagonal"][:, 0] ** 2
    if name == "mixture":
        weight = p["logits"] / p["logits"].sum(1, keepdims=True)
        mean, sd = case.params["mean"][..., 0], p["log_sd"][..., 0]
        centre = (weight * mean).sum(1)
        return centre, (weight * (sd**2 + mean**2)).sum(1) - centre**2
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
