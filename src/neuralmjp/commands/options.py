"""Reading what people type on the command line."""

from dataclasses import dataclass

from ..errors import InputError


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
