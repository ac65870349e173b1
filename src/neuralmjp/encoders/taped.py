"""A recurrent scan that learns its weights outside the loop.

Left to itself the derivative of a scan adds up the gradient of every weight at every step: a small product and a large
sum each time, one after the other. What those products need is known once the loop has run: the input of each layer,
and the slope at its output. Here a step notes its inputs on a `Tape`; the slopes come from shifts of zero that are
added to each output; and one large product per call then gives the gradient of all steps together.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Layer = tuple[Array, Array]  # a matrix or a gain, and a bias


class Tape:
    """The layers of one step, and a note of what went into each."""

    def __init__(self, layers: dict[str, Layer], shifts: list[Array] | None = None):
        self._layers, self._shifts = layers, shifts
        self.calls: list[tuple[str, str]] = []
        self.inputs: list[Array] = []
        self.outputs: list[Array] = []

    def linear(self, name: str, x: Float[Array, "row fan_in"]) -> Float[Array, "row fan_out"]:
        """x W + b."""
        weight, bias = self._layers[name]
        return self._noted("linear", name, x, x @ weight + bias)

    def scaled(self, name: str, x: Float[Array, "row width"]) -> Float[Array, "row width"]:
        """x times gain, plus bias."""
        gain, bias = self._layers[name]
        return self._noted("scaled", name, x, x * gain + bias)

    def _noted(self, kind: str, name: str, x: Array, out: Array) -> Array:
        if self._shifts is not None:
            out = out + self._shifts[len(self.calls)]
        self.calls.append((kind, name))
        self.inputs.append(x)
        self.outputs.append(out)
        return out


Step = Callable[[Tape, Any, Any], tuple[Any, Any]]


def taped_scan(step: Step, layers: dict[str, Layer], state: Any, along: Any, *, unroll: int) -> tuple[Any, Any]:
    """Run `step(tape, state, row) -> (state, out)` from the last row to the first.

    All that the step learns must pass through the tape; `along` holds arrays with time in front.
    """
    calls: list[tuple[str, str]] = []

    @jax.custom_vjp
    def run(layers, state, along):
        return jax.lax.scan(lambda s, row: step(Tape(layers), s, row), state, along, reverse=True, unroll=unroll)

    def forward(layers, state, along):
        shapes = jax.eval_shape(lambda: _outputs(step, layers, state, jax.tree.map(lambda x: x[0], along), calls))
        n = len(jax.tree.leaves(along)[0])
        zeros = [jnp.zeros((n, *s.shape), s.dtype) for s in shapes]

        def shifted(shifts, state, along):
            def one(state, row):
                tape = Tape(layers, row[1])
                state, out = step(tape, state, row[0])
                return state, (out, tape.inputs)

            last, (out, inputs) = jax.lax.scan(one, state, (along, shifts), reverse=True, unroll=unroll)
            return (last, out), inputs

        result, pull, inputs = jax.vjp(shifted, zeros, state, along, has_aux=True)
        return result, (pull, inputs, layers)

    def backward(kept, slopes):
        pull, inputs, layers = kept
        at_outputs, d_state, d_along = pull(slopes)
        total = jax.tree.map(jnp.zeros_like, layers)
        for (kind, name), x, slope in zip(calls, inputs, at_outputs, strict=True):
            joint = "tri,tro->io" if kind == "linear" else "trw,trw->w"
            weight, bias = total[name]
            total[name] = (weight + jnp.einsum(joint, x, slope), bias + slope.sum((0, 1)))
        return total, d_state, d_along

    run.defvjp(forward, backward)
    return run(layers, state, along)


def _outputs(step: Step, layers: dict[str, Layer], state: Any, row: Any, calls: list[tuple[str, str]]) -> list[Array]:
    """The outputs of every call in one step, whose order is noted in `calls`."""

    tape = Tape(layers)
    step(tape, state, row)
    calls[:] = tape.calls
    return tape.outputs
