"""Hidden states by several engines: every run as a fitted model, and what tables say of all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from ..baselines.chain import MarkovChain
from ..baselines.koehs import KoehsFit, fit_koehs
from ..estimators import ExactMJP, NeuralMJP
from ..fitted import FittedMJP
from ..mjp.interval import Interval
from ..mjp.precision import in_double_precision
from ..timeseries import TimeSeries
from ..training.trained import VISITED, alone
from .runs import columns_over_runs, fit_there, train_there
from .tables import Line, Progress

KOEHS_HERE = "Koehs (as here)"
Told = Callable[[Any], Sequence[float]]  # the numbers of a row, from a fitted model


@dataclass(frozen=True)
class Runs:
    """One method: a fitted model per run, what they took together, and how the best ended."""

    models: tuple[Any, ...]  # FittedMJP, or what a baseline returns
    seconds: float
    message: str
    data: tuple[TimeSeries, ...] = ()  # that each was fitted to

    @cached_property
    def rarest(self) -> Float[np.ndarray, "run"]:
        """Share of the observations in the state that explains least, by run."""
        laws = (probabilities(one, data) for one, data in zip(self.models, self.data, strict=True))
        return np.array([law.mean(0).min() for law in laws])

    @property
    def collapsed(self) -> int:
        """Runs in which a state explains as good as nothing."""
        return int((self.rarest < VISITED).sum())

    def line(self, method: str, columns: Sequence[str], told: Told, decimals: Sequence[int]) -> Line:
        """Mean and spread over the runs."""
        each = np.array([told(one) for one in self.models], float)
        return Line(method, columns_over_runs(columns, each, decimals), self.seconds, self.message)


def by_networks(estimator: NeuralMJP, data: TimeSeries, progress: Progress) -> Runs:
    """The neural engine, its restarts as runs that go side by side."""
    trained = train_there(estimator, data, progress)
    models = tuple(estimator.fitted(data, alone(trained, k)) for k in range(len(trained.restarts)))
    return Runs(models, trained.seconds, trained.message, (data,) * len(models))


def over_data(estimator: ExactMJP | NeuralMJP, data: Sequence[TimeSeries], progress: Callable[[int], Progress]) -> Runs:
    """One fit to each of several data sets."""
    models = []
    for k, one in enumerate(data):
        tell = progress(k)
        neural = isinstance(estimator, NeuralMJP)
        models.append(fit_there(estimator, one, tell) if neural else estimator.fit(one, tell))
    return Runs(tuple(models), sum(one.seconds for one in models), models[-1].message, tuple(data))


def by_koehs(data: Sequence[TimeSeries], n_states: int, progress: Callable[[int], Progress], substeps: int = 4) -> Runs:
    """A switching diffusion by variational EM, which has no intervals."""
    models = tuple(fit_koehs(one, n_states, substeps=substeps, progress=progress(k)) for k, one in enumerate(data))
    return Runs(models, sum(one.seconds for one in models), models[-1].message, tuple(data))


def probabilities(fitted: FittedMJP | KoehsFit | MarkovChain, data: TimeSeries) -> Float[np.ndarray, "row state"]:
    """Of the states, at every observation."""
    return fitted.predict_proba(data) if isinstance(fitted, FittedMJP) else fitted.probabilities(data)


@in_double_precision
def means(fitted: FittedMJP) -> Float[np.ndarray, "state value"]:
    """Of the values in each state, by whatever parameters: plain numbers, or those of a network."""
    return np.asarray(fitted.emission.natural(fitted.parameters.emission)["mean"].value)


def lost(found: dict[str, Runs]) -> str:
    """How many runs of each method collapsed, for the note of a table."""
    return "collapsed: " + ", ".join(
        f"{method} {each.collapsed} of {len(each.models)}" for method, each in found.items()
    )


def holds(interval: Interval, truth: Float[np.ndarray, "..."]) -> np.ndarray:
    """Where an interval holds the truth."""
    return (interval.lower <= truth) & (truth <= interval.upper)
