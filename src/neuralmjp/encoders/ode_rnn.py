"""The paper's encoder: a neural differential equation between observations, a gated recurrent unit at them."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .encoder import Encoded, Encoder, GRUCell, Inputs, backwards
from .mlp import MLP


class ODERNN(Encoder):
    """dh/dt = MLP(h) backwards in time, one Runge-Kutta step of order four per gap (Rubanova et al. 2019).

    Each gap is a unit of rescaled time, so that a batch of irregular series takes the same steps (Chen et al. 2020,
    Appendix F). In training the end of each step is moved by U(-steer, steer) gaps (Ghosh et al. 2020).
    """

    cell: GRUCell
    drift: MLP
    steer: float = eqx.field(static=True)

    def __init__(
        self, n_features: int, width: int, *, key: Array, hidden: tuple[int, ...] = (256, 256), steer: float = 1.0
    ):
        cell_key, drift_key = jax.random.split(key)
        self.cell = GRUCell(n_features, width, key=cell_key)
        self.drift = MLP((width, *hidden, width), activation="tanh", start="normal", key=drift_key)
        self.steer = steer

    @property
    def width(self) -> int:
        return len(self.cell.candidate_bias)

    def __call__(self, inputs: Inputs, *, key: Array | None) -> Encoded:
        last = inputs.valid & ~jnp.pad(inputs.valid[:, 1:], ((0, 0), (0, 1)))
        spans = jnp.where(inputs.valid, jnp.where(last, inputs.after[:, None], inputs.gaps), 0.0)
        if key is not None and self.steer > 0:
            spans = spans * (1 + jax.random.uniform(key, spans.shape, spans.dtype, -self.steer, self.steer))

        def step(state, row, span, valid):
            before = self._flow(state, span[:, None])
            return jnp.where(valid[:, None], self.cell(row, before), before), before

        prepared = self.cell.prepared(inputs.features)
        start = jnp.zeros((len(spans), self.width), prepared.dtype)
        whole, before = backwards(step, start, (prepared, spans, inputs.valid), unroll=2)
        return Encoded(before, whole)

    def _flow(self, state: Float[Array, "series hidden"], span: Float[Array, "series 1"]) -> Array:
        one = self.drift(state)
        two = self.drift(state + span / 2 * one)
        three = self.drift(state + span / 2 * two)
        four = self.drift(state + span * three)
        return state + span / 6 * (one + 2 * two + 2 * three + four)
