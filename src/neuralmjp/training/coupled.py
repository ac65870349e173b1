"""Training a mean field of coupled processes, from a data set to its end."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..digests import digest_of
from ..emissions.emission import Params
from ..emissions.readings import Readings
from ..errors import InputError
from ..objective import Terms
from ..posteriors.coupling import Coupling
from ..systems import ReactionNetwork
from ..timeseries import TimeSeries
from .blocks import in_windows
from .config import Config, PosteriorName, Preset, preset
from .coupled_blocks import CountBlock, Sizes, make_count_block
from .coupled_networks import CountsEvaluated, CoupledSetup, make_coupled_networks
from .loop import Learned, State, evaluate_all, rows_of_restarts
from .networks import Networks
from .polish import polished
from .problem import dtype_of, in_precision
from .run import Descent, Progress, descend
from .trained import NO_BOUND, Restarts, averaged, ending

MOST_PIECES = 64  # of one gap: beyond that nothing is known in its middle that pieces could resolve
ROOM = 2**25  # numbers in the largest array of an evaluation
UNEVEN = 1.5  # a series is cut into at most so many times the pieces of an average one: all cost as much as the longest


@dataclass(frozen=True)
class CoupledProblem:
    """What training works on."""

    data: TimeSeries
    network: ReactionNetwork
    readings: Readings
    config: Config
    seed: int
    sizes: Sizes
    speed: Float[np.ndarray, "constant"]  # logarithms of constants for which time is cut into pieces
    block: CountBlock
    first: tuple[tuple[int, int], ...]
    starts: tuple[tuple[np.ndarray, Params], ...]  # of each restart: logarithms of the constants, and the noise

    @property
    def n_series(self) -> int:
        return self.block.n_series

    @property
    def length(self) -> int:
        """Observations of the longest series."""
        return self.block.valid.shape[1]

    @property
    def batch(self) -> int:
        return min(self.config.batch, self.n_series)

    def served(self, first_step: int, n_steps: int) -> tuple[CountBlock, Int[np.ndarray, "restart step batch"]]:
        """What a round sees, and which series of it every step of each restart."""
        place = (first_step, n_steps, self.n_series, self.batch)
        return self.block, rows_of_restarts(self.seed, len(self.starts), *place)

    def setup(self) -> CoupledSetup:
        coupling = Coupling.of(self.network.events())
        return CoupledSetup(coupling, self.readings, self.config, self.block.features.shape[-1], self.first)

    def with_headroom(self, setup: CoupledSetup, thetas: Float[np.ndarray, "restart constant"]) -> CoupledSetup:
        return setup

    def networks(self, setup: CoupledSetup, keys: Array) -> Networks:
        """Fresh ones for every restart, along a leading axis."""
        each = [
            make_coupled_networks(setup, theta, noise, key=key)
            for (theta, noise), key in zip(self.starts, keys, strict=True)
        ]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)

    def learned(self) -> Learned:
        free = {name: jnp.asarray(x, float) for name, x in self.readings.learned(self.starts[0][1]).items()}
        return Learned(free, jax.tree.map(jnp.zeros_like, free))

    def revived(
        self, state: State, visited: Float[np.ndarray, "restart state"]
    ) -> tuple[State, Bool[np.ndarray, "restart"]]:
        """There are no hidden states that could be lost."""
        return state, np.zeros(len(visited), bool)

    def identity(self) -> dict[str, Any]:
        """What must be the same for a run to go on from a checkpoint."""
        known = {
            "data": digest_of(self.data),
            "model": [repr(Coupling.of(self.network.events())), repr(self.readings), self.first],
            "configuration": self.config.same_run(),
            "number of restarts": len(self.starts),
            "seed": self.seed,
        }
        return json.loads(json.dumps(known))


@dataclass(frozen=True)
class CoupledTrained(Restarts):
    """Networks and the bound they reach."""

    setup: CoupledSetup
    network: ReactionNetwork
    sizes: Sizes
    speed: Float[np.ndarray, "constant"]
    all_networks: tuple[Networks, ...]  # of each restart
    histories: tuple[tuple[dict[str, Any], ...], ...]
    restarts: tuple[float, ...]
    terms: tuple[Terms, ...]  # of the bound of every series of the training data, for each restart; double precision
    steps: int
    settled: bool
    message: str
    refused: tuple[int, ...]
    seconds: float
    information: tuple[Float[np.ndarray, "parameter parameter"], ...]  # of each restart that was polished
    per_restart: ClassVar[tuple[str, ...]] = (*Restarts.per_restart, "terms", "refused", "information")

    def theta(self, restart: int) -> Float[np.ndarray, "constant"]:
        """Logarithms of the constants."""
        return np.asarray(self.all_networks[restart].prior.draw(None), np.float64)

    @property
    def noise(self) -> Params:
        return {name: np.asarray(x, np.float64) for name, x in self.networks.emission.items()}

    def evaluate(self, data: TimeSeries) -> CountsEvaluated:
        """The bound, and the posterior at the observations, of other data."""
        config = self.setup.config
        pieces = pieces_of(data, self.network, self.setup.readings, self.speed, config)
        with jax.enable_x64(True):
            block = make_count_block(data, self.sizes, pieces, config.horizon, np.float64)
            return evaluated_precisely(self.setup, self.networks, block)


def coupled_preset(name: Preset, posterior: PosteriorName) -> Config:
    """The presets, with what counts need: sweeps do most of the work, so that small encoders suffice."""
    chosen = preset(name, posterior)
    if posterior == "paper":
        return chosen.changed(drop_last=False)
    width, batch = (64, 64) if name == "quick" else (128, 256)
    return chosen.changed(
        encoder="gru",
        width=width,
        batch=batch,
        steer=0.0,
        dropout=0.0,
        learning_rate=2e-3,
        model_learning_rate=2e-2,
        steps=200,  # which bring networks and parameters near enough for the last steps on all series
        round_steps=50,
    )


def train_coupled(
    data: TimeSeries,
    network: ReactionNetwork,
    readings: Readings,
    starts: Sequence[tuple[Float[np.ndarray, "constant"], Params]],
    *,
    config: Config,
    first: tuple[tuple[int, int], ...] | None = None,
    seed: int = 0,
    folder: Path | None = None,
    resume: bool = False,
    progress: Progress = lambda *_: None,
) -> CoupledTrained:
    """Train until the objective has settled or the steps are used up.

    Args:
        starts: for each restart the logarithms of the rate constants, and the noise.
        first: smallest and largest count of each species at the first observation; the whole box if not given.
    """
    began = time.perf_counter()
    data = in_windows(data, config.window)
    with in_precision(config):
        sizes, speed = Sizes.of(data), np.median([theta for theta, _ in starts], axis=0)
        block = make_count_block(
            data, sizes, pieces_of(data, network, readings, speed, config), config.horizon, dtype_of(config)
        )
        whole = tuple((0, n - 1) for n in network.box)
        problem = CoupledProblem(
            data, network, readings, config, seed, sizes, speed, block, first or whole, tuple(starts)
        )
        end = descend(problem, began, folder=folder, resume=resume, progress=progress)
    return _concluded(problem, end, began, progress)


def pieces_of(
    data: TimeSeries, network: ReactionNetwork, readings: Readings, theta: Float[np.ndarray, "constant"], config: Config
) -> Float[np.ndarray, "observation"]:
    """Pieces of the time after each observation: few jumps of any species in each, at the counts that were read."""
    counts = np.full((data.n_observations, len(network.species)), np.nan)
    for column, species in enumerate(readings.columns):
        for s in species:
            counts[:, s] = data.values[:, column] / len(species)
    top = np.array(network.largest)
    typical = np.where(np.isnan(counts).all(0), top / 2, np.nanmedian(np.nan_to_num(counts), axis=0))
    counts = np.clip(np.where(np.isnan(counts), typical, counts), 1, top).round().astype(int)
    events = network.events()
    with jax.enable_x64(True):
        ways = np.stack(events.ways([jnp.asarray(x) for x in counts.T]))
        rates = np.asarray(events.scales(jnp.exp(jnp.asarray(theta))))[:, None] * ways
    changes = np.array(events.changes) != 0
    fastest = np.max([rates[changes[:, s]].sum(0) for s in range(changes.shape[1])], axis=0)
    last = data.offsets[1:] - 1
    after = np.append(np.diff(data.times), 0.0)
    after[last] = 0.0
    fastest[:-1] = np.maximum(fastest[:-1], fastest[1:])
    pieces = np.ceil(np.minimum(after * fastest / config.piece_jumps, MOST_PIECES))
    of_series = np.add.reduceat(pieces, data.offsets[:-1])
    share = np.minimum(UNEVEN * max(of_series.mean(), data.lengths.mean()) / np.maximum(of_series, 1), 1.0)
    return np.repeat(share, data.lengths) * pieces


def evaluated_precisely(setup: CoupledSetup, networks: Networks, block: CountBlock) -> CountsEvaluated:
    """The bound in double precision, whatever the networks were trained in: rounding must not lift it."""
    return evaluate_all(setup, networks, block, at_once(setup, block))  # type: ignore[return-value]


def at_once(setup: CoupledSetup, block: CountBlock) -> int:
    """Series that are evaluated side by side: devices work at many together, as long as memory lasts."""
    each = block.durations.shape[1] * setup.coupling.n_species * setup.coupling.n_counts
    n_parts = -(-block.n_series // max(ROOM // each, 1))
    return -(-block.n_series // n_parts)


def doubled(networks: Networks) -> Networks:
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), networks)


def _concluded(problem: CoupledProblem, end: Descent, began: float, progress: Progress) -> CoupledTrained:
    ledger, config, information, at_top = end.ledger, problem.config, (), False
    pieces = pieces_of(problem.data, problem.network, problem.readings, problem.speed, config)
    sweeps = max(config.sweeps, config.last_sweeps) if config.sweeps else 0
    setup = end.setup._replace(config=config.changed(sweeps=sweeps))
    with jax.enable_x64(True):
        block = make_count_block(problem.data, problem.sizes, pieces, config.horizon, np.float64)
        all_networks = [doubled(networks) for networks in averaged(end.state, len(problem.starts))]
        if config.polish and config.posterior == "tilted" and config.prior == "explicit":
            progress("last steps", 1.0)
            ends = [polished(setup, networks, block, at_once(setup, block)) for networks in all_networks]
            all_networks, found, information, tops = (list(each) for each in zip(*ends, strict=True))
            at_top = all(tops)
        else:
            found = [evaluated_precisely(setup, networks, block).terms for networks in all_networks]
    if not any(np.isfinite(terms.elbo).all() for terms in found):
        raise InputError(NO_BOUND)
    histories = zip(ledger.histories, all_networks, found, strict=True)
    return CoupledTrained(
        setup,
        problem.network,
        problem.sizes,
        problem.speed,
        tuple(all_networks),
        tuple((*one, _last_entry(one, networks, terms)) for one, networks, terms in histories),
        tuple(float(np.asarray(terms.elbo).sum()) for terms in found),
        tuple(found),
        ledger.done,
        ledger.settled or at_top,
        f"at the top of the bound after {ledger.done} training steps"
        if at_top
        else ending(ledger.done, ledger.settled),
        tuple(ledger.refused),
        time.perf_counter() - began,
        tuple(information),
    )


def _last_entry(history: list[dict[str, Any]], networks: Networks, terms: Terms) -> dict[str, Any]:
    """What the run ended with, on all series, in the form of a round."""
    means = {name: float(np.asarray(value).mean()) for name, value in terms._asdict().items()}
    theta = np.asarray(networks.prior.draw(None), np.float64).tolist()
    return {**history[-1], "objective": float(np.asarray(terms.elbo).mean()), **means, "theta": theta}
