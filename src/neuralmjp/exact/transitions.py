"""exp(F t) for many gaps at once, without one matrix exponential each.

Uniformisation: exp(F t) = sum_k Poisson(k; q t) U^k with U = I + F / q. All gaps share the powers, so a table of
transition matrices is one product of Poisson weights with the stacked powers; gaps too long for the series are halved
until it converges, and the result squared back. Everything is non-negative, zeros stay zeros, and nothing has to be
diagonalised: a defective generator is no special case.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import InputError

# Poisson(k; 4) beyond 30 terms is below 1e-16.
JUMPS = 4.0
TERMS = 31
# A longest gap with more jumps than 4 x 2^40 is beyond double precision.
MOST_HALVINGS = 40


class Halving(NamedTuple):
    """How many of the longest gaps must be halved, and how often; rounded up, so that few programs are compiled."""

    n_long: int
    times: int


def halving_needed(rates: Float[np.ndarray, "*batch state state"], gaps: Float[np.ndarray, "gap"]) -> Halving:
    """For rates of this size and gaps in increasing order."""
    jumps = float(rates.sum(-1).max()) * gaps
    times = math.ceil(math.log2(max(float(jumps[-1]), JUMPS) / JUMPS))
    if times == 0:
        return Halving(0, 0)
    if times > MOST_HALVINGS:
        raise InputError(
            f"the fastest rate makes {jumps[-1]:.0e} jumps in the longest gap of {gaps[-1]:g}: "
            "leave out the longest gaps, or start from slower rates"
        )
    eighth = -(-len(gaps) // 8)
    n_long = int((jumps > JUMPS).sum())
    return Halving(min(-(-n_long // eighth) * eighth, len(gaps)), times + times % 2)


def transition_table(
    generator: Float[Array, "state state"], gaps: Float[Array, "gap"], halving: Halving
) -> Float[Array, "gap state state"]:
    """exp(F t) for every gap; differentiable in each entry of the generator, diagonal included."""
    n_states = generator.shape[-1]
    eye = jnp.eye(n_states, dtype=generator.dtype)
    # Any q at least as large as the fastest exit gives the same result: it is a constant for the derivative.
    fastest = jax.lax.stop_gradient(jnp.maximum(jnp.max(-jnp.diagonal(generator)), jnp.finfo(generator.dtype).tiny))
    step = eye + generator / fastest
    _, powers = jax.lax.scan(lambda power, _: (power @ step, power), eye, length=TERMS)
    jumps = fastest * gaps
    halvings = jnp.clip(jnp.ceil(jnp.log2(jnp.maximum(jumps, JUMPS) / JUMPS)), 0, halving.times)
    # Only what is squared back below may be halved, on whichever side of the edge rounding puts a gap.
    halvings = jnp.where(jnp.arange(len(gaps)) >= len(gaps) - halving.n_long, halvings, 0)
    jumps = jumps / 2**halvings
    count = jnp.arange(TERMS)
    log_weights = -jumps[:, None] + count * jnp.log(jnp.maximum(jumps, 1e-300))[:, None]
    weights = jnp.exp(log_weights - jax.scipy.special.gammaln(count + 1.0))
    weights = jnp.where(jumps[:, None] > 0, weights, count == 0)
    table = (weights @ powers.reshape(TERMS, -1)).reshape(-1, n_states, n_states)
    if halving.n_long == 0:
        return table
    short, long, often = table[: -halving.n_long], table[-halving.n_long :], halvings[-halving.n_long :]
    for k in range(halving.times):
        long = jnp.where((k < often)[:, None, None], long @ long, long)
    return jnp.concatenate([short, long])
