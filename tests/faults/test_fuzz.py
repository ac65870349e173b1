"""Broken files of every kind: each is read, or refused in one line, in 5 s and 1 GiB. Counts are printed."""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from faults import samples
from faults.fuzz_worker import CURRENT, HANGS, READERS, SECONDS, broken_copy
from neuralmjp import InputError
from neuralmjp.io import apart

pytest.importorskip("h5py")
pytest.importorskip("mdtraj")
pytest.importorskip("pyabf.abfWriter")
pytest.importorskip("libsbml")
pytest.importorskip("zarr")

WORKER = Path(__file__).with_name("fuzz_worker.py")
TABLES = ("csv", "tsv", "text", "gzip", "parquet", "npz", "unnamed npz", "mask", "network file")
STORES = ("parquet folder", "zarr")
NATIVE = ("hdf5", "matlab", "abf", "dcd", "xtc", "trr", "netcdf", "pdb", "sbml")
MODELS = ("model", "network model", "run folder", "checkpoint")
STUCK = HANGS + 2 * SECONDS  # without a word: in C code, where no alarm is heard


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Sound files of every kind."""
    folder = tmp_path_factory.mktemp("samples")
    samples.make_tables(folder)
    samples.make_recordings(folder)
    samples.make_models(folder)
    (folder / CURRENT).mkdir()
    return folder


class Tally(NamedTuple):
    """What came of broken files."""

    outcomes: list[tuple[str, str]]  # reader, and read or refused
    wrong: list[str]
    crashed: list[tuple[str, int]]  # a library in C, or it did not come back


def ran(folder: Path, names: tuple[str, ...], seed: int, first: int, last: int) -> tuple[list[dict], bool]:
    """Lines that a worker wrote, and whether it came to its end."""
    progress, log = folder / CURRENT / "progress", folder / CURRENT / "log"
    progress.write_text("")
    command = [sys.executable, WORKER, folder, ",".join(names), str(seed), str(first), str(last)]
    with open(log, "wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL) as worker:
        seen, since = "", time.monotonic()
        while worker.poll() is None:
            time.sleep(0.05)
            now = progress.read_text()
            seen, since = (now, time.monotonic()) if now != seen else (seen, since)
            if seen and time.monotonic() - since > STUCK:
                worker.kill()
    return [json.loads(line) for line in log.read_text().splitlines()], worker.returncode == 0


def fuzzed(folder: Path, names: tuple[str, ...], seed: int, count: int, first: int = 0) -> Tally:
    """So many broken files for each of the readers, whatever happens to the process that reads them."""
    lines, ended = ran(folder, names, seed, first, count)
    found = Tally([], [], [])
    for line in lines:
        reader, number, outcome = line["reader"], line["number"], line["outcome"]
        if outcome in ("read", "refused"):
            found.outcomes.append((reader, outcome))
        elif outcome == "slow" and Path(READERS[reader].sample).suffix in apart.SUFFIXES:
            found.crashed.append((reader, number))
        else:
            found.wrong.append(f"{reader} {seed} {number}: {line['why']}")
    if ended:
        return found
    name, _, number = (folder / CURRENT / "progress").read_text().partition("/")
    assert name in names, f"the worker for {names} did not begin"
    found.crashed.append((name, int(number)))
    later = names[names.index(name) + 1 :]
    parts = [fuzzed(folder, (name,), seed, count, int(number) + 1)] if int(number) + 1 < count else []
    parts += [fuzzed(folder, later, seed, count)] if later else []
    for part in parts:
        for mine, others in zip(found, part, strict=True):
            mine.extend(others)
    return found


def as_users_read_it(folder: Path, name: str, seed: int, number: int) -> str:
    """What users see of a file that crashed the bare library: one line, and soon."""
    path = broken_copy(READERS[name], folder, random.Random(f"{name} {seed} {number}"))
    assert path.suffix in apart.SUFFIXES, f"{name} {seed} {number} crashed, and nothing stands between it and users"
    sys.argv[1:2] = [str(folder)]
    began = time.monotonic()
    try:
        READERS[name].read(path)
        said = "read"
    except InputError as error:
        said = str(error)
        assert "\n" not in said
    assert time.monotonic() - began < apart.PATIENCE + 2 * SECONDS
    return said


def check(folder: Path, names: tuple[str, ...], count: int, seed: int) -> None:
    began = time.monotonic()
    tally = fuzzed(folder, names, seed, count)
    said = [as_users_read_it(folder, name, seed, number) for name, number in tally.crashed]
    seconds = time.monotonic() - began
    print(f"\n{count * len(names)} broken files for {len(names)} readers in {seconds:.0f} s, of which")
    counts = Counter(tally.outcomes)
    for name in names:
        print(f"  {name:>14}: {counts[name, 'read']} read, {counts[name, 'refused']} refused")
    assert len(tally.outcomes) + len(tally.wrong) + len(tally.crashed) == count * len(names)
    for one, words in zip(tally.crashed, said, strict=True):
        print(f"  {one[0]} {one[1]}: crashed or hung its library; users see: {words[-90:]}")
    assert tally.wrong == []


@pytest.mark.parametrize("names", [TABLES, STORES, NATIVE, MODELS], ids=["tables", "stores", "native", "models"])
def test_some_of_each(whole, names, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pytest", str(whole)])
    check(whole, names, 150, seed=int(os.environ.get("FUZZ_SEED", "0")))


@pytest.mark.slow
@pytest.mark.parametrize("names", [TABLES, STORES, NATIVE, MODELS], ids=["tables", "stores", "native", "models"])
def test_a_thousand_of_each(whole, names, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pytest", str(whole)])
    check(whole, names, 1000, seed=1)
