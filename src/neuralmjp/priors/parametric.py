"""Rates that follow from a few parameters of a system."""

from collections.abc import Callable
from functools import cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.optimize import least_squares

from ..errors import InputError
from ..systems import FlashingRatchet, System
from .rate_model import Logs, RateModel, rates_of


class ParametricRates(RateModel):
    """Rates as any function of positive parameters.

    Args:
        function: {name: value} -> (K, K), traceable by JAX.
        start: the parameters by name, with values of the right magnitude.

    >>> model = ParametricRates(lambda p: jnp.array([[0, 1], [0, 0]]) * p["k"] + jnp.array([[0, 0], [1, 0]]) * p["k"],
    ...                         {"k": 2.0})
    >>> model.rates(jnp.log(jnp.array([2.0]))).tolist()
    [[0.0, 2.0], [2.0, 0.0]]
    """

    function: Callable[[dict[str, Array]], Array] = eqx.field(static=True)
    start: tuple[tuple[str, float], ...] = eqx.field(static=True)

    def __init__(self, function: Callable[[dict[str, Array]], Array], start: dict[str, float]):
        if not start or any(value <= 0 for value in start.values()):
            raise InputError("a parametric rate model needs parameters, all of them positive")
        self.function, self.start = function, tuple(start.items())

    @property
    def allowed(self) -> Bool[np.ndarray, "state state"]:
        return _positive(self)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.start)

    def rates(self, theta: Logs) -> Float[Array, "state state"]:
        values = jnp.exp(theta)
        return self.function({name: values[k] for k, name in enumerate(self.names)})

    def nearest(self, rates: Float[np.ndarray, "state state"]) -> Float[np.ndarray, "parameter"]:
        """Least squares on square roots of rates, which weighs large and small ones evenly and bears zeros."""
        wanted = np.sqrt(rates)
        found = least_squares(
            lambda theta: (np.sqrt(np.asarray(rates_of(self, theta))) - wanted).ravel(),
            np.log([value for _, value in self.start]),
            bounds=(-30.0, 30.0),
        )
        return found.x


@cache  # asked for again and again
def _positive(model: ParametricRates) -> Bool[np.ndarray, "state state"]:
    """Which rates are not zero at the start."""
    return np.asarray(rates_of(model, np.log([value for _, value in model.start]))) > 0


@cache  # one function object per system, so that what was compiled for it is found again
def system_rates(system: System) -> ParametricRates:
    """The rate model of a system with known form and unknown parameters."""
    if isinstance(system, FlashingRatchet):
        fixed = system.temperature
        return ParametricRates(
            lambda p: jnp.asarray(FlashingRatchet(temperature=fixed, **p).rates), {"V": 1.0, "r": 1.0, "b": 1.0}
        )
    raise InputError(
        f"{system.name} has too many states, or states of its own kind, for the exact engine's rate matrix; "
        "flashing-ratchet is available, or ParametricRates for a function of yours"
    )
