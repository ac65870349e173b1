"""Where the prior's parameters come from while a neural engine trains: a vector of numbers, or a generator network."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..encoders.mlp import MLP

N_NOISE, N_HIDDEN = 64, 64  # the paper's
SPREAD = "spread of the generator prior"  # what intervals of its parameters are: no uncertainty


class ExplicitParameters(eqx.Module):
    """The parameters of the rate model themselves."""

    theta: Float[Array, "parameter"]

    def draw(self, key: Array | None) -> Float[Array, "parameter"]:
        return self.theta


class GeneratorParameters(eqx.Module):
    """The paper's generative prior: theta = network(noise), one hidden layer, as in a generative adversarial network.

    The spread of what it generates is no posterior: nothing in the objective rewards it.

    Args:
        around: where the parameters start.
        noise_sd: of the 64 random inputs.
    """

    network: MLP
    around: Float[Array, "parameter"]
    noise_sd: float = eqx.field(static=True)

    def __init__(self, around: Float[Array, "parameter"], *, noise_sd: float, dropout: float, key: Array):
        # Normalised layers would undo the size of the noise.
        sizes = (N_NOISE, N_HIDDEN, len(around))
        self.network = MLP(sizes, activation="relu", start="kaiming", key=key, dropout=dropout, normalised=False)
        self.around, self.noise_sd = around, noise_sd

    def draw(self, key: Array | None) -> Float[Array, "parameter"]:
        """One draw; the image of zero noise without a key."""
        noise = jnp.zeros(N_NOISE, self.around.dtype)
        if key is not None:
            noise = self.noise_sd * jax.random.normal(key, (N_NOISE,), self.around.dtype)
        dropout_key = None if key is None else jax.random.fold_in(key, 1)
        return jax.lax.stop_gradient(self.around) + self.network(noise, key=dropout_key)

    def sample(self, n: int, key: Array) -> Float[Array, "sample parameter"]:
        """Draws without dropout, as the paper's tables average them."""
        noise = self.noise_sd * jax.random.normal(key, (n, N_NOISE), self.around.dtype)
        return self.around + self.network(noise)
