"""Jump processes as a simulator sees them: what can happen next, how fast, and what it does to the state."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

State = Any  # whatever one process calls its state: an array or a tuple of arrays


class JumpProcess(eqx.Module):
    """A state that changes by jumps, and possibly flows between them.

    One series at a time; simulators `vmap`. The flow must leave the intensities as they are.
    """

    @abstractmethod
    def intensities(self, state: State) -> Float[Array, "event"]:
        """Rate of each possible event from this state."""

    @abstractmethod
    def jump(self, state: State, event: Int[Array, ""], key: Key[Array, ""]) -> State:
        """The state after the event."""

    @abstractmethod
    def flow(self, state: State, duration: Float[Array, ""], key: Key[Array, ""]) -> State:
        """The state after a time in which no event happened."""


class FiniteProcess(JumpProcess):
    """A homogeneous jump process on states 0 ... K - 1."""

    rates: Float[Array, "state state"]

    def intensities(self, state: Int[Array, ""]) -> Float[Array, "state"]:
        return self.rates[state]

    def jump(self, state: Int[Array, ""], event: Int[Array, ""], key: Key[Array, ""]) -> Int[Array, ""]:
        return event.astype(state.dtype)

    def flow(self, state: Int[Array, ""], duration: Float[Array, ""], key: Key[Array, ""]) -> Int[Array, ""]:
        return state


class ThinnedState(eqx.Module):
    """State and clock of an inhomogeneous process, and whether its rates ever rose above the bound."""

    state: Int[Array, "*series"]
    time: Float[Array, "*series"]
    exceeded: Bool[Array, "*series"]


class ThinnedProcess(JumpProcess):
    """An inhomogeneous process by thinning: candidates come at a constant rate, some of them are jumps.

    A candidate at time t is a jump to j with probability f_ij(t) / bound (Lewis & Shedler 1979).
    """

    rates: Callable[[Array], Array] = eqx.field(static=True)
    bound: Float[Array, ""]

    def intensities(self, state: ThinnedState) -> Float[Array, "event"]:
        return self.bound[None]

    def jump(self, state: ThinnedState, event: Int[Array, ""], key: Key[Array, ""]) -> ThinnedState:
        leaving = self.rates(state.time)[state.state]
        target = choose(jnp.append(leaving, jnp.maximum(self.bound - leaving.sum(), 0)), key)
        new = jnp.where(target < len(leaving), target, state.state).astype(state.state.dtype)
        # Rounding may push a bound that is attained a little over itself.
        exceeded = state.exceeded | (leaving.sum() > self.bound * (1 + 1e-5))
        return ThinnedState(new, state.time, exceeded)

    def flow(self, state: ThinnedState, duration: Float[Array, ""], key: Key[Array, ""]) -> ThinnedState:
        return ThinnedState(state.state, state.time + duration, state.exceeded)


def choose(weights: Float[Array, "event"], key: Key[Array, ""]) -> Int[Array, ""]:
    """Draw an event with probability proportional to its weight; an event of weight 0 is never drawn."""
    cumulative = jnp.cumsum(weights)
    level = (1 - jax.random.uniform(key, dtype=weights.dtype)) * cumulative[-1]  # in (0, total]
    return (cumulative < level).sum()
