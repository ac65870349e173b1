"""What changes as training goes on: learning rates, the weight of the divergence, how much of a series is used."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .config import Config

WIDER = 3  # times as many observations in the next larger program of a curriculum
WORTHWHILE = 2 / 3  # of the observations: a program that leaves out fewer saves less than it takes to compile


def kl_weight(config: Config, step: Int[Array, ""]) -> Float[Array, ""]:
    """From 0 to 1 over the warm-up."""
    return jnp.minimum((step + 1) / max(config.kl_warmup, 1), 1.0).astype(jnp.float32)


def n_observed(config: Config, step: Int[Array, "*step"], length: int) -> Int[Array, "*step"]:
    """How many observations of each series count at these steps."""
    if config.curriculum is None:
        return jnp.full(step.shape, length)
    few, hold, grow = config.curriculum
    share = jnp.clip((step - hold) / max(grow, 1), 0.0, 1.0)
    return jnp.minimum(few + jnp.floor(share * max(length - few, 0)).astype(int), length)


def n_laid_out(config: Config, n: int, length: int) -> int:
    """For how many observations a program is made that uses `n` of them: one of a few sizes.

    >>> config = Config(curriculum=(10, 3000, 5000))
    >>> [n_laid_out(config, n, 200) for n in (10, 11, 90, 91, 200)]
    [10, 30, 90, 200, 200]
    """
    on_the_grid = config.posterior == "paper" and not config.quadrature  # of all observations, up to the horizon
    if config.curriculum is None or on_the_grid:
        return length
    size = config.curriculum[0]
    while size < n:
        size *= WIDER
    return size if size <= WORTHWHILE * length else length


def annealed(config: Config, step: Int[Array, ""], steps_per_epoch: int) -> Float[Array, ""]:
    """The factor on the learning rate that the epochs ask for."""
    if config.decay_epochs == 0:
        return jnp.asarray(1.0, jnp.float32)
    return config.decay ** (step // (steps_per_epoch * config.decay_epochs)).astype(jnp.float32)
