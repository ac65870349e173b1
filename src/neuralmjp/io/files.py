"""What every file format needs: a look before reading, and writing that never leaves half a file."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InputError
from ..npz_files import is_trap
from ..timeseries import TimeSeries


def check_readable(path: Path) -> None:
    """Raise `InputError` unless this is a file with something in it that may be read."""
    if os.path.isdir(path):  # False, not an error, where a folder above is closed to us
        raise InputError(f"{path}: is a directory without Parquet files; name a file in it")
    try:
        with open(path, "rb") as file:
            empty = not file.read(1)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except PermissionError:
        raise InputError(f"{path}: no permission to read it; change its mode or its owner") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    if empty:
        raise InputError(f"{path}: is empty (0 bytes); write or copy it again")


def in_unit(data: TimeSeries, unit: str, path: Path) -> TimeSeries:
    """Data of a file in the unit of time that was asked for."""
    try:
        return data.in_unit(unit)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def check_unpacked(path: Path, n_bytes: int, advice: str) -> None:
    """Raise `InputError` where a small file unpacks to a size that no data of its kind have."""
    size = path.stat().st_size
    if is_trap(size, n_bytes):
        raise InputError(f"{path}: {size} bytes would unpack to {n_bytes} or more; {advice}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its place once it is written whole."""
    # The name ends as the real one does, because formats are chosen by extension.
    temporary = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); choose another place") from None
    finally:
        if temporary.is_dir():  # some formats are folders
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
