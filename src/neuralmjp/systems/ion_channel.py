"""A single ion channel: the current through a pore that jumps between a few conductance levels."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from scipy import signal

from ..errors import InputError
from ..mjp import check_rates, simulate_states, stationary_distribution
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
)

# Rates per second (bottom, middle, top) that reproduce what the paper found for the viral channel Kcv-MT325: the least
# squares solution for its tables of passage times, stationary law and timescales, for one second and for all of it.
PAPER_RATES = {
    "one-second": ((0.0, 53.95, 1.58), (98.49, 0.0, 204.22), (0.67, 26.27, 0.0)),
    "full": ((0.0, 129.49, 1.66), (348.21, 0.0, 576.54), (1.15, 55.62, 0.0)),
}
PAPER_LEVELS = (0.0, 4.0, 6.0)
OVERSAMPLING = 10  # points simulated per sample kept, where a filter is asked for
BESSEL_POLES = 4

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class IonChannel(System):
    """K levels, Gaussian noise, sampled at a fixed frequency, optionally behind a low-pass filter.

    Args:
        rates: K x K, per second.
        levels: mean current of each state, pA.
        noise_sd: standard deviation of the recorded noise, pA.
        frequency: samples per second.
        cutoff: -3 dB frequency in Hz of a four-pole Bessel filter that signal and noise pass; None for no filter.
    """

    rates: Rows = PAPER_RATES["full"]
    levels: tuple[float, ...] = PAPER_LEVELS
    noise_sd: float = 0.5
    frequency: float = 5000.0
    cutoff: float | None = None

    name: ClassVar[str] = "ion-channel"
    time_unit: ClassVar[str] = "s"
    default_length: ClassVar[int] = 5000

    def __post_init__(self):
        if len(check_rates(self.rates)) != len(self.levels):
            raise InputError(f"{self.name}: {len(self.levels)} levels need as many states in the rates")
        require_finite(self.name, **{f"level_{i}": level for i, level in enumerate(self.levels)})
        require_finite(self.name, noise_sd=self.noise_sd, frequency=self.frequency)
        if not (self.noise_sd >= 0 and self.frequency > 0):
            raise InputError(f"{self.name}: noise_sd must not be negative and frequency must be positive")
        if self.cutoff is not None and not 0 < self.cutoff < self.frequency / 2:
            raise InputError(
                f"{self.name}: the cutoff must lie between 0 and half the sampling frequency, got {self.cutoff}"
            )

    @classmethod
    def paper(cls, recording: Literal["one-second", "full"] = "full") -> "IonChannel":
        """The channel with the rates that the paper inferred from its recording."""
        if recording not in PAPER_RATES:
            raise InputError(f"the recording must be one of {', '.join(PAPER_RATES)}, got {recording!r}")
        return cls(rates=PAPER_RATES[recording])

    @property
    def parameters(self) -> dict[str, float]:
        """Rates, levels, noise, sampling; a cutoff of infinity is no filter."""
        named = {f"rate_{i}_{j}": rate for i, row in enumerate(self.rates) for j, rate in enumerate(row) if i != j}
        named |= {f"level_{i}": level for i, level in enumerate(self.levels)}
        named |= {"noise_sd": self.noise_sd, "frequency": self.frequency}
        return {**named, "cutoff": np.inf if self.cutoff is None else self.cutoff}

    def _replaced(self, changes: dict[str, float]) -> "IonChannel":
        values = {**self.parameters, **changes}
        n_states = range(len(self.levels))
        return replace(
            self,
            rates=tuple(tuple(0.0 if i == j else values[f"rate_{i}_{j}"] for j in n_states) for i in n_states),
            levels=tuple(values[f"level_{i}"] for i in n_states),
            noise_sd=values["noise_sd"],
            frequency=values["frequency"],
            cutoff=None if values["cutoff"] == np.inf else values["cutoff"],
        )

    def simulate(
        self,
        n_series: int,
        length: int | None = None,
        *,
        grid: Grid = "regular",
        duration: float | None = None,
        seed: int,
    ) -> Simulation:
        """`length` samples at the sampling frequency (regular), or as many at random times (irregular, shared)."""
        rng, key = randomness(seed)
        if duration is not None:
            check_request(grid, n_series, 2, duration)
        fitting = self.default_length if duration is None else round(duration * self.frequency)
        length = fitting if length is None else length
        if grid == "regular" and duration is not None and length != fitting:
            raise InputError(
                f"{self.name}: {duration:g} s at {self.frequency:g} Hz are {fitting} samples, not {length}: "
                "give the duration or the length alone"
            )
        if self.cutoff is not None and grid != "regular":
            raise InputError(f"{self.name}: a filtered current is sampled on a regular grid only")
        if grid == "regular":
            check_request(grid, n_series, length, length / self.frequency)
            times = np.tile(np.arange(length) / self.frequency, (n_series, 1))
        else:
            window = length / self.frequency if duration is None else duration
            times = observation_times(grid, n_series, length, window, rng)
        law = stationary_distribution(self.rates)
        if self.cutoff is None:
            states = simulate_states(self.rates, times, initial=law, key=key)
            current = np.array(self.levels)[states] + rng.normal(0.0, self.noise_sd, states.shape)
        else:
            fine_times = np.arange(length * OVERSAMPLING) / (self.frequency * OVERSAMPLING)
            fine = simulate_states(self.rates, fine_times, initial=law, key=key, n_series=n_series)
            states, current = fine[:, ::OVERSAMPLING], self._filtered(fine, self.cutoff, rng)[:, ::OVERSAMPLING]
        data = TimeSeries.from_arrays(times, current, time_unit=self.time_unit, value_names=("current",))
        return Simulation(data, states.reshape(-1))

    def _filtered(
        self, states: np.ndarray, cutoff: float, rng: np.random.Generator
    ) -> Float[np.ndarray, "series time"]:
        """Levels and white noise through the Bessel filter; the noise keeps its standard deviation."""
        frequency = self.frequency * OVERSAMPLING
        sections = signal.bessel(BESSEL_POLES, cutoff, norm="mag", output="sos", fs=frequency)
        clean = np.array(self.levels)[states]
        rest = signal.sosfilt_zi(sections)[:, None, :] * clean[None, :, :1]
        smooth = np.asarray(signal.sosfilt(sections, clean, axis=-1, zi=rest)[0])
        memory = round(20 * frequency / cutoff)  # samples after which the filter has forgotten everything
        white = rng.normal(size=(len(states), memory + states.shape[1]))
        coloured = np.asarray(signal.sosfilt(sections, white, axis=-1))[:, memory:]
        impulse = np.asarray(signal.sosfilt(sections, np.eye(1, memory)))
        return smooth + self.noise_sd * coloured / np.sqrt((impulse**2).sum())

    def answers(self) -> dict[str, Any]:
        return {**finite_answers(np.array(self.rates)), "levels": np.array(self.levels), "noise_sd": self.noise_sd}
