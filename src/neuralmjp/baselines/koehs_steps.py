"""Series cut into steps: nodes at the observations, and a few between them, where a hidden mode may change."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..timeseries import TimeSeries

MOST_SUBSTEPS = 20  # times as many as in a median gap: a pause in a recording is no reason for thousands of them
MANY = 1024  # steps: from there on padding costs more than compiling again
SAME = 1e-9  # lengths of steps that differ by less, relative to the median gap, are one


class Steps(NamedTuple):
    """All series, padded with steps of no length; `kind` says which entry of `lengths` a step has."""

    kind: Int[Array, "series step"]
    lengths: Float[Array, "kind"]  # the first is 0
    values: Float[Array, "series node feature"]  # 0 where there is none
    mask: Float[Array, "series node feature"]


@dataclass(frozen=True)
class Scale:
    """Units in which a fit computes: median gap, mean and spread of the values."""

    gap: float
    mean: Float[np.ndarray, "feature"]
    spread: Float[np.ndarray, "feature"]

    def log_density(self, data: TimeSeries) -> float:
        """What a log density of scaled values lacks to be one of the data."""
        return -float((data.mask * np.log(self.spread)).sum())


@dataclass(frozen=True)
class Grid:
    """The steps of some data, and the node of each observation."""

    steps: Steps
    series: Int[np.ndarray, "observation"]
    node: Int[np.ndarray, "observation"]

    def at_observations(self, nodes: np.ndarray) -> np.ndarray:
        """Rows of (series, node, ...) in the order of the data."""
        return nodes[self.series, self.node]


def scale_of(data: TimeSeries) -> Scale:
    spread = np.nanstd(data.values, axis=0)
    return Scale(float(np.median(data.gaps)), np.nanmean(data.values, axis=0), np.where(spread > 0, spread, 1.0))


def lay_out(data: TimeSeries, scale: Scale, substeps: int) -> Grid:
    """Cut every gap into equal steps, `substeps` of them in a median gap."""
    n_series, lengths = len(data), data.lengths
    series = np.repeat(np.arange(n_series), lengths)
    gaps = np.diff(data.times, prepend=0.0) / scale.gap
    gaps[data.offsets[:-1]] = 0.0  # nothing comes before a first observation
    parts = np.clip(np.ceil(substeps * gaps - 1e-6), 1, MOST_SUBSTEPS * substeps).astype(int)
    parts[data.offsets[:-1]] = 0
    ends = np.cumsum(parts)
    node = ends - ends[data.offsets[:-1]][series]
    width = np.round(np.divide(gaps, parts, out=np.zeros_like(gaps), where=parts > 0) / SAME) * SAME
    found, kinds = np.unique(np.append(width, 0.0), return_inverse=True)
    n_steps = rounded_up(max(int(node.max()), 1))
    kind = np.zeros((n_series, n_steps), dtype=int)
    within = np.concatenate([np.arange(p) for p in parts]) if parts.sum() else np.zeros(0, int)
    kind[np.repeat(series, parts), np.repeat(node - parts, parts) + within] = np.repeat(kinds[:-1], parts)
    table = np.concatenate([found, np.ones(rounded_up(len(found)) - len(found))])
    values = np.zeros((n_series, n_steps + 1, data.n_features))
    mask = np.zeros_like(values)
    values[series, node] = np.where(data.mask, (data.values - scale.mean) / scale.spread, 0.0)
    mask[series, node] = data.mask
    steps = Steps(*(jnp.asarray(one) for one in (kind, table, values, mask)))
    return Grid(steps, series, node)


def rounded_up(size: int) -> int:
    """The next of few sizes, so that a program is compiled for few shapes: powers of two, for more than that closer."""
    unit = 2 ** ((size - 1).bit_length() - (0 if size <= MANY else 3))
    return max(8, -(-size // unit) * unit)
