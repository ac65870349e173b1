"""Readings of counts: densities against scipy.stats and against samples, and a clear line for impossible ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from law import assert_counts_follow, assert_mean
from neuralmjp import InputError
from neuralmjp.emissions.readings import DARK, NEVER, Readings

SD, SCALE, DETECTION = np.array([0.7, 2.0]), np.array([0.6, 3.0]), np.array([0.25, 0.9])
PARAMS = {
    "none": {},
    "poisson": {},
    "gaussian": {"log_sd": np.log(SD)},
    "two-sided-exponential": {"log_scale": np.log(SCALE)},
    "binomial": {"logit_detection": np.log(DETECTION / (1 - DETECTION))},
}
TOTALS = np.arange(8)
each_noise = pytest.mark.parametrize("noise", PARAMS)
each_whole = pytest.mark.parametrize("noise", [noise for noise in PARAMS if noise != "gaussian"])


def log_densities(noise, column, values, totals=TOTALS):
    """One row per reading, one column per total."""
    readings = Readings(((0,), (0, 1)), noise)
    params = {name: jnp.asarray(value) for name, value in PARAMS[noise].items()}
    return np.asarray(readings.log_density(params, column, np.asarray(values, float)[:, None], totals))


def witness(noise, column, values):
    y, n = np.asarray(values, float)[:, None], TOTALS.astype(float)
    with np.errstate(divide="ignore"):
        return {
            "none": lambda: np.log((y == n).astype(float)),
            "gaussian": lambda: stats.norm.logpdf(y, n, SD[column]),
            "two-sided-exponential": lambda: stats.dlaplace.logpmf(y - n, 1 / SCALE[column]),
            "poisson": lambda: stats.poisson.logpmf(y, np.maximum(n, DARK)),
            "binomial": lambda: stats.binom.logpmf(y, n, DETECTION[column]),
        }[noise]()


@each_noise
@pytest.mark.parametrize("column", [0, 1])
def test_densities_are_scipys(noise, column):
    values = [-1.0, 0.0, 0.3, 3.8] if noise == "gaussian" else [-1.0, 0.0, 1.0, 5.0]
    expected = witness(noise, column, values)
    np.testing.assert_allclose(log_densities(noise, column, values), np.maximum(expected, NEVER), rtol=1e-12)


@each_whole
@pytest.mark.parametrize("column", [0, 1])
def test_densities_sum_to_one(noise, column):
    values = np.arange(-150.0, 151.0)
    np.testing.assert_allclose(np.exp(log_densities(noise, column, values)).sum(0), 1.0, rtol=1e-12)


def test_without_noise_counts_are_read_as_they_are():
    sample = Readings(((0,), (0, 1)), "none").sample({}, np.array([[3, 4]]), np.random.default_rng(0))
    assert sample.tolist() == [[3.0, 7.0]]


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["poisson", "binomial", "two-sided-exponential"])
def test_samples_follow_the_density(noise):
    """Column 0 reads the first species, column 1 the sum of both; a correct program fails in 2e-4 of all seeds."""
    readings = Readings(((0,), (0, 1)), noise)
    counts = np.tile([[3, 4]], (5000, 1))
    sample = readings.sample(PARAMS[noise], counts, np.random.default_rng(0))
    values = np.arange(-60.0, 61.0)
    for column, total in enumerate((3, 7)):
        seen = np.bincount((sample[:, column] + 60).astype(int), minlength=len(values))
        assert_counts_follow(seen, np.exp(log_densities(noise, column, values)[:, total]))


@pytest.mark.statistical
def test_gaussian_samples():
    """A correct program fails in 2e-4 of all seeds."""
    sample = Readings(((1,), (0,))).sample(PARAMS["gaussian"], np.tile([[3, 4]], (5000, 1)), np.random.default_rng(1))
    assert_mean(sample, [4.0, 3.0])
    assert_mean((sample - [4.0, 3.0]) ** 2, SD**2)


@each_noise
def test_derivatives_are_finite(noise):
    """By parameters, by the reading where it is real, and by a total that is a real number."""
    readings = Readings(((0,), (0,)), noise)
    params = {name: jnp.asarray(value) for name, value in PARAMS[noise].items()}
    totals = jnp.array([0.0, 0.5, 3.0])

    def value(params, totals):
        return readings.log_density(params, 0, 2.0, totals).sum()

    for slope in jax.tree.leaves(jax.grad(value, argnums=(0, 1))(params, totals)):
        assert np.isfinite(slope).all()


@pytest.mark.parametrize("noise", ["gaussian", "two-sided-exponential", "binomial"])
def test_parameters_start_where_they_are_known(noise):
    known = Readings(((0,), (1,)), noise, fixed=(0.2, 0.5))
    params = known.start(np.array([9.0, 9.0]))
    (natural,) = known.natural(params).values()
    np.testing.assert_allclose(natural.value, [0.2, 0.5], rtol=1e-12)
    (free,) = known.learned(params).values()
    assert not free.any()


@each_noise
def test_parameters_that_are_learned_start_from_a_guess(noise):
    readings = Readings(((0,), (1,)), noise)
    params = readings.start(np.array([2.0, 4.0]))
    natural = readings.natural(params)
    assert len(natural) == len(params) == (readings.parameter is not None)
    for name, entry in natural.items():
        np.testing.assert_allclose(entry.value, [0.5, 0.5] if name == "detection" else [2.0, 4.0])
    assert all(free.all() for free in readings.learned(params).values())


def test_totals_are_sums_of_species():
    readings = Readings(((2,), (0, 1)))
    assert readings.totals(np.array([[1, 10, 100], [2, 20, 200]])).tolist() == [[100, 11], [200, 22]]
    assert readings.n_species_shown == 3


@pytest.mark.parametrize(
    ("noise", "rows", "message"),
    [
        ("none", [[1.0, 2.0], [1.0, 0.5]], r"B, observation 2: 0.5 is no count, but none readings are; use gaussian"),
        ("poisson", [[-1.0, 2.0]], "A, observation 1: -1 is no count, but poisson readings are"),
        ("binomial", [[1.0, 2.0], [0.0, -3.0]], "B, observation 2: -3 is no count"),
        ("two-sided-exponential", [[1.5, 2.0]], "A, observation 1: 1.5 is no count"),
        ("gaussian", [[1.0]], "the data have 1 values, but 2 readings are described"),
    ],
)
def test_impossible_readings(noise, rows, message):
    with pytest.raises(InputError, match=message):
        Readings(((0,), (1,)), noise).check(np.array(rows), ("A", "B"))


@pytest.mark.parametrize(("noise", "rows"), [("two-sided-exponential", [[-3.0, 2.0]]), ("gaussian", [[0.5, -1.0]])])
def test_possible_readings(noise, rows):
    Readings(((0,), (1,)), noise).check(np.array([*rows, [np.nan, np.nan]]), ("A", "B"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((),), "every value must show at least one species"),
        ((((0,), ()),), "every value must show at least one species"),
        ((((0,), (1,)), "gaussian", (1.0,)), "2 values need as many noise parameters, got 1"),
    ],
)
def test_bad_readings(arguments, message):
    with pytest.raises(InputError, match=message):
        Readings(*arguments)
