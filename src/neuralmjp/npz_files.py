"""NumPy's .npz, read with suspicion: nothing is unpickled, and no more memory is taken than the file has bytes for."""

import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from .errors import DamagedFile

MOST_MEMBERS = 100_000
SMALL = 1 << 28  # what unpacks to less is never a trap
MOST_PACKED = 100.0  # times the file's own size that a larger one may unpack to
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)  # passwords too


def read_npz(path: Path, wanted: Callable[[str], bool] = lambda _: True) -> dict[str, np.ndarray]:
    """The arrays of a file, by name; one line for whatever is not plain numbers or text."""
    with NpzFile(path) as file:
        return {name: file.array(name) for name in file.names if wanted(name)}


class NpzFile:
    """The arrays of a file, each read when it is asked for."""

    def __init__(self, path: Path):
        self._path = path
        try:
            self._file = open(path, "rb")  # noqa: SIM115
        except OSError as error:
            raise DamagedFile(f"{path}: cannot be read ({error.strerror or error})") from None
        try:
            self._members = self._listed()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "NpzFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def names(self) -> list[str]:
        return list(self._members)

    def array(self, name: str) -> np.ndarray:
        """One array, once its header is known to promise no more than there is."""
        where = f"{self._path}, array {name!r}"
        member = self._members[name]
        try:
            with self._zip.open(member) as stream:
                dtype = _checked(stream, member.file_size, where)
            if dtype.hasobject:
                # Reading Python objects could run any code that the file brings along.
                raise DamagedFile(f"{where}: holds Python objects; save it as numbers or text")
            with self._zip.open(member) as stream:
                found = npy.read_array(stream, allow_pickle=False)
                if stream.read(1):  # to its end, where the checksum is looked at
                    raise DamagedFile(f"{where}: is damaged; copy the file again")
                return found
        except DamagedFile:
            raise
        except Exception:  # whatever the parser stumbles over
            raise DamagedFile(f"{where}: is damaged; copy the file again") from None

    def _listed(self) -> dict[str, zipfile.ZipInfo]:
        advice = "is not an .npz file, or cut short; save it with numpy.savez or copy it again"
        try:
            self._zip = zipfile.ZipFile(self._file)
            members = self._zip.infolist()
        except (*BROKEN, ValueError, UnicodeDecodeError, IndexError):
            raise DamagedFile(f"{self._path}: {advice}") from None
        size, unpacked = os.fstat(self._file.fileno()).st_size, sum(one.file_size for one in members)
        if is_trap(size, unpacked) or len(members) > MOST_MEMBERS:
            raise DamagedFile(
                f"{self._path}: {size} bytes would unpack to {unpacked} in {len(members)} arrays; "
                "save it with numpy.savez, which does not compress"
            )
        return {one.filename.removesuffix(".npy"): one for one in members}


def is_trap(size: int, unpacked: int) -> bool:
    """Whether a file of so many bytes unpacks to a size that no data have."""
    return unpacked > max(SMALL, MOST_PACKED * size)


def _checked(stream: Any, size: int, where: str) -> np.dtype:
    """The kind of numbers, if the header is sound and promises as many as there are."""
    version = npy.read_magic(stream)
    # What the third version changed, names in fields, no plain array has.
    reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if reader is None:
        raise DamagedFile(f"{where}: is not in a form of .npy that is known here; save it as numbers or text")
    shape, _, dtype = reader(stream)
    promised = dtype.itemsize
    for length in shape:
        promised *= length
    if not dtype.hasobject and (min(shape, default=0) < 0 or promised != size - stream.tell()):
        raise DamagedFile(f"{where}: is damaged; copy the file again")
    return dtype
