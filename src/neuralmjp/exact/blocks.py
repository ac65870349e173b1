"""Long data in blocks: the likelihood and its gradient add up, and memory holds one block at a time.

Whole series are independent. A recording that is longer than a block is cut: each block hands the law of its last state
to the next, and on the way back tells the one before how likely all that follows is.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from ..priors import rates_of
from ..timeseries import TimeSeries
from .evidence import Laid, Panel, Scaling, make_evidence
from .layout import Layout, lay_out
from .model import Evaluation, Model, Parameters, exit_law, value_and_gradient
from .transitions import Halving, halving_needed

MOST_AT_ONCE = 2_000_000  # observations
MOST_PADDING = 1.3


@dataclass(frozen=True)
class Block:
    """Some observations on the host; only what is evaluated goes to the device."""

    laid: Laid
    continues: bool  # a series that began in the block before
    goes_on: bool  # its last series, in the next block

    def within(self, entry: np.ndarray, after: np.ndarray) -> Any:
        """The evidence, between a law that enters and what follows."""
        chain = self.laid.evidence.chain._replace(entry=entry, after=after)  # type: ignore[arg-type]
        return self.laid.evidence._replace(chain=chain)


@dataclass(frozen=True)
class Blocks:
    """A data set in blocks of similar size, in order."""

    parts: list[Block]

    @property
    def log_scale(self) -> float:
        return sum(part.laid.log_scale for part in self.parts)

    def evaluate(self, model: Model, parameters: Parameters) -> Evaluation:
        """Log-likelihood with its gradient, as if all data were evaluated at once."""
        rates = np.asarray(rates_of(model.rate_model, parameters.rates))
        n_states = len(rates)
        needed = [halving_needed(rates, part.laid.layout.gaps) for part in self.parts]
        halving = Halving(max(each.n_long for each in needed), max(each.times for each in needed))
        anything, nothing = np.full(n_states, 1.0 / n_states), np.ones(n_states)
        entries, law = [], anything
        for part in self.parts:
            entries.append(law if part.continues else anything)
            if part.goes_on:
                here = part.within(entries[-1], nothing)
                law = np.asarray(exit_law(model, parameters, here, part.laid.layout.aligned, halving))
        total, after = None, nothing
        for part, entry in zip(reversed(self.parts), reversed(entries), strict=True):
            here = part.within(entry, after if part.goes_on else nothing)
            found = value_and_gradient(model, parameters, here, part.laid.layout.aligned, halving)
            after = np.asarray(found.entry)
            found = jax.tree.map(np.asarray, found)
            total = found if total is None else jax.tree.map(np.add, total, found)
        assert total is not None
        return total


def cut_into_blocks(data: TimeSeries, model: Model, scaling: Scaling, panel: Panel) -> Blocks | None:
    """Blocks of a data set too long to be evaluated at once; None for a shorter one."""
    if data.n_observations <= MOST_AT_ONCE:
        return None
    places, n_states = cuts(data.offsets, MOST_AT_ONCE, inside=not panel), model.rate_model.n_states
    joined = [place not in data.offsets for place in places]  # a series goes on there
    some, layouts = [], []
    for k, (begin, end) in enumerate(pairwise(places)):
        some.append(_rows(data, begin - joined[k], end))
        layouts.append(lay_out(some[-1], n_states, context=joined[k], in_order=joined[k] or joined[k + 1]))
    parts = []
    for k, (rows, layout) in enumerate(zip(some, _alike(layouts), strict=True)):
        laid = make_evidence(rows, model.emission, n_states, scaling, panel, layout)
        parts.append(Block(laid, joined[k], joined[k + 1]))
    return Blocks(parts)


def cuts(offsets: Int[np.ndarray, "boundary"], most: int, inside: bool) -> list[int]:
    """Where blocks of at most `most` rows, or little more, begin and end: between series if one ends nearby."""
    total = int(offsets[-1])
    places = {0, total}
    for target in np.linspace(0, total, -(-total // most) + 1).round().astype(int)[1:-1]:
        next_end = int(offsets[np.searchsorted(offsets, target)])
        places.add(next_end if next_end - target <= most // 4 or not inside else int(target))
    return sorted(places)


def _rows(data: TimeSeries, begin: int, end: int) -> TimeSeries:
    """A range of observations, with the parts of series that lie in it."""
    offsets = np.unique(np.clip(data.offsets, begin, end))
    names = tuple(str(k) for k in range(len(offsets) - 1))
    return TimeSeries(
        data.times[begin:end], data.values[begin:end], offsets - begin, names, data.value_names, data.time_unit
    )


def _alike(layouts: list[Layout]) -> list[Layout]:
    """Layouts of few different shapes, so that few programs are compiled: padded where that costs little."""
    n_gaps = max(len(layout.gaps) for layout in layouts)
    padded = []
    for layout in layouts:
        shapes = [other.rows.shape for other in layouts if other.aligned == layout.aligned]
        n_steps, n_lanes = (max(sizes) for sizes in zip(*shapes, strict=True))
        if n_steps * n_lanes > MOST_PADDING * layout.rows.size:
            n_steps, n_lanes = layout.rows.shape
        padded.append(layout.padded(n_steps, n_lanes, n_gaps))
    return padded
