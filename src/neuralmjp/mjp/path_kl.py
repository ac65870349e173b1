"""Kullback-Leibler divergence between two jump processes on an interval."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from .generators import generator_from_rates
from .master_equation import RateFunction, check_grid, march
from .types import ArrayLike


def kl_rate(
    posterior: Float[Array, "*batch state state"], prior: Float[Array, "*#batch state state"]
) -> Float[Array, "*batch state"]:
    """Divergence gathered per time unit in each state: sum_j f_ij - g_ij + g_ij log(g_ij / f_ij).

    Infinite where the posterior makes a jump that the prior forbids; zero where both agree.
    """
    both = (posterior > 0) & (prior > 0)
    ratio = jnp.where(both, posterior, 1.0) / jnp.where(both, prior, 1.0)
    ratio = jnp.maximum(ratio, jnp.finfo(ratio.dtype).tiny)  # of nearly nothing by a fast rate it would be zero
    log_term = jnp.where(both, posterior * jnp.log(ratio), jnp.where(posterior > 0, jnp.inf, 0.0))
    return (prior - posterior + log_term).sum(-1)


def path_kl(
    posterior: RateFunction | ArrayLike,
    prior: RateFunction | ArrayLike,
    initial: ArrayLike,
    times: ArrayLike,
    *,
    substeps: int = 8,
) -> Float[Array, ""]:
    """KL(q || p) of the paths of two jump processes from times[0] to times[-1]; the integral of the paper's Eq. (5).

    Both processes start from one law; add KL of the initial laws where they differ. With constant rates the result
    is exact to rounding; with rates that change, of order four in the step.

    Args:
        posterior: rates g of q, (K, K) or a function t -> (K, K) that JAX can trace.
        prior: rates f of p, likewise.
        initial: law of both at times[0].
        times: increasing; the integral runs over all of them, `substeps` steps between neighbours.

    >>> g = jnp.array([[0.0, 2.0], [1.0, 0.0]])
    >>> float(path_kl(g, g, [1.0, 0.0], [0.0, 3.0]))
    0.0
    """
    initial, times = jnp.asarray(initial, float), jnp.asarray(times, float)
    if not isinstance(times, Tracer):
        check_grid(times, substeps)
    if callable(posterior) or callable(prior):
        return _path_kl(_as_function(posterior), _as_function(prior), initial, times, substeps)
    return _path_kl_constant(jnp.asarray(posterior, float), jnp.asarray(prior, float), initial, times[-1] - times[0])


@partial(jax.jit, static_argnames=("posterior", "prior", "substeps"))
def _path_kl(posterior: RateFunction, prior: RateFunction, initial: Array, times: Array, substeps: int) -> Array:
    return _integrate(lambda t: _augmented(posterior(t), prior(t)), initial, times, substeps)


@jax.jit
def _path_kl_constant(posterior: Array, prior: Array, initial: Array, duration: Array) -> Array:
    times = jnp.stack([jnp.zeros_like(duration), duration])
    return _integrate(lambda _: _augmented(posterior, prior), initial, times, 1)


def _augmented(posterior: Array, prior: Array) -> Array:
    """A with dy/dt = y A for y = (marginals, divergence so far, time spent where it is infinite)."""
    gathered = kl_rate(posterior, prior)
    finite = jnp.isfinite(gathered)
    columns = jnp.stack([jnp.where(finite, gathered, 0.0), jnp.where(finite, 0.0, 1.0)], axis=-1)
    generator = generator_from_rates(posterior)
    return jnp.pad(jnp.concatenate([generator, columns], axis=-1), ((0, 2), (0, 0)))


def _integrate(matrices: RateFunction, initial: Array, times: Array, substeps: int) -> Array:
    end = march(matrices, jnp.pad(initial, (0, 2)), times, substeps, 4, len(initial))[-1]
    # A coarse step may count the forbidden time with the wrong sign, never as nothing.
    return jnp.where(jnp.abs(end[-1]) > 0, jnp.inf, end[-2])


def _as_function(rates: RateFunction | ArrayLike) -> RateFunction:
    if callable(rates):
        return rates
    return lambda _: jnp.asarray(rates, dtype=float)
