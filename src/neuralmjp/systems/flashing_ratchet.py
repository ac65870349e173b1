"""The discrete flashing ratchet: a particle on a ring of three sites under a potential that flashes on and off."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Array, Float

from ..mjp import simulate_states, stationary_distribution
from ..timeseries import TimeSeries
from .system import (
    Grid,
    Simulation,
    System,
    finite_answers,
    observation_times,
    randomness,
    require_finite,
    require_positive,
)

POSITION = np.array([0, 1, 2, 0, 1, 2])
POTENTIAL_ON = np.array([True, True, True, False, False, False])


@dataclass(frozen=True)
class FlashingRatchet(System):
    """Six states: positions 0, 1, 2 with the potential on, then the same with it off.

    While on, i -> j has rate exp(-V (j - i) / (2 temperature)); while off, b; the potential switches at rate r
    (Ajdari & Prost 1992; Roldan & Parrondo 2010). The initial state is stationary; states are seen without noise.

    >>> FlashingRatchet().answers()["stationary_distribution"].round(4)
    array([0.3012, 0.1365, 0.0623, 0.2003, 0.1591, 0.1406])
    """

    V: float | Array = 1.0
    r: float | Array = 1.0
    b: float | Array = 1.0
    temperature: float | Array = 1.0

    name: ClassVar[str] = "flashing-ratchet"
    time_unit: ClassVar[str] = "time unit"
    default_length: ClassVar[int] = 50
    default_duration: ClassVar[float] = 2.5

    def __post_init__(self):
        require_finite(self.name, V=self.V)
        require_positive(self.name, r=self.r, b=self.b, temperature=self.temperature)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"V": self.V, "r": self.r, "b": self.b, "temperature": self.temperature}

    def _replaced(self, changes: dict[str, float]) -> "FlashingRatchet":
        return replace(self, **changes)

    @property
    def rates(self) -> Float[np.ndarray, "6 6"] | Float[Array, "6 6"]:
        """Rates (6, 6): NumPy for plain parameters, JAX for traced ones."""
        traced = [p for p in (self.V, self.r, self.b, self.temperature) if isinstance(p, Array)]
        xp = traced[0].__array_namespace__() if traced else np
        step = POSITION[None, :] - POSITION[:, None]
        same = POTENTIAL_ON[None, :] == POTENTIAL_ON[:, None]
        with np.errstate(over="ignore"):  # a rate that overflows is refused where it is used
            downhill = xp.exp(-self.V * step / (2 * self.temperature))
        moved = xp.where(POTENTIAL_ON[:, None], downhill, self.b)
        return xp.where(same & (step != 0), moved, xp.where(~same & (step == 0), self.r, 0.0))

    def simulate(
        self,
        n_series: int,
        length: int | None = None,
        *,
        grid: Grid = "irregular",
        duration: float | None = None,
        seed: int,
    ) -> Simulation:
        rng, key = randomness(seed)
        window = self.default_duration if duration is None else duration
        times = observation_times(grid, n_series, self.default_length if length is None else length, window, rng)
        return self.observed(times, key)

    def observed(self, times: Float[np.ndarray, "series time"], key: Array) -> Simulation:
        """Series that start in the stationary law and are seen at given times."""
        states = simulate_states(self.rates, times, initial=stationary_distribution(self.rates), key=key)
        data = TimeSeries.from_arrays(times, states.astype(float), time_unit=self.time_unit, value_names=("state",))
        return Simulation(data, states.reshape(-1))

    def answers(self) -> dict[str, Any]:
        return finite_answers(np.asarray(self.rates))
