"""A data set and a model, made ready for training: normalised, on the device, with starting values."""

import json
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..digests import digest_of
from ..emissions.named import options_of
from ..exact.evidence import Panel, Scaling, emission_values
from ..exact.model import Model, Parameters
from ..exact.starts import starting_point
from ..posteriors import Capacity
from ..priors import ParametricRates, rates_of
from ..timeseries import TimeSeries
from .blocks import Block, Clock, in_windows, make_block
from .config import Config
from .loop import Learned, State
from .networks import Networks, Setup, make_networks, n_encoder_features
from .reviving import revived
from .spread import places_only, with_even_spread

# Rates may grow by this factor before transition matrices over the longest gap are compiled anew.
HEADROOM = 4.0


@dataclass(frozen=True)
class Problem:
    """What training works on."""

    data: TimeSeries  # as the configuration cuts it
    model: Model
    panel: Panel
    config: Config
    seed: int
    scaling: Scaling
    clock: Clock
    block: Block
    starts: tuple[Parameters, ...]  # one per restart

    @classmethod
    def of(cls, data: TimeSeries, model: Model, panel: Panel, config: Config, restarts: int, seed: int) -> "Problem":
        data = as_configured(data, config)
        scaling, clock = Scaling.of(model.emission, data.values), Clock.of(data)
        block = make_block(data, model, scaling, clock, panel, dtype_of(config))
        starts = tuple(_start(data, model, panel, scaling, clock, config, k, seed) for k in range(restarts))
        return cls(data, model, panel, config, seed, scaling, clock, block, starts)

    @property
    def log_scale(self) -> float:
        """What standardising the values took from the log density."""
        return self.scaling.log_taken(self.model.emission, ~np.isnan(self.data.values))

    @property
    def batch(self) -> int:
        return min(self.config.batch, self.block.n_series)

    def setup(self) -> Setup:
        """For a program that bears the starting rates, and some more."""
        thetas = np.stack([start.rates for start in self.starts])
        capacity = Capacity.of(HEADROOM * self.most_jumps(thetas))
        return Setup(self.model, self.config, n_encoder_features(self.model, self.config, self.block), capacity)

    def with_headroom(self, setup: Setup, thetas: Float[np.ndarray, "restart parameter"]) -> Setup:
        """More capacity where rates have grown beyond what the compiled program can bear."""
        needed = self.most_jumps(thetas)
        if self.config.posterior != "tilted" or needed <= setup.capacity.jumps:
            return setup
        return setup._replace(capacity=Capacity.of(HEADROOM * needed))

    def most_jumps(self, thetas: Float[np.ndarray, "restart parameter"]) -> float:
        """Expected at the fastest rate in the longest gap."""
        with np.errstate(over="ignore"):  # of a restart that diverges
            return float(np.asarray(rates_of(self.model.rate_model, thetas)).sum(-1).max() * self.data.gaps.max())

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
            "data": digest_of(self.data),
            "model": model,
            "configuration": self.config.as_dict(),
            "number of restarts": len(self.starts),
            "seed": self.seed,
        }
        return json.loads(json.dumps(known))  # as it will be read back


def as_configured(data: TimeSeries, config: Config) -> TimeSeries:
    """Cut into windows; without the last observation of each series, if so configured."""
    if config.drop_last:
        long = data[data.lengths > 2]
        keep = np.ones(long.n_observations, bool)
        keep[long.offsets[1:] - 1] = False
        offsets = long.offsets - np.arange(len(long.offsets))
        data = TimeSeries(long.times[keep], long.values[keep], offsets, long.names, long.value_names, long.time_unit)
    return in_windows(data, config.window)


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
