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
from scipy.special import pdtrc

from ..errors import InputError

# Poisson(k; 4) beyond 30 terms is below 1e-16.
JUMPS = 4.0
TERMS = 31
LEFT_OUT = 1e-17
# A longest gap with more jumps than 4 x 2^40 is beyond double precision.
MOST_HALVINGS = 40
# Larger products are shared out among threads, which wait for each other a hundred times longer than they compute.
SMALL_PRODUCT = 1 << 17


class Halving(NamedTuple):
    """How many of the longest gaps must be halved, and how often; rounded up, so that few programs are compiled."""

    n_long: int
    times: int


def halving_needed(rates: Float[np.ndarray, "*batch state state"], gaps: Float[np.ndarray, "gap"]) -> Halving:
    """For rates of this size and gaps in increasing order."""
    fastest = float(rates.sum(-1).max())
    if not fastest * float(gaps[-1]) <= JUMPS * 2**MOST_HALVINGS:
        raise InputError(
            f"the fastest rate makes {fastest * float(gaps[-1]):.0e} jumps in the longest gap of {gaps[-1]:g}: "
            "leave out the longest gaps, or start from slower rates"
        )
    jumps = fastest * gaps
    times = math.ceil(math.log2(max(float(jumps[-1]), JUMPS) / JUMPS))
    if times == 0:
        return Halving(0, 0)
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


class HostTable:
    """`transition_table` in NumPy, with its derivative by hand: nothing to compile.

    Args:
        generator: (K, K).
        gaps: in increasing order.
    """

    matrices: Float[np.ndarray, "gap state state"]

    def __init__(self, generator: Float[np.ndarray, "state state"], gaps: Float[np.ndarray, "gap"]):
        n_states = len(generator)
        self._fastest = max(float(-generator.diagonal().min()), float(np.finfo(float).tiny))
        halving = halving_needed(generator - np.diag(generator.diagonal()), gaps)
        self._step = np.eye(n_states) + generator / self._fastest
        jumps = self._fastest * gaps
        halvings = np.ceil(np.log2(np.maximum(jumps, JUMPS) / JUMPS)).astype(int) if halving.times else 0 * gaps
        jumps = jumps / 2.0**halvings
        n_terms = min(1 + int((pdtrc(np.arange(TERMS), jumps.max()) > LEFT_OUT).sum()), TERMS)
        powers = [np.eye(n_states)]
        for _ in range(n_terms - 1):
            powers.append(powers[-1] @ self._step)
        self._powers = np.stack(powers)
        self._weights = np.empty((n_terms, len(gaps)))
        self._weights[0] = np.exp(-jumps)
        for k in range(1, n_terms):
            np.multiply(self._weights[k - 1], jumps / k, out=self._weights[k])
        powers, rows = self._powers.reshape(n_terms, -1), np.empty((len(gaps), n_states**2))
        n, stacked = self._chunks()
        np.matmul(stacked.swapaxes(1, 2), powers, out=rows[:n].reshape(*stacked.shape[::2], n_states**2))
        np.matmul(self._weights[:, n:].T, powers, out=rows[n:])
        self.matrices = rows.reshape(-1, n_states, n_states)
        self._squared: list[tuple[int, np.ndarray]] = []
        for k in range(int(np.max(halvings, initial=0))):
            first = int(np.searchsorted(halvings, k, side="right"))  # the longest gaps, which come last
            half = self.matrices[first:].copy()
            self._squared.append((first, half))
            self.matrices[first:] = half @ half

    def pull(self, slope: Float[np.ndarray, "gap state state"]) -> Float[np.ndarray, "state state"]:
        """From the derivative by every transition matrix to that by each entry of the generator."""
        n_states = len(self._step)
        for first, half in reversed(self._squared):
            slope, long = slope.copy(), slope[first:]
            turned = half.swapaxes(1, 2)
            slope[first:] = long @ turned + turned @ long
        n, stacked = self._chunks()
        rows = slope.reshape(-1, n_states**2)
        by_power = (stacked @ rows[:n].reshape(*stacked.shape[::2], n_states**2)).sum(0) + self._weights[:, n:] @ rows[
            n:
        ]
        by_power = by_power.reshape(-1, n_states, n_states)
        total, carried = np.zeros((n_states, n_states)), np.zeros((n_states, n_states))
        for k in range(len(by_power) - 1, 0, -1):
            carried = by_power[k] + carried @ self._step.T
            total += self._powers[k - 1].T @ carried
        return total / self._fastest

    def _chunks(self) -> tuple[int, Float[np.ndarray, "chunk term gap"]]:
        """Weights of gaps in chunks of equal size, and how many gaps that covers."""
        n_terms, n_gaps = self._weights.shape
        size = max(SMALL_PRODUCT // self._powers.size, 1)
        n = n_gaps // size * size
        return n, self._weights[:, :n].reshape(n_terms, -1, size).swapaxes(0, 1)
