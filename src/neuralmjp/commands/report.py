"""`neuralmjp report`: a fit as one HTML file."""

import csv
from pathlib import Path
from typing import Any

from ..fitted_files import read_json
from ..io import is_store, open_store
from ..report import Finding, Source, write_report
from ..shapes import require_shape
from .runs import CHECKS_FILE, HISTORY_FILE, REPORT_FILE, SOURCE_FILE, counted_for, load_any, read_for, unit_for
from .show import console

SOURCE = {"data": (str, None), "command": (str, None)}
CHECKS = {"checks": [{"check": str, "passed": (bool, None), "sentence": str}]}


def run(folder: Path, data: Path | None, columns: dict[str, Any], out: Path | None) -> None:
    fitted = load_any(folder)
    known = stored(folder / SOURCE_FILE, SOURCE)
    path = data or known.get("data")
    screen = console()
    found = None
    if path is None or not Path(path).exists():
        screen.print(f"without the hidden path: {path or 'the data'} is not there; name it after RUN", soft_wrap=True)
    elif is_store(path):
        unit = unit_for(fitted, columns)
        store = open_store(path, **columns | {"time_unit": unit})
        first = store.chunk(0)
        found = None if first is None else counted_for(fitted, first, unit, path)
        screen.print(f"the hidden path is that of the first of {len(store)} parts of {path}", soft_wrap=True)
    else:
        found = read_for(fitted, Path(path), columns)
    source = Source(
        data=Path(path).name if path else "",
        command=known.get("command") or "",
        history=history_of(folder),
        findings=checks_of(folder),
    )
    file = out or folder / REPORT_FILE
    write_report(fitted, file, data=None if found is None else found.in_unit(fitted.time_unit), source=source)
    screen.print(f"report -> {file}", soft_wrap=True)


def stored(file: Path, shape: dict[str, Any]) -> dict[str, Any]:
    """What a fit or a validation wrote of itself; nothing if that is gone or damaged."""
    try:
        known = read_json(file)
        require_shape(known, shape)
    except (OSError, ValueError):
        return {}
    return known


def checks_of(folder: Path) -> list[Finding]:
    """What `neuralmjp validate` found, or that nobody has asked it."""
    checks = stored(folder / CHECKS_FILE, CHECKS).get("checks")
    if not checks:
        return [Finding(None, "Not validated yet: neuralmjp validate RUN DATA, then report again.")]
    words = {True: "passed", False: "failed", None: "not done"}
    return [Finding(one["passed"], f"{one['check']} {words[one['passed']]}: {one['sentence']}") for one in checks]


def history_of(folder: Path) -> list[dict[str, Any]]:
    """Rounds of a training, if there was one."""
    try:
        with open(folder / HISTORY_FILE, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return [{"step": float(row["step"]), "objective": float(row["objective"])} for row in rows]
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return []
