"""A fitted jump process: immutable, the same for every engine."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from . import mjp
from .checks import require_series, require_unit
from .emissions import Categorical, Emission, Torus
from .emissions.wrapped import levels_of
from .errors import InputError
from .events import Events, events_of
from .exact.decode import Ahead, Prepared, one_step_ahead, require_possible, sample_paths, smooth, viterbi
from .exact.evidence import Panel, Scaling, absorbing_entries, make_evidence
from .exact.forecast import StateForecast, forecast_states
from .exact.model import Model, Parameters, initial_law
from .mjp.interval import LEVEL, Interval, interval_or_unknown
from .mjp.precision import in_double_precision
from .naming import renamed, require_names
from .priors import rates_of
from .systems.system import randomness
from .timeseries import TimeSeries

NO_SIGN = 1e-2  # an estimate below this share of its upper limit is told as the limit alone


@dataclass(frozen=True)
class Decoded:
    """What the hidden process did at each observation, in the order of data.times."""

    states: Int[np.ndarray, "row"]  # the most likely path
    probabilities: Float[np.ndarray, "row state"]
    levels: Int[np.ndarray, "row"] | None = None  # the most probable level, where several states share one
    exact: Bool[np.ndarray, "row"] | None = None  # where a state was entered at the very time of the observation

    def dwells(self, data: TimeSeries) -> tuple[Float[np.ndarray, "_"], ...]:
        """How long the path stayed in each state; the first and the last dwell of a series, cut short, are left out."""
        names = tuple(map(str, range(self.probabilities.shape[1])))
        return events_of(data, self.states, self.probabilities, names, quantities=False, exact=self.exact).dwells()


@dataclass(frozen=True, repr=False)
class FittedMJP:
    """Rates, emission and everything that follows from them, with intervals.

    Rates are per `time_unit`; values are in the units of the data.
    """

    engine: Literal["exact", "neural"]
    model: Model
    parameters: Parameters  # in the units of the data
    time_unit: str
    value_names: tuple[str, ...]
    log_likelihood: float  # exact, at these parameters, whichever engine found them
    n_parameters: int
    n_observations: int
    converged: bool
    message: str
    rate_samples: Float[np.ndarray, "sample state state"]  # from the uncertainty of the fit
    intervals: dict[str, Interval]  # rates, parameters, emission: those that are not made from samples
    uncertainty: str  # how the intervals were made
    warnings: tuple[str, ...]
    seconds: float
    seed: int
    panel: Panel = field(default_factory=Panel)
    restarts: tuple[float, ...] = ()
    restart_timescales: tuple[float, ...] = ()  # slowest relaxation that each start came to, NaN if none was seen
    posterior: str = "exact"  # "tilted" or "paper" where the neural engine found the parameters
    elbo: float | None = None  # its bound on the log-likelihood
    state_names: tuple[str, ...] = ()  # for tables and figures; their numbers if not given

    def __post_init__(self):
        names = tuple(self.state_names) or self._numbers
        require_names(names, self.n_states)
        object.__setattr__(self, "state_names", names)

    @property
    def n_states(self) -> int:
        return self.model.rate_model.n_states

    def named(self, *names: str | Sequence[str]) -> "FittedMJP":
        """The same with names for its states, in their order: `fitted.named("closed", "open")`, or a list of them.

        Without any they have their numbers again.
        """
        listed = len(names) == 1 and isinstance(names[0], list | tuple)
        chosen: Any = tuple(names[0]) if listed else names or self._numbers
        require_names(chosen, self.n_states)
        told = tuple(renamed(words, self.state_names, chosen) for words in self.warnings)
        return replace(self, state_names=chosen, warnings=told)

    def told(self, words: str) -> str:
        """A sentence that numbers the states, in their names."""
        return renamed(words, self._numbers, self.state_names)

    @property
    def _numbers(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.n_states)))

    def arrow(self, i: int, j: int) -> str:
        """A jump, as tables show it."""
        return f"{self.state_names[i]} → {self.state_names[j]}"

    @property
    def emission(self) -> Emission:
        return self.model.emission

    @cached_property
    def rates(self) -> Float[np.ndarray, "state state"]:
        return _rates(self.model, self.parameters)

    def __repr__(self) -> str:
        ended = "converged" if self.converged else "not converged"
        return (
            f"FittedMJP({self.n_states} states, emission {self.emission.name}, {self.engine} engine, "
            f"{self.n_observations} observations, log-likelihood {self.log_likelihood:.2f}, {ended})"
        )

    @property
    def generator(self) -> Float[np.ndarray, "state state"]:
        return np.asarray(mjp.generator_from_rates(self.rates))

    @property
    def initial(self) -> Float[np.ndarray, "state"]:
        """The law at the first observation of a series; even where series are conditioned on it."""
        law = _initial(self.model, self.parameters, self.rates)
        return law / law.sum()

    @property
    def aic(self) -> float:
        return 2 * self.n_parameters - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        return float(np.log(self.n_observations)) * self.n_parameters - 2 * self.log_likelihood

    # ---- observables, each with its interval

    @cached_property
    def stationary_distribution(self) -> Interval:
        return self.observable(mjp.stationary_distribution)

    @cached_property
    def timescales(self) -> Interval:
        return self.observable(mjp.timescales)

    @cached_property
    def mfpt(self) -> Interval:
        return self.observable(mjp.mfpt)

    @cached_property
    def sojourn_times(self) -> Interval:
        return self.observable(mjp.sojourn_times)

    @cached_property
    def entropy_production(self) -> Interval:
        return self.observable(mjp.entropy_production)

    def observable(self, function: Any, *, draws: int | None = None) -> Interval:
        """Any function of the rate matrix, with the interval that the uncertainty of the rates gives it.

        It is asked for all draws at once, as a batch, and matrix by matrix where it does not take one.

        Args:
            draws: of the rates, fewer than all for a function that takes long.

        >>> # fitted.observable(lambda rates: mjp.mfpt(rates, source=0, target=2))
        """
        value = np.asarray(function(self.rates))
        drawn_rates = self.rate_samples[:draws]
        if len(drawn_rates) == 0:
            unknown = np.full_like(value, np.nan)
            return Interval(value, unknown, unknown)
        tail = (1 - LEVEL) / 2
        cases = [drawn_rates]
        if self.unseen.any():  # such jumps may happen, or not: what both say, since draws of them are never zero
            cases.append(np.where(self.unseen, self.rates, drawn_rates))
        ends = [value[None]]
        for samples in cases:
            with np.errstate(invalid="ignore"):  # the quantile of infinite values
                drawn = _of_each(function, samples, value.shape)
                ends.append(np.quantile(drawn, [tail, 1 - tail], axis=0, method="inverted_cdf"))
        every = np.concatenate(ends)
        return Interval(value, every.min(0), every.max(0))

    @cached_property
    def unseen(self) -> Bool[np.ndarray, "state state"]:
        """Jumps of which the data show no sign: their rate is known by an upper limit alone."""
        rates = interval_or_unknown(self.intervals, "rates", self.rates)
        with np.errstate(invalid="ignore"):
            return (np.asarray(rates.lower) == 0) & (self.rates < NO_SIGN * np.asarray(rates.upper))

    # ---- what the process did in some data

    def require_values(self, data: TimeSeries) -> None:
        """Raise unless the data are a series in the model's unit of time, of as many values as it was fitted to."""
        require_series(data)
        require_unit(data, self.time_unit)
        if data.n_features != len(self.value_names):
            raise InputError(f"the model was fitted to {len(self.value_names)} values, the data have {data.n_features}")

    def _prepared(self, data: TimeSeries) -> Prepared:
        self.require_values(data)
        plain = Scaling(np.zeros(data.n_features), np.ones(data.n_features))
        laid = make_evidence(data, self.emission, self.n_states, plain, self.panel)
        return Prepared(self.model, self.parameters, laid)

    @in_double_precision
    def decode(self, data: TimeSeries) -> Decoded:
        """The most likely path and the probability of each state at each observation; also of data never seen."""
        prepared = self._prepared(data)
        probabilities, shared = self._smoothed(prepared, data), levels_of(self.emission)
        levels = None
        if shared is not None:
            levels = (probabilities @ np.eye(shared.n_levels)[list(shared.levels)]).argmax(-1)
        exact, _ = absorbing_entries(data, self.emission, self.panel)
        return Decoded(viterbi(prepared), probabilities, levels, exact)

    def events(self, data: TimeSeries, decoded: Decoded | None = None) -> Events:
        """The decoded path as a list of stays, an idealised record; of levels, where several states share one.

        Args:
            decoded: what `decode` found in these data, if that is known already.

        >>> # fitted.events(recording).to_frame()
        """
        found = self.decode(data) if decoded is None else decoded
        states, probabilities, names = found.states, found.probabilities, self.state_names
        if (shared := levels_of(self.emission)) is not None:
            level_of = np.array(shared.levels)
            numbered = names == self._numbers
            states, probabilities = level_of[states], probabilities @ np.eye(shared.n_levels)[level_of]
            alike = (np.flatnonzero(level_of == level) for level in range(shared.n_levels))
            names = tuple(str(k) if numbered else " or ".join(names[z] for z in some) for k, some in enumerate(alike))
        quantities = not isinstance(self.emission, Categorical | Torus)
        return events_of(data, states, probabilities, names, quantities=quantities, exact=found.exact)

    @in_double_precision
    def predict_proba(self, data: TimeSeries) -> Float[np.ndarray, "row state"]:
        """Probability of each state at each observation, given all observations of its series."""
        return self._smoothed(self._prepared(data), data)

    def _smoothed(self, prepared: Prepared, data: TimeSeries) -> Float[np.ndarray, "row state"]:
        value, probabilities = smooth(prepared)
        if not np.isfinite(value):
            require_possible(prepared, data)
        return probabilities

    @in_double_precision
    def score(self, data: TimeSeries) -> float:
        """Log-likelihood of data under this model."""
        return smooth(self._prepared(data))[0]

    @in_double_precision
    def log_emissions(self, data: TimeSeries) -> Float[np.ndarray, "row state"]:
        """Log density of each observation in each state, by itself."""
        prepared = self._prepared(data)
        return prepared.laid.layout.scatter(np.asarray(prepared.logs))

    @in_double_precision
    def one_step_ahead(self, data: TimeSeries) -> Ahead:
        """At each observation what the ones before it led to expect: the law of the state, and the log density."""
        return one_step_ahead(self._prepared(data))

    @in_double_precision
    def predict(self, data: TimeSeries, times, *, samples: int = 1000, seed: int = 0) -> StateForecast:
        """States and observations at later times, given all observations of each series.

        Args:
            times: shared by all series, or a list with those of each; after its last observation.
            samples: joint draws of the observations, behind their means and quantiles.
        """
        smoothed = self._smoothed(self._prepared(data), data)
        return forecast_states(
            data, smoothed, self.rates, self.emission, self.parameters.emission, times, samples=samples, seed=seed
        )

    @in_double_precision
    def sample_paths(self, data: TimeSeries, n: int, *, key: Array) -> list[list[mjp.JumpPath]]:
        """`n` whole paths per series from the posterior, with every jump; time 0 is its first observation."""
        return sample_paths(self._prepared(data), data, n, key)

    @in_double_precision
    def simulate(self, times: Float[np.ndarray, "series time"], *, seed: int) -> TimeSeries:
        """New data from the fitted process at given times."""
        rng, key = randomness(seed)
        times = np.atleast_2d(np.asarray(times, dtype=float))
        states = mjp.simulate_states(self.rates, times - times[:, :1], initial=self.initial, key=key)
        gaps = np.diff(times, axis=1, prepend=times[:, :1])
        params = jax.tree.map(np.asarray, self.parameters.emission)
        values = np.stack([self.emission.sample(params, z, g, rng) for z, g in zip(states, gaps, strict=True)])
        values = values + np.asarray(self.emission.offset(params, times))
        return TimeSeries.from_arrays(times, values, time_unit=self.time_unit, value_names=self.value_names)

    def to_arviz(self) -> Any:
        """The samples behind the intervals of the rates as an ArviZ object (extra `bayes`)."""
        try:
            import arviz  # type: ignore[import-not-found]
        except ImportError:
            raise InputError("to_arviz needs ArviZ: pip install 'neuralmjp[bayes]'") from None
        samples = {"rates": self.rate_samples[None]}  # one chain
        if int(arviz.__version__.split(".")[0]) > 0:
            return arviz.from_dict({"posterior": samples})
        return arviz.from_dict(posterior=samples)

    def to_deeptime(self, lag: float) -> Any:
        """The process seen every `lag`, as deeptime's `MarkovStateModel` (extra `compare`); its lag time is `lag`."""
        try:
            from deeptime.markov.msm import MarkovStateModel
        except ImportError:
            raise InputError("to_deeptime needs deeptime: pip install 'neuralmjp[compare]'") from None
        if not lag > 0:
            raise InputError(f"a lag is positive, got {lag}")
        law = np.asarray(self.stationary_distribution.mean)
        chosen: Any = {"stationary_distribution": law, "lagtime": lag}
        return MarkovStateModel(np.asarray(mjp.transition_matrix(self.rates, lag)), **chosen)

    # ---- on disk

    def save(self, folder: str | Path) -> None:
        """Write the model as JSON and arrays; `FittedMJP.load` brings it back."""
        from .fitted_files import save

        save(self, Path(folder))

    @staticmethod
    def load(folder: str | Path) -> "FittedMJP":
        """A model that was saved; nothing in the folder is executed."""
        from .fitted_files import load

        return load(Path(folder))


@in_double_precision
def _rates(model: Model, parameters: Parameters) -> np.ndarray:
    return np.asarray(rates_of(model.rate_model, parameters.rates))


@in_double_precision
def _initial(model: Model, parameters: Parameters, rates: np.ndarray) -> np.ndarray:
    return np.asarray(initial_law(model, parameters, jnp.asarray(rates)))


def _of_each(
    function: Any, samples: Float[np.ndarray, "sample state state"], shape: tuple[int, ...]
) -> Float[np.ndarray, "..."]:
    """Of every rate matrix; one by one where the function does not take a batch of them."""
    try:
        drawn = np.asarray(function(samples), float)
    except (TypeError, ValueError, IndexError):  # what it says to a batch; to a matrix it may say another thing
        drawn = np.empty(0)
    if drawn.shape == (len(samples), *shape):
        return drawn
    return np.array([function(one) for one in samples], float)
