"""Reading what people type on the command line."""

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
