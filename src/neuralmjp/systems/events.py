"""What can happen in a reaction network: one table for the simulator, the exact lattice and the mean field.

The rate of an event in counts x is its constant times a product of functions of one count each, given as tables. Mass
action has that form, and so have the edges of the box and the small births at zero.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import comb

from ..errors import InputError

Propensity = Callable[[dict[str, Any]], Any]  # counts by species -> how often, per constant; element by element


class Events(eqx.Module):
    """The reactions, then a birth at zero of each species if the network has them.

    Attributes:
        factors: the functions of single counts, 0 beyond the box and where the event would leave it.
        given: rate of an event that has no constant.
        changes: of the counts by each event.
        constant_of: position of its constant among `names`, or -1.
        functions: a user's propensity that is no product, or None.
        box: counts that each species can have, 0..box - 1.
    """

    factors: Float[np.ndarray, "event species count"] | Float[Array, "event species count"]
    given: Float[np.ndarray, "event"] | Float[Array, "event"]
    changes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    constant_of: tuple[int, ...] = eqx.field(static=True)
    functions: tuple[Propensity | None, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    species: tuple[str, ...] = eqx.field(static=True)
    box: tuple[int, ...] = eqx.field(static=True)

    @property
    def n_events(self) -> int:
        return len(self.changes)

    def scales(self, constants: Float[Array, "constant"]) -> Float[Array, "event"]:
        """What multiplies the factors of each event."""
        known = jnp.asarray(self.given, constants.dtype)
        each = [known[e] if k < 0 else constants[k] for e, k in enumerate(self.constant_of)]
        return jnp.stack(each)

    def ways(self, counts: Sequence[Int[Array, "..."]]) -> list[Float[Array, "..."]]:
        """Product of the factors of each event at these counts, one array per species; they may broadcast.

        Counts outside the box have none.
        """
        factors = jnp.asarray(self.factors)
        result = []
        inside = [(x >= 0) & (x < n) for x, n in zip(counts, self.box, strict=True)]
        placed = [jnp.clip(x, 0, n - 1) for x, n in zip(counts, self.box, strict=True)]
        for e, function in enumerate(self.functions):
            product: Any = 1.0
            for s, (x, there) in enumerate(zip(placed, inside, strict=True)):
                product = product * jnp.where(there, factors[e, s][x], 0.0)
            if function is not None:
                product = product * jnp.asarray(function(dict(zip(self.species, placed, strict=True))), product.dtype)
            result.append(product)
        return result

    @property
    def one_at_a_time(self) -> bool:
        """Whether every event changes a single species, and its rate is a product of functions of single counts."""
        single = all(sum(c != 0 for c in change) == 1 for change in self.changes)
        return single and all(function is None for function in self.functions)

    def with_floor(self, floor: float) -> "Events":
        """The same where a species that an event needs, but does not change, never counts as less than `floor`.

        A mean field needs logarithms of rates: those of events that cannot happen must stay finite.
        """
        bystander = np.array(self.changes) == 0
        within = np.arange(self.factors.shape[-1]) < np.array(self.box)[:, None]
        raised = np.maximum(self.factors, np.where(within, floor, 0.0))
        return eqx.tree_at(lambda e: e.factors, self, np.where(bystander[..., None], raised, self.factors))


def factor_table(
    box: tuple[int, ...],
    consumed: dict[int, int],
    change: Int[np.ndarray, "species"],
    own: dict[int, Callable[[np.ndarray], Any]] | None,
    where: str,
) -> Float[np.ndarray, "species count"]:
    """The factors of one event: mass action, or functions of its own in its place; none where it leaves the box."""
    table = np.zeros((len(box), max(box)))
    for s, n in enumerate(box):
        counts = np.arange(n)
        ways = np.ones(n)
        if own is None:
            ways = comb(counts, consumed.get(s, 0))
        elif s in own:
            ways = np.broadcast_to(np.asarray(own[s](counts.astype(float)), dtype=float), (n,))
        if not np.all(np.isfinite(ways) & (ways >= 0)):
            raise InputError(f"{where}: a propensity must be finite and not negative for every count from 0 to {n - 1}")
        enough = counts >= consumed.get(s, 0)
        after = counts + change[s]
        table[s, :n] = ways * enough * (after >= 0) * (after < n)
    return table
