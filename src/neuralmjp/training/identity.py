"""Whether a run that goes on is the same run: which names differ, with their old and new values."""

import json
from pathlib import Path
from typing import Any

from ..errors import InputError

LONGEST = 60  # characters of a value that are shown
MOST = 6  # differences that are shown


def require_same(known: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    """Raise, in one line, unless a checkpoint was made with what is asked for now."""
    different = [name for name in now if known.get(name) != now[name]]
    if not different:
        return
    each = [f"{name} ({_told(known.get(name), now[name])})" for name in different]
    raise InputError(
        f"the checkpoint in {folder} was made with another {', another '.join(each)}: use the same, or do not resume"
    )


def _told(known: Any, now: Any) -> str:
    """`width 8, now 16; steps 100, now 200`: by the names of what differs, where it has some."""
    found = _differences("", known, now)
    shown = ["{} {}, now {}".format(name, *_short(old, new)).strip() for name, old, new in found[:MOST]]
    return "; ".join([*shown, *([f"and {len(found) - MOST} more"] if len(found) > MOST else [])])


def _differences(name: str, known: Any, now: Any) -> list[tuple[str, Any, Any]]:
    if not (isinstance(known, dict) and isinstance(now, dict)):
        return [(name, known, now)]
    found = []
    for key in dict.fromkeys((*known, *now)):
        if known.get(key) != now.get(key):
            found += _differences(f"{name}.{key}".strip("."), known.get(key), now.get(key))
    return found


def _short(*values: Any) -> list[str]:
    """As text; where that is long, what stands around the first difference."""
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    if max(map(len, texts)) <= LONGEST:
        return texts
    same = next((k for k, pair in enumerate(zip(*texts, strict=False)) if len(set(pair)) > 1), min(map(len, texts)))
    first = max(same - LONGEST // 3, 0)
    return [f"{'...' * (first > 0)}{text[first : first + LONGEST]}..." for text in texts]
