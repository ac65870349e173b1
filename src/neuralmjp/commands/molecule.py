"""`neuralmjp simulate alanine-dipeptide`: molecular dynamics that goes on where it was cut off."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ..errors import InputError
from ..io import write
from ..io.files import replacing
from ..systems.alanine_dipeptide import AlanineDipeptide, Conformation
from ..timeseries import TimeSeries
from .show import console, number, progress_display, table

NAME = "alanine-dipeptide"
BLOCK = 100  # frames
KEEP_EVERY = 20.0  # seconds between what is kept on disk
MOST_NS = 100_000.0


def run(out: Path, ns: float | None, seed: int, foreign: list[str]) -> None:
    if foreign:
        raise InputError(f"{NAME} takes --ns, --seed and --out alone: leave out {', '.join(foreign)}")
    if ns is None or not 0 < ns <= MOST_NS:
        raise InputError(
            f"say how long to simulate {NAME} with --ns T, such as --ns 50" + (f"; got {ns}" if ns else "")
        )
    molecule = AlanineDipeptide()
    n_frames = round(ns * 1000 / molecule.frame)
    if n_frames < 2:
        raise InputError(f"--ns {ns:g} is no more than one frame of {molecule.frame:g} ps: simulate longer")
    kept = out.with_name(f"{out.name}.partial.npz")
    with progress_display() as progress:
        angles, resumed = simulate(molecule, n_frames, seed, kept, progress)
    times = molecule.frame * np.arange(1, n_frames + 1)
    data = TimeSeries.from_arrays(times, angles, time_unit="ps", value_names=("phi", "psi"))
    write(data, out)
    kept.unlink(missing_ok=True)
    show(data, out, resumed)


def simulate(
    molecule: AlanineDipeptide, n_frames: int, seed: int, kept: Path, progress: Callable[[str, float], None]
) -> tuple[np.ndarray, int]:
    """Angles of every frame, block by block, and how many of them were found in the file `kept`."""
    done, now = resume(kept, molecule, seed) if kept.exists() else ([], molecule.start(seed))
    resumed, last = BLOCK * len(done), time.monotonic()
    while BLOCK * len(done) < n_frames:
        progress("simulating", BLOCK * len(done) / n_frames)
        angles, now = molecule.block(now, BLOCK, seed=seed, number=len(done))
        done.append(angles)
        if time.monotonic() - last > KEEP_EVERY:
            keep(kept, molecule, seed, done, now)
            last = time.monotonic()
    return np.concatenate(done)[:n_frames], min(resumed, n_frames)


def keep(path: Path, molecule: AlanineDipeptide, seed: int, done: list[np.ndarray], now: Conformation) -> None:
    with replacing(path) as temporary:
        np.savez(temporary, angles=np.array(done), settings=settings(molecule, seed), **now._asdict())


def resume(path: Path, molecule: AlanineDipeptide, seed: int) -> tuple[list[np.ndarray], Conformation]:
    """What an earlier run left: blocks of angles, and where the molecule was."""
    found: dict[str, Any] = {}
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in ("angles", "settings", *Conformation._fields)}
        shapes = found["angles"].shape[1:], found["positions"].shape, found["velocities"].shape
        whole = shapes == ((BLOCK, 2), (22, 3), (22, 3)) and all(np.isfinite(array).all() for array in found.values())
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
        whole = False
    if not whole:
        raise InputError(f"{path}: what an earlier run left is damaged; remove it to begin anew")
    if not np.array_equal(found["settings"], settings(molecule, seed)):
        raise InputError(f"{path}: an earlier run had another --seed; give that one, or remove the file to begin anew")
    return list(found["angles"]), Conformation(found["positions"], found["velocities"])


def settings(molecule: AlanineDipeptide, seed: int) -> np.ndarray:
    """What must be the same for a run to go on."""
    return np.array([seed, molecule.temperature, molecule.friction, molecule.step, molecule.frame])


def show(data: TimeSeries, out: Path, resumed: int) -> None:
    screen = console()
    went_on = f", {resumed} of them from an earlier run" if resumed else ""
    screen.print(f"{NAME}: {data.n_observations} frames, 1 ps apart{went_on} -> {out}", soft_wrap=True)
    phi, psi = np.rad2deg(data.values.T)
    left, helix = phi > 0, (phi <= 0) & (np.abs(psi + 35) < 85)  # everybody's names for regions of the plane
    rows = [
        [name, number(float(share.mean()))]
        for name, share in {"phi > 0": left, "helical": helix, "extended": ~left & ~helix}.items()
    ]
    screen.print(table("Share of the frames", ["region", ""], rows))
