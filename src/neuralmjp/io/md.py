"""Molecular-dynamics trajectories, whatever MDTraj loads: angles, distances or positions; times in ps.

Files are read a piece at a time, and of each frame only the atoms that are needed, so that memory stays bounded.
"""

import ctypes
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float64, Int

from ..errors import InputError
from ..timeseries import TimeSeries
from .arrays import from_arrays
from .columns import Request
from .extras import needed
from .files import check_readable

FEATURES = "dihedrals, sincos, distances:0-4,3-7 or positions:CA"
_SELF_DESCRIBING = (".pdb",)
_PIECE = 1 << 20  # coordinates in memory at a time


class Features(NamedTuple):
    """What is read off a frame."""

    names: list[str]
    atoms: Int[np.ndarray, "atom"]  # those that are needed, in rising order
    measure: Callable[[Any], np.ndarray]  # of a piece with these atoms alone -> (frame, feature)


def read(path: Path, request: Request) -> TimeSeries:
    """Read the features of every frame of a trajectory."""
    request.only(("topology", "features", "rate"), path, "a molecular-dynamics file")
    md = load(path)
    structure = _structure(md, path, request.topology)
    features = _features(md, structure, request.features or "dihedrals", str(request.topology or path))
    times, values = [], []
    try:
        for piece in _pieces(md, path, structure, features.atoms):
            times.append(np.asarray(piece.time, np.float64))
            values.append(features.measure(piece))
    except InputError:
        raise
    except Exception as error:  # whatever the parser stumbles over
        raise _unreadable(path, structure, error) from None
    if not times:
        raise InputError(f"{path}: has no frames; write or copy it again")
    frames = np.concatenate(values).astype(np.float64)
    clock = np.concatenate(times) if request.rate is None else np.arange(len(frames)) / request.rate
    try:
        return from_arrays(even(clock), frames, time_unit="ps", names=[path.stem], value_names=features.names)
    except InputError as error:
        raise InputError(f"{path}, {error}; --rate gives frames a clock") from None


def load(path: Path) -> Any:
    """The library that this kind of file needs."""
    return needed("mdtraj", "md", f"{path}: a molecular-dynamics file")


def even(times: Float64[np.ndarray, "frame"]) -> Float64[np.ndarray, "frame"]:
    """Times that are even but for their few digits, in all digits: trajectories keep times in single precision."""
    if len(times) < 3 or not np.isfinite(times).all():
        return times
    step = float(f"{(times[-1] - times[0]) / (len(times) - 1):.6g}")
    grid = times[0] + step * np.arange(len(times))
    digits = 2 * float(np.spacing(np.float32(np.abs(times).max()))) + 1e-6 * abs(grid[-1] - times[0])
    return grid if step > 0 and np.abs(times - grid).max() <= digits else times


def _structure(md: Any, path: Path, topology: Path | None) -> Any:
    """The molecule: a first frame where the topology holds one, else its atoms alone."""
    if topology is None:
        if path.suffix.lower() not in _SELF_DESCRIBING:
            raise InputError(f"{path}: a trajectory does not name its atoms; give --topology, such as a .pdb")
        topology = path
    check_readable(topology)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return md.load_frame(str(topology), 0)
            except (OSError, TypeError, ValueError, KeyError):
                return md.load_topology(str(topology))
    except Exception as error:
        raise InputError(f"{topology}: cannot be read as a topology ({_reason(error)}); give a .pdb") from None


def _pieces(md: Any, path: Path, structure: Any, atoms: np.ndarray) -> Iterator[Any]:
    topology = getattr(structure, "topology", structure)
    n_frames = max(_PIECE // (3 * topology.n_atoms), 1)
    top = {} if path.suffix.lower() in _SELF_DESCRIBING else {"top": topology}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pieces = md.iterload(str(path), chunk=n_frames, atom_indices=atoms, **top)
        while True:
            with _hushed():
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece


@contextmanager
def _hushed() -> Iterator[None]:
    """Silence for what C code prints: readers of trajectories chat on standard output, and complain beside it."""
    try:
        flush, own = ctypes.CDLL(None).fflush, (os.dup(1), os.dup(2))
    except (OSError, TypeError):  # no C library to be asked, or nowhere to print
        yield
        return
    flush(None)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        flush(None)
        for stream, known in zip((1, 2), own, strict=True):
            os.dup2(known, stream)
            os.close(known)
        os.close(nowhere)


def _features(md: Any, structure: Any, wanted: str, source: str) -> Features:
    kind, _, which = wanted.partition(":")
    topology = getattr(structure, "topology", structure)
    if kind in ("dihedrals", "sincos") and not which:
        return _dihedrals(md, topology, kind == "sincos", source)
    if kind == "distances" and which:
        return _distances(md, topology, which, source)
    if kind == "positions" and which:
        return _positions(structure, which, source)
    raise InputError(f"--features is {FEATURES}; got {wanted!r}")


def _dihedrals(md: Any, topology: Any, split: bool, source: str) -> Features:
    from mdtraj.geometry.dihedral import indices_phi, indices_psi

    quads = {"phi": np.reshape(indices_phi(topology), (-1, 4)), "psi": np.reshape(indices_psi(topology), (-1, 4))}
    if not sum(map(len, quads.values())):
        raise InputError(f"{source}: no backbone with angles phi or psi; choose other --features: {FEATURES}")
    single = max(map(len, quads.values())) == 1
    middle = {"phi": 2, "psi": 1}  # the alpha carbon, whose residue the angle belongs to
    angles = [
        (name if single else f"{name}_{topology.atom(int(quad[middle[name]])).residue.index + 1}", quad)
        for name, found in quads.items()
        for quad in found
    ]
    angles.sort(key=lambda angle: int(angle[1][1 if angle[0].startswith("psi") else 2]))  # phi, psi of each residue
    names = [name for name, _ in angles]
    atoms, local = _local(np.array([quad for _, quad in angles]))

    def measure(piece: Any) -> np.ndarray:
        found = md.compute_dihedrals(piece, local)
        return np.stack([np.sin(found), np.cos(found)], axis=-1).reshape(len(found), -1) if split else found

    return Features([f"{part}_{name}" for name in names for part in ("sin", "cos")] if split else names, atoms, measure)


def _distances(md: Any, topology: Any, which: str, source: str) -> Features:
    try:
        pairs = np.array([[int(number) for number in pair.split("-")] for pair in which.split(",")])
        if pairs.ndim != 2 or pairs.shape[1] != 2 or np.any(pairs[:, 0] == pairs[:, 1]):
            raise ValueError
    except ValueError:
        raise InputError(
            f"--features distances takes pairs of atoms, such as distances:0-4,3-7; got {which!r}"
        ) from None
    _check_atoms(pairs, topology, source)
    names = [f"distance {a}-{b} (nm)" for a, b in pairs.tolist()]
    atoms, local = _local(pairs)
    return Features(names, atoms, lambda piece: md.compute_distances(piece, local))


def _positions(structure: Any, which: str, source: str) -> Features:
    """Coordinates once every frame has been turned and shifted onto the topology's own structure."""
    if getattr(structure, "xyz", None) is None:
        raise InputError(f"{source}: positions are taken against a structure; give --topology with one, such as a .pdb")
    words = [word.strip() for word in which.split(",")]
    known = list(structure.topology.atoms)
    atoms = [atom.index for atom in known if atom.name in words or str(atom.index) in words]
    unknown = [word for word in words if not any(word in (atom.name, str(atom.index)) for atom in known)]
    if unknown:
        raise InputError(f"{source}: no atom {unknown[0]!r}; atoms are given by name, or by number from 0")
    if len(atoms) < 3:
        raise InputError(
            f"--features positions needs three atoms or more to lay frames over each other, not {len(atoms)}"
        )
    reference = np.asarray(structure.xyz[0, atoms], np.float64)
    names = [f"{_residue(known[atom])}-{known[atom].name} {axis} (nm)" for atom in atoms for axis in "xyz"]
    return Features(names, np.array(atoms), lambda piece: superposed(piece.xyz, reference).reshape(len(piece), -1))


def _residue(atom: Any) -> str:
    """`ALA2`: numbered from 1 through all chains, so that no two are called the same."""
    return f"{atom.residue.name}{atom.residue.index + 1}"


def superposed(
    frames: Float[np.ndarray, "frame atom axis"], reference: Float64[np.ndarray, "atom axis"]
) -> Float64[np.ndarray, "frame atom axis"]:
    """Each frame turned and shifted onto the reference with least squares (Kabsch 1976)."""
    centre = reference.mean(0)
    centred = np.asarray(frames, np.float64) - frames.mean(1, keepdims=True, dtype=np.float64)
    left, _, right = np.linalg.svd(np.einsum("fai,aj->fij", centred, reference - centre))
    left[:, :, -1] *= np.sign(np.linalg.det(left @ right))[:, None]  # a mirror image is no rotation
    return centred @ (left @ right) + centre


def _check_atoms(atoms: np.ndarray, topology: Any, source: str) -> None:
    if atoms.min() < 0 or atoms.max() >= topology.n_atoms:
        wrong = int(atoms.max() if atoms.max() >= topology.n_atoms else atoms.min())
        raise InputError(f"{source}: no atom {wrong}; atoms are 0 to {topology.n_atoms - 1}")


def _local(atoms: Int[np.ndarray, "feature atom"]) -> tuple[np.ndarray, np.ndarray]:
    """The atoms needed, and the same table in terms of their positions among these."""
    used = np.unique(atoms)
    return used, np.searchsorted(used, atoms)


def _unreadable(path: Path, structure: Any, error: Exception) -> InputError:
    n_atoms = getattr(structure, "topology", structure).n_atoms
    hint = f"is it cut short, or not of the {n_atoms} atoms that the topology has?"
    return InputError(f"{path}: cannot be read as a trajectory ({_reason(error)}); {hint}")


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
