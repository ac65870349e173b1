"""A gated recurrent network that takes the gap as one more input."""

import jax.numpy as jnp
from jaxtyping import Array

from .encoder import Encoded, Encoder, GRUCell, Inputs, backwards


class GRUEncoder(Encoder):
    """Between observations the summary stands still."""

    cell: GRUCell

    def __init__(self, n_features: int, width: int, *, key: Array):
        self.cell = GRUCell(n_features, width, key=key)

    @property
    def width(self) -> int:
        return len(self.cell.candidate_bias)

    def __call__(self, inputs: Inputs, *, key: Array | None) -> Encoded:
        prepared = self.cell.prepared(inputs.features)

        def step(state, row, valid):
            return jnp.where(valid[:, None], self.cell(row, state), state), state

        start = jnp.zeros((len(prepared), self.width), prepared.dtype)
        whole, before = backwards(step, start, (prepared, inputs.valid))
        return Encoded(before, whole)
