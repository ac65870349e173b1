"""Checkpoints: the state of a run, in numbered files that appear whole, with an index; reading executes nothing.

    checkpoints/000040.npz, checkpoints/000050.npz    by steps done: the last ones, and the best so far
    checkpoints/index.json                            which they are, and the objective of each

Any of them leads to the same end: a run that goes on from an older one only does some rounds again.
"""

import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import DamagedFile, InputError
from ..npz_files import NpzFile
from ..shapes import require_shape
from ..whole_files import write_whole, write_whole_text

FOLDER = "checkpoints"
INDEX = "index.json"
FORMAT, VERSION = "neuralmjp checkpoints", 1
SHAPE = {"format": str, "version": int, "checkpoints": [{"step": int, "objective": (float, None)}]}
LARGEST_INDEX = 1 << 20
META = "meta"
KEEP = 2  # the last ones; the best beside them
logger = logging.getLogger(__name__)


class Entry(NamedTuple):
    """A checkpoint in the index."""

    step: int
    objective: float | None  # mean over the round before it, of the best restart

    @property
    def file(self) -> str:
        return f"{self.step:06d}.npz"


def has_checkpoint(folder: Path) -> bool:
    """Whether a run left something to go on from."""
    return bool(_numbered(folder / FOLDER))


@dataclass
class Checkpoints:
    """Those of one run, in its folder."""

    run: Path
    keep: int = KEEP
    entries: list[Entry] = field(default_factory=list)  # by step

    @property
    def folder(self) -> Path:
        return self.run / FOLDER

    def save(self, tree: Any, meta: dict[str, Any], *, step: int, objective: float | None = None) -> None:
        """Add a checkpoint; those that are no longer needed go when it is safe, and not before."""
        entry = Entry(step, objective if objective is not None and np.isfinite(objective) else None)
        leaves = {f"leaf_{k:04d}": np.asarray(leaf) for k, leaf in enumerate(jax.tree.leaves(tree))}
        text = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
        kept = _worth_keeping([*self.entries, entry], self.keep)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / entry.file, lambda file: np.savez(file, **leaves, **{META: text}))  # type: ignore[arg-type]
            write_whole_text(self.folder / INDEX, _index(kept))
        except OSError as error:
            last = f"step {self.entries[-1].step} is safe" if self.entries else "nothing is saved yet"
            raise InputError(
                f"{self.folder}: the checkpoint of step {step} cannot be written ({error.strerror or error}), {last}: "
                "make room or choose another folder, then the same command with --resume goes on"
            ) from None
        self.entries = kept
        for old in set(_numbered(self.folder)) - {one.step for one in kept}:
            (self.folder / Entry(old, None).file).unlink(missing_ok=True)

    def load(self, like: Any, accept: Callable[[dict[str, Any]], Any]) -> tuple[Any, Any] | None:
        """The newest state that is whole, in the shape of `like`, and what `accept` made of its note; None if none.

        Args:
            accept: looks at the note first; raises `InputError` where it belongs to something else, and whatever it
                likes where the note is damaged.
        """
        known = _listed(self.folder)
        broken: list[str] = []
        for entry in reversed(known):
            try:
                tree, note = _read(self.folder / entry.file, like, accept)
            except DamagedFile as why:
                broken.append(str(why).partition(";")[0])  # without advice for other files
                continue
            if broken:
                logger.warning("%s; going on from step %d instead", "; ".join(broken), entry.step)
            self.entries = [one for one in known if one.step <= entry.step]
            return tree, note
        if broken:
            raise InputError(f"{'; '.join(broken)}: remove {self.folder} to start anew")
        return None


def _worth_keeping(entries: list[Entry], keep: int) -> list[Entry]:
    """The last ones, and the one with the highest objective."""
    by_step = sorted({one.step: one for one in entries}.values())
    scored = [one for one in by_step if one.objective is not None]
    best = max(scored, key=lambda one: one.objective, default=None)  # type: ignore[arg-type, return-value]
    return [one for one in by_step if one in by_step[-keep:] or one == best]


def _index(entries: list[Entry]) -> str:
    known = {"format": FORMAT, "version": VERSION, "checkpoints": [one._asdict() for one in entries]}
    return json.dumps(known, indent=2) + "\n"


def _numbered(folder: Path) -> list[int]:
    """Steps of which there are files, in rising order."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name[:-4]) for name in names if re.fullmatch(r"\d{6,12}\.npz", name))


def _listed(folder: Path) -> list[Entry]:
    """What the index says is there, by step; all numbered files where it cannot be read."""
    there, index = _numbered(folder), folder / INDEX
    if not there:
        return []
    try:
        if index.stat().st_size > LARGEST_INDEX:
            raise ValueError
        known = json.loads(index.read_text())
        require_shape(known, SHAPE)
        if known["format"] == FORMAT and known["version"] != VERSION:
            raise InputError(f"{index}: checkpoints of version {known['version']}, not {VERSION}; start anew")
        entries = [Entry(one["step"], one["objective"]) for one in known["checkpoints"]]
        return sorted(one for one in entries if one.step in there)
    except InputError:
        raise
    except (OSError, ValueError, RecursionError):
        logger.warning("%s cannot be read; looking at the checkpoints themselves", index)
        return [Entry(step, None) for step in there]


def _read(path: Path, like: Any, accept: Callable[[dict[str, Any]], Any]) -> tuple[Any, Any]:
    leaves, structure = jax.tree.flatten(like)
    names = [f"leaf_{k:04d}" for k in range(len(leaves))]
    foreign = InputError(f"{path} belongs to another model: remove it, or choose another folder")
    with NpzFile(path) as stored:
        if META not in stored.names:
            raise DamagedFile(f"{path}: is no checkpoint")
        note = _noted(path, stored.array(META), accept)
        if set(stored.names) != {*names, META}:
            raise foreign
        found = [stored.array(name) for name in names]
    if any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(found, leaves, strict=True)):
        raise foreign
    return jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in found]), note


def _noted(path: Path, text: np.ndarray, accept: Callable[[dict[str, Any]], Any]) -> Any:
    try:
        return accept(json.loads(text.tobytes().decode()))
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedFile(f"{path}: its note is damaged ({type(error).__name__})") from None
