"""Double precision where single would bias: in simulation, and wherever likelihoods are added up."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def in_double_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function with 64-bit JAX numbers, whatever the caller's setting, which it leaves as it was.

    A rare event beside a frequent one needs more than the 23 random bits of a single-precision number; and one seed
    then means one data set.
    """

    @wraps(function)
    def doubled(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return doubled
