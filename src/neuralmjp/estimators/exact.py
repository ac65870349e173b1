"""The exact engine's estimator."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..arguments import numbers_of, require_whole
from ..ensembles import Place
from ..errors import InputError
from ..exact.alternatives import bootstrap, profile_interval
from ..exact.fit import Progress, bounds_of, fit
from ..exact.model import Model
from ..exact.starts import default_restarts
from ..fitted import FittedMJP
from ..mjp import Interval
from ..mjp.precision import in_double_precision
from ..programs import forgetting
from ..timeseries import TimeSeries
from .assemble import assemble
from .assumptions import Assumptions


@dataclass
class ExactMJP(Assumptions):
    """Maximum likelihood for a hidden jump process with a modest number of states.

    Args (beside those of `Assumptions`):
        rate_prior: (rate, width): a weakly informative normal law on every log rate parameter, for MAP.
        restarts: starts of EM; 1 where labels name the states, else 5.
        seed: of the random starts and of the samples behind intervals.
        intervals: whether to compute them.

    >>> from neuralmjp import systems
    >>> data = systems.FlashingRatchet().simulate(200, seed=0).data
    >>> fitted = ExactMJP(n_states=6, prior=systems.FlashingRatchet()).fit(data)
    >>> fitted.converged, sorted(fitted.intervals["parameters"].mean.round(0).tolist())
    (True, [1.0, 1.0, 1.0])
    """

    rate_prior: tuple[float, float] | None = None
    restarts: int | None = None
    seed: int = 0
    intervals: bool = True

    def fit_fetch(self, data: TimeSeries, progress: Progress = lambda *_: None) -> FittedMJP:
        """`fit`, under the name that deeptime uses."""
        return self.fit(data, progress)

    @forgetting
    @in_double_precision
    def fit(self, data: TimeSeries, progress: Progress = lambda *_: None) -> FittedMJP:
        """Find the parameters that make the data most likely, and how well the data determine them."""
        began = time.perf_counter()
        model = self.model(data)
        if self.restarts is not None:
            require_whole(self.restarts, 1, "a fit has at least 1 start (restarts)")
        restarts = self.restarts or default_restarts(model.emission)
        found = fit(data, model, panel=self.panel, restarts=restarts, seed=self.seed, progress=progress)
        if self.intervals:
            progress("intervals", 0.0)
        fitted = assemble(found, data, panel=self.panel, seed=self.seed, intervals=self.intervals, seconds=0.0)
        return replace(fitted, seconds=time.perf_counter() - began)

    @in_double_precision
    def profile(self, data: TimeSeries, fitted: FittedMJP, jump: tuple[int, int]) -> Interval:
        """Profile-likelihood interval for the rate of one jump (from, to) of a fit to these data."""
        fitted.require_values(data)
        found = fit(data, fitted.model, panel=self.panel, restarts=1, seed=self.seed, start=fitted.parameters)
        return profile_interval(found, bounds_of(found.model, found.packing, data), jump)

    def bootstrap(
        self,
        data: TimeSeries,
        fitted: FittedMJP,
        n: int = 200,
        progress: Progress = lambda *_: None,
        *,
        cluster: str | Place | None = None,
        folder: str | Path | None = None,
    ) -> FittedMJP:
        """The same fit with intervals by parametric bootstrap: `n` data sets simulated from it and fitted again.

        Args:
            n: at least 39: with fewer no such interval is as wide as 95 %.
            cluster: None for this process, "local" for all cores of this machine, or the address of a `dask scheduler`.
            folder: keeps every fit, so that a bootstrap that was interrupted goes on where it was.
        """
        fitted.require_values(data)
        kept = None if folder is None else Path(folder)
        return bootstrap(fitted, data, n, seed=self.seed, cluster=cluster, folder=kept, progress=progress)

    def model(self, data: TimeSeries) -> Model:
        """What is assumed, spelled out for these data."""
        return super().model(data)._replace(rate_prior=self._prior_on_logs())

    def _prior_on_logs(self) -> tuple[float, float] | None:
        if self.rate_prior is None:
            return None
        given = numbers_of(self.rate_prior, "rate_prior")
        if given.shape != (2,) or not (given > 0).all():
            raise InputError(f"rate_prior is a positive rate and a positive width, got {self.rate_prior}")
        return float(np.log(given[0])), float(given[1])
