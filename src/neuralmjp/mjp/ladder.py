"""Processes on a ladder: counts 0..n - 1 that events move up or down by fixed steps. Nothing is a matrix.

`jumps` are expected numbers, rate times duration, of each event from each count, the events in front. An event that
would leave the ladder must have none.
"""

from collections.abc import Sequence
from functools import partial

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
    return _exponential(law, jumps, tuple(changes), terms, False)


def looked_back(
    values: Float[Array, "*lead count"],
    jumps: Float[Array, "event *lead count"],
    changes: Sequence[int],
    terms: int = TERMS,
) -> Float[Array, "*lead count"]:
    """Expected values after a step with constant rates, by the count before it: exp(G) values."""
    return _exponential(values, jumps, tuple(changes), terms, True)


@partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def _exponential(vector: Array, jumps: Array, changes: tuple[int, ...], terms: int, back: bool) -> Array:
    return _series(vector, jumps, changes, terms, back)[0][0]


def _series(
    vector: Array, jumps: Array, changes: tuple[int, ...], terms: int, back: bool
) -> tuple[list[Array], Array, Array]:
    """exp(G) by uniformisation, in the order of Horner: the sums after each term, the last in front, all positive."""
    move = expected if back else gained
    leaving = jumps.sum(0)
    most = leaving.max(-1, keepdims=True)
    stay, sums, norm = most - leaving, [vector], jnp.ones_like(most)
    for k in range(terms, 0, -1):
        sums.append(vector + (stay * sums[-1] + move(sums[-1], jumps, changes)) / k)
        norm = 1 + most * norm / k
    sums[-1] = sums[-1] / norm
    return sums[::-1], stay, norm


def _exponential_forward(
    vector: Array, jumps: Array, changes: tuple[int, ...], terms: int, back: bool
) -> tuple[Array, tuple[Array, Array]]:
    return _exponential(vector, jumps, changes, terms, back), (vector, jumps)


def _exponential_backward(
    changes: tuple[int, ...], terms: int, back: bool, kept: tuple[Array, Array], slope: Array
) -> tuple[Array, Array]:
    """The same series the other way; left to itself the derivative would be sums of padded slices."""
    vector, jumps = kept
    sums, stay, norm = _series(vector, jumps, changes, terms, back)
    slope = slope / norm
    total, by_jumps = slope, [jnp.zeros_like(vector) for _ in changes]
    for k in range(1, terms + 1):
        part = sums[k] / k
        moved = stay * slope
        for e, change in enumerate(changes):
            if back:  # the slope goes where the values came from
                by_jumps[e] = by_jumps[e] + slope * (shifted(part, -change) - part)
                moved = moved + shifted(jumps[e] * slope, change)
            else:
                there = shifted(slope, -change)
                by_jumps[e] = by_jumps[e] + part * (there - slope)
                moved = moved + jumps[e] * there
        slope = moved / k
        total = total + slope
    return total, jnp.stack(by_jumps)


_exponential.defvjp(_exponential_forward, _exponential_backward)
