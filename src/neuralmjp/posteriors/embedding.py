"""Time as a network sees it: a learnable Mercer embedding (Xu et al. 2019)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class MercerEmbedding(eqx.Module):
    """Fourier features of normalised time, with learnable base frequencies and coefficients.

    Args:
        n_frequencies: base frequencies; the paper's 10.
        n_coefficients: harmonics of each with a learnable weight, sines and cosines counted apart; the paper's 20.
    """

    log_periods: Float[Array, "frequency"]
    coefficients: Float[Array, "frequency coefficient"]

    def __init__(self, *, key: Array, n_frequencies: int = 10, n_coefficients: int = 20):
        self.log_periods = jnp.log(jnp.geomspace(0.1, 10.0, n_frequencies))
        self.coefficients = jax.random.normal(key, (n_frequencies, n_coefficients)) * n_coefficients**-0.5

    @property
    def width(self) -> int:
        return self.coefficients.size

    def __call__(self, times: Float[Array, "*lead"]) -> Float[Array, "*lead feature"]:
        harmonics = jnp.arange(1, self.coefficients.shape[1] // 2 + 1, dtype=times.dtype)
        angle = 2 * jnp.pi * times[..., None, None] * jnp.exp(-self.log_periods)[:, None] * harmonics
        waves = jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1) * self.coefficients
        return waves.reshape(*times.shape, -1)
