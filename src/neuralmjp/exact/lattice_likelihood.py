"""The log-likelihood of a data set under a reaction network: all blocks together, planned again where needed."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ..emissions.emission import Params
from ..emissions.readings import NEVER, Readings
from ..errors import InputError
from ..mjp.precision import in_double_precision
from ..systems import ReactionNetwork
from ..systems.events import Events
from ..timeseries import TimeSeries
from .lattice import Filtered, filtered, shown
from .lattice_plan import Block, Plan, make_plan

MOST_LOST, MOST_LOST_ONCE = 1e-9, 1e-6  # probability per series: on average, and in any
WIDER = 1.5
MOST_AT_ONCE = 8  # blocks


@dataclass(frozen=True)
class Evaluation:
    """The log-likelihood at one place, with its slopes."""

    log_likelihoods: Float[np.ndarray, "series"]
    constants: Float[np.ndarray, "constant"]  # slope by the logarithms of the constants
    noise: Params  # slope by what the readings learn
    lost: Float[np.ndarray, "series"]  # probability that left the windows
    edges: Float[np.ndarray, "species"]  # probability of the largest count of each at an average observation
    impossible: int | None  # the first observation that cannot happen, if there is one

    @property
    def total(self) -> float:
        return float(self.log_likelihoods.sum())


class Likelihood:
    """A data set, ready to be evaluated at any constants; it remembers its plan.

    Args:
        data: one column per reading.
        network: what can happen; its own constants are not used.
        readings: how counts are read.
        initial: "flat": at the first observation of a series every cell of the box is as likely; "start": at time 0
            all counts in the network's `start` are.
        headroom: factor by which exit rates may grow before a new plan is made.
    """

    def __init__(
        self,
        data: TimeSeries,
        network: ReactionNetwork,
        readings: Readings,
        initial: str = "flat",
        *,
        headroom: float = 1.0,
    ):
        self.readings, self.headroom, self.initial = readings, headroom, initial
        self.data, self.rows = (data, np.arange(data.n_observations)) if initial == "flat" else from_time_zero(data)
        self.events: Events = network.events()
        self.law = initial_law(network, initial)
        self.width = 1.0
        grid = [jnp.asarray(x) for x in np.indices(self.events.box)]
        self._ways = np.stack([np.asarray(way) for way in self.events.ways(grid)])
        self._plan: Plan | None = None
        self._last: tuple[tuple, Evaluation] | None = None

    def evaluate(self, log_constants: Float[np.ndarray, "constant"], noise: Params) -> Evaluation:
        """Log-likelihoods and slopes, in the windows of the plan; asked again for the same place, the same answer."""
        plan = self._current_plan(log_constants, noise)
        place = (plan, log_constants.tobytes(), tuple(np.asarray(noise[name]).tobytes() for name in sorted(noise)))
        if self._last is None or self._last[0] != place:
            self._last = place, self._evaluated(log_constants, noise)
        return self._last[1]

    def _evaluated(self, log_constants: Float[np.ndarray, "constant"], noise: Params) -> Evaluation:
        log_likelihoods, lost = np.zeros(len(self.data)), np.zeros(len(self.data))
        slope = np.zeros(len(log_constants))
        noise_slope = {name: np.zeros(np.shape(value)) for name, value in noise.items()}
        impossible, edges, box = [], np.zeros(len(self.events.box)), np.array(self.events.box)
        for block, found in self._all(log_constants, noise):
            real = block.series >= 0
            log_norms = np.asarray(found.log_norms)
            log_likelihoods[block.series[real]] = log_norms.sum(0)[real]
            lost[block.series[real]] = np.asarray(found.lost)[real]
            slope += np.asarray(found.constants)
            noise_slope = {name: value + np.asarray(found.noise[name]) for name, value in noise_slope.items()}
            for step, k in np.argwhere((log_norms < NEVER / 2) & real):
                rows = block.rows[step:, k]
                impossible.append(int(rows[rows >= 0][0]))
            above = np.moveaxis(np.asarray(block.steps.offset), 1, 0) == (box - block.window)[:, None, None]
            edges += (np.asarray(found.highest) * (above & (block.rows >= 0))).sum((1, 2)) / self.data.n_observations
        return Evaluation(log_likelihoods, slope, noise_slope, lost, edges, min(impossible, default=None))

    def settled(self, log_constants: Float[np.ndarray, "constant"], noise: Params) -> Evaluation:
        """The same with windows wide enough: widened until next to nothing is lost, or they are the whole box."""
        while True:
            found = self.evaluate(log_constants, noise)
            enough = found.lost.mean() <= MOST_LOST and found.lost.max() <= MOST_LOST_ONCE
            if (enough and found.impossible is None) or self._whole:
                return found
            self.width = self.width * WIDER if found.impossible is None else np.inf
            self._plan = None

    def possible(self, log_constants: Float[np.ndarray, "constant"], noise: Params) -> Evaluation:
        """The same, or one line that names the observation that cannot happen."""
        found = self.settled(log_constants, noise)
        if found.impossible is not None:
            data, row = self.data, found.impossible
            series = int(np.searchsorted(data.offsets, row, side="right")) - 1
            raise InputError(
                f"series {data.names[series]!r}, time {data.times[row]:g}: this observation cannot happen under the "
                "network; add a reaction, enlarge the box or allow noise in the readings"
            )
        return found

    def marginals(
        self, log_constants: Float[np.ndarray, "constant"], noise: Params
    ) -> dict[tuple[int, ...], Float[np.ndarray, "row _"]]:
        """The law of each species, and of each sum that is read, at each observation given all of its series."""
        self.possible(log_constants, noise)
        totals = shown(self.readings, len(self.events.box))
        sizes = [sum(self.events.box[s] - 1 for s in total) + 1 for total in totals]
        tables = {total: np.zeros((self.data.n_observations, n)) for total, n in zip(totals, sizes, strict=True)}
        for block, found in self._all(log_constants, noise):
            step, series = np.nonzero(block.rows >= 0)
            rows, offset = block.rows[step, series], np.asarray(block.steps.offset)[step, :, series]
            for (total, table), marginal in zip(tables.items(), found.marginals, strict=True):
                law = np.maximum(np.asarray(marginal)[step, :, series], 0.0)
                places = offset[:, list(total)].sum(1, keepdims=True) + np.arange(law.shape[1])
                table[rows[:, None], places] = law / law.sum(1, keepdims=True)
        return {total: table[self.rows] for total, table in tables.items()}

    def last_counts(
        self, log_constants: Float[np.ndarray, "constant"], noise: Params, n: int, rng: np.random.Generator
    ) -> Int[np.ndarray, "series sample species"]:
        """Draws of all counts at the last observation of each series."""
        self.possible(log_constants, noise)
        result = np.empty((len(self.data), n, len(self.events.box)), dtype=int)
        for block, found in self._all(log_constants, noise):
            laws, offsets = np.asarray(found.last), np.asarray(block.steps.offset)[-1]
            for k in np.flatnonzero(block.series >= 0):
                cells = rng.choice(len(laws), n, p=laws[:, k] / laws[:, k].sum())
                result[block.series[k]] = np.stack(np.unravel_index(cells, block.window), axis=1) + offsets[:, k]
        return result

    def work(self, log_constants: Float[np.ndarray, "constant"], noise: Params) -> float:
        """Cells times substeps of one evaluation."""
        return self._current_plan(log_constants, noise).work

    def _all(self, log_constants: Float[np.ndarray, "constant"], noise: Params) -> list[tuple[Block, Filtered]]:
        """Every block, several at once where there are several cores."""
        plan = self._current_plan(log_constants, noise)
        place = jnp.asarray(log_constants), {name: jnp.asarray(value) for name, value in noise.items()}

        @in_double_precision
        def one(block: Block) -> Filtered:
            return filtered(self.events, self.readings, *place, self.law, block.steps, window=block.window)

        with ThreadPoolExecutor(min(os.cpu_count() or 1, MOST_AT_ONCE)) as pool:
            found = list(pool.map(lambda block: jax.block_until_ready(one(block)), plan.blocks))
        return list(zip(plan.blocks, found, strict=True))

    @property
    def _whole(self) -> bool:
        return self._plan is not None and all(block.window == self.events.box for block in self._plan.blocks)

    def _current_plan(self, log_constants: Float[np.ndarray, "constant"], noise: Params) -> Plan:
        scales = np.asarray(self.events.scales(jnp.exp(jnp.asarray(log_constants))))
        rates = scales.reshape(-1, *[1] * len(self.events.box)) * self._ways
        if self._plan is None or not self._plan.bears(rates.sum(0), noise):
            described = self.data, self.events, self.readings, self.law, rates, noise
            self._plan = make_plan(*described, headroom=self.headroom, width=self.width, before=self._plan)
        return self._plan


def initial_law(network: ReactionNetwork, initial: str) -> Float[np.ndarray, "species count"]:
    """Probability of each count of each species at the first observation of a series."""
    if initial not in ("flat", "start"):
        raise InputError(f"initial must be flat or start, got {initial!r}")
    law = np.zeros((len(network.box), max(network.box)))
    for s, (n, (low, high)) in enumerate(zip(network.box, network.start, strict=True)):
        first, last = (0, n - 1) if initial == "flat" else (low, high)
        law[s, first : last + 1] = 1.0 / (last + 1 - first)
    return law


def from_time_zero(data: TimeSeries) -> tuple[TimeSeries, Int[np.ndarray, "row"]]:
    """The data with an observation at time 0 that shows nothing where a series has none; and where the others are."""
    new = data.times[data.offsets[:-1]] > 0
    rows = np.arange(data.n_observations) + np.repeat(np.cumsum(new), data.lengths)
    offsets = data.offsets + np.concatenate([[0], np.cumsum(new)])
    times, values = np.zeros(offsets[-1]), np.full((offsets[-1], data.n_features), np.nan)
    times[rows], values[rows] = data.times, data.values
    return TimeSeries(times, values, offsets, data.names, data.value_names, data.time_unit), rows
