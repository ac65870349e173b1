"""The likelihood of labels on the host: for people seen now and then, compiling would cost more than computing.

A state that is seen for certain makes what follows independent of what was before. So every series is cut there: pieces
begin in a known state and run to the next one. Where all states are seen, a piece is one transition, equal ones are
counted together, and no pass along the series is left. Values and derivatives equal those of `chain` and `transitions`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from ..emissions import Categorical
from ..priors import rates_of
from ..timeseries import TimeSeries
from .evidence import Panel, absorbing_entries, emission_values, panel_override
from .layout import distinct_gaps, first_rows
from .model import Evaluation, Model, Parameters
from .transitions import HostTable

# Beyond these a compiled program is worth its compiling.
MOST_HIDDEN = 20_000  # observations in pieces of several steps
LONGEST_PIECE = 100
ENTRIES_AT_ONCE = 1 << 17  # of the table of transition matrices: what stays in a processor's cache


class Step(NamedTuple):
    """One step of all pieces that last so long; the longest pieces come first."""

    gap: Int[np.ndarray, "piece"]
    reading: Int[np.ndarray, "piece"]


@dataclass(frozen=True)
class Block:
    """Distinct pieces of series, each begun in a known state, and how often each was seen."""

    begin: Int[np.ndarray, "piece"]
    steps: list[Step]
    often: Float[np.ndarray, "piece"]
    gaps: Float[np.ndarray, "gap"]
    # Sums over pieces, as matrices: by gap and state of the first step, by gap of the later ones, by reading.
    by_row: csr_array
    by_gap: csr_array
    by_reading: csr_array

    def slopes(
        self, generator: Float[np.ndarray, "state state"], readings: Float[np.ndarray, "state reading"]
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Log-likelihood, and its derivative by every entry of the generator and of the readings."""
        table = HostTable(generator, self.gaps)
        value, d_table, d_reading = self._passes(table.matrices, readings)
        return value, table.pull(d_table), d_reading

    def _passes(
        self, table: Float[np.ndarray, "gap state state"], readings: Float[np.ndarray, "state reading"]
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Forwards along all pieces, then back: the log-likelihood, and its slopes by table and by readings."""
        n_states = len(readings)
        per_reading = np.ascontiguousarray(readings.T)
        value, law, forth = 0.0, np.empty(0), []
        for s, (gap, reading) in enumerate(self.steps):
            law = law[: len(gap)]
            if s == 0:
                moved = table.reshape(-1, n_states)[gap * n_states + self.begin]
            else:
                moved = np.einsum("pi,pij->pj", law, table[gap])
            shown = per_reading[reading]
            total = (moved * shown).sum(1, keepdims=True)
            value += float(self.often[: len(gap)] @ np.log(total[:, 0]))
            forth.append((law, moved / total, shown / total, shown))
            law = moved * shown / total
        after = np.empty((0, n_states))  # likelihood of what follows each step, up to a factor: law x after sums to one
        back = []
        for (gap, _), (_, _, scaled, _) in zip(reversed(self.steps), reversed(forth), strict=True):
            after = np.concatenate([after, np.ones((len(gap) - len(after), n_states))])
            ahead = scaled * after
            back.append((after, ahead))
            if len(back) < len(self.steps):
                after = np.einsum("pij,pj->pi", table[gap], ahead)
        back.reverse()
        d_reading = self.by_reading @ np.concatenate([f[1] * b[0] for f, b in zip(forth, back, strict=True)])
        d_table = (self.by_row @ back[0][1]).reshape(table.shape)
        if len(back) > 1:
            pairs = zip(forth[1:], back[1:], strict=True)
            outer = np.concatenate([f[0][:, :, None] * b[1][:, None, :] for f, b in pairs])
            d_table += (self.by_gap @ outer.reshape(len(outer), -1)).reshape(table.shape)
        return value, d_table, d_reading.T


@dataclass(frozen=True)
class Labels:
    """A data set of labels, as its likelihood needs it."""

    blocks: list[Block]
    sure: Float[np.ndarray, "state reading"]  # readings that come after the labels: sets of states
    absorbing: int | None  # the state whose entry is the last reading of all
    log_scale: float = 0.0  # labels have no scale

    @np.errstate(divide="ignore", invalid="ignore")  # what cannot happen has a log-likelihood of -inf
    def evaluate(self, model: Model, parameters: Parameters) -> Evaluation:
        """Log-likelihood with its gradient, and the expected jumps and times."""
        emission, theta = model.emission, np.asarray(parameters.rates)
        assert isinstance(emission, Categorical)
        rates = np.asarray(rates_of(model.rate_model, theta))
        shown = np.exp(emission.log_table(parameters.emission)) * emission.readable
        entry = rates[:, [] if self.absorbing is None else [self.absorbing]]
        generator, readings = rates - np.diag(rates.sum(1)), np.concatenate([shown, self.sure, entry], axis=1)
        value, d_generator, d_reading = 0.0, np.zeros_like(generator), np.zeros_like(readings)
        for block in self.blocks:
            more, by_generator, by_reading = block.slopes(generator, readings)
            value, d_generator, d_reading = value + more, d_generator + by_generator, d_reading + by_reading
        d_rates = d_generator - d_generator.diagonal()[:, None]
        jumps = rates * d_generator
        if self.absorbing is not None:
            d_rates[:, self.absorbing] += d_reading[:, -1]
            jumps[:, self.absorbing] += entry[:, 0] * d_reading[:, -1]
        d_theta = np.einsum("ij,pij->p", d_rates, model.rate_model.slopes(theta))
        d_emission = emission.pulled_back(shown, d_reading[:, : shown.shape[1]])
        gradient = Parameters(d_theta, d_emission, np.zeros(len(rates)))
        return Evaluation(value, gradient, jumps, d_generator.diagonal())


def lay_out_labels(data: TimeSeries, model: Model, panel: Panel) -> Labels | None:
    """A data set of labels for a model, or None where the compiled likelihood serves better."""
    emission = model.emission
    if not isinstance(emission, Categorical) or model.initial != "known":
        return None
    reading, sure, state_after = _readings(data, emission, panel)
    first = first_rows(data)
    gaps, gap = distinct_gaps(np.where(first, 0.0, np.diff(data.times, prepend=0.0)))
    inner = np.flatnonzero(~first)
    if not inner.size or not (state_after[first] >= 0).all():
        return None
    starts = np.flatnonzero(state_after[inner - 1] >= 0)
    lengths = np.diff(np.append(starts, len(inner)))
    if lengths.max() > 1 and (lengths.max() > LONGEST_PIECE or len(inner) > MOST_HIDDEN):
        return None
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    steps = []
    for s in range(lengths[0]):
        rows = inner[starts[: int((lengths > s).sum())] + s]
        steps.append(Step(gap[rows], reading[rows]))
    _, entered_state = absorbing_entries(data, emission, panel)
    absorbing = None if entered_state is None else int(entered_state)
    n_readings = len(emission.labels) + sure.shape[1] + (absorbing is not None)
    begin, steps, often = _distinct(state_after[inner[starts] - 1], steps, len(gaps), n_readings)
    blocks = _blocks(begin, steps, often, gaps, len(sure), n_readings)
    return Labels(blocks, sure, absorbing)


def _blocks(
    begin: np.ndarray, steps: list[Step], often: np.ndarray, gaps: np.ndarray, n_states: int, n_readings: int
) -> list[Block]:
    """Single transitions by ranges of gaps, which need a small table each; longer pieces all together."""
    n_gaps = len(gaps) if len(steps) > 1 else max(ENTRIES_AT_ONCE // n_states**2, 1)
    blocks = []
    for low in range(0, len(gaps), n_gaps):
        inside = (steps[0].gap >= low) & (steps[0].gap < low + n_gaps)
        if not inside.any():
            continue
        some = steps if inside.all() else [Step(steps[0].gap[inside] - low, steps[0].reading[inside])]
        blocks.append(_block(begin[inside], some, often[inside], gaps[low : low + n_gaps], n_states, n_readings))
    return blocks


def _block(
    begin: np.ndarray, steps: list[Step], often: np.ndarray, gaps: np.ndarray, n_states: int, n_readings: int
) -> Block:
    weights = np.concatenate([often[: len(step.gap)] for step in steps])
    gap, reading = (np.concatenate(parts) for parts in zip(*steps, strict=True))
    n = len(begin)
    return Block(
        begin,
        steps,
        often,
        gaps,
        by_row=_summing(gap[:n] * n_states + begin, often, len(gaps) * n_states),
        by_gap=_summing(gap[n:], weights[n:], len(gaps)),
        by_reading=_summing(reading, weights, n_readings),
    )


def _readings(
    data: TimeSeries, emission: Categorical, panel: Panel
) -> tuple[Int[np.ndarray, "row"], Float[np.ndarray, "state reading"], Int[np.ndarray, "row"]]:
    """What is read at each observation, the readings that are no labels, and the state each leaves, -1 if unsure.

    Readings are numbered: labels, sets of states of which one is certain (the first: all of them), entry.
    """
    n_states, n_labels = emission.readable.shape
    code = emission_values(emission, data.values, panel)[:, 0]
    reading = np.where(np.isnan(code), n_labels, code).astype(int)
    sure = np.ones((n_states, 1))
    override = panel_override(data, emission, n_states, panel, first_rows(data))
    if override is not None:
        known = ~np.isnan(override[:, 0])
        sets, index = np.unique(np.exp(override[known]), axis=0, return_inverse=True)
        reading[known] = n_labels + 1 + index.ravel()
        sure = np.concatenate([sure, sets.T], axis=1)
    possible = np.concatenate([emission.readable, sure > 0], axis=1)
    state_after = np.where(possible.sum(0) == 1, possible.argmax(0), -1)[reading]
    entered, _ = absorbing_entries(data, emission, panel)
    if entered is not None:
        reading[entered] = n_labels + sure.shape[1]
    return reading, sure, state_after


def _distinct(
    begin: Int[np.ndarray, "piece"], steps: list[Step], n_gaps: int, n_readings: int
) -> tuple[np.ndarray, list[Step], np.ndarray]:
    """Equal pieces once, with how often they were seen; the order by length stays."""
    key, n_kinds = begin.astype(np.int64), n_gaps * n_readings + 1
    for gap, reading in steps:
        lasting = key[: len(gap)] * n_kinds + gap * n_readings + reading + 1
        key = np.concatenate([lasting, key[len(gap) :] * n_kinds])  # what has ended reads nothing
        key = np.unique(key, return_inverse=True)[1]
    _, which, often = np.unique(key, return_index=True, return_counts=True)
    back = np.argsort(which)
    which, often = which[back], often[back].astype(float)
    return begin[which], [Step(*(x[which[which < len(x)]] for x in step)) for step in steps], often


def _summing(index: Int[np.ndarray, "item"], weight: Float[np.ndarray, "item"], n: int) -> csr_array:
    """The matrix that adds up weighted rows with the same index."""
    return csr_array((weight, (index, np.arange(len(index)))), shape=(n, len(index)))
