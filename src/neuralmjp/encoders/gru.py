"""A gated recurrent network that takes the gap as one more input."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from .encoder import Encoded, Encoder, GRUCell, Inputs, backwards, gated


class GRUEncoder(Encoder):
    """Between observations the summary stands still."""

    cell: GRUCell
    kernel: bool = eqx.field(static=True)

    def __init__(self, n_features: int, width: int, *, key: Array, kernel: bool = False):
        self.cell, self.kernel = GRUCell(n_features, width, key=key), kernel

    @property
    def width(self) -> int:
        return self.cell.width

    def __call__(self, inputs: Inputs, *, key: Array | None) -> Encoded:
        prepared = self.cell.prepared(inputs.features)
        there = inputs.valid[..., None].astype(prepared.dtype)

        def step(tape, state, row):
            prepared, _, there = row
            return state + there * (gated(tape, prepared, state) - state), state

        return backwards(step, self.cell.layers, (prepared, jnp.zeros_like(there), there), unroll=2, kernel=self.kernel)
