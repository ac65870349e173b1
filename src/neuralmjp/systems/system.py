"""What every system offers: a name, its parameters, its exact answers, and data on request."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, get_args

import jax
import numpy as np
from jaxtyping import Float, Int

from ..arguments import require_seed
from ..errors import InputError
from ..mjp import entropy_production, mfpt, stationary_distribution, timescales
from ..mjp.precision import in_double_precision
from ..timeseries import TimeSeries

Grid = Literal["irregular", "shared", "regular"]


@dataclass(frozen=True)
class Simulation:
    """Observations, and the hidden states behind them."""

    data: TimeSeries
    states: Int[np.ndarray, "observation ..."]  # one row per observation, in the order of data.times
    state_names: tuple[str, ...] = ()  # what the columns of the states count, where they have names

    def part(self, start: int, stop: int) -> "Simulation":
        """Series `start` to `stop` and their hidden states."""
        rows = slice(self.data.offsets[start], self.data.offsets[stop])
        return Simulation(self.data[start:stop], self.states[rows], self.state_names)


class System(ABC):
    """A process with known truth. One definition serves simulation and inference."""

    name: str
    time_unit: str
    default_length: int

    @property
    @abstractmethod
    def parameters(self) -> dict[str, float]:
        """The scalar parameters by name: what a fit would have to find."""

    @abstractmethod
    def _replaced(self, changes: dict[str, float]) -> "System":
        """The same system with other values for some of its parameters."""

    def with_parameters(self, /, **changes: float) -> "System":
        """The same system with some parameters changed; an unknown name or a value out of range is an error."""
        for name in changes:
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise InputError(f"{self.name} has no parameter {name!r}; it has {known}")
        return self._replaced(changes)

    @abstractmethod
    def simulate(
        self,
        n_series: int,
        length: int | None = None,
        *,
        grid: Grid = "irregular",
        duration: float | None = None,
        seed: int,
    ) -> Simulation:
        """Independent series, each observed `length` times on a grid of the given kind within [0, duration]."""

    def answers(self) -> dict[str, Any]:
        """Exact answers where they exist; by name, as arrays or numbers."""
        return {}


def finite_answers(rates: Float[np.ndarray, "state state"]) -> dict[str, Any]:
    """What is known exactly of a homogeneous process on a few states."""
    return {
        "rates": rates,
        "stationary_distribution": stationary_distribution(rates),
        "timescales": timescales(rates),
        "mfpt": mfpt(rates),
        "entropy_production": float(entropy_production(rates)),
    }


def observation_times(
    grid: Grid, n_series: int, length: int, duration: float, rng: np.random.Generator
) -> Float[np.ndarray, "series time"]:
    """The paper's three grids: every series its own uniform times, one draw shared by all, or equidistant."""
    check_request(grid, n_series, length, duration)
    if grid == "irregular":
        return np.sort(rng.uniform(0.0, duration, (n_series, length)), axis=-1)
    times = np.sort(rng.uniform(0.0, duration, length)) if grid == "shared" else np.linspace(0.0, duration, length)
    return np.tile(times, (n_series, 1))


def require_positive(system: str, **values: Any) -> None:
    """One line for a parameter that must be a positive number; traced values pass."""
    for name, value in values.items():
        if not isinstance(value, jax.Array) and not (value > 0 and np.isfinite(value)):
            raise InputError(f"{system}: {name} must be positive, got {value}")


def require_finite(system: str, **values: Any) -> None:
    """One line for a parameter that must be a finite number; traced values pass."""
    for name, value in values.items():
        if not isinstance(value, jax.Array) and not np.isfinite(value):
            raise InputError(f"{system}: {name} must be finite, got {value}")


def check_request(grid: Grid, n_series: int, length: int, duration: float) -> None:
    """One line for a request that makes no data."""
    if grid not in get_args(Grid):
        raise InputError(f"grid must be irregular, shared or regular, got {grid!r}")
    if n_series < 1:
        raise InputError(f"the number of series must be at least 1, got {n_series}")
    if length < 2:
        raise InputError(f"a series needs at least 2 observations, got {length}")
    if not (duration > 0 and np.isfinite(duration)):
        raise InputError(f"the duration must be positive and finite, got {duration}")


@in_double_precision  # else JAX would see the low half of a large seed only
def randomness(seed: int) -> tuple[np.random.Generator, jax.Array]:
    """One seed, two sources: NumPy's for times and noise in double precision, JAX's for the process."""
    require_seed(seed)
    return np.random.default_rng(seed), jax.random.key(seed)
