"""Names of states: which will do, and sentences that call the states by them."""

import re
from collections.abc import Sequence

from .errors import InputError


def require_names(names: Sequence[str], n_states: int) -> None:
    """Raise unless every state has a name of its own."""
    told = {name for name in names if isinstance(name, str) and name.strip()}
    if not len(names) == n_states == len(told):
        raise InputError(f"{n_states} states need {n_states} different names; got {', '.join(map(repr, names))}")


def renamed(words: str, old: Sequence[str], new: Sequence[str]) -> str:
    """A sentence of ours in other names of the states: of "state 2", "states 0 and 1", "0->1", "{0, 1}", no other word.

    >>> renamed("states 0 and 1 are close, of 2 in all; no jump 1->0", "01", ("closed", "open"))
    'states closed and open are close, of 2 in all; no jump open->closed'
    """
    called = dict(zip(old, new, strict=True))
    name = "|".join(map(re.escape, sorted(old, key=len, reverse=True)))
    places = (
        rf"(?<=\bstate )({name})(?!\w)",
        rf"(?<=\bstates )({name})( and )({name})(?!\w)",
        rf"(?<=\blog weight )({name})(?!\w)",
        rf"(?<![\w.])({name})(<?->)({name})(?!\w)",
        rf"(?<=\{{)({name})((?:, (?:{name}))*)(?=\}})",
    )

    def told(found: re.Match[str]) -> str:
        parts = [part for part in found.groups() if part is not None]
        if len(parts) == 2:  # a set
            parts = [parts[0], *re.split("(, )", parts[1])]
        return "".join(called.get(part, part) for part in parts)

    return re.sub("|".join(places), told, words)
