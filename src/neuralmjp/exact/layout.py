"""All series of a data set as a few long lanes that run side by side.

Series are laid end to end; where one begins, the process starts anew. Lanes of equal length are then cut out of the
whole, so that ragged data waste nothing, one compiled program serves any data set of similar size, and the time of a
sequential pass is that of one lane. Lanes that begin with a series of their own are independent (`aligned`); a single
long recording is cut anywhere, and the pieces are joined by their transfer matrices.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from ..timeseries import TimeSeries

# A lane should be long enough to amortise what is done per lane, and there should be enough of them to fill vectors.
MOST_LANES = 512
MOST_INDEPENDENT_LANES = 4096
SHORTEST_LANE = 32
# Cutting a recording costs K times the work of filtering it: worth it for few states only.
MOST_STATES_CUT = 8
# Gaps that agree to this many digits are one gap: differences of recorded times carry rounding errors.
GAP_DIGITS = 10


class Layout(NamedTuple):
    """Where each observation sits: step s of lane l. Every array is (steps, lanes)."""

    rows: Int[np.ndarray, "step lane"]  # observation in the data, -1 for padding
    starts: Bool[np.ndarray, "step lane"]  # first observation of a series
    gap_index: Int[np.ndarray, "step lane"]  # into `gaps`: the time since the previous observation
    gaps: Float[np.ndarray, "gap"]  # distinct gaps in increasing order; the first is 0
    aligned: bool  # every lane begins with a series

    def gather(self, values: np.ndarray, padding: np.ndarray | float) -> np.ndarray:
        """Values per observation, (N, ...), laid out in lanes, (steps, lanes, ...)."""
        laid = values[np.maximum(self.rows, 0)]
        return np.where((self.rows >= 0).reshape(*self.rows.shape, *(1,) * (values.ndim - 1)), laid, padding)

    def padded(self, n_steps: int, n_lanes: int, n_gaps: int) -> "Layout":
        """The same with more room, all of it empty."""
        room = [(0, n - have) for n, have in zip((n_steps, n_lanes), self.rows.shape, strict=True)]
        return self._replace(
            rows=np.pad(self.rows, room, constant_values=-1),
            starts=np.pad(self.starts, room),
            gap_index=np.pad(self.gap_index, room),
            gaps=np.pad(self.gaps, (0, n_gaps - len(self.gaps)), mode="edge"),
        )

    def scatter(self, laid: np.ndarray) -> np.ndarray:
        """Back from lanes to one row per observation."""
        used = self.rows >= 0
        flat = np.empty((used.sum(), *laid.shape[2:]), laid.dtype)
        flat[self.rows[used]] = laid[used]
        return flat


def lay_out(
    data: TimeSeries, n_states: int, *, context: bool = False, in_order: bool = False, whole: bool = False
) -> Layout:
    """Choose lanes for a data set and a number of states.

    Args:
        context: the first observation is only there to tell what was before the second one; it gets no place.
        in_order: series must follow each other from the first lane to the last.
        whole: no series may be cut.
    """
    offsets = np.maximum(data.offsets - context, 0)
    lengths, total = np.diff(offsets), int(offsets[-1])
    enough = total >= MOST_LANES // 4 * int(lengths.max())  # whole series that can run side by side
    aligned = whole or n_states > MOST_STATES_CUT or (not in_order and (enough or total < 4 * SHORTEST_LANE))
    if aligned and not in_order:
        rows = _whole_series(offsets, lengths)
    else:
        n_lanes = 1 if aligned else int(np.clip(total // SHORTEST_LANE, 1, MOST_LANES))
        n_steps = _round_up(-(-total // n_lanes))
        rows = np.full(n_lanes * n_steps, -1)
        rows[:total] = np.arange(total)
        rows = rows.reshape(n_lanes, n_steps).T
    rows = np.where(rows >= 0, rows + context, -1)
    first = first_rows(data)
    gaps, index = distinct_gaps(np.where(first, 0.0, np.diff(data.times, prepend=0.0)))
    real = rows >= 0
    starts = np.where(real, first[np.maximum(rows, 0)], False)
    gap_index = np.where(real, index[np.maximum(rows, 0)], 0)
    return Layout(np.ascontiguousarray(rows), starts, gap_index, gaps, aligned)


def first_rows(data: TimeSeries) -> Bool[np.ndarray, "row"]:
    """Which observations begin a series."""
    first = np.zeros(data.n_observations, dtype=bool)
    first[data.offsets[:-1]] = True
    return first


def distinct_gaps(
    gaps: Float[np.ndarray, "observation"],
) -> tuple[Float[np.ndarray, "gap"], Int[np.ndarray, "observation"]]:
    """The different gaps, 0 first, and which of them each observation has."""
    magnitude = np.floor(np.log10(np.where(gaps > 0, gaps, 1.0)))
    scale = 10.0 ** (GAP_DIGITS - 1 - magnitude)
    distinct, index = np.unique(np.append(0.0, np.round(gaps * scale) / scale), return_inverse=True)
    return distinct, index[1:]


def _whole_series(offsets: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Longest series first, each to the lane that is shortest so far; no more lanes than the longest can fill."""
    n_lanes = -(-len(lengths) // -(-len(lengths) // MOST_INDEPENDENT_LANES))  # equal shares
    n_lanes = min(n_lanes, -(-int(lengths.sum()) // int(lengths.max())))
    if (lengths == lengths[0]).all():  # lanes of equal load without a search
        order, lane_of = np.arange(len(lengths)), np.arange(len(lengths)) % n_lanes
    else:
        import heapq

        order, lane_of = np.argsort(-lengths, kind="stable"), np.empty(len(lengths), dtype=int)
        loads = [(0, lane) for lane in range(n_lanes)]
        for series in order:
            load, lane = heapq.heappop(loads)
            lane_of[series] = lane
            heapq.heappush(loads, (load + int(lengths[series]), lane))
    fill = np.bincount(lane_of, weights=lengths, minlength=n_lanes).astype(int)
    rows = np.full((n_lanes, _round_up(int(fill.max()))), -1)
    # Position of every series in its lane: the lengths before it in the same lane, in the order they were dealt.
    dealt = order[np.argsort(lane_of[order], kind="stable")]
    before = np.cumsum(lengths[dealt]) - lengths[dealt]
    first_in_lane = np.searchsorted(lane_of[dealt], np.arange(n_lanes))
    begins = before - before[first_in_lane][lane_of[dealt]]
    inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths[dealt]) - lengths[dealt], lengths[dealt])
    lanes = np.repeat(lane_of[dealt], lengths[dealt])
    rows[lanes, np.repeat(begins, lengths[dealt]) + inside] = np.repeat(offsets[:-1][dealt], lengths[dealt]) + inside
    return rows.T


def _round_up(n: int) -> int:
    """Few different sizes, so that similar data sets share a compiled program: 1/8 of a power of two."""
    unit = max(1 << max(n.bit_length() - 4, 0), 1)
    return -(-n // unit) * unit
