"""A data set and a model, made ready for training: normalised, on the device, with starting values."""

import json
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..digests import digest_of
from ..emissions.named import options_of
from ..exact.evidence import Panel, Scaling, emission_values
from ..exact.model import Model, Parameters
from ..exact.starts import starting_point
from ..posteriors import Capacity
from ..priors import ParametricRates, rates_of
from ..timeseries import TimeSeries
from .blocks import Block, Clock, as_configured, make_block
from .config import Config
from .loop import Learned, State, rows_of_restarts
from .networks import Networks, Setup, make_networks, n_encoder_features
from .reviving import revived
from .spread import places_only, with_even_spread
from .stream import ReadAhead, Stream

# Rates may grow by this factor before transition matrices over the longest gap are compiled anew.
HEADROOM = 4.0


@dataclass(frozen=True)
class Problem:
    """What training works on."""

    data: TimeSeries  # as the configuration cuts it; of a stream, the sample that is held
    model: Model
    panel: Panel
    config: Config
    seed: int
    scaling: Scaling
    clock: Clock
    block: Block
    starts: tuple[Parameters, ...]  # one per restart
    stream: Stream | None = None
    ahead: ReadAhead[Block] | None = None  # what is trained on, where it is not the block

    @classmethod
    def of(
        cls, data: TimeSeries | Stream, model: Model, panel: Panel, config: Config, restarts: int, seed: int
    ) -> "Problem":
        stream = data if isinstance(data, Stream) else None
        data = as_configured(data, config) if isinstance(data, TimeSeries) else data.sample
        scaling, clock = Scaling.of(model.emission, data.values), Clock.of(data)
        length, masked = None, False
        if stream is not None:
            clock, length, masked = Clock(stream.span), stream.longest, stream.missing
        block = make_block(data, model, scaling, clock, panel, dtype_of(config), length, masked)
        starts = tuple(_start(data, model, panel, scaling, clock, config, k, seed) for k in range(restarts))
        problem = cls(data, model, panel, config, seed, scaling, clock, block, starts, stream)
        return problem if stream is None else replace(problem, ahead=ReadAhead(problem.read))

    def read(self, first_step: int, n_steps: int) -> Block:
        """What a round sees, from disk."""
        assert self.stream is not None
        data = self.stream.served(self.seed, self.batch, first_step, n_steps)
        with in_precision(self.config):  # which is that of a thread
            return make_block(
                data,
                self.model,
                self.scaling,
                self.clock,
                self.panel,
                dtype_of(self.config),
                self.stream.longest,
                self.stream.missing,
            )

    def served(self, first_step: int, n_steps: int) -> tuple[Block, Int[np.ndarray, "restart step batch"]]:
        """What a round sees, and which series of it every step of each restart."""
        if self.ahead is None:
            place = (first_step, n_steps, self.n_series, self.batch)
            return self.block, rows_of_restarts(self.seed, len(self.starts), *place)
        rows = np.arange(n_steps * self.batch, dtype=np.int32).reshape(n_steps, self.batch)
        return self.ahead.get(first_step, n_steps), np.stack([rows] * len(self.starts))

    def close(self) -> None:
        """Stop reading ahead."""
        if self.ahead is not None:
            self.ahead.close()

    @property
    def log_scale(self) -> float:
        """What standardising the values took from the log density."""
        return self.scaling.log_taken(self.model.emission, ~np.isnan(self.data.values))

    @property
    def n_series(self) -> int:
        return self.block.n_series if self.stream is None else self.stream.n_series

    @property
    def length(self) -> int:
        """Observations of the longest series."""
        return self.block.valid.shape[1]

    @property
    def batch(self) -> int:
        return min(self.config.batch, self.n_series)

    def setup(self) -> Setup:
        """For a program that bears the starting rates, and some more."""
        thetas = np.stack([start.rates for start in self.starts])
        capacity = Capacity.of(HEADROOM * self.most_jumps(thetas))
        n_features = n_encoder_features(self.model, self.config, self.block)
        setup = Setup(self.model, self.config, n_features, capacity, self.block.evidence.seen.mask is not None)
        return setup if self.stream is not None else setup.reading(self.block)

    def with_headroom(self, setup: Setup, thetas: Float[np.ndarray, "restart parameter"]) -> Setup:
        """More capacity where rates have grown beyond what the compiled program can bear."""
        needed = self.most_jumps(thetas)
        if self.config.posterior != "tilted" or needed <= setup.capacity.jumps:
            return setup
        return setup._replace(capacity=Capacity.of(HEADROOM * needed))

    def most_jumps(self, thetas: Float[np.ndarray, "restart parameter"]) -> float:
        """Expected at the fastest rate in the longest gap."""
        with np.errstate(over="ignore"):  # of a restart that diverges
            longest = self.data.gaps.max() if self.stream is None else self.stream.longest_gap
            return float(np.asarray(rates_of(self.model.rate_model, thetas)).sum(-1).max() * longest)

    def networks(self, setup: Setup, keys: Array) -> Networks:
        """Fresh ones for every restart, along a leading axis."""
        each = [make_networks(setup, start, key=key) for start, key in zip(self.starts, keys, strict=True)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)

    def learned(self) -> Learned:
        """Which entries of the emission are learned, and which of them while its spread is fixed."""
        params = self.starts[0].emission
        free, places = self.model.emission.learned(params), places_only(self.model.emission, params)
        return Learned(
            {name: jnp.asarray(value, float) for name, value in free.items()},
            {name: jnp.asarray(value & places[name], float) for name, value in free.items()},
        )

    def revived(
        self, state: State, visited: Float[np.ndarray, "restart state"]
    ) -> tuple[State, Bool[np.ndarray, "restart"]]:
        """With states that nobody visits begun anew, and where there were such."""
        return revived(self.model, self.block.evidence, state, visited)

    def identity(self) -> dict[str, Any]:
        """What must be the same for a run to go on from a checkpoint."""
        rate_model, emission = self.model.rate_model, self.model.emission
        model = {
            "rates": [type(rate_model).__name__, rate_model.names, rate_model.allowed.tolist()],
            "emission": [emission.name, options_of(emission)],
            "initial": [self.model.initial, self.model.given],
            "panel": repr(self.panel),
        }
        known = {
            "data": digest_of(self.data) if self.stream is None else self.stream.digest,
            "model": model,
            "configuration": self.config.same_run(),
            "number of restarts": len(self.starts),
            "seed": self.seed,
        }
        return json.loads(json.dumps(known))  # as it will be read back


def _start(
    data: TimeSeries, model: Model, panel: Panel, scaling: Scaling, clock: Clock, config: Config, k: int, seed: int
) -> Parameters:
    """Sensible starting values, varied at random for all restarts but the first."""
    rng = None if k == 0 else np.random.default_rng((seed, k))
    values = (emission_values(model.emission, data.values, panel) - scaling.shift) / scaling.scale
    rate_model = model.rate_model
    emission, rates = starting_point(data, model.emission, values, rate_model.allowed, rng)
    if config.fixed_spread:
        emission = with_even_spread(model.emission, emission)
    if config.prior != "generator":
        theta = rate_model.nearest(rates)
    elif isinstance(rate_model, ParametricRates):
        theta = np.log([value for _, value in rate_model.start])
    else:  # as in the paper nothing is known of the rates: about one jump per series
        theta = rate_model.nearest(rate_model.allowed / clock.span)
    return Parameters(theta, emission, np.zeros(rate_model.n_states))


def dtype_of(config: Config) -> type:
    return np.float64 if config.precision == "double" else np.float32


def in_precision(config: Config):
    """The context in which arrays of this configuration live."""
    return jax.enable_x64(config.precision == "double")
