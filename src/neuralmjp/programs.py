"""Compiled programs are forgotten before they exhaust what one process may map into memory: Linux ends it otherwise."""

import gc
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")
MOST = 0.5  # share of the allowed mappings from which on programs are forgotten
MAPS, LIMIT = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")


def forgetting(function: Callable[P, R]) -> Callable[P, R]:
    """Before a fit: forget programs of earlier ones if there are very many; those that are needed compile again."""

    @wraps(function)
    def fit(*args: P.args, **kwargs: P.kwargs) -> R:
        if crowded():
            jax.clear_caches()
            gc.collect()
        return function(*args, **kwargs)

    return fit


def crowded() -> bool:
    """Whether half of the mappings that the system allows a process are taken; never where it does not say."""
    try:
        allowed = int(LIMIT.read_text())
        with open(MAPS, "rb") as maps:
            return sum(1 for _ in maps) > MOST * allowed
    except (OSError, ValueError):
        return False
