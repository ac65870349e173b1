"""Coupled processes in a mean field: every species has a law of its own, and feels the others through expectations.

The law of species s moves with rates g; the prior's rates are f_e(x) = k_e prod_s T_es(x_s). Per time unit the path
divergence gathers E[f] - g + g (log g - E[log f]), where expectations over several species are products and sums of
expectations over one: no array ever holds two species at once.

Arrays are (piece, series, species, count): time is cut into pieces in which g is constant. Events of one species with
the same change share a "way": up by one, down by one, ...; ways come in front of all other axes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import InputError
from ..mjp.ladder import carried
from ..mjp.types import as_tuples
from ..systems.events import Events

FLOOR = 1e-3  # a species that an event needs never counts as less: logarithms of impossible rates would be infinite
MOST_JUMPS = 1.0  # of one way in one piece: any rates keep the bound, but these are resolved
TERMS = 8  # of the exponential series in a piece
STEEPEST = 30.0  # largest logarithm of a tilt


@dataclass(frozen=True)
class Coupling:
    """A reaction network as a mean field sees it; hashable, so that one compiled program serves all runs."""

    factors: tuple[tuple[tuple[float, ...], ...], ...]  # event, species, count
    changes: tuple[tuple[int, ...], ...]
    constant_of: tuple[int, ...]
    given: tuple[float, ...]
    box: tuple[int, ...]

    @classmethod
    def of(cls, events: Events, floor: float = FLOOR) -> "Coupling":
        if not events.one_at_a_time:
            raise InputError(
                "a mean field needs reactions that each change a single species, at rates that are products of "
                "functions of single counts: use the exact engine"
            )
        raised = events.with_floor(floor)
        factors = tuple(as_tuples(np.asarray(table)) for table in raised.factors)
        return cls(factors, events.changes, events.constant_of, tuple(np.asarray(events.given).tolist()), events.box)

    @property
    def n_species(self) -> int:
        return len(self.box)

    @property
    def n_counts(self) -> int:
        return max(self.box)

    @cached_property
    def ways(self) -> tuple[int, ...]:
        """The different changes of a count."""
        return tuple(sorted({c for change in self.changes for c in change if c != 0}, reverse=True))

    @cached_property
    def inside(self) -> np.ndarray:
        """(species, count): which counts a species can have."""
        return np.arange(self.n_counts) < np.array(self.box)[:, None]

    @cached_property
    def table(self) -> np.ndarray:
        """(event, species, count): the factors."""
        return np.array(self.factors)

    @cached_property
    def own(self) -> np.ndarray:
        """(event, way, species, count): the factor of the species that an event changes, in its place."""
        placed = np.zeros((len(self.changes), len(self.ways), *self.table.shape[1:]))
        for e, change in enumerate(self.changes):
            s = int(np.flatnonzero(change)[0])
            placed[e, self.ways.index(change[s]), s] = self.table[e, s]
        return placed

    @cached_property
    def log_others(self) -> np.ndarray:
        """(event, species, count): logarithms of the factors of the species that an event does not change."""
        bystander = (np.array(self.changes) == 0)[..., None] & self.inside
        return np.where(bystander, np.log(np.where(bystander, self.table, 1.0)), 0.0)

    def log_scales(self, theta: Float[Array, "constant"]) -> Float[Array, "event"]:
        """Logarithm of what multiplies the factors, given the logarithms of the constants."""
        known = [theta[k] if k >= 0 else jnp.log(jnp.asarray(self.given[e])) for e, k in enumerate(self.constant_of)]
        return jnp.stack(known).astype(theta.dtype)

    def felt(self, laws: Float[Array, "*lead species count"]) -> Float[Array, "*lead event"]:
        """What each event feels of the species it does not change: the expected logarithm of their factors."""
        return _full(laws, self.log_others)

    def expected_ways(self, laws: Float[Array, "*lead species count"]) -> Float[Array, "*lead event"]:
        """Expected product of the factors of each event."""
        each = jnp.einsum("...sn,esn->...es", laws, jnp.asarray(self.table, laws.dtype), precision="highest")
        return each.prod(-1)

    def base(
        self, felt: Float[Array, "*lead event"], log_scales: Float[Array, "event"]
    ) -> Float[Array, "way *lead species count"]:
        """exp(E[log f]) from each count along each way: the rates of the mean field before they are tilted."""
        flat = jnp.asarray(self.own.reshape(len(self.own), -1), felt.dtype)
        rates = jnp.matmul(jnp.exp(log_scales + felt), flat, precision="highest")
        return jnp.moveaxis(rates.reshape(*felt.shape[:-1], *self.own.shape[1:]), -3, 0)

    def tilts(self, potentials: Float[Array, "*lead species count"]) -> Float[Array, "way *lead species count"]:
        """Logarithms of what potentials do to the rates: phi(n + change) - phi(n)."""
        n = potentials.shape[-1]
        moved = []
        for change in self.ways:
            up, down = max(change, 0), max(-change, 0)
            edges = [(0, 0)] * (potentials.ndim - 1) + [(down, up)]
            moved.append(jnp.pad(potentials[..., up : n - down], edges, mode="edge") - potentials)
        return jnp.clip(jnp.stack(moved), -STEEPEST, STEEPEST)


class Motion(NamedTuple):
    """A mean field from the first node to the last."""

    laws: Float[Array, "node series species count"]
    jumps: Float[Array, "way piece series species count"]  # expected in each piece from each count


def tilted_motion(
    coupling: Coupling,
    first: Float[Array, "series species count"],
    tilts: Float[Array, "way piece series species count"],
    log_scales: Float[Array, "event"],
    durations: Float[Array, "piece series"],
) -> Motion:
    """Laws that start as `first` and move with the tilted mean-field rates, frozen at the start of each piece."""

    def advance(laws, piece):
        tilt, duration = piece
        base = coupling.base(coupling.felt(laws), log_scales)
        jumps = jnp.minimum(base * tilt * duration[:, None, None], MOST_JUMPS)
        laws = carried(laws, jumps, coupling.ways, TERMS)
        return laws, (laws, jumps)

    _, (laws, jumps) = jax.lax.scan(advance, first, (jnp.exp(jnp.moveaxis(tilts, 0, 1)), durations))
    return Motion(jnp.concatenate([first[None], laws]), jnp.moveaxis(jumps, 1, 0))


def free_motion(
    coupling: Coupling,
    first: Float[Array, "series species count"],
    jumps: Float[Array, "way piece series species count"],
) -> Motion:
    """Laws that move with rates of their own."""
    jumps = jnp.minimum(jumps, MOST_JUMPS)

    def advance(laws, jumps):
        laws = carried(laws, jumps, coupling.ways, TERMS)
        return laws, laws

    _, laws = jax.lax.scan(advance, first, jnp.moveaxis(jumps, 0, 1))
    return Motion(jnp.concatenate([first[None], laws]), jumps)


def path_divergence(
    coupling: Coupling, motion: Motion, log_scales: Float[Array, "event"], durations: Float[Array, "piece series"]
) -> Float[Array, "series"]:
    """Of the mean field's paths from the prior's, by Simpson's rule in each piece."""
    laws, jumps = motion
    halfway = carried(laws[:-1], jumps / 2, coupling.ways, TERMS)
    happens = jumps > 0
    log_jumps = jnp.log(jnp.where(happens, jumps, 1.0))
    lasting = jnp.where(durations > 0, durations, 1.0)[..., None, None]

    def gathered(laws: Array) -> Array:
        """In a piece, if the laws were these all the time."""
        prior = jnp.where(happens, coupling.base(coupling.felt(laws), log_scales) * lasting, 1.0)
        own = (laws * jumps * jnp.where(happens, log_jumps - jnp.log(prior) - 1, 0.0)).sum((0, -2, -1))
        return own + durations * (coupling.expected_ways(laws) * jnp.exp(log_scales)).sum(-1)

    return (gathered(laws[:-1]) + 4 * gathered(halfway) + gathered(laws[1:])).sum(0) / 6


def _full(laws: Array, table: np.ndarray) -> Array:
    """Expectations in full precision: devices like to shorten products, and logarithms do not bear it."""
    return jnp.einsum("...sn,esn->...e", laws, jnp.asarray(table, laws.dtype), precision="highest")
