"""The paper's encoder: a neural differential equation between observations, a gated recurrent unit at them."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .encoder import Encoded, Encoder, GRUCell, Inputs, backwards, gated
from .mlp import MLP
from .taped import Tape


class ODERNN(Encoder):
    """dh/dt = MLP(h) backwards in time, one Runge-Kutta step per gap (Rubanova et al. 2019).

    Each gap is a unit of rescaled time, so that a batch of irregular series takes the same steps (Chen et al. 2020,
    Appendix F).

    Args:
        hidden: hidden layers of the MLP.
        steer: in training the end of each step is moved by U(-steer, steer) gaps (Ghosh et al. 2020).
        order: 2 (midpoint) or 4 evaluations of the MLP per step.
        kernel: on a card, the whole recurrence is one kernel.
    """

    cell: GRUCell
    drift: MLP
    steer: float = eqx.field(static=True)
    order: int = eqx.field(static=True)
    kernel: bool = eqx.field(static=True)

    def __init__(
        self,
        n_features: int,
        width: int,
        *,
        key: Array,
        hidden: tuple[int, ...] = (256, 256),
        steer: float = 1.0,
        order: int = 2,
        kernel: bool = False,
    ):
        cell_key, drift_key = jax.random.split(key)
        self.cell = GRUCell(n_features, width, key=cell_key)
        self.drift = MLP((width, *hidden, width), activation="tanh", start="normal", key=drift_key)
        self.steer, self.order, self.kernel = steer, order, kernel

    @property
    def width(self) -> int:
        return self.cell.width

    def __call__(self, inputs: Inputs, *, key: Array | None) -> Encoded:
        last = inputs.valid & ~jnp.pad(inputs.valid[:, 1:], ((0, 0), (0, 1)))
        spans = jnp.where(inputs.valid, jnp.where(last, inputs.after[:, None], inputs.gaps), 0.0)
        if key is not None and self.steer > 0:
            spans = spans * (1 + jax.random.uniform(key, spans.shape, spans.dtype, -self.steer, self.steer))
        prepared = self.cell.prepared(inputs.features)
        there = inputs.valid[..., None].astype(prepared.dtype)

        def step(tape, state, row):
            prepared, span, there = row
            before = _runge_kutta(tape, self.drift, state, span, self.order)
            return before + there * (gated(tape, prepared, before) - before), before

        return backwards(
            step,
            {**self.cell.layers, **self.drift.layers},
            (prepared, spans[..., None], there),
            hidden=tuple(map(len, self.drift.gains)),
            order=self.order,
            unroll=5,
            kernel=self.kernel,
        )


def _runge_kutta(
    tape: Tape, drift: MLP, state: Float[Array, "series hidden"], span: Float[Array, "series 1"], order: int
) -> Float[Array, "series hidden"]:
    one = drift.taped(tape, state)
    two = drift.taped(tape, state + span / 2 * one)
    if order == 2:
        return state + span * two
    three = drift.taped(tape, state + span / 2 * two)
    four = drift.taped(tape, state + span * three)
    return state + span / 6 * (one + 2 * two + 2 * three + four)
