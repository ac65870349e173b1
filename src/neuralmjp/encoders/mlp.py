"""Multilayer perceptrons as the paper builds them: layer normalisation, dropout, two kinds of starting weights."""

from collections.abc import Callable, Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .taped import Layer, Tape

Start = Literal["normal", "kaiming"]
NORMAL_SD = 0.1  # the paper's N(0, 0.01), read as a variance
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"tanh": jnp.tanh, "relu": jax.nn.relu, "silu": jax.nn.silu}


class MLP(eqx.Module):
    """Linear layers with an activation between them.

    Args:
        sizes: widths of input, hidden layers and output.
        activation: tanh, relu or silu.
        start: "normal" (standard deviation 0.1, no bias) or "kaiming".
        normalised: whether hidden layers are normalised before the activation.
        dropout: share of hidden units left out in training.
        quiet: the last layer starts at zero, so that the network begins by saying nothing.
    """

    weights: list[Float[Array, "fan_in fan_out"]]
    biases: list[Float[Array, "fan_out"]]
    gains: list[Float[Array, "fan_out"]]
    activation: str = eqx.field(static=True)
    dropout: float = eqx.field(static=True)

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        activation: str,
        start: Start,
        key: Array,
        normalised: bool = True,
        dropout: float = 0.0,
        quiet: bool = False,
    ):
        self.activation, self.dropout = activation, dropout
        self.weights, self.biases = [], []
        for fan_in, fan_out, k in zip(sizes[:-1], sizes[1:], jax.random.split(key, len(sizes) - 1), strict=True):
            sd = NORMAL_SD if start == "normal" else (2 / fan_in) ** 0.5
            self.weights.append(sd * jax.random.normal(k, (fan_in, fan_out)))
            self.biases.append(jnp.zeros(fan_out))
        if quiet:
            self.weights[-1] = jnp.zeros_like(self.weights[-1])
        self.gains = [jnp.ones(width) for width in sizes[1:-1]] if normalised else []

    def __call__(self, x: Float[Array, "*lead fan_in"], *, key: Array | None = None) -> Float[Array, "*lead fan_out"]:
        return self.after_first(x @ self.weights[0], key=key)

    def first(self, parts: Sequence[Float[Array, "..."]]) -> Float[Array, "*lead hidden"]:
        """The first product for an input in several parts that broadcast, each multiplied in its own shape."""
        edges = np.cumsum([part.shape[-1] for part in parts])[:-1]
        return sum(part @ rows for part, rows in zip(parts, jnp.split(self.weights[0], edges), strict=True))  # type: ignore[return-value]

    def after_first(
        self, x: Float[Array, "*lead hidden"], *, key: Array | None = None
    ) -> Float[Array, "*lead fan_out"]:
        """The rest of the network, from the first product on."""
        for layer, bias in enumerate(self.biases[:-1]):
            # A bias before normalisation would be half undone by it; it comes after, as its offset.
            x = self._normalised(x, layer) + bias if self.gains else x + bias
            x = ACTIVATIONS[self.activation](x)
            if key is not None and self.dropout > 0:
                kept = jax.random.bernoulli(jax.random.fold_in(key, layer), 1 - self.dropout, x.shape)
                x = jnp.where(kept, x / (1 - self.dropout), 0.0)
            x = x @ self.weights[layer + 1]
        return x + self.biases[-1]

    @property
    def layers(self) -> dict[str, Layer]:
        """The same network for a `Tape`. Weights are centred here, once, so that no step has to centre its layers."""
        found: dict[str, Layer] = {}
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if k < len(self.gains):
                found[f"layer {k}"] = (weight - weight.mean(1, keepdims=True), jnp.zeros_like(bias))
                found[f"scale {k}"] = (self.gains[k], bias)
            else:
                found[f"layer {k}"] = (weight, bias)
        return found

    def taped(self, tape: Tape, x: Float[Array, "row fan_in"]) -> Float[Array, "row fan_out"]:
        """The network inside a `taped_scan`; without dropout."""
        for k in range(len(self.weights) - 1):
            x = tape.linear(f"layer {k}", x)
            if self.gains:
                x = tape.scaled(f"scale {k}", x * _inverse_size(x))
            x = ACTIVATIONS[self.activation](x)
        return tape.linear(f"layer {len(self.weights) - 1}", x)

    def _normalised(self, x: Array, layer: int) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return self.gains[layer] * centred * _inverse_size(centred)


def _inverse_size(centred: Float[Array, "*lead width"]) -> Float[Array, "*lead 1"]:
    return jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
