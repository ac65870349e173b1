"""Reads broken files one after the other, in a process that may crash: whoever started it sees how far it came.

    python fuzz_worker.py SAMPLES READERS SEED FIRST LAST

A line of JSON for every file: read, refused in one line, slow, or failed and why.
"""

import contextlib
import io
import json
import logging
import random
import resource
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults.mutations import mutated, mutated_json, mutated_npz
from neuralmjp import InputError
from neuralmjp.io import apart, read

SECONDS = 5  # of the processor
HANGS = 30  # seconds by the clock
MEMORY = 1 << 30  # beyond what the process has when it begins
CURRENT = "current"


class Reader(NamedTuple):
    """A sound file or folder among the samples, how to break one of its files, and how to read it."""

    sample: str
    read: Callable[[Path], Any]
    breaks: Callable[[bytes, random.Random], bytes]
    files: tuple[str, ...] = ()  # of a folder: those to be broken


def text(whole: bytes, rng: random.Random) -> bytes:
    return mutated(whole, rng, text=True)


def arrays_or_json(whole: bytes, rng: random.Random) -> bytes:
    if whole[:2] == b"PK":
        return mutated_npz(whole, rng)
    if whole[:1] != b"{" or rng.random() < 0.3:
        return text(whole, rng)
    return json.dumps(mutated_json(json.loads(whole), rng)).encode()


def trajectory(path: Path) -> Any:
    return read(path, topology=Path(sys.argv[1]) / "atoms.pdb")


def model(path: Path) -> Any:
    from neuralmjp import FittedMJP, FittedNetwork, fitted_files, fitted_network_files
    from neuralmjp.commands.runs import load_any

    found = load_any(path)
    assert isinstance(found, FittedMJP | FittedNetwork)
    of = fitted_files if isinstance(found, FittedMJP) else fitted_network_files
    return json.dumps(of.summary(found), allow_nan=False)


def run_folder(path: Path) -> Any:
    from neuralmjp.cli_types import Reading
    from neuralmjp.commands import report
    from neuralmjp.commands.runs import columns_of

    return report.run(path, None, columns_of(path, Reading()), path / "report.html")


def checkpoint(path: Path) -> Any:
    from faults.samples import resumed

    return resumed(path)


def network(path: Path) -> Any:
    from neuralmjp.systems import named

    return named(str(path))


def mask(path: Path) -> Any:
    from neuralmjp.commands.fit import read_mask

    return read_mask(path)


def store(path: Path) -> Any:
    """Chunk by chunk, as training reads it, and whole."""
    from neuralmjp.io import open_store

    found = open_store(path)
    for k in range(len(found)):
        found.chunk(k)
    return found.whole()


def rated(path: Path) -> Any:
    return read(path, rate="5kHz")


READERS = {
    "csv": Reader("data.csv", read, text),
    "tsv": Reader("data.tsv", read, text),
    "text": Reader("plain.txt", rated, text),
    "gzip": Reader("data.csv.gz", read, mutated),
    "parquet": Reader("data.parquet", read, mutated),
    "npz": Reader("data.npz", read, mutated_npz),
    "unnamed npz": Reader("frames.npz", read, mutated_npz),
    "mask": Reader("mask.csv", mask, text),
    "network file": Reader("births.network", network, text),
    "parquet folder": Reader("parts", store, mutated, ("part-00000.parquet", "part-00001.parquet")),
    "zarr": Reader(
        "data.zarr",
        store,
        arrays_or_json,
        ("zarr.json", "times/zarr.json", "values/zarr.json", "values/c/0/0", "times/c/0", "offsets/c/0", "names/c/0"),
    ),
    "hdf5": Reader("data.h5", read, mutated),
    "matlab": Reader("data.mat", read, mutated),
    "abf": Reader("cell.abf", read, mutated),
    "dcd": Reader("run.dcd", trajectory, mutated),
    "xtc": Reader("run.xtc", trajectory, mutated),
    "trr": Reader("run.trr", trajectory, mutated),
    "netcdf": Reader("run.nc", trajectory, mutated),
    "pdb": Reader("run.pdb", read, text),
    "sbml": Reader("births.xml", network, text),
    "model": Reader("model", model, arrays_or_json, ("model.json", "arrays.npz")),
    "network model": Reader("network", model, arrays_or_json, ("model.json", "arrays.npz")),
    "run folder": Reader(
        "run",
        run_folder,
        arrays_or_json,
        ("columns.json", "source.json", "checks.json", "history.csv", "model.json"),
    ),
    "checkpoint": Reader(
        "training",
        checkpoint,
        arrays_or_json,
        ("checkpoints/000008.npz", "checkpoints/000012.npz", "checkpoints/index.json"),
    ),
}


class TooLong(BaseException):
    """A file that takes more time than anybody has."""


def alarm(*_: Any) -> None:
    raise TooLong


def broken_copy(reader: Reader, samples: Path, rng: random.Random) -> Path:
    """A copy of the sample in which one file is broken."""
    sample, place = samples / reader.sample, samples / CURRENT / reader.sample
    if sample.is_dir():
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(sample, place)
        name = rng.choice(reader.files)
        (place / name).write_bytes(reader.breaks((sample / name).read_bytes(), rng))
    else:
        place.write_bytes(reader.breaks(sample.read_bytes(), rng))
    return place


def tried(reader: Reader, path: Path) -> tuple[str, str]:
    """What came of a file, and why that is wrong, if it is."""
    began = time.process_time()  # a busy machine is not the file's fault
    signal.alarm(HANGS)
    try:
        reader.read(path)
        outcome = "read"
    except InputError as error:
        if "\n" in str(error) or not str(error).strip():
            return "failed", f"more than one line: {error}"
        outcome = "refused"
    except TooLong:
        return "slow", "too long"
    except BaseException as error:
        return "failed", " ".join(f"{type(error).__name__}: {error}".split())[:300]
    finally:
        signal.alarm(0)
    seconds = time.process_time() - began
    return (outcome, "") if seconds < SECONDS else ("slow", f"{seconds:.1f} s")


def fuzz(samples: Path, name: str, seed: int, first: int, last: int) -> None:
    """Read so many broken files; the number of each is noted before it is read."""
    reader, progress = READERS[name], samples / CURRENT / "progress"
    for number in range(first, last):
        path = broken_copy(reader, samples, random.Random(f"{name} {seed} {number}"))
        progress.write_text(f"{name}/{number}")
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            outcome, why = tried(reader, path)
        print(json.dumps({"reader": name, "number": number, "outcome": outcome, "why": why}), flush=True)


def main(samples: Path, names: str, seed: str, first: str, last: str) -> None:
    logging.disable()
    apart.SUFFIXES = ()  # here, where a crash is seen; what crashes is read again as users read it
    signal.signal(signal.SIGALRM, alarm)
    (samples / CURRENT).mkdir(exist_ok=True)
    for name in names.split(","):
        reader = READERS[name]
        with contextlib.redirect_stdout(io.StringIO()):
            reader.read(samples / reader.sample)  # whole, it is read; and whatever is loaded once is loaded
        begins_with = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (begins_with + MEMORY, resource.RLIM_INFINITY))
        fuzz(samples, name, int(seed), int(first), int(last))
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
