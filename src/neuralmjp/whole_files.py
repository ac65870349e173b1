"""Files that appear whole or not at all, and stay if the power fails a moment later."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write beside `path`, flush to disk, and only then take its place; the one before stays where that fails."""
    if path.exists() and not path.is_file():  # a pipe, the terminal; or a folder, which is refused
        with open(path, "wb") as file:
            write(file)
        return
    unfinished = path.with_name(f"{path.name}.part")
    try:
        with open(unfinished, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        with suppress(OSError):  # half a file would keep a full disk full
            unfinished.unlink(missing_ok=True)
    flush_folder(path.parent)


def write_whole_text(path: Path, text: str) -> None:
    write_whole(path, lambda file: file.write(text.encode()))


def flush_folder(folder: Path) -> None:
    """Names on disk too, where the system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
