"""Which part of the box each gap between observations needs, and how series are cut into substeps and blocks.

Everything here is NumPy and made for given constants and noise, with headroom: a fit moves some way before it must plan
again, and few different shapes are ever compiled.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.ndimage import maximum_filter1d

from ..emissions.emission import Params
from ..emissions.readings import Readings
from ..errors import InputError
from ..mjp.uniformisation import most_jumps
from ..systems.events import Events
from ..timeseries import TimeSeries
from .lattice import JUMPS, MOST_TERMS, TAIL, Steps

NATS = 20.0  # counts whose readings are this much less likely than the best are not followed
REACH = 2.0  # half width of a bridge, per root of the expected jumps in the gap; and the least of it
LEAST_REACH = 1.0
NOISE_HEADROOM = 0.2  # parameters of the noise may change so much before a plan is made again
MOST_SUBSTEPS = 200  # of an average gap
TOO_LARGE = 1.5  # cells of a window, over those needed
WIDTH_STEP = 4  # windows are multiples of this
CELLS_AT_ONCE = 1024  # on a processor: enough to keep it busy, few enough for its first cache
BYTES_AT_ONCE = 8 << 30  # on an accelerator: of laws kept for the way back
MOST_TOGETHER = 8192  # series
COMPILE_SECONDS, SECONDS_PER_CELL, EVALUATIONS = 3.0, 2e-7, 40  # what one more shape costs, and what it may save


class Block(NamedTuple):
    """Series that are filtered together."""

    series: Int[np.ndarray, "series"]  # which ones; -1 fills up
    rows: Int[np.ndarray, "step series"]  # the observation that ends a step, or -1
    window: tuple[int, ...]
    steps: Steps


@dataclass(frozen=True, eq=False)
class Plan:
    """A data set in blocks, for constants whose exit rates stay below `exits` and noise near `noise`."""

    blocks: tuple[Block, ...]
    exits: Float[np.ndarray, "..."]
    noise: Params
    width: float

    def bears(self, exits: Float[np.ndarray, "..."], noise: Params) -> bool:
        """Whether it serves at these exit rates and this noise."""
        near = all((np.abs(noise[name] - value) <= NOISE_HEADROOM).all() for name, value in self.noise.items())
        return near and bool((exits <= self.exits * (1 + 1e-9)).all())

    @property
    def work(self) -> float:
        """Cells times substeps."""
        return float(sum(np.prod(b.window) * b.steps.n_steps * len(b.series) for b in self.blocks))


def make_plan(
    data: TimeSeries,
    events: Events,
    readings: Readings,
    law: Float[np.ndarray, "species count"],
    rates: Float[np.ndarray, "event ..."],
    noise: Params,
    *,
    headroom: float,
    width: float,
    before: Plan | None = None,
) -> Plan:
    """Windows, substeps and blocks for these data.

    Args:
        law: of each species at the first observation of a series.
        rates: of every event in every cell of the box.
        headroom: exit rates may grow by this factor before the plan no longer serves.
        width: 1, or more where too much probability was lost.
        before: a plan whose shapes are used again where they are not much too large.
    """
    exits = headroom * rates.sum(0)
    low, high = stretch_ranges(data, readings, law, noise, rates, np.array(events.changes), events.box, width)
    needed = np.maximum.reduceat(high - low + 1, data.offsets[:-1], axis=0)
    needed = np.minimum(-(-needed // WIDTH_STEP) * WIDTH_STEP, events.box)
    blocks = []
    for some in _classes(needed, data.lengths):
        window = _used_before(tuple(int(n) for n in needed[some].max(0)), before)
        blocks += _blocks(data, some, low, high, window, events.box, exits)
    return Plan(tuple(blocks), exits, {name: np.array(value) for name, value in noise.items()}, width)


def _used_before(window: tuple[int, ...], before: Plan | None) -> tuple[int, ...]:
    """A window for which a program is compiled already, if one is large enough and not much larger."""
    used = {block.window for block in before.blocks} if before is not None else set()
    fits = [one for one in used if all(a >= b for a, b in zip(one, window, strict=True))]
    best = min(fits, key=np.prod, default=window)
    return best if np.prod(best) <= TOO_LARGE * np.prod(window) else window


def read_ranges(
    values: Float[np.ndarray, "row column"], readings: Readings, noise: Params, box: tuple[int, ...], nats: float
) -> tuple[Int[np.ndarray, "row species"], Int[np.ndarray, "row species"]]:
    """Smallest and largest count of each species that an observation by itself allows."""
    low = np.zeros((len(values), len(box)), dtype=int)
    high = np.tile(np.array(box) - 1, (len(values), 1))
    totals = [
        _total_range(values[:, k], readings, noise, k, shown, box, nats) for k, shown in enumerate(readings.columns)
    ]
    for _ in box:  # what one species can be says what is left for the others of a sum
        for shown, (least, most) in zip(readings.columns, totals, strict=True):
            for s in shown:
                others = [other for other in shown if other != s]
                low[:, s] = np.maximum(low[:, s], least - high[:, others].sum(1))
                high[:, s] = np.minimum(high[:, s], most - low[:, others].sum(1))
    wrong = low > high  # readings that contradict each other: nothing is excluded
    return np.where(wrong, 0, low), np.where(wrong, np.array(box) - 1, high)


def _total_range(
    value: Float[np.ndarray, "row"],
    readings: Readings,
    noise: Params,
    column: int,
    shown: tuple[int, ...],
    box: tuple[int, ...],
    nats: float,
) -> tuple[Int[np.ndarray, "row"], Int[np.ndarray, "row"]]:
    """Smallest and largest total whose reading is within `nats` of the most likely one."""
    totals = np.arange(sum(box[s] - 1 for s in shown) + 1)
    least, most = np.zeros(len(value), dtype=int), np.full(len(value), totals[-1])
    rows = np.flatnonzero(~np.isnan(value))
    for some in np.array_split(rows, -(-max(len(rows), 1) * len(totals) // 10_000_000)):
        density = np.asarray(readings.log_density(noise, column, value[some, None], totals))
        near = density >= density.max(1, keepdims=True) - nats
        least[some], most[some] = near.argmax(1), totals[-1] - near[:, ::-1].argmax(1)
    return least, most


def stretch_ranges(
    data: TimeSeries,
    readings: Readings,
    law: Float[np.ndarray, "species count"],
    noise: Params,
    rates: Float[np.ndarray, "event ..."],
    changes: Int[np.ndarray, "event species"],
    box: tuple[int, ...],
    width: float,
) -> tuple[Int[np.ndarray, "row species"], Int[np.ndarray, "row species"]]:
    """Counts that can hold probability in the stretch of time before each observation; the first is like the second.

    They are those that its ends allow, and what lies in between. Where an observation says nothing of a species, the
    nearest ones before and after that do take its place. In a Gaussian picture the law is widest at an end, by what
    its reading leaves open, or in the middle, by a bridge.
    """
    low, high = read_ranges(data.values, readings, noise, box, NATS * width)
    first = data.offsets[:-1]
    for s, n in enumerate(box):
        possible = np.flatnonzero(law[s, :n])
        low[first, s] = np.clip(low[first, s], possible[0], possible[-1])
        high[first, s] = np.clip(high[first, s], possible[0], possible[-1])
    ends = np.delete(np.arange(data.n_observations), first)  # rows with one before them
    series = np.repeat(np.arange(len(data)), data.lengths - 1)
    begin, stop = data.offsets[series], data.offsets[series + 1]
    lower, upper = np.zeros((len(ends), len(box)), dtype=int), np.tile(np.array(box) - 1, (len(ends), 1))
    apart, open_, known = (np.zeros(lower.shape, dtype=kind) for kind in (float, float, bool))
    for s, n in enumerate(box):
        before, after = _informed((low[:, s] > 0) | (high[:, s] < n - 1), ends)
        some = known[:, s] = (before >= begin) & (after < stop)
        a, b = before[some], after[some]
        lower[some, s] = np.minimum(low[a, s], low[b, s])
        upper[some, s] = np.maximum(high[a, s], high[b, s])
        apart[some, s] = data.times[b] - data.times[a]
        open_[some, s] = np.minimum(high[a, s] - low[a, s], high[b, s] - low[b, s]) / 2
    middle = (lower + upper) // 2
    for s, n in enumerate(box):
        activity = np.einsum("e,e...->...", changes[:, s].astype(float) ** 2, rates)[tuple(middle.T)]
        reach = width * (REACH * np.sqrt(activity * apart[:, s]) + LEAST_REACH)
        margin = np.ceil(np.minimum(np.sqrt(open_[:, s] ** 2 / 2 + reach**2) - open_[:, s], n)).astype(int)
        margin = np.where(known[:, s], np.maximum(margin, 0), n)
        low[ends, s], high[ends, s] = np.maximum(lower[:, s] - margin, 0), np.minimum(upper[:, s] + margin, n - 1)
    longer = first[data.lengths > 1]
    low[longer], high[longer] = low[longer + 1], high[longer + 1]
    return low, high


def _informed(
    tells: Bool[np.ndarray, "row"], ends: Int[np.ndarray, "gap"]
) -> tuple[Int[np.ndarray, "gap"], Int[np.ndarray, "gap"]]:
    """The last row that tells something at or before the begin of each gap, and the first at or after its end."""
    rows = np.arange(len(tells))
    before = np.maximum.accumulate(np.where(tells, rows, -1))
    after = np.minimum.accumulate(np.where(tells, rows, len(rows))[::-1])[::-1]
    return before[ends - 1], after[ends]


def _classes(
    needed: Int[np.ndarray, "series species"], lengths: Int[np.ndarray, "series"]
) -> list[Int[np.ndarray, "chosen"]]:
    """Series by the size of their windows: one class, or more where that saves more time than compiling takes."""
    order = np.argsort(needed.prod(1), kind="stable")
    unit = SECONDS_PER_CELL * EVALUATIONS * (1.0 if jax.default_backend() == "cpu" else 0.01)
    best, found = np.inf, [order]
    for cuts in ((), (0.8,), (0.6, 0.9)):
        parts = [part for part in np.split(order, [round(cut * len(order)) for cut in cuts]) if part.size]
        work = sum(float(needed[part].max(0).prod()) * lengths[part].sum() for part in parts)
        cost = work * unit + COMPILE_SECONDS * len(parts)
        if cost < best:
            best, found = cost, parts
    return found


def _blocks(
    data: TimeSeries,
    some: Int[np.ndarray, "chosen"],
    low: Int[np.ndarray, "row species"],
    high: Int[np.ndarray, "row species"],
    window: tuple[int, ...],
    box: tuple[int, ...],
    exits: Float[np.ndarray, "..."],
) -> list[Block]:
    """Series with windows of one size, side by side with others that have about as many substeps."""
    offset = np.clip((low + high + 1 - window) // 2, 0, np.array(box) - window)
    fastest = np.maximum(_largest_in_windows(exits, window)[tuple(offset.T)], np.finfo(float).tiny)
    durations = np.diff(data.times, prepend=0.0)
    durations[data.offsets[:-1]] = 0.0
    expected = fastest * durations
    parts = np.maximum(np.ceil(expected / JUMPS), 1).astype(int)
    if parts.mean() > MOST_SUBSTEPS:
        raise InputError(f"the reactions are too fast for these data: {expected.mean():.1e} of them in an average gap")
    per_series = np.add.reduceat(parts, data.offsets[:-1])
    longest = _rounded(int(per_series[some].max()))
    together = _together(len(some), longest, math.prod(window))
    order = some[np.argsort(per_series[some], kind="stable")]
    blocks = []
    for begin in range(0, len(order), together):
        series = np.full(together, -1)
        series[: len(order[begin : begin + together])] = order[begin : begin + together]
        blocks.append(_block(data, series, offset, fastest, expected / parts, parts, window, longest))
    return blocks


def _block(
    data: TimeSeries,
    series: Int[np.ndarray, "series"],
    offset: Int[np.ndarray, "row species"],
    fastest: Float[np.ndarray, "row"],
    jumps: Float[np.ndarray, "row"],
    parts: Int[np.ndarray, "row"],
    window: tuple[int, ...],
    longest: int,
) -> Block:
    """Substeps of these series, each stretch cut into its parts."""
    n = len(series)
    steps = Steps(
        offset=np.zeros((longest, len(window), n), dtype=np.int32),
        fastest=np.ones((longest, n)),
        jumps=np.zeros((longest, n)),
        values=np.full((longest, data.n_features, n), np.nan),
        terms=np.zeros(longest, dtype=np.int32),
        n_steps=0,
    )
    rows, n_steps = np.full((longest, n), -1), 0
    for k, i in enumerate(series[series >= 0]):
        here = np.arange(data.n_observations)[data.offsets[i] : data.offsets[i + 1]]
        each = np.repeat(here, parts[here])
        steps.offset[: len(each), :, k] = offset[each]
        steps.offset[len(each) :, :, k] = offset[here[-1]]
        steps.fastest[: len(each), k], steps.jumps[: len(each), k] = fastest[each], jumps[each]
        seen = np.cumsum(parts[here]) - 1  # steps that end with an observation
        steps.values[seen, :, k], rows[seen, k] = data.values[here], here
        n_steps = max(n_steps, len(each))
    terms = np.searchsorted(BORNE, steps.jumps.max(1)).astype(np.int32)
    return Block(series, rows, window, steps._replace(terms=terms, n_steps=n_steps))


def _largest_in_windows(exits: Float[np.ndarray, "..."], window: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """The largest exit rate in the window at every offset."""
    for axis, n in enumerate(window):
        # A filter looks from its centre: n // 2 cells back.
        filtered = maximum_filter1d(exits, n, axis=axis, mode="nearest")
        exits = np.take(filtered, np.arange(exits.shape[axis] - n + 1) + n // 2, axis=axis)
    return exits


def _rounded(n_steps: int) -> int:
    """A few lengths only: 16, 24, 32, 48, 64, 96, ... Padding takes memory, but no time."""
    power = 2 ** int(np.ceil(np.log2(max(n_steps, 16))))
    return 3 * power // 4 if n_steps <= 3 * power // 4 and power > 16 else power


def _together(n_series: int, n_steps: int, n_cells: int) -> int:
    """How many series are filtered side by side."""
    if jax.default_backend() == "cpu":
        most = max(CELLS_AT_ONCE // n_cells, 1)
    else:
        most = int(np.clip(BYTES_AT_ONCE // (8 * n_cells * (n_steps + 4 * MOST_TERMS)), 1, MOST_TOGETHER))
    n_blocks = -(-n_series // most)
    return -(-n_series // n_blocks)


def _borne() -> Float[np.ndarray, "terms"]:
    """Expected jumps that 0, 1, 2, ... terms can bear."""
    means = np.linspace(0.0, JUMPS, 2001)
    needed = most_jumps(TAIL, means)
    borne = [means[needed <= n].max(initial=0.0) for n in range(MOST_TERMS + 1)]
    return np.array(borne)


BORNE = _borne()
