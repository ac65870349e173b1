"""Processes on a ladder: counts 0..n - 1 that events move up or down by fixed steps. Nothing is a matrix.

`jumps` are expected numbers, rate times duration, of each event from each count, the events in front. An event that
would leave the ladder must have none.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

TERMS = 12  # of the exponential series: 1e-8 for 1.5 jumps in a step, 1e-4 for 4


def shifted(values: Float[Array, "*lead count"], change: int) -> Float[Array, "*lead count"]:
    """values[n] at n + change; 0 where nothing comes from."""
    n = values.shape[-1]
    before, after = max(change, 0), max(-change, 0)
    padded = jnp.pad(values, [(0, 0)] * (values.ndim - 1) + [(before, after)])
    return padded[..., after : after + n]


def gained(
    law: Float[Array, "*lead count"], jumps: Float[Array, "event *lead count"], changes: Sequence[int]
) -> Float[Array, "*lead count"]:
    """What each count receives: law times the matrix of jumps."""
    return sum((shifted(one * law, change) for one, change in zip(jumps, changes, strict=True)), jnp.zeros_like(law))


def expected(
    values: Float[Array, "*lead count"], jumps: Float[Array, "event *lead count"], changes: Sequence[int]
) -> Float[Array, "*lead count"]:
    """Where each count leads: the matrix of jumps times values."""
    moved = (one * shifted(values, -change) for one, change in zip(jumps, changes, strict=True))
    return sum(moved, jnp.zeros_like(values))


def carried(
    law: Float[Array, "*lead count"],
    jumps: Float[Array, "event *lead count"],
    changes: Sequence[int],
    terms: int = TERMS,
) -> Float[Array, "*lead count"]:
    """The law after a step with constant rates: law exp(G). Never negative, and its sum stays."""
    return _exponential(gained, law, jumps, changes, terms)


def looked_back(
    values: Float[Array, "*lead count"],
    jumps: Float[Array, "event *lead count"],
    changes: Sequence[int],
    terms: int = TERMS,
) -> Float[Array, "*lead count"]:
    """Expected values after a step with constant rates, by the count before it: exp(G) values."""
    return _exponential(expected, values, jumps, changes, terms)


def _exponential(move, vector: Array, jumps: Array, changes: Sequence[int], terms: int) -> Array:
    """exp(G) by uniformisation, in the order of Horner: every term is positive."""
    leaving = jumps.sum(0)
    most = jax.lax.stop_gradient(leaving.max(-1, keepdims=True))
    total, norm = vector, jnp.ones_like(most)
    for k in range(terms, 0, -1):
        total = vector + ((most - leaving) * total + move(total, jumps, changes)) / k
        norm = 1 + most * norm / k
    return total / norm
