"""Work for ensembles in tests: workers in other processes import it by this name."""

import os
import time
from pathlib import Path

from neuralmjp import InputError


def powers(base, asked):
    return {"power": base ** asked["n"]}


def leaving_traces(folder, asked):
    """Sleeps, and leaves a file that says so when it begins and another when it is done."""
    began = Path(folder) / f"began-{asked['n']}-{time.time_ns()}-{os.getpid()}"
    began.touch()
    time.sleep(asked["seconds"])
    began.with_name(began.name.replace("began", "done")).touch()
    return {"n": asked["n"], "square": asked["n"] ** 2}


def refusing(_, asked):
    if asked["n"] == 2:
        raise InputError("two is too many; ask for one")
    return {"n": asked["n"]}


def failing(folder, asked):
    """A fault that is not about the input, the first `times` times."""
    before = len(list(Path(folder).iterdir()))
    (Path(folder) / f"try-{time.time_ns()}").touch()
    if before < asked["times"]:
        raise RuntimeError("a disk is full")
    return {"tries": before + 1}


def missing(_, asked):
    import no_such_package  # type: ignore[import-not-found]  # noqa: F401


def deadly(_, asked):
    os.kill(os.getpid(), 9)


def where(_, asked):
    names = ("OMP_NUM_THREADS", "XLA_PYTHON_CLIENT_PREALLOCATE")
    return {"process": os.getpid(), **{name: os.environ.get(name, "") for name in names}}
