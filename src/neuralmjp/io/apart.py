"""Reading in a process of its own: some libraries crash, hang or take all memory over a broken file.

The child says that it is ready, reads, and sends a line of JSON and then the arrays, or why there are none. The time
and the memory that it may take depend on the size of the file.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..timeseries import TimeSeries
from .columns import Request

SUFFIXES = (".h5", ".hdf5", ".mat", ".abf", ".dcd", ".xtc", ".trr")
READY = b"ready\n"
PATIENCE = 4.0  # seconds, and more for large files:
BYTES_PER_SECOND = 1e6
MEMORY, TIMES_ITS_SIZE = 1 << 30, 100
ARRAYS = ("times", "values", "offsets")
TEXTS = ("names", "value_names", "time_unit", "origin")


def read(path: Path, request: Request) -> TimeSeries:
    """As the module for this kind of file reads it, or one line that says that it cannot be read."""
    question = {"path": str(path), "request": asdict(request)}
    command = [sys.executable, "-c", f"from {__name__} import answer; answer()"]
    limit, late = PATIENCE + path.stat().st_size / BYTES_PER_SECOND, threading.Event()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment()
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(question, default=str).encode())
        child.stdin.close()
        ready = child.stdout.readline()  # or why it cannot be, or nothing if it is dead
        timer = threading.Timer(limit, lambda: (late.set(), child.kill()))
        timer.start()
        try:
            said = child.stdout.readline() if ready == READY else ready
        finally:
            timer.cancel()
        if said:
            return _received(json.loads(said), child.stdout)
    if late.is_set():
        raise InputError(f"{path}: reading it takes for ever, it is damaged; write or copy it again")
    reason = signal.Signals(-child.returncode).name if child.returncode < 0 else f"status {child.returncode}"
    raise InputError(f"{path}: the library that reads it crashed ({reason}), it is damaged; write or copy it again")


def answer() -> None:
    """What the child does."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what C code prints
    question = json.load(sys.stdin)
    path, topology = Path(question["path"]), question["request"]["topology"]
    request = Request(**{**question["request"], "topology": None if topology is None else Path(topology)})
    try:
        from . import module_of

        module = module_of(path)
        module.load(path)
        out.write(READY)
        out.flush()
        _bound_memory(path)
        _send(module.read(path, request), out)
    except InputError as error:
        out.write(json.dumps({"error": str(error)}).encode() + b"\n")
    except MemoryError:
        damaged = (
            f"{path}: asks for more memory than a file of its size can need, it is damaged; write or copy it again"
        )
        out.write(json.dumps({"error": damaged}).encode() + b"\n")
    out.flush()
    os._exit(0)  # whatever else a broken file may have done to a library


def _environment() -> dict[str, str]:
    """The same packages as here, wherever these were found."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _bound_memory(path: Path) -> None:
    try:
        import resource

        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = now + MEMORY + TIMES_ITS_SIZE * path.stat().st_size
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))
    except (ImportError, OSError, ValueError):
        return  # not on this system


def _send(data: TimeSeries, out: Any) -> None:
    arrays = [np.ascontiguousarray(getattr(data, name)) for name in ARRAYS]
    kinds = [[one.dtype.str, one.shape] for one in arrays]
    said = {"arrays": kinds} | {name: getattr(data, name) for name in TEXTS}
    out.write(json.dumps(said).encode() + b"\n")
    for one in arrays:
        out.write(one.data)


def _received(said: dict[str, Any], source: Any) -> TimeSeries:
    if "error" in said:
        raise InputError(said["error"])
    found = {}
    for name, (kind, shape) in zip(ARRAYS, said["arrays"], strict=True):
        found[name] = np.empty(shape, kind)
        source.readinto(memoryview(found[name]).cast("B"))
    texts: dict[str, Any] = {name: said[name] for name in TEXTS}
    texts |= {name: tuple(said[name]) for name in ("names", "value_names")}
    return TimeSeries(**found, **texts)
