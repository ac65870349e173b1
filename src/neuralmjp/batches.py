"""Series padded to few shapes, as a compiled model takes them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float64, Int64

from .arguments import require_seed
from .errors import InputError

if TYPE_CHECKING:
    from .timeseries import TimeSeries


@dataclass(frozen=True, eq=False)
class Batch:
    """Some series padded to one shape.

    Padded times repeat the last time of their series, so that the gap is 0; padded and missing values are 0.

    Attributes:
        times: times of the observations.
        values: observed values, 0 where there is none.
        mask: where a value was observed.
        valid: where there is an observation, though its values may be missing.
        series: index of each series in the data, -1 for rows that only fill the batch up.
    """

    times: Float64[np.ndarray, "series time"]
    values: Float64[np.ndarray, "series time feature"]
    mask: Bool[np.ndarray, "series time feature"]
    valid: Bool[np.ndarray, "series time"]
    series: Int64[np.ndarray, " series"]


def padded_lengths(
    actual: Int64[np.ndarray, " series"], lengths: Sequence[int] | None = None
) -> Int64[np.ndarray, " series"]:
    """The next of `lengths` for each series, or the next power of two."""
    if lengths is None:
        return 2 ** np.ceil(np.log2(actual)).astype(np.int64)
    choices = np.unique(np.asarray(lengths, np.int64))
    longest = actual.max()
    if len(choices) == 0 or longest > choices[-1]:
        raise InputError(f"the longest series has {longest} observations: add a padded length of at least that")
    return choices[np.searchsorted(choices, actual)]


def plan_batches(
    data: "TimeSeries", size: int, *, seed: int | None, lengths: Sequence[int] | None, drop_last: bool
) -> Iterator[Batch]:
    """The batches of `TimeSeries.batches`."""
    if size < 1:
        raise InputError(f"a batch needs at least one series, not {size}")
    if seed is not None:
        require_seed(seed)
    rng = None if seed is None else np.random.default_rng(seed)
    order = np.arange(len(data)) if rng is None else rng.permutation(len(data))
    padded = padded_lengths(data.lengths, lengths)[order]
    plan: list[tuple[np.ndarray, int]] = []
    for length in np.unique(padded).tolist():
        members = order[padded == length]
        groups = np.split(members, range(size, len(members), size))
        plan += [(group, length) for group in groups if len(group) == size or not drop_last]
    if rng is not None:
        plan = [plan[turn] for turn in rng.permutation(len(plan))]
    return (make_batch(data, group, length, size) for group, length in plan)


def make_batch(data: "TimeSeries", series: Int64[np.ndarray, " chosen"], length: int, size: int) -> Batch:
    """The given series padded to `length`, and rows that are valid nowhere up to `size`."""
    series = np.concatenate([series, np.full(size - len(series), -1)])
    real = series >= 0
    n_valid = np.where(real, data.offsets[series + 1] - data.offsets[series], 0)[:, None]
    position = np.arange(length)
    valid = position < n_valid
    observation = data.offsets[:-1][series][:, None] + np.minimum(position, np.maximum(n_valid - 1, 0))
    values = data.values[observation]
    mask = valid[:, :, None] & ~np.isnan(values)
    times = np.where(real[:, None], data.times[observation], 0.0)
    return Batch(times, np.where(mask, values, 0.0), mask, valid, series)
