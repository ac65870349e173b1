"""Reaction networks: species that are made, eaten and turned into each other, in a bounded box of counts."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from ..errors import InputError
from ..mjp.precision import in_double_precision
from ..mjp.processes import JumpProcess
from ..mjp.simulate import gaps_from_times, observe_many
from ..timeseries import TimeSeries
from .system import Grid, Simulation, System, observation_times, randomness

Noise = Literal["none", "gaussian", "two-sided-exponential"]
MOST_CONSUMED = 3  # individuals of one species that one reaction may consume


@dataclass(frozen=True)
class Reaction:
    """One reaction: what it consumes, what it makes, and the name of its rate constant.

    Mass action: in counts x it happens at rate constant * prod_s binomial(x_s, consumed_s).

    >>> Reaction({"prey": 1, "predator": 1}, {"predator": 1}, "beta")  # a prey is eaten
    Reaction(consumed={'prey': 1, 'predator': 1}, produced={'predator': 1}, constant='beta')
    """

    consumed: dict[str, int]
    produced: dict[str, int]
    constant: str


class ReactionProcess(JumpProcess):
    """A reaction network as simulators see it: the state is a vector of counts."""

    constants: Float[Array, "reaction"]
    consumed: Int[Array, "reaction species"]
    changes: Int[Array, "event species"]  # of the reactions, then of the births at zero
    largest: Int[Array, "species"]
    births_at_zero: Float[Array, ""]

    def intensities(self, state: Int[Array, "species"]) -> Float[Array, "event"]:
        ways = jnp.ones_like(self.consumed, dtype=self.constants.dtype)
        for k in range(MOST_CONSUMED):  # binomial(x, n) = x / 1 * (x - 1) / 2 * ..., n factors
            ways = ways * jnp.where(k < self.consumed, (state - k) / (k + 1), 1.0)
        reactions = self.constants * ways.prod(-1)
        births = jnp.where(state == 0, self.births_at_zero, 0.0)
        after = state + self.changes
        inside = ((after >= 0) & (after <= self.largest)).all(-1)
        return jnp.where(inside, jnp.concatenate([reactions, births]), 0.0)

    def jump(self, state: Int[Array, "species"], event: Int[Array, ""], key: Key[Array, ""]) -> Int[Array, "species"]:
        return state + self.changes[event]

    def flow(
        self, state: Int[Array, "species"], duration: Float[Array, ""], key: Key[Array, ""]
    ) -> Int[Array, "species"]:
        return state


@dataclass(frozen=True)
class ReactionNetwork(System):
    """Counts of several species that change by reactions.

    Args:
        species: names.
        reactions: in any order.
        constants: value of every rate constant that the reactions name.
        largest: largest count of each species; a reaction out of the box 0..largest does not happen.
        start: smallest and largest initial count of each species, drawn uniformly.
        births_at_zero: small rate at which a species that died out reappears.
        noise: what is added to the counts: nothing, Gaussian noise, or whole numbers n with probability
            proportional to exp(-abs(n) / noise_scale).
        noise_scale: standard deviation, or decay length of the two-sided exponential.
        duration: default length of a simulation.
    """

    species: tuple[str, ...]
    reactions: tuple[Reaction, ...]
    constants: dict[str, float]
    largest: tuple[int, ...]
    start: tuple[tuple[int, int], ...]
    births_at_zero: float = 0.0
    noise: Noise = "gaussian"
    noise_scale: float = 1.0
    duration: float = 100.0
    time_unit: str = "time unit"
    name: str = "reaction-network"

    default_length: ClassVar[int] = 50

    def __post_init__(self):
        for reaction in self.reactions:
            for one in (*reaction.consumed, *reaction.produced):
                if one not in self.species:
                    raise InputError(f"a reaction names {one!r}, which is not among the species {self.species}")
            if reaction.constant not in self.constants:
                raise InputError(f"no value is given for the rate constant {reaction.constant!r}")
            if max(reaction.consumed.values(), default=0) > MOST_CONSUMED:
                raise InputError(f"the reaction at {reaction.constant} consumes more than {MOST_CONSUMED} of a species")
        if self.noise not in get_args(Noise):
            raise InputError(f"{self.name}: noise must be one of {', '.join(get_args(Noise))}, got {self.noise!r}")
        others = (("births_at_zero", self.births_at_zero), ("noise_scale", self.noise_scale))
        for name, value in (*self.constants.items(), *others):
            if not (value >= 0 and np.isfinite(value)):
                raise InputError(f"{self.name}: {name} must not be negative, got {value}")
        for one, most, (low, high) in zip(self.species, self.largest, self.start, strict=True):
            if not 0 <= low <= high <= most:
                raise InputError(f"{one} must start inside its box 0..{most}, got {low}..{high}")

    @property
    def parameters(self) -> dict[str, float]:
        return {name: self.constants[name] for name in dict.fromkeys(r.constant for r in self.reactions)}

    def _replaced(self, changes: dict[str, float]) -> "ReactionNetwork":
        return replace(self, constants={**self.constants, **changes})

    @property
    def consumed(self) -> Int[np.ndarray, "reaction species"]:
        """How many of each species a reaction needs."""
        return np.array([[reaction.consumed.get(s, 0) for s in self.species] for reaction in self.reactions])

    @property
    def changes(self) -> Int[np.ndarray, "event species"]:
        """Change of the counts by each reaction, then by the birth at zero of each species."""
        made = np.array([[reaction.produced.get(s, 0) for s in self.species] for reaction in self.reactions])
        return np.concatenate([made - self.consumed, np.eye(len(self.species), dtype=int)])

    def process(self, constants: dict[str, Array] | None = None) -> ReactionProcess:
        """The jump process, with these rate constants (which may be traced) or the network's own."""
        values = self.constants if constants is None else constants
        return ReactionProcess(
            constants=jnp.stack([jnp.asarray(values[reaction.constant], float) for reaction in self.reactions]),
            consumed=jnp.asarray(self.consumed),
            changes=jnp.asarray(self.changes),
            largest=jnp.asarray(self.largest),
            births_at_zero=jnp.asarray(self.births_at_zero, float),
        )

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
        window = self.duration if duration is None else duration
        times = observation_times(grid, n_series, self.default_length if length is None else length, window, rng)
        return self.observed(times, rng, key)

    @in_double_precision
    def observed(self, times: Float[np.ndarray, "series time"], rng: np.random.Generator, key: Array) -> Simulation:
        """Series that start inside `start` and are seen at given times, with noise."""
        low, high = np.array(self.start).T
        initial = rng.integers(low, high + 1, (len(times), len(self.species)))
        counts = np.asarray(observe_many(self.process(), jnp.asarray(initial), gaps_from_times(times), key))
        values = counts + self._noise(rng, counts.shape)
        data = TimeSeries.from_arrays(times, values, time_unit=self.time_unit, value_names=self.species)
        return Simulation(data, counts.reshape(-1, len(self.species)))

    def _noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        if self.noise == "none" or self.noise_scale == 0:
            return np.zeros(shape)
        if self.noise == "gaussian":
            return rng.normal(0.0, self.noise_scale, shape)
        stop = 1 - np.exp(-1 / self.noise_scale)  # the difference of two geometric numbers is two-sided exponential
        return (rng.geometric(stop, shape) - rng.geometric(stop, shape)).astype(float)
