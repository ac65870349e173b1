"""What changes as training goes on: learning rates, the weight of the divergence, how much of a series is used."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .config import Config


def kl_weight(config: Config, step: Int[Array, ""]) -> Float[Array, ""]:
    """From 0 to 1 over the warm-up."""
    return jnp.minimum((step + 1) / max(config.kl_warmup, 1), 1.0).astype(jnp.float32)


def n_observed(config: Config, step: Int[Array, ""], length: int) -> Int[Array, ""]:
    """How many observations of each series count at this step."""
    if config.curriculum is None:
        return jnp.asarray(length)
    few, hold, grow = config.curriculum
    share = jnp.clip((step - hold) / max(grow, 1), 0.0, 1.0)
    return jnp.minimum(few + jnp.floor(share * max(length - few, 0)).astype(int), length)


def annealed(config: Config, step: Int[Array, ""], steps_per_epoch: int) -> Float[Array, ""]:
    """The factor on the learning rate that the epochs ask for."""
    if config.decay_epochs == 0:
        return jnp.asarray(1.0, jnp.float32)
    return config.decay ** (step // (steps_per_epoch * config.decay_epochs)).astype(jnp.float32)
