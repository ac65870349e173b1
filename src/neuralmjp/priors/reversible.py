"""Rates in detailed balance: the process looks the same when time runs backwards."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..errors import InputError
from ..mjp import stationary_distribution
from ..mjp.structure import reachable
from ..mjp.types import ArrayLike, as_tuples
from .free import check_mask
from .rate_model import Logs, RateModel, log_floor


class ReversibleRates(RateModel):
    """f_ij = s_ij / p_i with symmetric s: one parameter per pair of states, and one per state for its weight.

    Args:
        n_states: K.
        mask: (K, K) symmetric, true where a pair of jumps may happen; every pair if not given.
    """

    pairs: tuple[tuple[int, int], ...] = eqx.field(static=True)  # first state below second
    n: int = eqx.field(static=True)

    def __init__(self, n_states: int, *, mask: ArrayLike | None = None):
        allowed = check_mask(mask, n_states)
        if (allowed != allowed.T).any():
            raise InputError("a reversible process that can jump from i to j can jump back: the mask must be symmetric")
        if not reachable(allowed.astype(float)).all():
            raise InputError("a reversible process must be able to reach every state: the mask cuts the states apart")
        self.pairs, self.n = as_tuples(np.argwhere(np.triu(allowed))), n_states

    @property
    def allowed(self) -> Bool[np.ndarray, "state state"]:
        table = np.zeros((self.n, self.n), dtype=bool)
        table[tuple(np.array(self.pairs).T)] = True
        return table | table.T

    @property
    def parameter_of(self) -> Int[np.ndarray, "state state"]:
        """Which parameter the flow between two states is; -1 where there is none."""
        table = np.full((self.n, self.n), -1)
        i, j = np.array(self.pairs).T
        table[i, j] = table[j, i] = self.n - 1 + np.arange(len(self.pairs))
        return table

    @property
    def names(self) -> tuple[str, ...]:
        weights = tuple(f"log weight {i}" for i in range(1, self.n))
        return (*weights, *(f"{i}<->{j}" for i, j in self.pairs))

    def rates(self, theta: Logs) -> Float[Array, "state state"]:
        log_law = jax.nn.log_softmax(jnp.concatenate([jnp.zeros(1, theta.dtype), theta[: self.n - 1]]))
        i, j = np.array(self.pairs).T
        flow = jnp.exp(theta[self.n - 1 :])
        table = jnp.zeros((self.n, self.n), theta.dtype)
        return table.at[i, j].set(flow * jnp.exp(-log_law[i])).at[j, i].set(flow * jnp.exp(-log_law[j]))

    def nearest(self, rates: Float[np.ndarray, "state state"]) -> Float[np.ndarray, "parameter"]:
        filled = np.where(self.allowed, np.exp(log_floor(rates)), 0.0)
        law = stationary_distribution(filled)
        flow = law[:, None] * filled
        i, j = np.array(self.pairs).T
        log_law = np.log(law)
        return np.concatenate([log_law[1:] - log_law[0], np.log((flow[i, j] + flow[j, i]) / 2)])
