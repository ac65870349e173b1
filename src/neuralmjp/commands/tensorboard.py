"""`neuralmjp tensorboard`: the log of a training as files that TensorBoard shows; while it runs, too."""

import json
import math
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..io.extras import needed
from ..training.run import LOG_FILE, NOTED
from .show import console

FOLDER = "tensorboard"


def run(folder: Path, out: Path | None) -> None:
    rounds = logged(folder / LOG_FILE)
    writers: dict[int, Any] = {}
    target = out or folder / FOLDER
    make = needed("tensorboardX", "tensorboard", "the export to TensorBoard").SummaryWriter
    for row in rounds:
        number = row["run"]
        if number not in writers:
            writers[number] = make(str(target / f"run-{number}"))
        for name, value in row["numbers"].items():
            writers[number].add_scalar(name, value, row["step"])
    for writer in writers.values():
        writer.close()
    console().print(f"{len(rounds)} rounds -> {target} (tensorboard --logdir {target})", soft_wrap=True)


def logged(file: Path) -> list[dict[str, Any]]:
    """Rounds in the log; a last line that is still being written is left for later."""
    if not file.is_file():
        raise InputError(f"{file} is not there: only a neural fit with --out keeps a log")
    rows = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(keepends=True), start=1):
        if not line.endswith("\n"):
            continue
        try:
            row = json.loads(line)
            row |= {"run": int(row["run"]), "step": int(row["step"]), "numbers": numbers_of(row)}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"{file}, line {number} is damaged: remove it and export again") from None
        rows.append(row)
    return rows


def numbers_of(row: dict[str, Any]) -> dict[str, float]:
    """The bound and its terms, and the logarithms of the parameters, by the name of their curve."""
    found = {name: float(row[name]) for name in NOTED}
    found |= {f"log_parameters/{k}": float(x) for k, x in enumerate(row["theta"])}
    return {name: value for name, value in found.items() if math.isfinite(value)}
