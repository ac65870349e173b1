"""Checkpoints: the whole state of a run in one file, replaced in one move, read back without executing anything."""

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError

FILE = "checkpoint.npz"
META = "meta"


def save_checkpoint(folder: Path, tree: Any, meta: dict[str, Any]) -> None:
    """Write, flush to disk, and only then take the place of the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    leaves = {f"leaf_{k:04d}": np.asarray(leaf) for k, leaf in enumerate(jax.tree.leaves(tree))}
    text = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    unfinished = folder / (FILE + ".part")
    with open(unfinished, "wb") as file:
        np.savez(file, **leaves, **{META: text})  # type: ignore[arg-type]
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, folder / FILE)


def load_checkpoint(
    folder: Path, like: Any, require: Callable[[dict[str, Any]], None] = lambda _: None
) -> tuple[Any, dict[str, Any]] | None:
    """The last state saved, in the shape of `like`, and what was noted with it; None where there is no checkpoint.

    Args:
        require: looks at the note before the state is read, and raises where it belongs to something else.
    """
    path = folder / FILE
    if not path.exists():
        return None
    leaves, structure = jax.tree.flatten(like)
    try:
        # Opened here: where the file is broken NumPy would leave it open.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            meta = json.loads(stored[META].tobytes().decode())
            require(meta)
            found = [stored[f"leaf_{k:04d}"] for k in range(len(leaves))]
            extra = f"leaf_{len(leaves):04d}" in stored.files
    except InputError:
        raise
    except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read ({error}): remove it to start anew") from None
    if extra or any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(found, leaves, strict=True)):
        raise InputError(f"{path} belongs to another model: remove it, or choose another folder")
    return jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in found]), meta
