"""Reaction networks written down as text.

    # prey and predators
    prey -> 2 prey                          @ alpha = 5e-4
    prey + predator -> predator             @ beta  = 1e-4
    prey + predator -> prey + 2 predator    @ delta = 1e-4
    predator -> 0                           @ gamma = 5e-4
    box prey 59
    box predator 59
    start prey 5..20
    start predator 5..20
    births-at-zero 1e-6
    noise gaussian 1.0
    seen prey, predator
    duration 1500
    unit s

Only reactions are required, each with a named rate constant whose value is given once. A species without a box may
reach 59, without a start it begins at 10 (or at its box, if that is smaller). Without `seen` every species is; a
sum such as `seen prey + predator` is one value.
"""

import re
from pathlib import Path
from typing import get_args

from ..emissions.readings import Noise
from ..errors import InputError
from .reaction_network import Reaction, ReactionNetwork

DEFAULT_LARGEST = 59
DEFAULT_START = 10
NOISES = get_args(Noise)


def read_network(path: str | Path) -> ReactionNetwork:
    """A reaction network from a text file; errors name the file and the line."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the reaction network {path}: {error}") from None
    return parse_network(text, name=path.stem, where=str(path))


def parse_network(text: str, *, name: str = "reaction-network", where: str = "network") -> ReactionNetwork:
    """A reaction network from its text form.

    >>> parse_network("0 -> X @ birth = 2\\nX -> 0 @ death = 0.1").parameters
    {'birth': 2.0, 'death': 0.1}
    """
    reactions: list[Reaction] = []
    constants: dict[str, float] = {}
    settings: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split("#")[0].strip()
        if not content:
            continue
        try:
            if "->" in content:
                reaction, value = _reaction(content)
                reactions.append(reaction)
                if value is not None:
                    if reaction.constant in constants:
                        raise ValueError(f"{reaction.constant!r} has a value already; give it once")
                    constants[reaction.constant] = value
            else:
                key, words = _setting(content)
                if key in settings:
                    raise ValueError(f"{key!r} is set already; set it once")
                settings[key] = words
        except ValueError as error:
            raise InputError(f"{where}, line {number}: {error}") from None
    if not reactions:
        raise InputError(f"{where}: no reactions; write one per line, such as 'X -> 2 X @ alpha = 0.5'")
    return _network(reactions, constants, settings, name, where)


def _reaction(content: str) -> tuple[Reaction, float | None]:
    parts = re.fullmatch(r"(.*)->(.*)@\s*([A-Za-z_]\w*)\s*(?:=\s*(\S+))?", content)
    if parts is None:
        raise ValueError(f"cannot read {content!r} as 'A + B -> C @ constant = value'")
    left, right, constant, value = parts.groups()
    return Reaction(_side(left), _side(right), constant), None if value is None else float(value)


def _side(side: str) -> dict[str, int]:
    amounts: dict[str, int] = {}
    if side.strip() == "0":
        return amounts
    for term in side.split("+"):
        parts = re.fullmatch(r"\s*(?:([1-9]\d*)\s+)?([A-Za-z_]\w*)\s*", term)
        if parts is None:
            raise ValueError(f"cannot read {term.strip()!r}: write a species, '2 X' for two of it, or 0 for nothing")
        amounts[parts[2]] = amounts.get(parts[2], 0) + int(parts[1] or 1)
    return amounts


def _setting(content: str) -> tuple[str, list[str]]:
    word, *rest = content.split()
    if word in ("box", "start") and len(rest) == 2:
        if not re.fullmatch(r"\d+" if word == "box" else r"\d+(\.\.\d+)?", rest[1]):
            raise ValueError(f"{rest[1]!r} is no whole number" + " and no range such as 5..20" * (word == "start"))
        return f"{word} {rest[0]}", rest[1:]
    if word in ("births-at-zero", "duration") and len(rest) == 1:
        return word, [str(float(rest[0]))]
    if word == "unit" and len(rest) == 1:
        return word, rest
    if word == "seen" and rest:
        shown = [_side(term) for term in content.removeprefix("seen").split(",")]
        if any(n != 1 for one in shown for n in one.values()) or not all(shown):
            raise ValueError(f"cannot read {content!r}: write species or sums of them, as in 'seen X, Y + Z'")
        return word, ["+".join(one) for one in shown]
    if word == "noise" and len(rest) in (1, 2):
        if rest[0] not in NOISES:
            raise ValueError(f"noise must be one of {', '.join(NOISES)}, got {rest[0]!r}")
        return word, [rest[0], *(str(float(scale)) for scale in rest[1:])]
    raise ValueError(
        f"cannot read {content!r}; expected a reaction, or one of: box SPECIES N, start SPECIES A..B, "
        f"births-at-zero RATE, seen A, B + C, noise {'|'.join(NOISES)} [SCALE], duration T, unit NAME"
    )


def _network(
    reactions: list[Reaction], constants: dict[str, float], settings: dict[str, list[str]], name: str, where: str
) -> ReactionNetwork:
    species = tuple(dict.fromkeys(s for r in reactions for s in (*r.consumed, *r.produced)))
    if not species:
        raise InputError(f"{where}: the reactions have no species; write one, such as 'X -> 2 X @ alpha = 0.5'")
    for setting in settings:
        if " " in setting and setting.split()[1] not in species:
            raise InputError(f"{where}: {setting!r} names a species that no reaction has")
    noise = settings.get("noise", ["gaussian", "1.0"])
    try:
        largest = tuple(int(settings.get(f"box {s}", [DEFAULT_LARGEST])[0]) for s in species)
        starts = []
        for s, most in zip(species, largest, strict=True):
            words = settings.get(f"start {s}", [str(min(DEFAULT_START, most))])[0].split("..")
            starts.append((int(words[0]), int(words[-1])))
        return ReactionNetwork(
            species=species,
            reactions=tuple(reactions),
            constants=constants,
            largest=largest,
            start=tuple(starts),
            births_at_zero=float(settings.get("births-at-zero", ["0"])[0]),
            seen=tuple(tuple(one.split("+")) for one in settings["seen"]) if "seen" in settings else None,
            noise=noise[0],  # type: ignore[arg-type]
            noise_scale=float(noise[1]) if len(noise) == 2 else 1.0,
            duration=float(settings.get("duration", ["100"])[0]),
            time_unit=settings.get("unit", ["time unit"])[0],
            name=name,
        )
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
