"""Observations at scattered times: `TimeSeries`, and the padded `Batch` that a model takes.

Most people need `neuralmjp.io.read` or `TimeSeries.from_arrays`; everything else follows from what they return.
"""

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped
from numpy.typing import ArrayLike

from .arguments import require_seed
from .batches import Batch, make_batch, padded_lengths, plan_batches
from .checks import check_names, check_observations, check_shapes, check_states
from .dates import Date, comes_before, earliest_origin, moments_of, nothing_between, recounted, text_of, usual_origin
from .errors import InputError
from .units import TIME_UNIT, ratio

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class TimeSeries:
    """Series of observations at irregular times, of any lengths, laid end to end.

    The constructor takes the arrays without a copy and checks them; `from_arrays` is the friendlier way in.

    Attributes:
        times: finite, not negative, strictly increasing inside each series.
        values: what was observed, one column per feature; NaN where it is missing.
        offsets: series i holds the observations offsets[i] to offsets[i + 1] - 1.
        names: one per series, all different.
        value_names: one per feature, all different.
        time_unit: what the times count; `in_unit` tells them in another.
        origin: the date, in ISO's form, that the times count from, where they were dates; `dates` tells these.

    Example:
        >>> data = TimeSeries.from_arrays([[0.0, 1.0, 3.0]], [[2.5, float("nan"), 2.7]], time_unit="s")
        >>> data
        TimeSeries(1 series, 3 observations, values: value, time in s)
        >>> data.gaps
        array([1., 2.])
    """

    times: Float64[np.ndarray, " observation"]
    values: Float64[np.ndarray, "observation feature"]
    offsets: Int64[np.ndarray, " boundary"]
    names: tuple[str, ...]
    value_names: tuple[str, ...]
    time_unit: str = TIME_UNIT
    origin: str | None = None

    def __post_init__(self):
        for field, dtype in (("times", np.float64), ("values", np.float64), ("offsets", np.int64)):
            # A view, so that the caller's own array stays writable.
            object.__setattr__(self, field, _read_only(np.asarray(getattr(self, field), dtype).view()))
        check_shapes(self)
        if self.origin is not None:
            object.__setattr__(self, "origin", usual_origin(self.origin, self.time_unit))
        check_names("series", self.names)
        check_names("values", self.value_names)
        check_observations(self)

    # ---- ways in and out

    @classmethod
    def from_arrays(
        cls,
        times: ArrayLike | Sequence[ArrayLike],
        values: ArrayLike | Sequence[ArrayLike],
        *,
        time_unit: str = TIME_UNIT,
        value_names: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        origin: Date | None = None,
    ) -> "TimeSeries":
        """Copy arrays into a `TimeSeries`.

        Args:
            times: (N, L) for N series, where NaN at the end of a row is padding; (L,) for one series, or for N series
                that share their times when `values` has three dimensions; or a list of N arrays of any lengths.
            values: (N, L) or (N, L, D) for N series; (L,) or (L, D) for one; or a list of N arrays, (L_i,) or (L_i, D).
                NaN is a missing value.
            time_unit: what the times count.
            value_names: one name per feature; "value", or "value_0", "value_1", ... if left out.
            names: one name per series; "0", "1", ... if left out.
            origin: the date that the times count from, such as "2024-01-31", if they count from one.
        """
        from .io.arrays import from_arrays

        since = None if origin is None else text_of(origin)
        return from_arrays(times, values, time_unit=time_unit, value_names=value_names, names=names, origin=since)

    @classmethod
    def from_frame(
        cls,
        frame: "pd.DataFrame",
        *,
        series: str | int | None = None,
        time: str | int | None = None,
        values: str | int | Sequence[str | int] | None = None,
        time_unit: str | None = None,
        labels: str | Sequence[str] | None = None,
    ) -> "TimeSeries":
        """Read a pandas frame with one row per observation; columns, unit and labels are as in `neuralmjp.io.read`."""
        from .io.frames import from_frame

        return from_frame(frame, series=series, time=time, values=values, time_unit=time_unit, labels=labels)

    @classmethod
    def from_dtrajs(
        cls, dtrajs: ArrayLike | Sequence[ArrayLike], *, lag: float = 1.0, time_unit: str = "frame"
    ) -> "TimeSeries":
        """Discrete trajectories as deeptime keeps them: state numbers, one array each; negative is missing."""
        from .io.arrays import from_dtrajs

        return from_dtrajs(dtrajs, lag, time_unit)

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas frame with one row per observation: series, time, values."""
        from .io.frames import to_frame

        return to_frame(self)

    @classmethod
    def concatenate(cls, parts: Iterable["TimeSeries"]) -> "TimeSeries":
        """Put the series of several data sets into one; values and time unit must be the same, names different.

        Times that count from different dates then all count from the earliest.
        """
        parts = list(parts)
        if not parts:
            raise InputError("there is nothing to concatenate: give at least one TimeSeries")
        first = parts[0]
        for part in parts[1:]:
            if (part.value_names, part.time_unit) != (first.value_names, first.time_unit):
                raise InputError(f"cannot concatenate {first!r} and {part!r}: make values and time unit the same")
        origin = earliest_origin([part.origin for part in parts])
        return cls(
            np.concatenate([recounted(p.times, p.origin, p.time_unit, origin, first.time_unit) for p in parts]),
            np.concatenate([part.values for part in parts]),
            _offsets(np.concatenate([part.lengths for part in parts])),
            tuple(name for part in parts for name in part.names),
            first.value_names,
            first.time_unit,
            origin,
        )

    # ---- sizes

    def __len__(self) -> int:
        """Return the number of series."""
        return len(self.offsets) - 1

    @property
    def n_observations(self) -> int:
        """Number of observations in all series together."""
        return len(self.times)

    @property
    def n_features(self) -> int:
        """Number of values per observation."""
        return self.values.shape[1]

    @property
    def lengths(self) -> Int64[np.ndarray, " series"]:
        """Number of observations of each series."""
        return np.diff(self.offsets)

    @property
    def mask(self) -> Bool[np.ndarray, "observation feature"]:
        """Where a value was observed."""
        return ~np.isnan(self.values)

    @property
    def gaps(self) -> Float64[np.ndarray, " gap"]:
        """Times between neighbouring observations of the same series, end to end."""
        return np.delete(np.diff(self.times), self.offsets[1:-1] - 1)

    @property
    def dates(self) -> Shaped[np.ndarray, " observation"] | None:
        """The times as dates (of zoned ones, in UTC); None where they do not count from a date."""
        if self.origin is None:
            return None
        return moments_of(self.times, self.origin, self.time_unit).astype("datetime64[us]")

    def __repr__(self) -> str:
        what = f"{len(self)} series, {self.n_observations} observations, values: {', '.join(self.value_names)}"
        since = "" if self.origin is None else f" since {self.origin}"
        return f"TimeSeries({what}, time in {self.time_unit}{since})"

    def equals(self, other: "TimeSeries") -> bool:
        """Whether all arrays, names and units are the same, a missing value being equal to a missing value."""
        return (
            all(getattr(self, one) == getattr(other, one) for one in ("names", "value_names", "time_unit", "origin"))
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.times, other.times)
            and np.array_equal(self.values, other.values, equal_nan=True)
        )

    # ---- parts: each is a set of ranges of observations

    def __getitem__(self, which: int | np.integer | str | slice | list | np.ndarray) -> "TimeSeries":
        """Return the series with this index or name, or those of a slice, an index array or a boolean array."""
        if isinstance(which, str):
            if which not in self.names:
                raise InputError(f"there is no series named {which!r}; the first is {self.names[0]!r}")
            which = self.names.index(which)
        index = np.atleast_1d(np.arange(len(self))[which])
        if len(np.unique(index)) < len(index):
            raise InputError("a series was selected twice; names would no longer be unique, so select each once")
        names = [self.names[i] for i in index]
        return self._cut(self.offsets[index], self.offsets[index + 1], names, "no series is selected")

    def __iter__(self) -> Iterator["TimeSeries"]:
        """Yield each series as a `TimeSeries` of its own."""
        for i in range(len(self)):
            yield self._cut(self.offsets[i : i + 1], self.offsets[i + 1 : i + 2], self.names[i : i + 1], "")

    def between(self, start: float | Date, stop: float | Date) -> "TimeSeries":
        """Keep the observations with start <= time < stop; series with no value there are left out.

        Where times count from a date, the ends may be dates.
        """
        before = (comes_before(self.times, self.origin, self.time_unit, end) for end in (start, stop))
        first, last = (self.offsets[:-1] + np.add.reduceat(one, self.offsets[:-1], dtype=np.int64) for one in before)
        empty = nothing_between(start, stop, self.times, self.origin, self.time_unit)
        return self._cut(first, last, self.names, empty)

    def without_first(self) -> "TimeSeries":
        """Leave out the first observation of each series."""
        return self._cut(self.offsets[:-1] + 1, self.offsets[1:], self.names, "no series has a second observation")

    def in_unit(self, unit: str) -> "TimeSeries":
        """The same with times that count another unit, such as "years"; data of no named unit only take its name.

        >>> TimeSeries.from_arrays([0.0, 36.0], [1.0, 2.0], time_unit="h").in_unit("days").times
        array([0. , 1.5])
        """
        ratio(self.time_unit, unit)  # refused here, if it is none
        if unit in (self.time_unit, TIME_UNIT):
            return self
        times = recounted(self.times, self.origin, self.time_unit, self.origin, unit)
        return replace(self, times=times, time_unit=unit)

    def split(
        self,
        fractions: Sequence[float] = (0.8, 0.1, 0.1),
        by: str = "series",
        seed: int | None = None,
    ) -> tuple["TimeSeries", ...]:
        """Split into parts, say for training, validation and test.

        Args:
            fractions: share of each part; they sum to 1.
            by: "series" gives whole series to each part; "time" cuts every series at these fractions of its own
                observations, earliest first (series with no value in a part are left out of it).
            seed: draws the series at random; without it they are taken in order. Not used by "time".

        Returns:
            one `TimeSeries` per fraction.
        """
        edges = np.concatenate([[0.0], np.cumsum(fractions)])
        if np.any(np.diff(edges) <= 0) or not math.isclose(edges[-1], 1.0):
            raise InputError(f"fractions {tuple(fractions)} must be positive and sum to 1")
        edges[-1] = 1.0
        if by == "time":
            cuts = self.offsets[:-1] + np.rint(edges[:, None] * self.lengths).astype(np.int64)
            empty = "a part holds no value: use larger fractions or longer series"
            return tuple(self._cut(a, b, self.names, empty) for a, b in pairwise(cuts))
        if by != "series":
            raise InputError(f"by={by!r} is not known: use 'series' or 'time'")
        cuts = np.rint(edges * len(self)).astype(np.int64)
        if np.any(np.diff(cuts) == 0):
            raise InputError(f"{len(self)} series are too few for fractions {tuple(fractions)}: use by='time'")
        if seed is not None:
            require_seed(seed)
        order = np.arange(len(self)) if seed is None else np.random.default_rng(seed).permutation(len(self))
        return tuple(self[np.sort(order[a:b])] for a, b in pairwise(cuts))

    def windows(self, length: int, step: int | None = None, *, drop_tail: bool = False) -> "TimeSeries":
        """Cut every series into windows that keep their real times, named "name/0", "name/1", ...

        Args:
            length: observations per window, at least 2.
            step: observations from the start of one window to the next; `length` if left out, so that none overlap.
            drop_tail: leave out the shorter window at the end of a series; it is kept if it has 2 observations or more.

        Windows in which every value is missing are left out.
        """
        step = length if step is None else step
        if length < 2 or step < 1:
            raise InputError(f"windows need length >= 2 and step >= 1, not length {length} and step {step}")
        lengths = self.lengths
        n_full = np.maximum((lengths - length) // step + 1, 0)
        covered = np.where(n_full > 0, (n_full - 1) * step + length, 0)
        has_tail = (covered < lengths) & (lengths - n_full * step >= 2) & (not drop_tail)
        n_windows = n_full + has_tail
        if not n_windows.any():
            raise InputError(f"no series has {length} observations: use shorter windows")
        number = join_ranges(np.zeros_like(n_windows), n_windows)
        series = np.repeat(np.arange(len(self)), n_windows)
        starts = self.offsets[series] + number * step
        stops = np.minimum(starts + length, self.offsets[series + 1])
        names = [f"{self.names[i]}/{k}" for i, k in zip(series.tolist(), number.tolist(), strict=True)]
        return self._cut(starts, stops, names, "every window is all missing")

    def _cut(
        self,
        starts: Int64[np.ndarray, " part"],
        stops: Int64[np.ndarray, " part"],
        names: Sequence[str],
        empty: str,
    ) -> "TimeSeries":
        """Make a series of each range of observations, leaving out those without any value; `empty` if none is left."""
        keep = stops > starts
        starts, stops = starts[keep], stops[keep]
        if len(starts) == 0:
            raise InputError(empty)
        adjacent = np.array_equal(stops[:-1], starts[1:])
        chosen = slice(starts[0], stops[-1]) if adjacent else join_ranges(starts, stops)
        values = self.values[chosen]
        offsets = _offsets(stops - starts)
        keep_names = [name for name, kept in zip(names, keep.tolist(), strict=True) if kept]
        seen = np.logical_or.reduceat(~np.isnan(values).all(axis=1), offsets[:-1])
        if not seen.all():
            return self._cut(starts, np.where(seen, stops, starts), keep_names, empty)
        # A part of checked data needs no second check, and may well hold a single observation.
        part = copy.copy(self)
        for field, array in (("times", self.times[chosen]), ("values", values), ("offsets", offsets)):
            object.__setattr__(part, field, _read_only(array))
        object.__setattr__(part, "names", tuple(keep_names))
        return part

    # ---- batches

    def padded_lengths(self, lengths: Sequence[int] | None = None) -> Int64[np.ndarray, " series"]:
        """Length to which `batches` pads each series: the next of `lengths`, or the next power of two."""
        return padded_lengths(self.lengths, lengths)

    def pad(self) -> Batch:
        """Return all series in one batch, as long as the longest."""
        return make_batch(self, np.arange(len(self)), int(self.lengths.max()), len(self))

    def batches(
        self,
        size: int,
        *,
        seed: int | None = None,
        lengths: Sequence[int] | None = None,
        drop_last: bool = False,
    ) -> Iterator[Batch]:
        """Yield every series once, in batches of few shapes so that a compiled model is compiled few times.

        Series of one padded length go together. The shapes are (size, padded length), so there are no more of them
        than distinct `padded_lengths`.

        Args:
            size: series per batch; a batch that has fewer is filled up with rows that are valid nowhere.
            seed: shuffles the series and the batches.
            lengths: allowed padded lengths; powers of two if left out.
            drop_last: leave out the batch of each padded length that would have to be filled up.
        """
        return plan_batches(self, size, seed=seed, lengths=lengths, drop_last=drop_last)

    # ---- what the data can bear

    def check_states(self, n_states: int) -> None:
        """Raise `InputError` if a model with this many states asks more than these data can tell."""
        check_states(self, n_states)


def join_ranges(
    starts: Int64[np.ndarray, " part"], stops: Int64[np.ndarray, " part"]
) -> Int64[np.ndarray, " observation"]:
    """Indices of several ranges, one after the other.

    Example:
        >>> join_ranges(np.array([0, 7]), np.array([3, 9]))
        array([0, 1, 2, 7, 8])
    """
    lengths = stops - starts
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1])


def _offsets(lengths: Int64[np.ndarray, " series"]) -> Int64[np.ndarray, " boundary"]:
    return np.concatenate([[0], np.cumsum(lengths)])


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
