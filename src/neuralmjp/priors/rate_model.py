"""What every rate model offers: rates from a vector of free numbers, and back."""

from abc import abstractmethod
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..mjp.types import Square

Logs = Float[Array, "*batch parameter"] | Float[np.ndarray, "*batch parameter"]


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
    def rates(self, theta: Logs) -> Square:
        """Rates from the logarithms; traceable by JAX."""

    @abstractmethod
    def nearest(self, rates: Float[np.ndarray, "state state"]) -> Float[np.ndarray, "parameter"]:
        """Parameters whose rates come close to the given ones: a starting point."""

    @property
    def on_host(self) -> bool:
        """Whether `rates` and `slopes` work on NumPy arrays, `rates` in batches too: then nothing is compiled."""
        return False

    def slopes(self, theta: Float[np.ndarray, "parameter"]) -> Float[np.ndarray, "parameter state state"]:
        """Derivative of every rate with respect to each parameter."""
        return np.moveaxis(np.asarray(_compiled_slopes(self, theta)), -1, 0)

    @property
    def n_states(self) -> int:
        return len(self.allowed)

    @property
    def n_parameters(self) -> int:
        return len(self.names)


def rates_of(model: RateModel, theta: Logs) -> Square:
    """Rates of one vector of parameters or of many: (..., K, K); NumPy in, NumPy out."""
    if not isinstance(theta, np.ndarray):
        return _compiled_rates(model, theta)
    return model.rates(theta) if model.on_host else np.asarray(_compiled_rates(model, theta))


@partial(jax.jit, static_argnames="model")
def _compiled_rates(model: RateModel, theta: Float[Array, "*batch parameter"]) -> Float[Array, "*batch state state"]:
    return jnp.vectorize(model.rates, signature="(p)->(k,k)")(theta)


@partial(jax.jit, static_argnames="model")
def _compiled_slopes(model: RateModel, theta: Float[Array, "parameter"]) -> Float[Array, "state state parameter"]:
    return jax.jacfwd(model.rates)(theta)


def log_floor(rates: np.ndarray) -> np.ndarray:
    """Logarithms of rates, where a rate of zero counts as far below all others."""
    positive = rates[rates > 0]
    least = positive.min() * 1e-3 if positive.size else 1.0
    return np.log(np.maximum(rates, least))
