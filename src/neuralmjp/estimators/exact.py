"""Estimators: an object that says what to assume; `fit` returns the fitted model."""

import time
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from .emissions import Categorical, Emission
from .emissions.named import named_emission
from .errors import InputError
from .exact.alternatives import bootstrap, profile_interval
from .exact.evidence import Panel
from .exact.fit import Progress, bounds_of, fit
from .exact.information import Information, observed_information, with_plain_emission
from .exact.model import Model, Parameters
from .exact.report import intervals_of, rate_samples_of, warnings_of
from .fitted import FittedMJP
from .mjp import Interval
from .mjp.precision import in_double_precision
from .mjp.structure import require_one_class
from .mjp.types import ArrayLike
from .priors import FreeRates, RateModel, ReversibleRates, system_rates
from .systems import System
from .timeseries import TimeSeries

HIDDEN_RESTARTS = 5
NOTHING_SPECIAL = Panel()


@dataclass
class ExactMJP:
    """Maximum likelihood for a hidden jump process with a modest number of states.

    Args:
        n_states: K.
        emission: a name (see `emissions.named.NAMES`, or "auto") or an `Emission`.
        prior: "free", "reversible", a system whose parameters are to be found, or any `RateModel`.
        mask: (K, K) of 0 and 1: which jumps may happen; with "free" and "reversible".
        initial: law at the first observation of a series: "free", "stationary", or K probabilities. Where the first
            state of every series is seen, "free" conditions on it.
        misread: (K, C) of 0 and 1: which labels each state can show; for categorical observations.
        panel: exact entry times, first states known, censored labels.
        rate_prior: (rate, width): a weakly informative normal law on every log rate parameter, for MAP.
        restarts: starts of EM; 1 where states are seen exactly, else 5.
        seed: of the random starts and of the samples behind intervals.
        intervals: whether to compute them.

    >>> from neuralmjp import systems
    >>> data = systems.FlashingRatchet().simulate(200, seed=0).data
    >>> fitted = ExactMJP(n_states=6, prior=systems.FlashingRatchet()).fit(data)
    >>> fitted.converged, sorted(fitted.intervals["parameters"].mean.round(0).tolist())
    (True, [1.0, 1.0, 1.0])
    """

    n_states: int
    emission: str | Emission = "auto"
    prior: str | System | RateModel = "free"
    mask: ArrayLike | None = None
    initial: Literal["free", "stationary"] | ArrayLike = "free"
    misread: ArrayLike | None = None
    panel: Panel = NOTHING_SPECIAL
    rate_prior: tuple[float, float] | None = None
    restarts: int | None = None
    seed: int = 0
    intervals: bool = True

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The choices by name, as in scikit-learn."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def set_params(self, **choices: Any) -> "ExactMJP":
        """Change choices in place, as in scikit-learn."""
        for name, value in choices.items():
            if name not in self.get_params():
                raise InputError(f"ExactMJP has no parameter {name!r}; it has {', '.join(self.get_params())}")
            setattr(self, name, value)
        return self

    def fit_fetch(self, data: TimeSeries, progress: Progress = lambda *_: None) -> FittedMJP:
        """`fit`, under the name that deeptime uses."""
        return self.fit(data, progress)

    @in_double_precision
    def fit(self, data: TimeSeries, progress: Progress = lambda *_: None) -> FittedMJP:
        """Find the parameters that make the data most likely, and how well the data determine them."""
        began = time.perf_counter()
        model = self.model(data)
        exact = isinstance(model.emission, Categorical) and model.emission.is_exact
        restarts = self.restarts or (1 if exact else HIDDEN_RESTARTS)
        found = fit(data, model, panel=self.panel, restarts=restarts, seed=self.seed, progress=progress)
        counted = with_plain_emission(found)
        information: Information | None = None
        if self.intervals:
            progress("intervals", 0.0)
            information = observed_information(counted)
        in_units = found.parameters
        rescaled = model.emission.rescaled(in_units.emission, found.scaling.shift, found.scaling.scale)
        return FittedMJP(
            engine="exact",
            model=model,
            parameters=Parameters(
                in_units.rates, {name: np.asarray(value) for name, value in rescaled.items()}, in_units.initial
            ),
            time_unit=data.time_unit,
            value_names=data.value_names,
            log_likelihood=found.log_likelihood,
            n_parameters=len(counted.packing.free),
            n_observations=data.n_observations,
            converged=found.converged,
            message=found.message,
            rate_samples=rate_samples_of(counted, information, self.seed),
            intervals=intervals_of(counted, information),
            uncertainty="observed information" if information else "none",
            warnings=warnings_of(counted, information),
            seconds=time.perf_counter() - began,
            seed=self.seed,
            panel=self.panel,
            restarts=tuple(float(value) for value in found.restarts),
        )

    @in_double_precision
    def profile(self, data: TimeSeries, fitted: FittedMJP, jump: tuple[int, int]) -> Interval:
        """Profile-likelihood interval for the rate of one jump (from, to) of a fit to these data."""
        found = fit(data, fitted.model, panel=self.panel, restarts=1, seed=self.seed, start=fitted.parameters)
        return profile_interval(found, bounds_of(found.model, found.packing, data), jump)

    def bootstrap(
        self, data: TimeSeries, fitted: FittedMJP, n: int = 200, progress: Progress = lambda *_: None
    ) -> FittedMJP:
        """The same fit with intervals by parametric bootstrap: `n` data sets simulated from it and fitted again."""
        return bootstrap(fitted, data, n, seed=self.seed, progress=progress)

    def model(self, data: TimeSeries) -> Model:
        """What is assumed, spelled out for these data."""
        if self.n_states < 2:
            raise InputError(f"a process that jumps has at least 2 states, got {self.n_states}")
        emission = self.emission
        if isinstance(emission, str):
            ignore = tuple(float(label) for label in self.panel.censored)
            emission = named_emission(emission, data, self.n_states, misread=self.misread, ignore=ignore)
        elif self.misread is not None:
            raise InputError("misread goes with an emission by name; an Emission holds its own table of readings")
        if not (isinstance(emission, Categorical) or data.n_observations > 10 * self.n_states**2):
            data.check_states(self.n_states)
        rate_model = self._rate_model()
        if isinstance(emission, Categorical) and len(emission.readable) != self.n_states:
            raise InputError(f"the emission is for {len(emission.readable)} states, but {self.n_states} are asked for")
        first_seen = isinstance(emission, Categorical) and (
            self.panel.first_known
            or (emission.is_exact and np.isin(data.values[data.offsets[:-1], 0], emission.labels).all())
        )
        prior = self._prior_on_logs()
        if isinstance(self.initial, str):
            if self.initial not in ("free", "stationary"):
                raise InputError(
                    f"initial must be free, stationary or {self.n_states} probabilities, got {self.initial!r}"
                )
            if self.initial == "stationary":
                require_one_class(rate_model.allowed.astype(float), "the stationary initial law")
            initial = "known" if self.initial == "free" and first_seen else self.initial
            return Model(rate_model, emission, initial, None, prior)
        law = np.asarray(self.initial, dtype=float)
        if law.shape != (self.n_states,) or (law < 0).any() or abs(law.sum() - 1) > 1e-6:
            raise InputError(f"an initial law holds {self.n_states} probabilities that sum to one")
        return Model(rate_model, emission, "given", tuple(law.tolist()), prior)

    def _prior_on_logs(self) -> tuple[float, float] | None:
        if self.rate_prior is None:
            return None
        rate, width = self.rate_prior
        if not (rate > 0 and width > 0):
            raise InputError(f"rate_prior is a positive rate and a positive width, got {self.rate_prior}")
        return float(np.log(rate)), float(width)

    def _rate_model(self) -> RateModel:
        prior = self.prior
        if self.mask is not None and not isinstance(prior, str):
            raise InputError("a mask goes with free or reversible rates by name; a rate model holds its own")
        if isinstance(prior, System):
            prior = system_rates(prior)
        elif prior == "free":
            prior = FreeRates(self.n_states, mask=self.mask)
        elif prior == "reversible":
            prior = ReversibleRates(self.n_states, mask=self.mask)
        elif isinstance(prior, str):
            raise InputError(f"no rate model {prior!r}; there are free, reversible, or a system")
        if prior.n_states != self.n_states:
            raise InputError(f"the rate model has {prior.n_states} states, but {self.n_states} are asked for")
        return prior
