"""What people type for the neural engine, and how a training configuration is changed by NAME=VALUE."""

import types
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..errors import InputError
from ..training.config import Config


@dataclass(frozen=True)
class TrainingOptions:
    """Options of the neural engine as they were typed; None, empty or false where nothing was."""

    posterior: str | None = None
    preset: str | None = None
    encoder: str | None = None
    refine: str | None = None
    steps: int | None = None
    changes: tuple[str, ...] = ()  # NAME=VALUE
    resume: bool = False

    @property
    def given(self) -> list[str]:
        """As the command line calls them."""
        typed = {"--set": self.changes} | {
            f"--{name}": getattr(self, name) for name in ("posterior", "preset", "encoder", "refine", "steps", "resume")
        }
        return [name for name, value in typed.items() if value]

    @property
    def hosts(self) -> str:
        """Machines that work together."""
        return self._changes().get("hosts", "")

    @property
    def mesh(self) -> int:
        """Devices that share a batch."""
        return self._changes().get("mesh", 1)

    def choices(self) -> dict[str, Any]:
        """Of `NeuralMJP`, those that were made."""
        chosen = {"posterior": self.posterior, "preset": self.preset, "refine": self.refine}
        return {name: value for name, value in chosen.items() if value is not None} | {"changes": self._changes()}

    def _changes(self) -> dict[str, Any]:
        changes = read_changes(self.changes)
        for name in ("encoder", "steps"):
            value = getattr(self, name)
            if value is not None:
                if name in changes:
                    raise InputError(f"--{name} and --set {name} say the same thing twice: give one of them")
                changes[name] = value
        return changes


def read_changes(pairs: tuple[str, ...] | list[str]) -> dict[str, Any]:
    """Fields of the training configuration, each read as its type.

    >>> read_changes(["width=8", "dynamics=32,32", "masked=true", "curriculum=none"])
    {'width': 8, 'dynamics': (32, 32), 'masked': True, 'curriculum': None}
    """
    kinds = get_type_hints(Config)
    changes: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals:
            raise InputError(f"--set takes NAME=VALUE, such as --set width=32; got {pair!r}")
        if name not in kinds:
            raise InputError(f"--set: training has no {name!r}; it has {', '.join(kinds)}")
        try:
            changes[name] = read_value(kinds[name], text)
        except ValueError:
            raise InputError(f"--set {name} takes {in_words(kinds[name])}, got {text!r}") from None
    return changes


def read_value(kind: Any, text: str) -> Any:
    """Text as a value of this type; a ValueError where it is none."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        first = next(part for part in parts if part is not type(None))
        return None if text.lower() == "none" else read_value(first, text)
    if origin is Literal:
        return {str(value): value for value in parts}[text] if text in map(str, parts) else _refuse()
    if origin is tuple:
        values = tuple(read_value(parts[0], item.strip()) for item in text.split(","))
        return values if parts[-1] is Ellipsis or len(values) == len(parts) else _refuse()
    if kind is bool:
        return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else _refuse()
    return kind(text)


def in_words(kind: Any) -> str:
    """What may be typed for this type."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join("none" if part is type(None) else in_words(part) for part in parts)
    if origin is Literal:
        return f"one of {', '.join(map(str, parts))}"
    if origin is tuple:
        return "whole numbers with commas between" if parts[-1] is Ellipsis else f"{len(parts)} whole numbers: 1,2,3"
    return {bool: "true or false", int: "a whole number", float: "a number"}[kind]


def _refuse() -> Any:
    raise ValueError
