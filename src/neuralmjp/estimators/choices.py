"""What every estimator offers of its choices, as scikit-learn knows it."""

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from ..errors import InputError

Chosen = TypeVar("Chosen", bound="Choices")


@dataclass
class Choices:
    """Choices by name; the fields of an estimator."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The choices by name, as in scikit-learn."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def set_params(self: Chosen, **choices: Any) -> Chosen:
        """Change choices in place, as in scikit-learn."""
        for name, value in choices.items():
            if name not in self.get_params():
                here = type(self).__name__
                raise InputError(f"{here} has no parameter {name!r}; it has {', '.join(self.get_params())}")
            setattr(self, name, value)
        self.__post_init__()
        return self

    def __post_init__(self) -> None:
        """What must hold of the choices, whenever they are set."""
