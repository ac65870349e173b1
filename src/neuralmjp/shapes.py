"""Whether what a file says has the shape of what was written: types as data, compared with JSON."""

import math
from typing import Any


def require_shape(value: Any, shape: Any, where: str = "it") -> None:
    """Raise `ValueError` at the first place where JSON is of another kind.

    A shape is a type (float takes whole numbers too), a tuple of shapes to choose from, None, a list with the shape of
    every element, or a dictionary with those of required names.

    >>> require_shape({"a": [1, 2.5], "b": None}, {"a": [float], "b": (str, None)})
    """
    if isinstance(shape, dict):
        _require(isinstance(value, dict) and shape.keys() <= value.keys(), where, f"one with {', '.join(shape)}")
        for name, one in shape.items():
            require_shape(value[name], one, name)
    elif isinstance(shape, list):
        _require(isinstance(value, list), where, "a list")
        for one in value:
            require_shape(one, shape[0], where)
    else:
        choices = shape if isinstance(shape, tuple) else (shape,)
        named = " or ".join("null" if one is None else getattr(one, "__name__", "a list") for one in choices)
        _require(any(_is(value, one) for one in choices), where, named)


def _is(value: Any, kind: Any) -> bool:
    if isinstance(kind, (list, dict)):
        try:
            require_shape(value, kind)
        except ValueError:
            return False
        return True
    if kind is None or kind is bool:
        return value is None if kind is None else isinstance(value, bool)
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and not 1e300 < abs(value) < math.inf
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    return isinstance(value, kind)


def _require(true: bool, where: str, what: str) -> None:
    if not true:
        raise ValueError(f"{where} is not {what}")
