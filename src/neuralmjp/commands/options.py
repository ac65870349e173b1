"""Reading what people type on the command line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..emissions import Categorical
from ..errors import InputError
from ..fitted import FittedMJP


def assignments(pairs: list[str]) -> dict[str, float]:
    """`["V=2", "r=0.4"]` -> {"V": 2.0, "r": 0.4}."""
    values: dict[str, float] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        try:
            values[name.strip()] = float(text)
        except ValueError:
            equals = ""
        if not equals:
            raise InputError(f"--set takes NAME=NUMBER, such as --set V=2; got {pair!r}")
    return values


def emission_for(emission: str, columns: dict[str, Any]) -> str:
    """What was typed, or what words read as labels ask for."""
    if columns.get("labels") is None:
        return emission
    if emission not in ("auto", "categorical"):
        raise InputError(f"--labels reads words, which are categorical observations: leave out --emission {emission}")
    return "categorical"


def labels_as_names(fitted: FittedMJP, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Words of the data as names of the states, where they are the states."""
    codes = fitted.emission.labels if isinstance(fitted.emission, Categorical) else ()
    return tuple(labels[int(code)] for code in codes) if labels and len(codes) == fitted.n_states else ()


@dataclass(frozen=True)
class SignalOptions:
    """What disturbs a signal or makes states look alike, as it was typed."""

    levels: str | None = None
    hum: str | None = None
    drift: int = 0

    @property
    def given(self) -> list[str]:
        """As the command line calls them."""
        typed = {"--levels": self.levels is not None, "--hum": self.hum is not None, "--drift": self.drift > 0}
        return [name for name, there in typed.items() if there]

    @property
    def level_of_state(self) -> tuple[int, ...] | None:
        """`0,0,1`, or a file that holds such a list -> (0, 0, 1)."""
        if self.levels is None:
            return None
        text, path = self.levels, Path(self.levels)
        if path.suffix:
            try:
                text = path.read_text(encoding="utf-8")
            except OSError as error:
                raise InputError(f"cannot read the levels {path}: {error.strerror or error}") from None
        try:
            return tuple(int(word) for word in text.replace(",", " ").split())
        except ValueError:
            raise InputError(f"--levels takes a whole number for each state, such as 0,0,1; got {text!r}") from None

    def choices(self) -> dict[str, Any]:
        """For an estimator."""
        return {"levels": self.level_of_state, "hum": self.hum, "drift": self.drift}


@dataclass(frozen=True)
class CountOptions:
    """How the counts of a reaction network are read, as it was typed; None where nothing was."""

    noise: str | None = None
    noise_scale: float | None = None
    seen: str | None = None

    @property
    def given(self) -> list[str]:
        """As the command line calls them."""
        typed = {"--noise": self.noise, "--noise-scale": self.noise_scale, "--seen": self.seen}
        return [name for name, value in typed.items() if value is not None]

    @property
    def columns(self) -> list[str] | None:
        """What each value shows: "A,B+C" -> ["A", "B+C"]."""
        return None if self.seen is None else [part.strip() for part in self.seen.split(",")]
