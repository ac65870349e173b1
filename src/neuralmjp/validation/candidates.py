"""Every number of states, fitted to all but each fold and then to all the data: the work behind `select`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import xlogy

from ..emissions import Categorical
from ..ensembles import Kept, Place, Progress, opened, run_each
from ..errors import InputError
from ..estimators import ExactMJP
from ..estimators.assemble import assemble
from ..exact.fit import fit
from ..exact.model import Model, Parameters
from ..fitted import FittedMJP
from ..mjp.precision import in_double_precision
from ..timeseries import TimeSeries
from .separation import Separation, separation

FOLDS = 0.9  # share of the work


@dataclass(frozen=True)
class Candidate:
    """One number of states, fitted to all the data and to all but each fold."""

    fitted: FittedMJP  # to all the data, without intervals
    held_out: Float[np.ndarray, "part"]  # log-likelihood of every part by the model that has not seen it
    entropy: float  # of the smoothed states, summed over the observations
    separation: Separation
    wandering: float  # of the levels between folds, in noise widths; NaN where states have no level

    @property
    def n_states(self) -> int:
        return self.fitted.n_states

    @property
    def bic(self) -> float:
        """Infinite where a state has collapsed: the likelihood then says nothing."""
        return np.inf if self.separation.collapsed else self.fitted.bic

    @property
    def icl(self) -> float:
        """BIC with the entropy of the smoothed states."""
        return self.bic + 2 * self.entropy


@dataclass(frozen=True)
class Trials:
    """What all fits share: data, their parts, and what is assumed with each number of states."""

    data: TimeSeries
    parts: TimeSeries
    fold: Int[np.ndarray, "part"]
    estimators: dict[int, ExactMJP]
    models: dict[int, Model]

    @classmethod
    def of(cls, data: TimeSeries, parts: TimeSeries, fold: np.ndarray, estimators: Mapping[int, ExactMJP]) -> "Trials":
        models = {n: estimator.model(data) for n, estimator in estimators.items()}
        for model in models.values():
            if isinstance(model.emission, Categorical) and model.emission.labelled:
                raise InputError("the labels of the data name the states: there is no number of them to choose")
        # Hum, drift and misreadings are in the emission now.
        settled = {
            n: replace(one, emission=models[n].emission, intervals=False, hum=None, drift=0, misread=None)
            for n, one in estimators.items()
        }
        return cls(data, parts, fold, settled, models)


@in_double_precision
def without_fold(trials: Trials, question: dict[str, Any]) -> dict[str, Any]:
    """A fit to all parts but those of one fold, and what it says of these."""
    fold, k = trials.fold, question["fold"]
    one = trials.estimators[question["n_states"]].fit(trials.parts[fold != k])
    test = trials.parts[fold == k]
    levels = one.emission.locations(one.parameters.emission)
    return {
        "held_out": np.add.reduceat(one.one_step_ahead(test).log_density, test.offsets[:-1]),
        "collapsed": separation(one, trials.data).collapsed,
        "score": one.score(trials.data),
        "parameters": _arrays(one.parameters),
        "levels": None if levels is None else np.asarray(levels),
    }


@in_double_precision
def with_all(trials: Trials, question: dict[str, Any]) -> dict[str, Any]:
    """A fit to all the data, from the best of what the folds found."""
    n, data = question["n_states"], trials.data
    estimator, start = trials.estimators[n], Parameters(**question["start"])
    top = fit(data, trials.models[n], panel=estimator.panel, restarts=1, seed=estimator.seed, start=start)
    fitted = assemble(top, data, panel=estimator.panel, seed=estimator.seed, intervals=False, seconds=0.0)
    smoothed = fitted.predict_proba(data)
    return {
        "parameters": _arrays(fitted.parameters),
        "log_likelihood": fitted.log_likelihood,
        "n_parameters": fitted.n_parameters,
        "converged": fitted.converged,
        "message": fitted.message,
        "warnings": list(fitted.warnings),
        "entropy": -float(xlogy(smoothed, smoothed).sum()),
        "separation": asdict(separation(fitted, data)),
    }


def candidates_of(
    data: TimeSeries,
    parts: TimeSeries,
    fold: np.ndarray,
    estimators: Mapping[int, ExactMJP],
    *,
    cluster: str | Place | None = None,
    kept: Kept | None = None,
    progress: Progress = lambda *_: None,
) -> list[Candidate]:
    """Every fold from its own starts; all the data from the best of what the folds found."""
    trials = Trials.of(data, parts, fold, estimators)
    n_folds = int(fold.max()) + 1
    each = {_name(n, k): {"n_states": n, "fold": k} for n in estimators for k in range(n_folds)}
    with opened(cluster) as place:
        folds = run_each(
            without_fold, each, trials, cluster=place, kept=kept, progress=lambda what, x: progress(what, FOLDS * x)
        )
        found = {n: [folds[_name(n, k)] for k in range(n_folds)] for n in estimators}
        last = {f"{n} states": {"n_states": n, "start": _best(found[n])["parameters"]} for n in estimators}
        ends = run_each(
            with_all,
            last,
            trials,
            cluster=place,
            kept=kept,
            progress=lambda what, x: progress(what, FOLDS + (1 - FOLDS) * x),
        )
    return [_candidate(trials, n, found[n], ends[f"{n} states"]) for n in estimators]


def _name(n_states: int, fold: int) -> str:
    return f"{n_states} states, fold {fold + 1}"


def _best(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The fit that all the data are likeliest under; one with a collapsed state only if all have one."""
    sound = [one for one in found if not one["collapsed"]]
    return max(sound or found, key=lambda one: one["score"])


def _candidate(trials: Trials, n_states: int, found: list[dict[str, Any]], end: dict[str, Any]) -> Candidate:
    estimator, data, apart = trials.estimators[n_states], trials.data, Separation(**end["separation"])
    fitted = FittedMJP(
        engine="exact",
        model=trials.models[n_states],
        parameters=Parameters(**end["parameters"]),
        time_unit=data.time_unit,
        value_names=data.value_names,
        log_likelihood=end["log_likelihood"],
        n_parameters=end["n_parameters"],
        n_observations=data.n_observations,
        converged=end["converged"],
        message=end["message"],
        rate_samples=np.empty((0, n_states, n_states)),
        intervals={},
        uncertainty="none",
        warnings=tuple(end["warnings"]),
        seconds=0.0,
        seed=estimator.seed,
        panel=estimator.panel,
    )
    held_out = np.empty(len(trials.parts))
    for k, one in enumerate(found):
        held_out[trials.fold == k] = one["held_out"]
    known = [one["levels"] for one in found if one["levels"] is not None]
    wandering = float(np.std(known, axis=0).max() / apart.noise) if known else np.nan
    return Candidate(fitted, held_out, end["entropy"], apart, wandering)


def _arrays(parameters: Parameters) -> dict[str, Any]:
    emission = {name: np.asarray(value) for name, value in parameters.emission.items()}
    return {"rates": np.asarray(parameters.rates), "emission": emission, "initial": np.asarray(parameters.initial)}
