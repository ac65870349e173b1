"""Data, network and readings as variational EM sees them: all blocks of series together, in terms of parameters."""

from dataclasses import dataclass
from math import factorial
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..emissions.emission import Params
from ..emissions.readings import Readings
from ..errors import InputError
from ..systems.events import Events
from ..systems.reaction_network import ReactionNetwork
from ..timeseries import TimeSeries
from .blocks import Laid, first_beliefs, lay_out
from .coordinate import (
    Beliefs,
    Block,
    Ladders,
    events_and_ways,
    expected_log_likelihood,
    make_ladders,
    spread,
    swept,
    total_law,
)
from .rough import rough_counts, substeps_needed

LEAST_SD = 1e-2  # of Gaussian noise: whole numbers read without noise would have none
CUT = 1e-7  # left out of the exponential series at the edge of the box, where it is least accurate
TERMS = (12, 24, 48)  # even, so that the series of a negative number is positive
OUTGROWN = 1.5  # times more substeps than planned
SETTLED = 1e-4  # nats that the last sweep may still have gained


@dataclass(frozen=True)
class Settings:
    """How finely to compute.

    Args:
        floor: what a species that an event needs, but does not change, counts at least.
        jumps: most events expected in a substep; the error of the bound falls with its square.
        longest: length of a substep, instead of `jumps`.
        size: series that are computed at once.
    """

    floor: float = 1e-3
    jumps: float = 0.5
    longest: float | None = None
    size: int = 64

    def __post_init__(self):
        for name in ("floor", "jumps", "size", *(["longest"] if self.longest is not None else [])):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive, got {getattr(self, name)}")


class Theta(NamedTuple):
    """All that is learned, and noise that is known."""

    constants: Float[np.ndarray, "constant"]
    noise: Params


@dataclass(frozen=True)
class Problem:
    """Series cut into substeps, and what can happen in them."""

    data: TimeSeries
    network: ReactionNetwork
    readings: Readings
    settings: Settings
    events: Events
    ladders: Ladders
    laid: list[Laid]
    n_substeps: int

    def scales(self, theta: Theta) -> Float[Array, "event"]:
        return self.events.scales(jnp.asarray(theta.constants))

    def outgrown(self, theta: Theta) -> bool:
        """Whether these parameters need far more substeps than there are."""
        needed = _substeps(self.data, self.network, self.readings, theta, self.settings)
        return bool(needed.sum() > OUTGROWN * self.n_substeps)


def check_problem(data: TimeSeries, network: ReactionNetwork, readings: Readings) -> None:
    """One line for what independent species cannot do."""
    for reaction, change, function in zip(network.reactions, network.changes, network.events().functions, strict=False):
        moved = [one for one, by in zip(network.species, change, strict=True) if by != 0]
        where = f"{network.name}, the reaction at {reaction.constant}"
        if len(moved) != 1:
            what = f"changes {' and '.join(moved)} at once" if moved else "changes nothing"
            raise InputError(f"{where} {what}, which independent species cannot follow; use the exact engine")
        if function is not None:
            raise InputError(f"{where} has a propensity that is no product over species; use the exact engine")
    readings.check(data.values, data.value_names)
    for column, shown in enumerate(readings.columns):
        most = sum(network.largest[s] for s in shown)
        if readings.noise in ("none", "binomial"):
            if len(shown) > 1:
                raise InputError(
                    f"{data.value_names[column]}: independent species cannot give a sum that is read with "
                    f"{readings.noise} noise; use the exact engine"
                )
            if np.nanmax(data.values[:, column], initial=0) > most:
                raise InputError(
                    f"{data.value_names[column]} reaches {np.nanmax(data.values[:, column]):g}, but the box ends at "
                    f"{most}; enlarge it"
                )


def middle_of(network: ReactionNetwork) -> Float[np.ndarray, "species"]:
    """Where a species is that nobody saw."""
    return np.array([0.5 * (low + high) for low, high in network.start])


def make_problem(
    data: TimeSeries,
    network: ReactionNetwork,
    readings: Readings,
    theta: Theta,
    initial: Literal["flat", "start"],
    settings: Settings,
) -> tuple[Problem, list[Beliefs]]:
    """The problem, cut as finely as these parameters ask for, and first beliefs."""
    events = network.events()
    counts = rough_counts(data, readings, theta.noise, middle_of(network), network.box)
    substeps = _substeps(data, network, readings, theta, settings)
    laid = lay_out(data, substeps, settings.size)
    laws = [np.ones(n) for n in network.box]
    if initial == "start":
        for law, (low, high) in zip(laws, network.start, strict=True):
            law[:low] = law[high + 1 :] = 0.0
    ladders = make_ladders(events, settings.floor, [law / law.sum() for law in laws])
    scales = np.asarray(events.scales(jnp.asarray(theta.constants)))
    beliefs = [first_beliefs(one, data, events, ladders, scales, counts) for one in laid]
    problem = Problem(data, network, readings, settings, events, ladders, laid, int(substeps.sum()))
    return problem, beliefs


def _substeps(
    data: TimeSeries, network: ReactionNetwork, readings: Readings, theta: Theta, settings: Settings
) -> Int[np.ndarray, "gap"]:
    counts = rough_counts(data, readings, theta.noise, middle_of(network), network.box)
    if settings.longest is not None:
        return np.maximum(np.ceil(data.gaps / settings.longest), 1).astype(int)
    return substeps_needed(data, network.events(), theta.constants, counts, settings.jumps)


def swept_all(
    problem: Problem, theta: Theta, beliefs: list[Beliefs]
) -> tuple[list[Beliefs], Float[np.ndarray, "series"]]:
    """Every species of every series updated once, and the bound of each series in the order of the data."""
    bounds = np.zeros(len(problem.data))
    scales, noise = problem.scales(theta), {name: jnp.asarray(value) for name, value in theta.noise.items()}
    result = []
    for laid, belief in zip(problem.laid, beliefs, strict=True):
        away = float(spread(problem.ladders, laid.block, belief, scales))
        terms = next((n for n in TERMS if away ** (n + 1) / factorial(n + 1) < CUT), TERMS[-1])
        after, each = swept(problem.ladders, laid.block, belief, scales, problem.readings, noise, terms)
        bounds[laid.series] = np.asarray(each)[: len(laid.series)]
        result.append(after)
    lost = np.flatnonzero(~np.isfinite(bounds))
    if lost.size:
        raise InputError(
            f"series {problem.data.names[lost[0]]!r} cannot happen in this network: its box, its reactions or "
            "its noise do not allow what was read"
        )
    return result, bounds


def settled(
    problem: Problem, theta: Theta, beliefs: list[Beliefs], gain: float = SETTLED, most: int = 200
) -> tuple[list[Beliefs], Float[np.ndarray, "series"], int]:
    """Sweeps until the bound gains no more than this; and how many they were."""
    beliefs, bounds = swept_all(problem, theta, beliefs)
    for sweep in range(2, most + 1):
        last = bounds.sum()
        beliefs, bounds = swept_all(problem, theta, beliefs)
        if bounds.sum() - last < gain:
            return beliefs, bounds, sweep
    return beliefs, bounds, most


def maximised(problem: Problem, theta: Theta, beliefs: list[Beliefs]) -> Theta:
    """The M step: events that happened for each way in which they could have, and the noise that is left."""
    numbers, ways = _totals(problem, beliefs)
    constants = np.where(ways > 0, numbers / np.where(ways > 0, ways, 1.0), theta.constants)
    return Theta(np.maximum(constants, np.finfo(float).tiny), _learned_noise(problem, theta.noise, beliefs))


def _totals(
    problem: Problem, beliefs: list[Beliefs]
) -> tuple[Float[np.ndarray, "constant"], Float[np.ndarray, "constant"]]:
    """Expected events and ways of each constant, over all series."""
    sums = np.zeros((2, problem.events.n_events))
    for laid, belief in zip(problem.laid, beliefs, strict=True):
        sums += np.stack([np.asarray(one.sum(-1)) for one in events_and_ways(laid.block, belief)])
    owner = np.array(problem.events.constant_of)
    numbers, ways = (np.array([one[owner == k].sum() for k in range(len(problem.events.names))]) for one in sums)
    return numbers, ways


def _learned_noise(problem: Problem, noise: Params, beliefs: list[Beliefs]) -> Params:
    readings = problem.readings
    if readings.parameter is None or readings.fixed is not None:
        return noise
    parts = [
        np.asarray(_noise_sums(readings, one.block, belief.laws))
        for one, belief in zip(problem.laid, beliefs, strict=True)
    ]
    observed, first, second = np.maximum(np.sum(parts, 0), 1e-12)
    if readings.noise == "gaussian":
        return {"log_sd": np.log(np.maximum(np.sqrt(first / observed), LEAST_SD))}
    if readings.noise == "two-sided-exponential":  # a mean distance of 1 / sinh(1 / scale)
        return {"log_scale": -np.log(np.arcsinh(observed / first))}
    seen = np.clip(second / first, 1e-6, 1 - 1e-6)
    return {"logit_detection": np.log(seen) - np.log1p(-seen)}


@eqx.filter_jit
def _noise_sums(
    readings: Readings, block: Block, laws: tuple[Float[Array, "series time _"], ...]
) -> Float[Array, "3 column"]:
    """For each value: how often it was seen, the sum of its misfits or of its totals, and the sum of its readings."""
    sums = []
    for column in range(len(readings.columns)):
        law = total_law(readings, column, laws)
        there, value = block.mask[..., column], block.values[..., column]
        total = jnp.arange(law.shape[-1])
        away = jnp.abs(value[..., None] - total)
        kinds = {"gaussian": away**2, "two-sided-exponential": away, "binomial": total + 0 * away}
        first = (law * kinds[readings.noise]).sum(-1)
        sums.append(jnp.stack([jnp.sum(jnp.where(there, one, 0.0)) for one in (jnp.ones_like(value), first, value)]))
    return jnp.stack(sums, 1)


def packed(problem: Problem, theta: Theta) -> Float[np.ndarray, "parameter"]:
    """All that is learned as one vector: logarithms of constants, then noise."""
    free = problem.readings.fixed is None
    return np.concatenate([np.log(theta.constants), *(np.ravel(v) for v in theta.noise.values() if free)])


def unpacked(problem: Problem, vector: Float[np.ndarray, "parameter"], theta: Theta) -> Theta:
    """The parameters of a vector; noise that is known is taken from `theta`."""
    n = len(theta.constants)
    if problem.readings.fixed is not None or problem.readings.parameter is None:
        return Theta(np.exp(vector[:n]), theta.noise)
    return Theta(np.exp(vector[:n]), {problem.readings.parameter: vector[n:]})


def score(problem: Problem, theta: Theta, beliefs: list[Beliefs]) -> Float[np.ndarray, "parameter"]:
    """Slope of the bound by what is learned; where beliefs are settled, that of the best bound."""
    numbers, ways = _totals(problem, beliefs)
    slopes = [numbers - theta.constants * ways]
    if problem.readings.fixed is None and problem.readings.parameter is not None:
        noise = {name: jnp.asarray(value) for name, value in theta.noise.items()}
        parts = [
            _noise_score(problem.readings, noise, one.block, belief.laws)[problem.readings.parameter]
            for one, belief in zip(problem.laid, beliefs, strict=True)
        ]
        slopes.append(np.sum([np.asarray(part) for part in parts], 0))
    return np.concatenate(slopes)


@eqx.filter_jit
def _noise_score(
    readings: Readings, noise: Params, block: Block, laws: tuple[Float[Array, "series time _"], ...]
) -> Params:
    return jax.grad(lambda noise: expected_log_likelihood(readings, noise, block, laws).sum())(noise)
