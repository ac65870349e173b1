"""One fit at a time in a folder: a lock that goes with the process that holds it, however that ends."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from ..errors import InputError
from .mesh import writes

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

FILE = ".lock"
Result = TypeVar("Result")
_held: ContextVar[frozenset[Path]] = ContextVar("_held", default=frozenset())  # by those who called us


@contextmanager
def locked(folder: Path | None) -> Iterator[None]:
    """Hold a folder, which is made if need be; refused in one line while another fit does.

    Of several hosts that work together, the one that writes holds it for all.
    """
    if folder is None or fcntl is None or folder.resolve() in _held.get() or not writes():
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / FILE, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error}); choose another folder") from None
    try:
        _take(handle, folder)
        token = _held.set(_held.get() | {folder.resolve()})
        try:
            yield
        finally:
            _held.reset(token)
    finally:
        os.close(handle)  # which gives the lock back


def _take(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[union-attr]
    except BlockingIOError:
        who = os.pread(handle, 20, 0).decode(errors="replace").strip()
        raise InputError(
            f"{folder} is in use by another fit{f', process {who}' if who.isdecimal() else ''}: "
            "wait for its end, or choose another folder"
        ) from None
    except OSError:
        return  # a file system without locks
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        pass  # a full disk: the lock holds without the number


def alone(work: Callable[..., Result]) -> Callable[..., Result]:
    """What is done in a folder, given by that name, is done by one at a time."""

    @wraps(work)
    def inside(*arguments: Any, folder: Path | None, **options: Any) -> Result:
        with locked(folder):
            return work(*arguments, folder=folder, **options)

    return inside
