"""Intervals that do not trust the curvature: profile likelihood for one rate, parametric bootstrap for everything."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2

from ..arguments import require_seed, require_whole
from ..digests import digest_of
from ..emissions.named import options_of
from ..ensembles import Kept, Place, run_each
from ..errors import InputError
from ..fitted import FittedMJP
from ..mjp import simulate_states
from ..mjp.interval import LEVEL, Interval
from ..mjp.precision import in_double_precision
from ..priors import FreeRates
from ..timeseries import TimeSeries
from .fit import ExactFit, Progress, climb, fit

WIDEST = 30.0  # how far, in log rate, the end of an interval is looked for
# Data sets of a bootstrap: another falls outside the smallest and the largest of n with probability 2 / (n + 1), which
# is 5 % for 39. Fewer cannot give an interval as wide as 95 %.
FEWEST = 39


@in_double_precision
def profile_interval(found: ExactFit, bounds: np.ndarray, jump: tuple[int, int]) -> Interval:
    """The rates of one jump that the data do not reject, with everything else fitted anew for each.

    Twice the loss of log-likelihood stays below the 95 % point of chi-square with one degree of freedom. An end that is
    not reached within a factor of e^30 is 0 or infinite.
    """
    model = found.model.rate_model
    inside = all(0 <= k < model.n_states for k in jump)
    if not isinstance(model, FreeRates) or not inside or model.parameter_of[jump] < 0:
        raise InputError(f"the jump {jump[0]} -> {jump[1]} has no rate of its own to profile")
    k = int(model.parameter_of[jump])
    best = found.theta
    top = found.objective(best)[0]
    allowed = chi2.isf(1 - LEVEL, 1) / 2

    def loss(log_rate: float) -> float:
        held = bounds.copy()
        held[k] = log_rate
        start = best.copy()
        start[k] = log_rate
        theta, _, _ = climb(found.model, found.packing, found.laid, start, held, lambda *_: None)
        return float(top - found.objective(theta)[0] - allowed)

    def end(direction: float) -> float:
        step = 0.1
        while step < WIDEST:
            if loss(best[k] + direction * step) > 0:
                return brentq(loss, best[k], best[k] + direction * step, xtol=1e-4)  # type: ignore[return-value]
            step *= 2
        return direction * np.inf

    lower, upper = end(-1.0), end(1.0)
    return Interval(np.exp(best[k]), np.exp(lower), np.exp(upper))


@in_double_precision
def bootstrap(
    fitted: FittedMJP,
    data: TimeSeries,
    n: int,
    *,
    seed: int,
    cluster: str | Place | None = None,
    folder: Path | None = None,
    progress: Progress = lambda *_: None,
) -> FittedMJP:
    """The same fit with intervals from data sets simulated from it and fitted like the real one.

    Args:
        n: data sets, at least 39, whose smallest and largest rates are then the ends; 200 give steadier ones.
        cluster: None for this process, "local" for all cores of this machine, or the address of a `dask scheduler`.
        folder: keeps every fit: one that was interrupted goes on, one with more data sets adds to those it has.
    """
    if fitted.panel.exact_entry is not None:
        raise InputError("the bootstrap cannot simulate exact times of entry: use the observed information")
    require_seed(seed)
    require_whole(n, FEWEST, f"a 95 % interval by bootstrap takes at least {FEWEST} simulated data sets, better 200")
    questions = {f"bootstrap {k + 1}": {"drawn": seed + k + 1, "seed": seed} for k in range(n)}
    kept = None if folder is None else Kept(folder, {"data": digest_of(data), "fitted": _identity(fitted)})
    found = run_each(refitted, questions, (fitted, data), cluster=cluster, kept=kept, progress=progress)
    rates, emissions = ([one[part] for one in found.values()] for part in ("rates", "emission"))
    samples = np.stack(rates)
    tail = (1 - LEVEL) / 2

    def between(drawn: np.ndarray, mean: np.ndarray) -> Interval:
        # By ranks over n + 1: each end is passed by a new draw with probability `tail`, for any n.
        return Interval(mean, *np.quantile(drawn, [tail, 1 - tail], axis=0, method="weibull"))

    intervals = {"rates": between(samples, fitted.rates)}
    for name, entry in fitted.emission.natural(fitted.parameters.emission).items():
        intervals[f"emission.{name}"] = between(np.stack([e[name] for e in emissions]), np.asarray(entry.value))
    if "parameters" in fitted.intervals:
        raise_to = np.stack([np.exp(fitted.model.rate_model.nearest(sample)) for sample in samples])
        intervals["parameters"] = between(raise_to, fitted.intervals["parameters"].mean)
    return replace(
        fitted, rate_samples=samples, intervals=intervals, uncertainty=f"parametric bootstrap, {n} data sets"
    )


@in_double_precision
def refitted(shared: tuple[FittedMJP, TimeSeries], question: dict[str, Any]) -> dict[str, Any]:
    """Rates and emission of one simulated data set, fitted from those that it was simulated from."""
    fitted, data = shared
    drawn = resimulated(fitted, data, seed=question["drawn"])
    again = fit(drawn, fitted.model, panel=fitted.panel, restarts=1, seed=question["seed"], start=fitted.parameters)
    scaled = fitted.emission.rescaled(again.parameters.emission, again.scaling.shift, again.scaling.scale)
    emission = {name: np.asarray(entry.value) for name, entry in fitted.emission.natural(scaled).items()}
    return {"rates": again.rates, "emission": emission}


def _identity(fitted: FittedMJP) -> dict[str, Any]:
    """What must be the same for an old fit to be one of this bootstrap."""
    model, parameters = fitted.model, jax.tree.map(np.asarray, fitted.parameters)
    return {
        "rates": [type(model.rate_model).__name__, model.rate_model.names, model.rate_model.allowed],
        "emission": [model.emission.name, options_of(model.emission)],
        "initial": [model.initial, model.given, model.rate_prior],
        "panel": repr(fitted.panel),
        "parameters": [parameters.rates, dict(parameters.emission), parameters.initial],
    }


def resimulated(fitted: FittedMJP, data: TimeSeries, *, seed: int) -> TimeSeries:
    """New values from the fitted process at the times of the data, missing where the data are.

    First observations stay where series are conditioned on them.
    """
    batch, first = data.pad(), data.offsets[:-1]
    known = fitted.model.initial == "known"
    initial = fitted.predict_proba(data)[first].argmax(-1) if known else fitted.initial
    since = batch.times - batch.times[:, :1]
    states = simulate_states(fitted.rates, since, initial=initial, key=jax.random.key(seed))
    rng, gaps = np.random.default_rng(seed), np.diff(since, axis=1, prepend=0.0)
    drawn = [fitted.emission.sample(fitted.parameters.emission, z, g, rng) for z, g in zip(states, gaps, strict=True)]
    offset = np.asarray(fitted.emission.offset(fitted.parameters.emission, data.times))
    values = np.where(data.mask, np.stack(drawn)[batch.valid] + offset, np.nan)
    if known:
        values[first] = data.values[first]
    return TimeSeries(data.times, values, data.offsets, data.names, data.value_names, data.time_unit)
