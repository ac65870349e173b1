"""Packages that only some people need: one line for those who have not installed them."""

from importlib import import_module
from types import ModuleType

import numpy as np

from ..errors import InputError


def needed(module: str, extra: str, what: str) -> ModuleType:
    """Import a package of an extra, or say how to get it; `what` needs it."""
    try:
        with np.printoptions():  # some change how everybody's arrays are printed
            return import_module(module)
    except ImportError:
        raise InputError(f"{what} needs {module.split('.')[0]}: pip install 'neuralmjp[{extra}]'") from None
