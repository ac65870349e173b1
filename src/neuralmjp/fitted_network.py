"""A fitted reaction network: immutable, the same for every engine."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float

from .checks import require_unit
from .emissions.emission import Params
from .emissions.readings import Readings
from .errors import InputError
from .exact.lattice_decode import DecodedCounts, Forecast, decoded, forecast
from .exact.lattice_likelihood import Likelihood
from .mjp.interval import Interval, interval_or_unknown
from .mjp.precision import in_double_precision
from .systems import ReactionNetwork
from .systems.system import randomness
from .timeseries import TimeSeries

MOST_CELLS = 5_000_000  # of a box that the exact filter takes on


@dataclass(frozen=True, repr=False)
class FittedNetwork:
    """Rate constants, how counts are read, and everything that follows from them, with intervals.

    Constants are per `time_unit`; `network` carries the values that were found.
    """

    engine: Literal["exact", "neural", "meanfield"]
    network: ReactionNetwork
    readings: Readings
    noise: Params  # what the readings have learned
    time_unit: str
    value_names: tuple[str, ...]
    log_likelihood: float | None  # exact, whichever engine found the constants; None where the box is too large
    n_parameters: int
    n_observations: int
    converged: bool
    message: str
    intervals: dict[str, Interval]  # "parameters", in the order of `names`, and "emission.sd" or its like
    log_covariance: Float[np.ndarray, "constant constant"]  # of the logarithms of the constants; NaN where not known
    uncertainty: str  # how the intervals were made
    warnings: tuple[str, ...]
    seconds: float
    seed: int
    initial: str = "flat"  # at the first observation, or "start": at time 0 inside the network's start
    posterior: str = "exact"  # "tilted", "paper" or "coordinate" where a mean field found the constants
    elbo: float | None = None  # its bound on the log-likelihood
    restarts: tuple[float, ...] = ()
    truncated: float | None = None  # probability that the exact engine lost at the edges of its windows
    at_edge: dict[str, float] = field(default_factory=dict)  # posterior probability of the largest count, by species

    @property
    def names(self) -> tuple[str, ...]:
        """Of the rate constants."""
        return tuple(self.network.parameters)

    @property
    def constants(self) -> Float[np.ndarray, "constant"]:
        return np.array(list(self.network.parameters.values()))

    @property
    def parameters(self) -> dict[str, float]:
        return self.network.parameters

    def __repr__(self) -> str:
        height = f"bound {self.elbo:.2f}" if self.elbo is not None else "likelihood unknown"
        if self.log_likelihood is not None:
            height = f"log-likelihood {self.log_likelihood:.2f}"
        ended = "converged" if self.converged else "not converged"
        constants = ", ".join(f"{name} {value:.3g}" for name, value in self.parameters.items())
        return (
            f"FittedNetwork({self.network.name}, {constants}, {self.engine} engine, "
            f"{self.n_observations} observations, {height}, {ended})"
        )

    def reactions_of(self, constant: str) -> str:
        """Those that a constant governs, as they are written."""
        return "; ".join(str(one) for one in self.network.reactions if one.constant == constant)

    @in_double_precision
    def noise_intervals(self) -> dict[str, Interval]:
        """Every number that describes the noise; known ones, and those of a fit without intervals, have no ends."""
        known = {} if self.readings.fixed is not None else self.intervals
        return {
            name: interval_or_unknown(known, f"emission.{name}", np.asarray(entry.value, dtype=float))
            for name, entry in self.readings.natural(self.noise).items()
        }

    @property
    def observed_network(self) -> ReactionNetwork:
        """The network without its own idea of noise, for simulating what is hidden."""
        return replace(self.network, noise="none", seen=None)

    # ---- what the process did in some data, and will do

    def _likelihood(self, data: TimeSeries) -> tuple[Likelihood, Float[np.ndarray, "constant"]]:
        """The exact likelihood of these data, and the logarithms of the constants."""
        require_small_box(self.network)
        require_unit(data, self.time_unit)
        data = matched(data, self.value_names)
        self.readings.check(data.values, self.value_names)
        logs = np.log(np.maximum(self.constants, np.finfo(float).tiny))
        return Likelihood(data, self.network, self.readings, self.initial), logs

    @in_double_precision
    def per_series_log_likelihood(self, data: TimeSeries) -> Float[np.ndarray, "series"]:
        """Exact log-likelihood of each series under this model."""
        likelihood, logs = self._likelihood(data)
        return likelihood.possible(logs, self.noise).log_likelihoods

    def score(self, data: TimeSeries) -> float:
        """Exact log-likelihood of data under this model."""
        return float(self.per_series_log_likelihood(data).sum())

    @in_double_precision
    def decode(self, data: TimeSeries) -> DecodedCounts:
        """What was hidden at each observation, given all observations of its series; also of data never seen."""
        likelihood, logs = self._likelihood(data)
        return decoded(likelihood, logs, self.noise)

    @in_double_precision
    def predict(self, data: TimeSeries, times, *, samples: int = 0, seed: int = 0) -> Forecast:
        """Counts and readings at later times, given all observations of each series.

        Args:
            times: shared by all series, or a list with those of each; after its last observation.
            samples: joint draws of all readings to return as well.
        """
        likelihood, logs = self._likelihood(data)
        return forecast(likelihood, self.network, logs, self.noise, times, samples=samples, seed=seed)

    @in_double_precision
    def simulate(self, times: Float[np.ndarray, "series time"], *, seed: int) -> TimeSeries:
        """New data from the fitted network at given times, from the network's start."""
        times = np.atleast_2d(np.asarray(times, dtype=float))
        rng, key = randomness(seed)
        hidden = self.observed_network.observed(times, rng, key)
        noise = {name: np.asarray(value) for name, value in self.noise.items()}
        values = self.readings.sample(noise, hidden.states, rng).reshape(*times.shape, -1)
        return TimeSeries.from_arrays(times, values, time_unit=self.time_unit, value_names=self.value_names)

    # ---- on disk

    def save(self, folder: str | Path) -> None:
        """Write the model as JSON and arrays; `FittedNetwork.load` brings it back."""
        from .fitted_network_files import save

        save(self, Path(folder))

    @staticmethod
    def load(folder: str | Path) -> "FittedNetwork":
        """A model that was saved; nothing in the folder is executed."""
        from .fitted_network_files import load

        return load(Path(folder))


def require_small_box(network: ReactionNetwork) -> None:
    """One line for a box that is too large to go through count by count."""
    cells = float(np.prod(network.box, dtype=float))
    if cells > MOST_CELLS:
        raise InputError(
            f"the box of {network.name} has {cells:.1e} cells, more than {MOST_CELLS:.0e} for the exact engine: "
            "make it smaller; the neural engine fits it as it is"
        )


def matched(data: TimeSeries, names: tuple[str, ...]) -> TimeSeries:
    """The columns of these names, in this order, where the data have them all; else as many columns as they come."""
    if data.value_names == names:
        return data
    there, wanted = ([name.lower() for name in some] for some in (data.value_names, names))
    if set(wanted) <= set(there):
        order = [there.index(name) for name in wanted]
    elif data.n_features == len(names):
        order = list(range(len(names)))
    else:
        raise InputError(
            f"the data have {data.n_features} values ({', '.join(data.value_names)}), but {len(names)} are read: "
            f"{', '.join(names)}"
        )
    return TimeSeries(data.times, data.values[:, order], data.offsets, data.names, names, data.time_unit)
