"""From a data set to trained networks: starts, rounds, looks at the objective, the best of the restarts."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..errors import InputError
from ..exact.evidence import Panel, Scaling, emission_values
from ..exact.model import Model, Parameters
from ..exact.starts import crude_rates, nearest_states
from ..posteriors import Capacity
from ..priors import ParametricRates, rates_of
from ..timeseries import TimeSeries
from .blocks import Block, Clock, in_windows, make_block
from .checkpoints import load_checkpoint, save_checkpoint
from .config import Config
from .loop import Learned, Pace, State, batch_rows, evaluate_all, run_round, start_state
from .networks import Evaluated, Networks, Setup, make_networks, n_encoder_features
from .spread import places_only, with_even_spread

Progress = Callable[[str, float], None]
# Rates may grow by this factor before transition matrices over the longest gap are compiled anew.
HEADROOM = 4.0
MOST_REFUSED = 0.5  # share of refused steps in a round that counts as divergence
VISITED = 1e-3  # share of observations below which a state counts as never visited


@dataclass(frozen=True)
class Trained:
    """What training found. Values are standardised, rates are per unit of the data's time."""

    setup: Setup
    networks: Networks
    scaling: Scaling
    clock: Clock
    panel: Panel
    evaluated: Evaluated  # on the training data
    log_scale: float  # what standardising the values took from the log density
    histories: tuple[tuple[dict[str, Any], ...], ...]  # of each restart, one entry per round
    all_networks: tuple[Networks, ...]  # of each restart
    restarts: tuple[float, ...]  # bound of each, in nats
    occupancy: Float[np.ndarray, "state"]  # share of the observations in each state
    steps: int
    settled: bool
    message: str
    warnings: tuple[str, ...]
    seconds: float

    @property
    def history(self) -> tuple[dict[str, Any], ...]:
        """One entry per round of the best restart: terms of the bound, parameters, seconds."""
        return self.histories[int(np.nanargmax(self.restarts))]

    @property
    def elbo(self) -> float:
        """Of all training data, in the data's own units."""
        return float(np.asarray(self.evaluated.terms.elbo, np.float64).sum()) + self.log_scale

    @property
    def parameters(self) -> Parameters:
        """The model's parameters, for standardised values."""
        theta = np.asarray(self.networks.prior.draw(None), np.float64)
        emission = {name: np.asarray(value, np.float64) for name, value in self.networks.emission.items()}
        return Parameters(theta, emission, np.asarray(self.networks.initial, np.float64))

    def evaluate(self, data: TimeSeries) -> Evaluated:
        """The bound, and the posterior at the observations, of other data."""
        return self.evaluate_each(data)[int(np.nanargmax(self.restarts))]

    def evaluate_each(self, data: TimeSeries) -> list[Evaluated]:
        """The same for every restart."""
        config = self.setup.config
        with _precision(config):
            prepared = _prepared(data, config)
            block = make_block(prepared, self.setup.model, self.scaling, self.clock, self.panel, _dtype(config))
            batch = min(config.batch, block.n_series)
            return [evaluate_all(self.setup, networks, block, batch) for networks in self.all_networks]


def train(
    data: TimeSeries,
    model: Model,
    *,
    panel: Panel,
    config: Config,
    restarts: int = 1,
    seed: int = 0,
    folder: Path | None = None,
    resume: bool = False,
    progress: Progress = lambda *_: None,
) -> Trained:
    """Train until the objective has settled or the steps are used up.

    Args:
        folder: where checkpoints go, one per round.
        resume: go on from the checkpoint in `folder`, if there is one.
    """
    began = time.perf_counter()
    with _precision(config):
        return _train(data, model, panel, config, restarts, seed, folder, resume, progress, began)


def _train(
    data: TimeSeries,
    model: Model,
    panel: Panel,
    config: Config,
    restarts: int,
    seed: int,
    folder: Path | None,
    resume: bool,
    progress: Progress,
    began: float,
) -> Trained:
    data = _prepared(data, config)
    scaling, clock = Scaling.of(model.emission, data.values), Clock.of(data)
    block = make_block(data, model, scaling, clock, panel, _dtype(config))
    starts = [_start(data, model, panel, scaling, clock, config, k, seed) for k in range(restarts)]
    capacity = Capacity.of(HEADROOM * _most_jumps(model, np.stack([start.rates for start in starts]), data))
    setup = Setup(model, config, clock.span, n_encoder_features(model, config, block), capacity)
    keys = jax.random.split(jax.random.key(seed), restarts)
    networks = _stacked([make_networks(setup, start, key=key) for start, key in zip(starts, keys, strict=True)])
    learned = _learned(model, starts[0].emission)
    state = start_state(networks, config)
    pace = [Pace() for _ in range(restarts)]
    history: list[list[dict[str, Any]]] = [[] for _ in range(restarts)]
    identity = _identity(data, setup, restarts, seed)
    done, settled = 0, False
    if resume and folder is not None:
        found = load_checkpoint(folder, state)
        if found is not None:
            state, meta = found
            if meta["identity"] != identity:
                different = [name for name in identity if meta["identity"].get(name) != identity[name]]
                raise InputError(
                    f"the checkpoint in {folder} was made with another {', '.join(different)}: "
                    "use the same, or fit without --resume"
                )
            done, settled, history = meta["done"], meta["settled"], meta["history"]
            pace = [Pace(**one) for one in meta["pace"]]
    batch = min(config.batch, block.n_series)
    per_epoch = max(block.n_series // batch, 1)
    refused = np.asarray(state.refused)
    while done < config.steps and not settled:
        n = min(config.round_steps, config.steps - done)
        rows = np.stack([batch_rows(seed, k, done, n, block.n_series, batch) for k in range(restarts)])
        factors = jnp.asarray([one.factor for one in pace], jnp.float32)
        state, record = run_round(
            setup, state, learned, block, jnp.asarray(rows), keys, jnp.asarray(done), factors, per_epoch
        )
        done += n
        seen = {name: np.asarray(value, np.float64) for name, value in record._asdict().items()}
        now_refused = np.asarray(state.refused)
        _require_sense(now_refused - refused, n, done)
        refused = now_refused
        thetas = np.asarray(_thetas(state.average[0]), np.float64)
        for k in range(restarts):
            means = {name: float(value[k].mean()) for name, value in seen.items()}
            since = time.perf_counter() - began
            history[k].append({"step": done, "seconds": since, **means, "theta": thetas[k].tolist()})
        # Schedules first: while they change the objective, its rise says nothing.
        if config.decay_epochs == 0 and done > _scheduled(config):
            ends = [pace[k].look(seen["objective"][k], config) for k in range(restarts)]
            settled = all(ends)
        setup = _with_headroom(setup, thetas, data)
        progress("training", done / config.steps)
        if folder is not None:
            meta = {"identity": identity, "done": done, "settled": settled, "history": history}
            save_checkpoint(folder, state, {**meta, "pace": [asdict(one) for one in pace]})
    return _best(
        setup, state, block, data, scaling, clock, panel, history, done, settled, refused, time.perf_counter() - began
    )


def _best(
    setup: Setup,
    state: State,
    block: Block,
    data: TimeSeries,
    scaling: Scaling,
    clock: Clock,
    panel: Panel,
    history: list[list[dict[str, Any]]],
    done: int,
    settled: bool,
    refused: np.ndarray,
    seconds: float,
) -> Trained:
    """The restart with the highest bound, its own parameters averaged over the last round."""
    config = setup.config
    mask = ~np.isnan(data.values)
    log_scale = -float((mask * np.log(scaling.scale)).sum())
    candidates, bounds = [], []
    for k in range(len(state.networks.initial)):
        one, average = _one(state.networks, k), _one(state.average, k)
        one = eqx.tree_at(lambda n: (n.prior, n.emission, n.initial), one, average)
        found = evaluate_all(setup, one, block, min(config.batch, block.n_series))
        candidates.append((one, found))
        bounds.append(float(np.asarray(found.terms.elbo, np.float64).sum()) + log_scale)
    best = int(np.nanargmax(bounds))
    networks, evaluated = candidates[best]
    weights = np.asarray(block.evidence.valid)[..., None]
    occupancy = (np.asarray(evaluated.marginals, np.float64) * weights).sum((0, 1)) / weights.sum()
    why = "the bound no longer rises" if settled else f"the limit of {config.steps} steps"
    warnings = [
        f"state {k} is visited in {100 * occupancy[k]:.2g} % of the observations: it has collapsed; try more restarts, "
        "a curriculum or fewer states"
        for k in np.flatnonzero(occupancy < VISITED)
    ]
    if refused[best]:
        warnings.append(f"{int(refused[best])} of {done} training steps were refused: their result was not finite")
    if len(bounds) > 1:
        spread = float(np.nanmax(bounds) - np.nanmin(bounds))
        warnings.append(f"the bounds of {len(bounds)} restarts lie within {spread:.3g} nats of each other")
    return Trained(
        setup,
        networks,
        scaling,
        clock,
        panel,
        evaluated,
        log_scale,
        tuple(tuple(one) for one in history),
        tuple(one for one, _ in candidates),
        tuple(bounds),
        occupancy,
        done,
        settled,
        f"stopped after {done} steps: {why}",
        tuple(warnings),
        seconds,
    )


def _prepared(data: TimeSeries, config: Config) -> TimeSeries:
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
    emission = model.emission.start(values, rate_model.n_states, rng)
    if config.fixed_spread:
        emission = with_even_spread(model.emission, emission)
    if config.prior == "generator":
        # As in the paper nothing is known of the rates: about one jump per series.
        known = isinstance(rate_model, ParametricRates)
        theta = (
            np.log([v for _, v in rate_model.start]) if known else rate_model.nearest(rate_model.allowed / clock.span)
        )
    else:
        states = nearest_states(model.emission, emission, values)
        theta = rate_model.nearest(crude_rates(data, states, rate_model.allowed, rng))
    return Parameters(theta, emission, np.zeros(rate_model.n_states))


def _most_jumps(model: Model, thetas: Float[np.ndarray, "restart parameter"], data: TimeSeries) -> float:
    """Expected at the fastest rate in the longest gap."""
    return float(np.asarray(rates_of(model.rate_model, thetas)).sum(-1).max() * data.gaps.max())


def _with_headroom(setup: Setup, thetas: Float[np.ndarray, "restart parameter"], data: TimeSeries) -> Setup:
    """More capacity where rates have grown beyond what the compiled program can bear."""
    needed = _most_jumps(setup.model, thetas, data)
    if setup.config.posterior != "tilted" or needed <= setup.capacity.jumps:
        return setup
    return setup._replace(capacity=Capacity.of(HEADROOM * needed))


@jax.jit
def _thetas(prior: Any) -> Float[jax.Array, "restart parameter"]:
    """The prior's parameters in each restart."""
    return jax.vmap(lambda one: one.draw(None))(prior)


def _learned(model: Model, params: dict[str, Any]) -> Learned:
    free = model.emission.learned(params)
    places = places_only(model.emission, params)
    return Learned(
        {name: jnp.asarray(value, float) for name, value in free.items()},
        {name: jnp.asarray(value & places[name], float) for name, value in free.items()},
    )


def _scheduled(config: Config) -> int:
    """Steps during which a schedule changes the objective."""
    few_until = 0 if config.curriculum is None else sum(config.curriculum[1:])
    return max(config.kl_warmup, few_until, config.fixed_spread)


def _require_sense(refused: np.ndarray, n: int, done: int) -> None:
    if (refused > MOST_REFUSED * n).all():
        raise InputError(
            f"training diverged: {int(refused.min())} of the {n} steps before step {done} gave no finite result; "
            "lower the learning rate, or look for extreme values in the data"
        )


def _identity(data: TimeSeries, setup: Setup, restarts: int, seed: int) -> dict[str, Any]:
    """What must be the same for a run to go on."""
    digest = hashlib.sha256()
    for array in (data.times, data.values, data.offsets):
        digest.update(np.ascontiguousarray(array).tobytes())
    config = json.loads(json.dumps(setup.config.as_dict()))
    return {"data": digest.hexdigest(), "configuration": config, "restarts": restarts, "seed": seed}


def _stacked(networks: list[Networks]) -> Networks:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks)


def _one(tree: Any, restart: int) -> Any:
    return jax.tree.map(lambda x: x[restart], tree)


def _dtype(config: Config) -> type:
    return np.float64 if config.precision == "double" else np.float32


def _precision(config: Config):
    return jax.enable_x64(config.precision == "double")
