"""Series cut into substeps and padded to few shapes, and what is believed of them before anything is computed."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ..systems.events import Events
from ..timeseries import TimeSeries
from .coordinate import Beliefs, Block, Ladders
from .rough import ways_at

LONGER = 1.25  # lengths of blocks are powers of this, so that few programs are compiled


class Laid(NamedTuple):
    """A block, which series of the data it holds, and where in time its substeps have their middles.

    A block may end with series that hold nothing, so that all have one size.
    """

    block: Block
    series: Int[np.ndarray, "some"]
    middles: Float[np.ndarray, "step series"]


def lay_out(data: TimeSeries, substeps: Int[np.ndarray, "gap"], size: int) -> list[Laid]:
    """All series in blocks of `size` of similar length."""
    first_gap = data.offsets[:-1] - np.arange(len(data))
    steps = np.array([substeps[a : a + n - 1].sum() + 1 for a, n in zip(first_gap, data.lengths, strict=True)])
    order = np.argsort(steps, kind="stable")
    n_blocks = -(-len(data) // size)
    size = -(-len(data) // n_blocks)
    groups = np.split(order, range(size, len(order), size))
    longest = np.array([steps[group].max() for group in groups])
    lengths = np.ceil(LONGER ** np.ceil(np.log(longest) / np.log(LONGER))).astype(int).tolist()
    return [_laid(data, substeps, first_gap, *one, size) for one in zip(groups, lengths, strict=True)]


def _laid(
    data: TimeSeries,
    substeps: Int[np.ndarray, "gap"],
    first_gap: Int[np.ndarray, "all"],
    series: Int[np.ndarray, "some"],
    n_steps: int,
    size: int,
) -> Laid:
    longest = int(data.lengths.max())
    durations, middles = np.zeros((2, n_steps, size))
    seen = np.full((n_steps, size), -1)
    at = np.zeros((size, longest), int)
    values = np.full((size, longest, data.n_features), np.nan)
    for b, i in enumerate(series):
        rows = slice(data.offsets[i], data.offsets[i + 1])
        times, length = data.times[rows], int(data.lengths[i])
        parts = substeps[first_gap[i] : first_gap[i] + length - 1]
        lasting = np.repeat(np.diff(times) / parts, parts)
        starts = np.concatenate([[0], np.cumsum(parts)])
        durations[: len(lasting), b] = lasting
        middles[:, b] = times[-1]
        middles[: len(lasting), b] = times[0] + np.cumsum(lasting) - 0.5 * lasting
        seen[starts, b] = np.arange(length)
        at[b, :length] = starts
        values[b, :length] = data.values[rows]
    mask = ~np.isnan(values)
    block = Block(*map(jnp.asarray, (durations, seen, at, np.where(mask, values, 0.0), mask)))
    return Laid(block, series, middles)


def first_beliefs(
    laid: Laid,
    data: TimeSeries,
    events: Events,
    ladders: Ladders,
    scales: Float[np.ndarray, "event"],
    counts: Float[np.ndarray, "observation species"],
) -> Beliefs:
    """Everything as if the rough counts were true and changed evenly between observations."""
    n_steps, n_series = laid.middles.shape
    between = np.zeros((n_steps, n_series, len(events.box)))
    there = np.zeros((*laid.block.values.shape[:2], len(events.box)))
    for b, i in enumerate(laid.series):
        rows = slice(data.offsets[i], data.offsets[i + 1])
        for s in range(len(events.box)):
            between[:, b, s] = np.interp(laid.middles[:, b], data.times[rows], counts[rows, s])
            there[b, : data.lengths[i], s] = counts[rows, s]
    means = np.stack([_along(table, between[..., s]) for s, table in enumerate(ladders.ways)], 1)
    logs = np.stack([_along(table, between[..., s]) for s, table in enumerate(ladders.logs)], 1)
    numbers = scales[:, None, None] * ways_at(events, between) * np.asarray(laid.block.durations)
    laws = (
        np.maximum(0.0, 1 - np.abs(there[..., s, None] - np.arange(n))) for s, n in enumerate(events.box)
    )  # shared between the two nearest counts
    return Beliefs(
        means=jnp.asarray(means),
        logs=jnp.asarray(logs),
        numbers=jnp.asarray(numbers),
        laws=tuple(map(jnp.asarray, laws)),
        entropies=jnp.zeros((len(events.box), n_series)),
    )


def _along(table, counts: Float[np.ndarray, "step series"]) -> Float[np.ndarray, "event step series"]:
    """Each row of a table of single counts, at counts that need not be whole."""
    rows = np.asarray(table)
    return np.stack([np.interp(counts, np.arange(rows.shape[1]), row) for row in rows])
