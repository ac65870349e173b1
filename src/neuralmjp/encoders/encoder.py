"""What every encoder takes and returns."""

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .taped import Layer, Step, Tape, taped_scan


class Inputs(NamedTuple):
    """Series as an encoder reads them, in normalised time; padded steps are valid nowhere and change nothing."""

    features: Float[Array, "series time feature"]
    gaps: Float[Array, "series time"]  # to the observation after; 0 after the last
    after: Float[Array, "series"]  # from the last observation to the horizon
    valid: Bool[Array, "series time"]


class Encoded(NamedTuple):
    """Summaries of the future."""

    before: Float[Array, "series time hidden"]  # at each observation, of all that come after it
    whole: Float[Array, "series hidden"]  # at the first observation, with everything seen


class Encoder(eqx.Module):
    """A sequence network that runs backwards in time."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Size of a summary."""

    @abstractmethod
    def __call__(self, inputs: Inputs, *, key: Array | None) -> Encoded:
        """Summaries at every observation; `key` draws the noise of training, none is drawn without it."""


class GRUCell(eqx.Module):
    """A gated recurrent unit on a batch of rows: one product per step for the state, none for what is known before."""

    from_input: Float[Array, "feature gates"]
    from_state: Float[Array, "hidden gates"]
    bias: Float[Array, "gates"]
    state_bias: Float[Array, "gates"]

    def __init__(self, n_features: int, width: int, *, key: Array):
        keys = jax.random.split(key, 4)
        bound = width**-0.5

        def uniform(key, *shape):
            return jax.random.uniform(key, shape, minval=-bound, maxval=bound)

        self.from_input, self.from_state = uniform(keys[0], n_features, 3 * width), uniform(keys[1], width, 3 * width)
        self.bias, self.state_bias = uniform(keys[2], 3 * width), uniform(keys[3], 3 * width)

    @property
    def width(self) -> int:
        return len(self.from_state)

    @property
    def layers(self) -> dict[str, Layer]:
        """What a step learns, for a `Tape`."""
        return {"gates": (self.from_state, self.state_bias)}

    def prepared(self, features: Float[Array, "*lead feature"]) -> Float[Array, "*lead gates"]:
        """What the inputs contribute, for all times in one product."""
        return features @ self.from_input + self.bias


def gated(tape: Tape, prepared: Float[Array, "series gates"], state: Float[Array, "series hidden"]) -> Array:
    """The state after an observation."""
    reset_in, update_in, candidate_in = jnp.split(prepared, 3, axis=-1)
    reset_at, update_at, candidate_at = jnp.split(tape.linear("gates", state), 3, axis=-1)
    reset, update = jax.nn.sigmoid(reset_in + reset_at), jax.nn.sigmoid(update_in + update_at)
    return update * state + (1 - update) * jnp.tanh(candidate_in + reset * candidate_at)


def on_card(dtype: Any) -> bool:
    """Whether this runs on a graphics card, and in single precision: a fit is judged in double."""
    return jax.default_backend() == "gpu" and dtype == jnp.float32


def backwards(
    step: Step,
    layers: dict[str, Layer],
    along: tuple[Array, Array, Array],
    *,
    hidden: tuple[int, ...] = (),
    order: int = 2,
    unroll: int,
    kernel: bool = False,
) -> Encoded:
    """Run a step from the last observation to the first, from a state of zero.

    The step returns the state after the observation, and the one before it.

    Args:
        along: what the inputs say to the gates, how far the differential equation goes, whether there is an
            observation; (series, time, ...).
        hidden: layers of the differential equation, if there is one.
        order: of its steps.
        kernel: on a card and in single precision, all steps are one kernel.
    """
    prepared, spans, there = (jnp.moveaxis(x, 1, 0) for x in along)
    width = prepared.shape[-1] // 3
    if kernel and on_card(prepared.dtype):
        from .fused import fused_scan  # imports a part of JAX that nothing else here needs

        whole, before = fused_scan(layers, hidden, order, prepared, spans, there)
    else:
        start = jnp.zeros((prepared.shape[1], width), prepared.dtype)
        whole, before = taped_scan(step, layers, start, (prepared, spans, there), unroll=unroll)
    return Encoded(jnp.moveaxis(before, 0, 1), whole)
