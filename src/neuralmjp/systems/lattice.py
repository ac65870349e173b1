"""A reaction network as a generator on its box of counts: matrix-free for propagation, sparse for small checks."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import sparse

from ..mjp.precision import in_double_precision
from .reaction_network import ReactionNetwork, ReactionProcess


class LatticeFlow(NamedTuple):
    """What `uniformised_action` needs: v -> v F on arrays shaped like the box, and the largest exit rate."""

    flow: Callable[[Float[Array, "..."]], Float[Array, "..."]]
    fastest: float


def event_rates(network: ReactionNetwork, process: ReactionProcess) -> Float[Array, "event ..."]:
    """Rate of every event in every cell of the box."""
    counts = jnp.meshgrid(*(jnp.arange(n) for n in network.box), indexing="ij")
    ways = jnp.stack(process.events.ways(counts))
    return jnp.einsum("e,e...->e...", process.events.scales(process.constants), ways)


def lattice_flow(network: ReactionNetwork) -> LatticeFlow:
    """The generator as a handful of shifted adds: each event carries mass from x to x + change."""
    rates = event_rates(network, network.process())
    changes = network.changes

    def flow(mass: Float[Array, "..."]) -> Float[Array, "..."]:
        moved = -rates.sum(0) * mass
        for rate, change in zip(rates, changes, strict=True):
            # Rolling round the edge carries nothing: events that leave the box have rate zero.
            moved = moved + jnp.roll(rate * mass, change, axis=tuple(range(len(change))))
        return moved

    return LatticeFlow(flow, float(rates.sum(0).max()))


@in_double_precision
def sparse_generator(network: ReactionNetwork) -> sparse.csr_array:
    """The generator as a sparse matrix over the cells of the box in row-major order."""
    shape = network.box
    rates = np.asarray(event_rates(network, network.process()), dtype=np.float64)
    rows, columns, entries = [], [], []
    for rate, change in zip(rates, network.changes, strict=True):
        cells = np.argwhere(rate > 0)
        rows.append(np.ravel_multi_index(tuple(cells.T), shape))
        columns.append(np.ravel_multi_index(tuple((cells + change).T), shape))
        entries.append(rate[rate > 0])
    size = int(np.prod(shape))
    where = (np.concatenate(rows), np.concatenate(columns))
    jumps = sparse.coo_array((np.concatenate(entries), where), shape=(size, size)).tocsr()
    return sparse.csr_array(jumps - sparse.diags_array(np.asarray(jumps.sum(1)).ravel()))
