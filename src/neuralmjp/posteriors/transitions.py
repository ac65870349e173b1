"""exp(F t) for every gap of a batch, in a program whose shape does not depend on the rates."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Above this many expected jumps a gap is halved rather than given more terms of the series.
MOST_JUMPS = 64
MOST_HALVINGS = 24  # a billion jumps; rates beyond that have diverged


class Capacity(NamedTuple):
    """How many jumps at the fastest rate a gap may hold: Poisson terms, and halvings for more."""

    terms: int
    halvings: int

    @classmethod
    def of(cls, jumps: float) -> "Capacity":
        """For at most so many jumps per gap, rounded up to a power of two so that few programs are compiled."""
        rounded = 2 ** max(math.ceil(math.log2(min(max(jumps, 1.0), MOST_JUMPS * 2.0**MOST_HALVINGS))), 2)
        in_series = min(rounded, MOST_JUMPS)
        terms = 2 ** math.ceil(math.log2(in_series + 8 * math.sqrt(in_series) + 8))
        return cls(terms, int(math.log2(rounded // in_series)))

    @property
    def jumps(self) -> float:
        """The most that a gap may hold."""
        series = next(j for j in (64, 32, 16, 8, 4) if Capacity.of(j).terms <= self.terms)
        return float(series * 2**self.halvings)


def transition_matrices(
    generator: Float[Array, "state state"], gaps: Float[Array, "*lead"], capacity: Capacity
) -> Float[Array, "*lead state state"]:
    """Uniformisation, as in the exact engine: Poisson weights times powers that all gaps share.

    Where a gap holds more jumps than the capacity some mass is lost, never gained: a bound stays a bound.
    """
    n_states = generator.shape[-1]
    fastest = jax.lax.stop_gradient(jnp.maximum(jnp.max(-jnp.diagonal(generator)), jnp.finfo(generator.dtype).tiny))
    power = jnp.eye(n_states, dtype=generator.dtype) + generator / fastest
    powers = jnp.eye(n_states, dtype=generator.dtype)[None]
    while len(powers) < capacity.terms:
        powers = jnp.concatenate([powers, powers @ power])
        power = power @ power
    jumps = fastest * gaps.reshape(-1, 1) / 2**capacity.halvings
    count = jnp.arange(capacity.terms, dtype=generator.dtype)
    logs = count * jnp.log(jnp.maximum(jumps, jnp.finfo(generator.dtype).tiny)) - jax.lax.lgamma(count + 1) - jumps
    weights = jnp.where(jumps > 0, jnp.exp(logs), (count == 0).astype(generator.dtype))
    # Rounding in single precision would add to the mass of a row, or take from it, and squaring double that.
    holds = capacity.jumps / 2**capacity.halvings
    mass = jnp.where(jumps > holds, jnp.minimum(weights.sum(-1, keepdims=True), 1.0), 1.0)[..., None]
    table = _with_mass((weights @ powers.reshape(capacity.terms, -1)).reshape(-1, n_states, n_states), mass)
    for _ in range(capacity.halvings):
        mass = mass**2
        table = _with_mass(table @ table, mass)
    return table.reshape(*gaps.shape, n_states, n_states)


def _with_mass(
    table: Float[Array, "gap state state"], mass: Float[Array, "gap 1 1"]
) -> Float[Array, "gap state state"]:
    return table * (mass / jnp.maximum(table.sum(-1, keepdims=True), jnp.finfo(table.dtype).tiny))
