"""Answers in a folder: each in a file of its own as soon as it is there, found again by its question."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..errors import InputError
from ..io.files import replacing

ARRAY = "array"  # marks what was an array, with its kind and shape
NUMBERS = "bif"  # kinds of arrays that a file can hold


@dataclass(frozen=True)
class Kept:
    """A folder of answers.

    Attributes:
        about: what all questions have in common, such as a digest of the data: who asks about something else is given
            no old answer.
    """

    folder: Path
    about: dict[str, Any]

    def find(self, name: str, question: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to this question, if it is known; a file that is damaged knows nothing."""
        file, asked = self.file(name, question), self._asked(question)
        try:
            known = json.loads(file.read_text(), object_hook=_decoded)
            return known["answer"] if known["question"] == asked else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, name: str, question: dict[str, Any], answer: dict[str, Any]) -> None:
        """Write it whole; one that `failed` is not kept, so that it is tried again."""
        if "failed" in answer:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be made ({error.strerror}); choose another folder") from None
        text = json.dumps({"question": self._asked(question), "answer": answer}, default=_encoded)
        with replacing(self.file(name, question)) as partial:
            partial.write_text(text)

    def file(self, name: str, question: dict[str, Any]) -> Path:
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", name)
        return self.folder / f"{readable}-{self._asked(question)[:12]}.json"

    def _asked(self, question: dict[str, Any]) -> str:
        """A digest of the question, of all that goes without saying, and of the version that is asked."""
        try:
            whole = json.dumps([__version__, self.about, question], sort_keys=True, default=_encoded)
        except TypeError:
            raise InputError(
                "answers are kept only where all choices are numbers, names or arrays: leave out the folder"
            ) from None
        return hashlib.sha256(whole.encode()).hexdigest()


def _encoded(value: Any) -> dict[str, Any]:
    """For JSON; numbers come back bit by bit."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in NUMBERS:
        return {ARRAY: value.dtype.str, "shape": list(value.shape), "values": value.ravel().tolist()}
    raise TypeError(f"{type(value).__name__} is neither text nor numbers")


def _decoded(known: dict[str, Any]) -> Any:
    if ARRAY not in known:
        return known
    if np.dtype(known[ARRAY]).kind not in NUMBERS:
        raise ValueError(f"no array of numbers: {known[ARRAY]!r}")
    return np.array(known["values"], known[ARRAY]).reshape(known["shape"])
