"""Training on data that stay on disk: surveyed once, then their windows in a mixed order, read a round ahead."""

import hashlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np
from jaxtyping import Int, Int64

from ..errors import InputError
from ..store import Store
from ..timeseries import TimeSeries
from .blocks import Clock, as_configured
from .config import Config

SAMPLE = 1_000_000  # observations that are held: for starting values, bound and intervals
MIXED = 2_000_000  # observations that are held and shuffled at a time

Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class Stream:
    """A store that was looked through once, cut into windows as the configuration says."""

    store: Store
    config: Config
    n_windows: Int64[np.ndarray, "chunk"]
    n_observations: int  # in windows
    longest: int  # observations in a window
    longest_gap: float
    span: float  # of the window that lasts longest
    missing: bool  # whether any value is
    digest: str
    sample: TimeSeries  # windows, drawn at random from every chunk; all of them where they are few
    _shelf: dict[tuple[int, ...], TimeSeries] = field(default_factory=dict)  # the one that is being served

    @classmethod
    def of(cls, store: Store, config: Config, seed: int = 0, progress: Progress = lambda *_: None) -> "Stream":
        """Read everything once, and check it."""
        seen = _Survey(min(SAMPLE / max(store.n_rows, 1), 1.0), seed)
        for k in range(len(store)):
            progress("reading", k / len(store))
            piece = store.chunk(k)
            seen.note(piece, None if piece is None else windows_of(piece, config))
        if not seen.sample:
            raise InputError(f"{store.path}: no series has two observations and some value; check the columns")
        seen.check_names(store)
        return cls(
            store,
            config,
            np.array(seen.n_windows, np.int64),
            seen.n_observations,
            seen.longest,
            seen.longest_gap,
            seen.span,
            seen.missing,
            seen.digest.hexdigest(),
            joined(seen.sample),
        )

    @property
    def n_series(self) -> int:
        """Windows, all chunks together."""
        return int(self.n_windows.sum())

    def served(self, seed: int, batch: int, first_step: int, n_steps: int) -> TimeSeries:
        """The windows of so many steps, one batch after the other: the same for a run that was interrupted.

        Every epoch visits the chunks in a new order; those that are held together are shuffled together.
        """
        per_epoch = self.n_series // batch * batch
        position, stop = first_step * batch, (first_step + n_steps) * batch
        parts = []
        while position < stop:
            epoch, place = divmod(position, per_epoch)
            shelves, starts = self._shelves(seed, epoch)
            k = int(np.searchsorted(starts, place, side="right")) - 1
            shelf = self._held(shelves[k])
            order = np.random.default_rng((seed, epoch, k)).permutation(len(shelf))
            some = order[place - starts[k] :][: min(stop - position, per_epoch - place)]
            parts.append(shelf[some])
            position += len(some)
        return joined(parts)

    def _shelves(self, seed: int, epoch: int) -> tuple[list[tuple[int, ...]], Int[np.ndarray, "shelf"]]:
        """Chunks that are held together, in the order of this epoch, and which window of the epoch each begins with."""
        chunks = np.random.default_rng((seed, epoch)).permutation(np.flatnonzero(self.n_windows))
        firsts = np.cumsum(self.n_windows[chunks]) - self.n_windows[chunks]
        number = firsts // max(MIXED // self.longest, 1)
        begins = np.flatnonzero(np.diff(number, prepend=-1))
        return [tuple(some.tolist()) for some in np.split(chunks, begins[1:])], firsts[begins]

    def _held(self, chunks: tuple[int, ...]) -> TimeSeries:
        if chunks not in self._shelf:
            self._shelf.clear()
            pieces = (self.store.chunk(k) for k in chunks)
            windows = (windows_of(piece, self.config) for piece in pieces if piece is not None)
            self._shelf[chunks] = joined([one for one in windows if one is not None])
        return self._shelf[chunks]


class _Survey:
    """What one look at every chunk, in order, brings to light."""

    def __init__(self, share: float, seed: int):
        self.share, self.seed = share, seed
        self.n_windows: list[int] = []
        self.n_observations, self.longest, self.longest_gap, self.span = 0, 0, 0.0, 0.0
        self.missing, self.digest = False, hashlib.sha256()
        self.sample: list[TimeSeries] = []
        self._last: tuple[str, float] | None = None  # series that may go on, and until when it is known
        self._begun: list[np.ndarray] = []  # hashes of the names of all series

    def note(self, piece: TimeSeries | None, windows: TimeSeries | None) -> None:
        self.n_windows.append(0 if windows is None else len(windows))
        if piece is None:
            return
        for array in (piece.times, piece.values, piece.offsets):
            self.digest.update(np.ascontiguousarray(array).data)
        names = piece.names
        if self._last is not None and names[0] == self._last[0]:
            if piece.times[0] <= self._last[1]:
                raise InputError(
                    f"series {names[0]!r}: time {piece.times[0]:g} comes after {self._last[1]:g} in the part before; "
                    "sort each series by time, or give another series another name"
                )
            names = names[1:]
        self._begun.append(np.array([_number_of(name) for name in names], np.uint64))
        self._last = piece.names[-1], float(piece.times[-1])
        if windows is None:
            return
        self.n_observations += windows.n_observations
        self.longest = max(self.longest, int(windows.lengths.max()))
        self.longest_gap = max(self.longest_gap, float(windows.gaps.max()))
        self.span = max(self.span, Clock.of(windows).span)
        self.missing = self.missing or bool(np.isnan(windows.values).any())
        rng = np.random.default_rng((self.seed, len(self.n_windows)))
        n = int(self.share * len(windows) + rng.random())
        if n:
            self.sample.append(windows[np.sort(rng.permutation(len(windows))[:n])])

    def check_names(self, store: Store) -> None:
        """Raise where a series goes on after another has begun."""
        begun = np.concatenate(self._begun)
        if len(np.unique(begun)) < len(begun):
            raise InputError(f"{store.path}: rows of one series stand apart from each other; sort the table by series")


def windows_of(piece: TimeSeries, config: Config) -> TimeSeries | None:
    """A chunk as the configuration cuts it; None if nothing is left."""
    try:
        return as_configured(piece, config)
    except InputError:  # the chunk itself was checked: it holds nothing but ends
        return None


def joined(parts: list[TimeSeries]) -> TimeSeries:
    """Several as one, series named by number: windows of one recording have the same names in different chunks."""
    lengths = np.concatenate([part.lengths for part in parts])
    return replace(
        parts[0],
        times=np.concatenate([part.times for part in parts]),
        values=np.concatenate([part.values for part in parts]),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        names=tuple(map(str, range(len(lengths)))),
    )


def _number_of(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())


Made = TypeVar("Made")


class ReadAhead(Generic[Made]):
    """What is needed for one round after the other, the next made while this one is worked on."""

    def __init__(self, make: Callable[[int, int], Made]):
        """`make` is given the first step of a round and their number; it runs in one thread of its own."""
        self._make, self._pool = make, ThreadPoolExecutor(1)
        self._next: tuple[tuple[int, int], Future[Made]] | None = None

    def get(self, first_step: int, n_steps: int) -> Made:
        if self._next is None or self._next[0] != (first_step, n_steps):
            self._next = (first_step, n_steps), self._pool.submit(self._make, first_step, n_steps)
        found = self._next[1].result()
        after = first_step + n_steps, n_steps
        self._next = after, self._pool.submit(self._make, *after)
        return found

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
