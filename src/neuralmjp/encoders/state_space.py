"""A state-space encoder: linear recurrences that decay in continuous time, all times at once."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .encoder import Encoded, Encoder, Inputs
from .mlp import MLP


class Recurrence(eqx.Module):
    """h(t) = exp(-(decay + i turn) gap) h(next) + inputs, computed by a parallel scan (Orvieto et al. 2023)."""

    log_decay: Float[Array, "mode"]
    turn: Float[Array, "mode"]
    into: Float[Array, "feature two_modes"]

    def __init__(self, n_features: int, n_modes: int, *, key: Array):
        # From what fades within a hundredth of the horizon to what lasts for all of it.
        self.log_decay = jnp.log(jnp.geomspace(0.3, 300.0, n_modes))
        self.turn = jnp.zeros(n_modes)
        self.into = jax.random.normal(key, (n_features, 2 * n_modes)) * n_features**-0.5

    def __call__(
        self, features: Array, gaps: Array, valid: Array
    ) -> tuple[Float[Array, "series time two_modes"], Float[Array, "series time two_modes"]]:
        """The state just after each observation going back, and just before it."""
        decay = jnp.exp(self.log_decay) * gaps[..., None]
        keep = jnp.exp(-decay) * jnp.exp(1j * self.turn * gaps[..., None])
        real, imaginary = jnp.split(features @ self.into, 2, axis=-1)
        # What fades fast must speak louder to be heard at all.
        loud = jnp.sqrt(1 - jnp.exp(-2 * decay) + 1e-2)
        given = jnp.where(valid[..., None], loud * (real + 1j * imaginary), 0.0)

        def join(later, earlier):
            return earlier[0] * later[0], earlier[0] * later[1] + earlier[1]

        _, after = jax.lax.associative_scan(join, (keep, given), axis=1, reverse=True)
        # Not after - given: rounding would let an observation leak into the summary of what comes after it.
        before = keep * jnp.pad(after[:, 1:], ((0, 0), (0, 1), (0, 0)))

        def parts(x):
            return jnp.concatenate([x.real, x.imag], axis=-1)

        return parts(after), parts(before)


class StateSpace(Encoder):
    """Layers of recurrences with an MLP after each; depth in time is logarithmic, so that long series are quick."""

    recurrences: list[Recurrence]
    mixers: list[MLP]

    def __init__(self, n_features: int, width: int, *, key: Array, n_layers: int = 2):
        keys = jax.random.split(key, 2 * n_layers)
        sizes = [n_features, *([width] * n_layers)]
        self.recurrences = [Recurrence(sizes[k], width, key=keys[2 * k]) for k in range(n_layers)]
        self.mixers = [
            MLP((2 * width + sizes[k], width, width), activation="silu", start="kaiming", key=keys[2 * k + 1])
            for k in range(n_layers)
        ]

    @property
    def width(self) -> int:
        return self.mixers[-1].weights[-1].shape[1]

    def __call__(self, inputs: Inputs, *, key: Array | None) -> Encoded:
        after = inputs.features
        before = jnp.zeros_like(after)
        for recurrence, mixer in zip(self.recurrences, self.mixers, strict=True):
            states, earlier = recurrence(after, inputs.gaps, inputs.valid)
            # What an observation adds must not leak into the summary of what comes after it.
            before = mixer(jnp.concatenate([earlier, before], axis=-1))
            after = mixer(jnp.concatenate([states, after], axis=-1))
        return Encoded(before, after[:, 0])
