"""Every emission with parameters, a witness of its density from scipy.stats, and data of its kind."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from neuralmjp import emissions
from neuralmjp.emissions import Observations

rng = np.random.default_rng(1)
MEAN = np.array([[-0.7, 0.4], [1.1, -0.2]])
LOG_SD = np.log([[0.5, 1.3], [0.9, 0.6]])
FULL = {"mean": MEAN, "log_diagonal": LOG_SD, "lower": np.array([[0.4], [-0.7]])}
COUNT_MEAN = np.log([[0.7, 4.0], [5.0, 1.5]])
LABELS = (3.0, 5.0, 8.0)
CENTRES = np.array([[-1.0, 0.3], [0.4, 1.9], [2.8, -1.2]])
SHARES = {"logits": np.array([[0.0, 1.1, -2.0], [0.0, -0.6, 0.9]])}


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


def dictionary(kernel):
    """A mixture of the same kernels in both states."""

    def witness(params):
        weight = np.exp(params["logits"]) / np.exp(params["logits"]).sum(1, keepdims=True)

        def log_density(x, *_):
            parts = np.nansum(kernel(x, params["shared_centres"], params["shared_width"]), -1)
            return np.log(weight @ np.exp(parts))

        return log_density

    return witness


def outputs(params):
    layer = np.maximum(params["first"], 0)
    layer = np.maximum(layer @ params["shared_weight_0"] + params["shared_bias_0"], 0)
    return np.asarray(layer @ params["shared_last"] + params["shared_last_bias"])


def network(params):
    out = outputs(params)
    return gaussian(out[:, :2], np.exp(out[:, 2:]))


def full_network(params):
    out = outputs(params)
    return full_gaussian({"mean": out[:, :2], "log_diagonal": out[:, 2:4], "lower": out[:, 4:]})


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
    "gaussian-shared": Case(
        emissions.SharedGaussian(),
        {"mean": MEAN, "shared_log_sd": LOG_SD[0]},
        lambda p: gaussian(p["mean"], np.exp(p["shared_log_sd"])),
        real_rows,
    ),
    "gaussian-full": Case(
        emissions.FullGaussian(),
        FULL,
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
    "torus": Case(
        emissions.Torus(),
        {**SHARES, "shared_centres": CENTRES, "shared_width": np.array([0.4, 0.7])},
        dictionary(lambda x, centre, width: stats.vonmises.logpdf(x, 1 / width**2, centre)),
        real_rows,
    ),
    "dictionary": Case(
        emissions.GaussianDictionary(),
        {**SHARES, "shared_centres": CENTRES, "shared_width": np.array([0.4, 0.7])},
        dictionary(lambda x, centre, width: stats.norm.logpdf(x, centre, width)),
        real_rows,
    ),
    "neural": Case(
        emissions.NeuralGaussian(hidden=(6, 5)),
        emissions.NeuralGaussian(hidden=(6, 5)).around({"mean": MEAN, "log_sd": LOG_SD}, None),
        network,
        real_rows,
    ),
    "neural-full": Case(
        emissions.FullNeuralGaussian(hidden=(6, 5)),
        emissions.FullNeuralGaussian(hidden=(6, 5)).around(FULL, None),
        full_network,
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
SAMPLED = [name for name in CASES if name not in ("custom", "torus")]  # of angles no plain mean is known
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
