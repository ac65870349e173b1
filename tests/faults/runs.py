"""A small neural fit in a process of its own, which tests interrupt, starve and kill."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from neuralmjp import systems, write

SIZES = ("width=4", "batch=4", "steps=600", "round_steps=3", "kl_warmup=600")
OPTIONS = tuple(word for size in SIZES for word in ("--set", size))


def make_data(folder: Path) -> Path:
    path = folder / "signal.csv"
    write(systems.TwoMode().simulate(8, 20, seed=1).data, path)
    return path


def words(data: Path, out: Path, *more: str) -> list[str]:
    """The command, as a shell would see it."""
    fit = ["fit", data, "--states", 2, "--engine", "neural", *OPTIONS, "--out", out, *more]
    return [sys.executable, "-m", "neuralmjp", *map(str, fit)]


def started(data: Path, out: Path, *more: str, **options) -> subprocess.Popen:
    return subprocess.Popen(
        words(data, out, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def steps_done(out: Path) -> int:
    """As the index tells it; 0 before the first checkpoint."""
    try:
        return json.loads((out / "checkpoints" / "index.json").read_text())["checkpoints"][-1]["step"]
    except FileNotFoundError:
        return 0


def numbers(out: Path) -> dict[str, bytes]:
    """All that a fit found, bit by bit; without the seconds that it took."""
    with np.load(out / "arrays.npz") as stored:
        arrays = {name: stored[name].tobytes() for name in stored.files}
    told = json.loads((out / "result.json").read_text())
    return arrays | {"result": json.dumps({k: v for k, v in told.items() if k != "seconds"}).encode()}
