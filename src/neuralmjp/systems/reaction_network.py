"""Reaction networks: species that are made, eaten and turned into each other, in a bounded box of counts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from ..emissions.emission import Params
from ..emissions.readings import Noise, Readings
from ..errors import InputError
from ..mjp.precision import in_double_precision
from ..mjp.processes import JumpProcess
from ..mjp.simulate import gaps_from_times, observe_many
from ..timeseries import TimeSeries
from .events import Events, Propensity, factor_table
from .system import Grid, Simulation, System, observation_times, randomness


@dataclass(frozen=True)
class Reaction:
    """One reaction: what it consumes, what it makes, and the name of its rate constant.

    Mass action: in counts x it happens at rate constant * prod_s binomial(x_s, consumed_s). In its place a user's
    propensity may stand: functions of single counts by species, whose product counts, {"P": lambda p: 1 / (1 + p)},
    or one function of all counts by name. It never happens with fewer individuals than it consumes.

    >>> Reaction({"prey": 1, "predator": 1}, {"predator": 1}, "beta").constant  # a prey is eaten
    'beta'
    """

    consumed: dict[str, int]
    produced: dict[str, int]
    constant: str
    propensity: dict[str, Callable[[Any], Any]] | Propensity | None = None

    def __str__(self) -> str:
        """
        >>> str(Reaction({"prey": 1}, {"prey": 2}, "alpha"))
        'prey → 2 prey'
        """

        def side(amounts: dict[str, int]) -> str:
            return " + ".join(f"{n} {one}" if n > 1 else one for one, n in amounts.items()) or "0"

        return f"{side(self.consumed)} → {side(self.produced)}"


class ReactionProcess(JumpProcess):
    """A reaction network as simulators see it: the state is a vector of counts."""

    events: Events
    constants: Float[Array, "constant"]

    def intensities(self, state: Int[Array, "species"]) -> Float[Array, "event"]:
        return self.events.scales(self.constants) * jnp.stack(self.events.ways(list(state)))

    def jump(self, state: Int[Array, "species"], event: Int[Array, ""], key: Key[Array, ""]) -> Int[Array, "species"]:
        return state + jnp.asarray(self.events.changes)[event]

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
        noise: how counts are read; see `Readings`.
        noise_scale: standard deviation, decay length of the two-sided exponential, or chance of detection.
        seen: for each value, the species whose sum it shows; every species by itself if not given.
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
    seen: tuple[tuple[str, ...], ...] | None = None
    duration: float = 100.0
    time_unit: str = "time unit"
    name: str = "reaction-network"

    default_length: ClassVar[int] = 50

    def __post_init__(self):
        for reaction in self.reactions:
            own = reaction.propensity if isinstance(reaction.propensity, dict) else {}
            for one in (*reaction.consumed, *reaction.produced, *own):
                if one not in self.species:
                    raise InputError(f"a reaction names {one!r}, which is not among the species {self.species}")
            if reaction.constant not in self.constants:
                raise InputError(f"no value is given for the rate constant {reaction.constant!r}")
        if self.noise not in get_args(Noise):
            raise InputError(f"{self.name}: noise must be one of {', '.join(get_args(Noise))}, got {self.noise!r}")
        others = (("births_at_zero", self.births_at_zero), ("noise_scale", self.noise_scale))
        for name, value in (*self.constants.items(), *others):
            if not (value >= 0 and np.isfinite(value)):
                raise InputError(f"{self.name}: {name} must not be negative, got {value}")
        if self.noise == "binomial" and not 0 < self.noise_scale <= 1:
            raise InputError(f"{self.name}: a chance of detection lies in (0, 1], got {self.noise_scale}")
        for one in (one for some in self.seen or () for one in some):
            if one not in self.species:
                raise InputError(f"{self.name}: {one!r} is seen, but is not among the species {self.species}")
        for one, most, (low, high) in zip(self.species, self.largest, self.start, strict=True):
            if not 0 <= low <= high <= most:
                raise InputError(f"{one} must start inside its box 0..{most}, got {low}..{high}")

    @property
    def parameters(self) -> dict[str, float]:
        return {name: self.constants[name] for name in dict.fromkeys(r.constant for r in self.reactions)}

    def _replaced(self, changes: dict[str, float]) -> "ReactionNetwork":
        return replace(self, constants={**self.constants, **changes})

    @property
    def changes(self) -> Int[np.ndarray, "event species"]:
        """Change of the counts by each reaction, then by the birth at zero of each species, if they happen."""
        made, consumed = (
            np.array([[side.get(s, 0) for s in self.species] for side in sides])
            for sides in zip(*((reaction.produced, reaction.consumed) for reaction in self.reactions), strict=True)
        )
        n_born = len(self.species) if self.births_at_zero > 0 else 0
        return np.concatenate([made - consumed, np.eye(len(self.species), dtype=int)[:n_born]])

    @property
    def box(self) -> tuple[int, ...]:
        """Shape of the lattice: counts 0..largest of each species."""
        return tuple(most + 1 for most in self.largest)

    def events(self) -> Events:
        """Everything that can happen, as tables."""
        names, place = tuple(self.parameters), {one: s for s, one in enumerate(self.species)}
        tables, functions, constant_of = [], [], []
        for reaction, change in zip(self.reactions, self.changes, strict=False):
            own = reaction.propensity
            product = {place[s]: f for s, f in own.items()} if isinstance(own, dict) else ({} if own else None)
            consumed = {place[s]: n for s, n in reaction.consumed.items()}
            where = f"{self.name}, the reaction at {reaction.constant}"
            tables.append(factor_table(self.box, consumed, change, product, where))
            functions.append(None if own is None or isinstance(own, dict) else own)
            constant_of.append(names.index(reaction.constant))
        births = self.changes[len(self.reactions) :]
        for s, change in enumerate(births):
            tables.append(factor_table(self.box, {}, change, {s: lambda n: n == 0}, self.name))
        return Events(
            factors=np.stack(tables),
            given=np.array([0.0] * len(self.reactions) + [self.births_at_zero] * len(births)),
            changes=tuple(tuple(map(int, change)) for change in self.changes),
            constant_of=(*constant_of, *[-1] * len(births)),
            functions=(*functions, *[None] * len(births)),
            names=names,
            species=self.species,
            box=self.box,
        )

    @property
    def value_names(self) -> tuple[str, ...]:
        """What is seen: species, or sums of them such as A+B."""
        return self.species if self.seen is None else tuple("+".join(some) for some in self.seen)

    def readings(self) -> tuple[Readings, Params]:
        """How counts are read, and how noisily."""
        shown = self.seen or tuple((one,) for one in self.species)
        columns = tuple(tuple(self.species.index(one) for one in some) for some in shown)
        none = self.noise_scale == {"gaussian": 0, "two-sided-exponential": 0, "binomial": 1}.get(self.noise)
        readings = Readings(columns, "none" if none else self.noise, (self.noise_scale,) * len(columns))
        return readings, readings.start(np.zeros(len(columns)))

    def process(self, constants: dict[str, Array] | None = None) -> ReactionProcess:
        """The jump process, with these rate constants (which may be traced) or the network's own."""
        values = self.constants if constants is None else constants
        known = jnp.stack([jnp.asarray(values[name], float) for name in self.parameters])
        return ReactionProcess(self.events(), known)

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
        readings, params = self.readings()
        values = readings.sample(params, counts.reshape(-1, len(self.species)), rng).reshape(*times.shape, -1)
        data = TimeSeries.from_arrays(times, values, time_unit=self.time_unit, value_names=self.value_names)
        return Simulation(data, counts.reshape(-1, len(self.species)), self.species)
