"""What each method finds in readings of counts: constants, the bound on held-out series, how far it reads and sees."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from ..baselines.forecasting import forecast
from ..baselines.opper_sanguinetti import MeanFieldFit, fit_mean_field, posterior
from ..emissions.emission import Params
from ..emissions.readings import Readings
from ..estimators import NetworkMJP
from ..estimators.coupled import N_GENERATED, fitted_by_networks
from ..fitted_network import FittedNetwork
from ..mjp.interval import Interval, Z
from ..mjp.precision import in_double_precision
from ..priors.generator import GeneratorParameters
from ..timeseries import TimeSeries
from ..training.coupled import CoupledTrained
from ..training.trained import alone
from ..validation import accuracy
from .runs import held_out_terms, train_there
from .tables import Progress

Laws = tuple[Float[np.ndarray, "observation _"], ...]  # one table per species


@dataclass(frozen=True)
class Ahead:
    """Series that are given, and what was read at some later times."""

    given: TimeSeries
    times: Float[np.ndarray, "series step"]
    values: Float[np.ndarray, "series step species"]


@dataclass(frozen=True)
class Task:
    """What a method is given and asked."""

    train: TimeSeries
    test: TimeSeries
    ahead: Ahead


@dataclass(frozen=True)
class Found:
    """One method on one data set; rows are runs.

    Attributes:
        kl, nll: path divergence and reconstruction loss on the test set, in nats per series.
        errors: standard errors of the constants of the best run, or what the paper shows in their place.
        model: the best run, as the engine returned it.
        below: nats per test series between the bound and the exact evidence of the same constants and noise.
    """

    constants: Float[np.ndarray, "run constant"]
    kl: Float[np.ndarray, "run"]
    nll: Float[np.ndarray, "run"]
    rmse: Float[np.ndarray, "run"]
    rmse_ahead: Float[np.ndarray, "run step"]
    best: int
    seconds: float
    message: str
    model: FittedNetwork | MeanFieldFit
    errors: Float[np.ndarray, "constant"] | None = None
    below: Float[np.ndarray, "run"] | None = None


def looking_ahead(whole: TimeSeries, n_given: int, steps: Sequence[int]) -> Ahead:
    """Series of one length: the first observations are given, those at some steps after them are to be forecast."""
    length = int(whole.lengths[0])
    times, values = whole.times.reshape(-1, length), whole.values.reshape(len(whole), length, -1)
    given = TimeSeries.from_arrays(
        times[:, :n_given], values[:, :n_given], time_unit=whole.time_unit, value_names=whole.value_names
    )
    later = n_given - 1 + np.array(steps)
    return Ahead(given, times[:, later], values[:, later])


def by_networks(
    estimator: NetworkMJP, task: Task, progress: Progress, *, errors: bool = False, evidence: bool = False
) -> Found:
    """The neural engine, its restarts as runs; RMSE on the test set from its own posterior.

    Args:
        errors: find the standard errors of the best run.
        evidence: find how far the bound of every run lies below the exact evidence.
    """
    trained = train_there(estimator, task.train, progress)
    runs = [alone(trained, k) for k in range(len(trained.restarts))]
    evaluated = [one.evaluate(task.test) for one in runs]
    kl, nll = held_out_terms([one.terms for one in evaluated], len(task.test))
    counts = np.arange(evaluated[0].laws.shape[-1])
    rows = np.arange(evaluated[0].laws.shape[1]) < task.test.lengths[:, None]
    read = [(np.asarray(one.laws, np.float64) @ counts)[rows] for one in evaluated]
    choices: dict[str, Any] = {"initial": estimator.initial, "seed": estimator.seed}
    models = [fitted_by_networks(one, task.train, tractable=False, intervals=False, **choices) for one in runs]
    best = models[trained.best]
    below = None
    known = errors_of(trained, estimator, task.train) if errors else None
    if evidence:
        bounds = np.array([np.asarray(one.terms.elbo, np.float64).mean() for one in evaluated])
        below = np.array([one.score(task.test) for one in models]) / len(task.test) - bounds
    return Found(
        np.stack([one.constants for one in models]),
        kl,
        nll,
        np.array([rmse(means, task.test.values) for means in read]),
        np.stack([rmse_ahead(one, task.ahead) for one in models]),
        trained.best,
        trained.seconds,
        trained.message,
        best,
        errors=known,
        below=below,
    )


def errors_of(trained: CoupledTrained, estimator: NetworkMJP, data: TimeSeries) -> Float[np.ndarray, "constant"]:
    """Of the best run, from the curvature of the exact likelihood there; for a generator the sd of its draws."""
    prior = trained.networks.prior
    if isinstance(prior, GeneratorParameters):
        with jax.enable_x64(True):
            drawn = prior.sample(N_GENERATED, jax.random.key(estimator.seed))
        return np.exp(np.asarray(drawn, np.float64)).std(0)
    fitted = fitted_by_networks(
        trained, data, tractable=True, intervals=True, initial=estimator.initial, seed=estimator.seed
    )
    return standard_errors(fitted.constants, fitted.log_covariance)


def by_exact(estimator: NetworkMJP, task: Task, progress: Progress) -> Found:
    """Maximum likelihood: no engine can do better."""
    fitted = estimator.fit(task.train, progress)
    decoded = fitted.decode(task.test)
    heights = fitted.per_series_log_likelihood(task.test)
    kl, nll = split_bound(heights, decoded.probabilities, fitted.readings, fitted.noise, task.test)
    return Found(
        fitted.constants[None],
        np.array([kl]),
        np.array([nll]),
        np.array([rmse(decoded.mean, task.test.values)]),
        rmse_ahead(fitted, task.ahead)[None],
        0,
        fitted.seconds,
        fitted.message,
        fitted,
        errors=standard_errors(fitted.constants, fitted.log_covariance),
    )


def by_sweeps(estimator: NetworkMJP, task: Task, progress: Progress) -> Found:
    """Variational EM species by species; posterior and forecast are its own, too."""
    fit = swept(estimator, task.train, progress)
    found = posterior(task.test, fit.network, fit.readings, fit.noise)
    kl, nll = split_bound(found.bounds, found.laws, fit.readings, fit.noise, task.test)
    given = posterior(task.ahead.given, fit.network, fit.readings, fit.noise)
    later = forecast(fit, task.ahead.times, given).means
    constants = np.array(list(fit.constants.values()))
    return Found(
        constants[None],
        np.array([kl]),
        np.array([nll]),
        np.array([rmse(found.means, task.test.values)]),
        accuracy(later, task.ahead.values).at[None],
        0,
        fit.seconds,
        f"{fit.message} after {fit.rounds} rounds of EM",
        fit,
        errors=standard_errors(constants, fit.log_covariance),
    )


def swept(estimator: NetworkMJP, data: TimeSeries, progress: Progress) -> MeanFieldFit:
    """The engine "meanfield" of the same assumptions, with what it knows beside constants."""
    data, readings = estimator.observed(data)
    return fit_mean_field(
        data, estimator.network, readings, start=estimator.one_start(), intervals=estimator.intervals, progress=progress
    )


@in_double_precision
def split_bound(
    heights: Float[np.ndarray, "series"], laws: Laws, readings: Readings, noise: Params, data: TimeSeries
) -> tuple[float, float]:
    """Path divergence and reconstruction loss per series behind a bound, from the laws at the observations.

    The bound is reconstruction - path KL - KL of the law at the first observation from a flat one. Where species are
    not independent there, what they know of each other counts as path.
    """
    seen = 0.0
    for column, (s,) in enumerate(readings.columns):
        value, there = data.values[:, column, None], data.mask[:, column]
        density = np.asarray(readings.log_density(noise, column, value, np.arange(laws[s].shape[1])))
        seen += float((laws[s] * density)[there].sum())
    first = [law[data.offsets[:-1]] for law in laws]
    initial = sum(float((law * np.log(np.where(law > 0, law, 1.0) * law.shape[1])).sum()) for law in first)
    n = len(data)
    return (seen - initial - float(heights.sum())) / n, -seen / n


def rmse(means: Float[np.ndarray, "row species"], values: Float[np.ndarray, "row species"]) -> float:
    return accuracy(means[None], values[None]).overall


def rmse_ahead(fitted: FittedNetwork, ahead: Ahead) -> Float[np.ndarray, "step"]:
    """Of the expected counts at later times, given the exact filter at the fitted constants."""
    found = fitted.predict(ahead.given, list(ahead.times))
    return accuracy(found.counts.mean.reshape(ahead.values.shape), ahead.values).at


def standard_errors(
    constants: Float[np.ndarray, "constant"], log_covariance: Float[np.ndarray, "constant constant"]
) -> Float[np.ndarray, "constant"]:
    """Infinite where the data do not determine a constant."""
    variances = np.diag(log_covariance)
    return constants * np.sqrt(np.where(variances >= 0, variances, np.inf))


def log_interval(
    constants: Float[np.ndarray, "constant"], log_covariance: Float[np.ndarray, "constant constant"]
) -> Interval:
    """Symmetric in the logarithms."""
    relative = Z * standard_errors(np.ones_like(constants), log_covariance)
    with np.errstate(over="ignore"):
        return Interval(constants, constants * np.exp(-relative), constants * np.exp(relative))
