"""Two-mode switching diffusion: an Ornstein-Uhlenbeck process whose rest point jumps between two values."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from ..errors import InputError
from ..mjp.precision import in_double_precision
from ..mjp.processes import JumpProcess
from ..mjp.simulate import gaps_from_times, observe_many
from ..timeseries import TimeSeries
from .system import (
    Grid,
    Simulation,
    System,
    check_request,
    finite_answers,
    observation_times,
    randomness,
    require_finite,
    require_positive,
)

# The paper draws observation times from "a Poisson point process with intensity 1/lambda = 0.35". Read as a mean gap
# of 0.35, its 67 observations span 23 time units; read as an intensity, 191.
READINGS = {"gap": 0.35, "intensity": 1 / 0.35}
Reading = Literal["gap", "intensity"]


class SwitchingDiffusion(JumpProcess):
    """State (mode, level): the mode jumps, the level relaxes exactly towards the rest point of the mode."""

    rates: Float[Array, "2 2"]
    relaxation: Float[Array, ""]
    rest: Float[Array, "2"]
    dispersion: Float[Array, ""]

    def intensities(self, state: tuple[Array, Array]) -> Float[Array, "2"]:
        return self.rates[state[0]]

    def jump(self, state: tuple[Array, Array], event: Int[Array, ""], key: Key[Array, ""]) -> tuple[Array, Array]:
        return event.astype(state[0].dtype), state[1]

    def flow(self, state: tuple[Array, Array], duration: Float[Array, ""], key: Key[Array, ""]) -> tuple[Array, Array]:
        mode, level = state
        rest, decay = self.rest[mode], jnp.exp(-self.relaxation * duration)
        sd = self.dispersion * jnp.sqrt(-jnp.expm1(-2 * self.relaxation * duration) / (2 * self.relaxation))
        return mode, rest + (level - rest) * decay + sd * jax.random.normal(key, dtype=level.dtype)


@dataclass(frozen=True)
class TwoMode(System):
    """dy = relaxation (rest_z - y) dt + dispersion dW, with z jumping between modes 0 and 1 (Koehs et al. 2021).

    Simulated exactly: jumps by Gillespie, the diffusion by its Gaussian transition law between them.

    Args:
        up, down: rates from mode 0 (rest point `low`) to mode 1 (`high`), and back.
        noise_sd: of the observations; the paper's N(0, 0.1) is read as a variance.
        reading: what the paper's 0.35 is: the mean "gap" between observations, or their "intensity".
    """

    up: float = 0.2
    down: float = 0.2
    low: float = -1.0
    high: float = 1.0
    relaxation: float = 1.5
    dispersion: float = 0.5
    noise_sd: float = float(np.sqrt(0.1))
    reading: Reading = "gap"

    name: ClassVar[str] = "two-mode"
    time_unit: ClassVar[str] = "time unit"
    default_length: ClassVar[int] = 67

    def __post_init__(self):
        require_positive(self.name, up=self.up, down=self.down, relaxation=self.relaxation, dispersion=self.dispersion)
        require_finite(self.name, low=self.low, high=self.high, noise_sd=self.noise_sd)
        if self.noise_sd < 0:
            raise InputError(f"{self.name}: noise_sd must not be negative, got {self.noise_sd}")
        if self.reading not in READINGS:
            raise InputError(f"{self.name}: reading must be gap or intensity, got {self.reading!r}")

    @property
    def parameters(self) -> dict[str, float]:
        names = ("up", "down", "low", "high", "relaxation", "dispersion", "noise_sd")
        return {name: getattr(self, name) for name in names}

    def _replaced(self, changes: dict[str, float]) -> "TwoMode":
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def rates(self) -> Float[np.ndarray, "2 2"]:
        return np.array([[0.0, self.up], [self.down, 0.0]])

    def simulate(
        self,
        n_series: int,
        length: int | None = None,
        *,
        grid: Grid = "irregular",
        duration: float | None = None,
        seed: int,
    ) -> Simulation:
        """Series observed at the points of a Poisson process (irregular, shared), or at its mean gap (regular).

        With a duration, the process has `length` points in [0, duration]: given their number they are uniform there.
        """
        rng, key = randomness(seed)
        length = self.default_length if length is None else length
        gap = READINGS[self.reading]
        check_request(grid, n_series, length, gap if duration is None else duration)
        if duration is not None:
            times = observation_times(grid, n_series, length, duration, rng)
        elif grid == "regular":
            times = np.tile(gap * np.arange(length), (n_series, 1))
        else:
            own = rng.exponential(gap, (n_series if grid == "irregular" else 1, length)).cumsum(-1)
            times = np.tile(own, (n_series // len(own), 1))
        return self._observed(times, rng, key)

    @in_double_precision
    def _observed(self, times: Float[np.ndarray, "series time"], rng: np.random.Generator, key: Array) -> Simulation:
        rest = np.array([self.low, self.high])
        modes = (rng.random(len(times)) < self.up / (self.up + self.down)).astype(int)
        levels = rng.normal(rest[modes], self.dispersion / np.sqrt(2 * self.relaxation))
        process = SwitchingDiffusion(
            jnp.asarray(self.rates),
            jnp.asarray(self.relaxation, float),
            jnp.asarray(rest),
            jnp.asarray(self.dispersion, float),
        )
        start = (jnp.asarray(modes), jnp.asarray(levels))
        states, levels = observe_many(process, start, gaps_from_times(times), key)
        values = np.asarray(levels, dtype=np.float64) + rng.normal(0.0, self.noise_sd, times.shape)
        data = TimeSeries.from_arrays(times, values, time_unit=self.time_unit, value_names=("y",))
        return Simulation(data, np.asarray(states).reshape(-1))

    def answers(self) -> dict[str, Any]:
        spread = self.dispersion / np.sqrt(2 * self.relaxation)
        return {**finite_answers(self.rates), "mode_means": np.array([self.low, self.high]), "mode_sd": spread}
