"""A recurrent scan that runs as one kernel of a graphics card, and its derivative as another.

A scan is thousands of small programs, one after the other, and a card waits for most of them. The forward kernel notes
what goes into each layer and comes out of it, the backward kernel the slope at each output; large products outside of
both then give the gradient of all weights, as in `taped`, whose scan serves everywhere else.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .kernels import FEWEST, ROWS, Shapes, ahead, back, by_evaluation, inverse_size
from .taped import Layer


def fused_scan(
    layers: dict[str, Layer],
    hidden: tuple[int, ...],
    order: int,
    prepared: Float[Array, "time row gates"],
    spans: Float[Array, "time row 1"],
    there: Float[Array, "time row 1"],
    *,
    interpreted: bool = False,
) -> tuple[Float[Array, "row hidden"], Float[Array, "time row hidden"]]:
    """The summary at the first observation, and before each; as `taped_scan` returns them.

    Args:
        layers: "gates" of the cell, and "layer k", "scale k" of the differential equation.
        interpreted: run without a card, to be tested.
    """
    n_rows, width = prepared.shape[1], prepared.shape[2] // 3
    rows = min(ROWS, max(FEWEST, 1 << (n_rows - 1).bit_length()))
    shapes = Shapes(width, hidden, order, rows, interpreted)
    padding = ((0, 0), (0, -n_rows % rows), (0, 0))
    found: Any = _run(shapes, layers, *(jnp.pad(x, padding) for x in (prepared, spans, there)))
    whole, before = found
    return whole[:n_rows], before[:, :n_rows]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _run(shapes: Shapes, layers: dict[str, Layer], prepared: Array, spans: Array, there: Array) -> tuple[Array, Array]:
    whole, before, _ = ahead(shapes, layers, prepared, spans, there)
    return whole, before


def _run_forward(shapes, layers, prepared, spans, there):
    whole, before, notes = ahead(shapes, layers, prepared, spans, there)
    return (whole, before), (layers, before, notes, spans, there)


def _run_backward(shapes, kept, slopes):
    layers, before, notes, spans, there = kept
    rounded = back(shapes, layers, before, notes, spans, there, *slopes)
    found = [one.astype(before.dtype) for one in rounded]
    *_, at_reset, at_update, _, at_candidate = found
    weights = _at_weights(shapes, before, notes, found)
    prepared = jnp.concatenate([at_reset, at_update, at_candidate], axis=-1)
    return weights, prepared, jnp.zeros_like(spans), jnp.zeros_like(there)


_run.defvjp(_run_forward, _run_backward)


def _at_weights(shapes: Shapes, before: Array, notes: list[Array], found: list[Array]) -> dict[str, Layer]:
    """The gradient of every layer: large products of what went in and the slopes at what came out."""
    each, _ = by_evaluation([one.astype(before.dtype) for one in notes], shapes)
    slopes, (at_reset, at_update, at_asked, _) = by_evaluation(found, shapes)
    at_gates = jnp.concatenate([at_reset, at_update, at_asked], axis=-1)
    total = {"gates": (jnp.einsum("tri,tro->io", before, at_gates), at_gates.sum((0, 1)))}
    for (x, *activations), (at_end, *at_activations) in zip(each, slopes, strict=True):
        for k in range(len(shapes.hidden)):
            u, at_u, at_z = activations[2 * k], *at_activations[2 * k : 2 * k + 2]
            _add(total, f"layer {k}", jnp.einsum("tri,tro->io", x, at_u), jnp.zeros_like(at_u[0, 0]))
            _add(total, f"scale {k}", (at_z * u * inverse_size(u)).sum((0, 1)), at_z.sum((0, 1)))
            x = activations[2 * k + 1]
        _add(total, f"layer {len(shapes.hidden)}", jnp.einsum("tri,tro->io", x, at_end), at_end.sum((0, 1)))
    return total


def _add(total: dict[str, Layer], name: str, weight: Array, bias: Array) -> None:
    """One more use of a layer; a bias of zero before a normalisation stays so."""
    known = total.get(name)
    total[name] = (weight, bias) if known is None else (known[0] + weight, known[1] + bias)
