"""What every rate model offers: rates from a vector of free numbers, and back."""

from abc import abstractmethod
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Shaped


class RateModel(eqx.Module):
    """Rates f as a function of free parameters, all of them logarithms."""

    @property
    @abstractmethod
    def allowed(self) -> Bool[np.ndarray, "state state"]:
        """Which jumps this model can make at all."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """One name per free parameter."""

    @abstractmethod
    def rates(self, theta: Float[Array, "parameter"]) -> Float[Array, "state state"]:
        """Rates from the logarithms; traceable by JAX."""

    @abstractmethod
    def nearest(self, rates: Float[np.ndarray, "state state"]) -> Float[np.ndarray, "parameter"]:
        """Parameters whose rates come close to the given ones: a starting point."""

    @property
    def n_states(self) -> int:
        return len(self.allowed)

    @property
    def n_parameters(self) -> int:
        return len(self.names)


@partial(jax.jit, static_argnames="model")
def rates_of(model: RateModel, theta: Float[Array, "*batch parameter"]) -> Float[Array, "*batch state state"]:
    """Rates of one vector of parameters or of many, compiled."""
    return jnp.vectorize(model.rates, signature="(p)->(k,k)")(theta)


def log_floor(rates: np.ndarray) -> np.ndarray:
    """Logarithms of rates, where a rate of zero counts as far below all others."""
    positive = rates[rates > 0]
    least = positive.min() * 1e-3 if positive.size else 1.0
    return np.log(np.maximum(rates, least))


def as_tuples(table: Shaped[np.ndarray, "row column"]) -> tuple[tuple[Any, ...], ...]:
    """A table as a tuple of rows, which can be hashed and compared."""
    return tuple(tuple(row) for row in table.tolist())
