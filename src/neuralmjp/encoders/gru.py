"""A gated recurrent network that takes the gap as one more input."""

from jaxtyping import Array

from .encoder import Encoded, Encoder, GRUCell, Inputs, backwards, gated


class GRUEncoder(Encoder):
    """Between observations the summary stands still."""

    cell: GRUCell

    def __init__(self, n_features: int, width: int, *, key: Array):
        self.cell = GRUCell(n_features, width, key=key)

    @property
    def width(self) -> int:
        return self.cell.width

    def __call__(self, inputs: Inputs, *, key: Array | None) -> Encoded:
        prepared = self.cell.prepared(inputs.features)
        there = inputs.valid[..., None].astype(prepared.dtype)

        def step(tape, state, row):
            prepared, there = row
            return state + there * (gated(tape, prepared, state) - state), state

        return backwards(step, self.cell.layers, self.width, (prepared, there), unroll=2)
