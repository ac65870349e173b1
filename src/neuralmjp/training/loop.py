"""The training loop: many steps per compiled call, restarts side by side, bad steps refused."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from .blocks import Block
from .config import Config
from .coupled_blocks import CountBlock
from .coupled_networks import CountsEvaluated, CoupledSetup
from .mesh import kept_on_all, shared_out
from .networks import Evaluated, Networks, Setup
from .schedules import annealed, kl_weight

AnySetup = Setup | CoupledSetup
AnyBlock = Block | CountBlock

# A round must gain this many standard errors of its mean objective to count as better.
WORTHWHILE = 1.0
PATIENCE = 2  # rounds without a gain before the learning rate falls
REDUCTIONS = 4  # falls before training stops


class State(NamedTuple):
    """All that training needs to go on; every array has a leading axis for restarts."""

    networks: Networks
    optimiser: Any
    average: Any  # of the model's own parameters over the last round: prior, emission, initial law
    refused: Int[Array, ""]  # steps whose result was not finite


class Record(NamedTuple):
    """What each step saw; the objective and its terms in nats per series."""

    objective: Float[Array, "step"]
    reconstruction: Float[Array, "step"]
    path_kl: Float[Array, "step"]
    initial_kl: Float[Array, "step"]
    occupancy: Float[Array, "step state"]  # share of the observations in each state


@dataclass
class Pace:
    """Lowers the learning rate when the objective no longer rises, and stops when that no longer helps."""

    factor: float = 1.0
    best: float = -np.inf
    waited: int = 0
    reductions: int = 0
    rounds: list[float] = field(default_factory=list)

    def look(self, objective: Float[np.ndarray, "step"], config: Config) -> bool:
        """Note a round; true when training has settled. Steps that were refused do not count."""
        if self.reductions >= REDUCTIONS:  # others may not have: a run ends when all its restarts have settled
            return True
        objective = objective[np.isfinite(objective)]
        if len(objective) == 0:
            return False
        mean = float(np.mean(objective))
        error = float(np.std(objective) / np.sqrt(len(objective)))
        self.rounds.append(mean)
        if mean > self.best + WORTHWHILE * error:
            self.best, self.waited = mean, 0
            return False
        self.waited += 1
        if self.waited < PATIENCE:
            return False
        self.waited, self.reductions = 0, self.reductions + 1
        self.factor *= config.decay
        self.best = max(self.best, mean)
        return self.reductions >= REDUCTIONS


GROUPS = ("prior", "model", "posterior")


def groups_of(networks: Networks) -> Networks:
    """Which optimiser each array belongs to."""
    # Not by the constructor, which asks for arrays.
    named = {"prior": "prior", "posterior": "posterior"}
    return jax.tree_util.tree_map_with_path(lambda path, _: named.get(path[0].name, "model"), networks)


def make_optimiser(config: Config) -> Any:  # optax's types know no modules
    """Adam on clipped gradients, for each group apart as in two-step updates; learning rates come later."""
    one = optax.chain(optax.clip_by_global_norm(config.clip), optax.scale_by_adam())
    return optax.multi_transform(dict.fromkeys(GROUPS, one), groups_of)


def learning_rates(config: Config, factor: Float[Array, ""]) -> dict[str, Any]:
    """By group."""
    own = config.prior_learning_rate
    prior = config.model_learning_rate if config.prior == "explicit" else config.learning_rate
    return {
        "prior": prior * factor if own is None else own,
        "model": config.model_learning_rate * factor,
        "posterior": config.learning_rate * factor,
    }


def own_parameters(networks: Networks) -> tuple[Any, Any, Any]:
    """What the model itself consists of, without the posterior."""
    return networks.prior, networks.emission, networks.initial


def start_state(networks: Networks, config: Config) -> State:
    """Before the first step; `networks` has a leading axis for restarts."""
    optimiser = make_optimiser(config)
    average = jax.tree.map(jnp.array, own_parameters(networks))  # a copy, because training gives its buffers back
    refused = jnp.zeros(len(networks.initial), jnp.int32)
    return State(networks, jax.vmap(optimiser.init)(networks), average, refused)


class Learned(NamedTuple):
    """Which entries of an emission are learned: from the start, and while its spread is fixed. 1 or 0."""

    emission: dict[str, Array]
    without_spread: dict[str, Array]


@partial(jax.jit, static_argnames=("setup", "steps_per_epoch"), donate_argnames="state")
def run_round(
    setup: AnySetup,
    state: State,
    learned: Learned,
    block: AnyBlock,
    rows: Int[Array, "restart step batch"],
    used: Int[Array, "step"],
    keys: Any,
    first_step: Int[Array, ""],
    factors: Float[Array, "restart"],
    steps_per_epoch: int,
) -> tuple[State, Record]:
    """A fixed number of steps of every restart, as one program.

    Args:
        used: how many observations of each series count at every step.
    """
    optimiser = make_optimiser(setup.config)

    def one_run(state, rows, key, factor):
        state = state._replace(average=jax.tree.map(jnp.zeros_like, state.average))

        def step(state, row):
            number, rows, used = row
            pace = annealed(setup.config, number, steps_per_epoch) * factor
            batch = shared_out(setup.config, block.take(rows))
            if setup.config.curriculum is not None:
                batch = batch.shortened(used)
            return _step(setup, optimiser, state, learned, batch, jax.random.fold_in(key, number), number, pace)

        state, record = jax.lax.scan(step, state, (first_step + jnp.arange(len(rows)), rows, used))
        return state._replace(average=jax.tree.map(lambda x: x / len(rows), state.average)), record

    return kept_on_all(setup.config, jax.vmap(one_run)(state, rows, keys, factors))


def _step(
    setup: AnySetup,
    optimiser: Any,
    state: State,
    learned: Learned,
    batch: AnyBlock,
    key: Array,
    number: Int[Array, ""],
    pace: Float[Array, ""],
) -> tuple[State, Record]:
    config = setup.config

    def loss(networks):
        found = setup.evaluate(networks, batch, key=key)
        terms = found.terms
        if config.two_step:  # the law at the start has no prior there, and the divergence moves the prior alone
            objective = terms.reconstruction - terms.path_kl
        else:
            objective = terms.weighed(kl_weight(config, number))
        # Per observation, so that a learning rate means the same for short and long series.
        count = jnp.maximum(batch.valid.sum(), 1)
        return -objective.sum() / count, (objective.mean(), terms, setup.occupancy(found, batch))

    (value, (objective, terms, occupancy)), slopes = jax.value_and_grad(loss, has_aux=True)(state.networks)
    free = learned.emission
    if config.fixed_spread:
        fixed = number < config.fixed_spread
        free = jax.tree.map(lambda a, b: jnp.where(fixed, b, a), free, learned.without_spread)
    updates, optimiser_state = optimiser.update(_only(free, slopes), state.optimiser, state.networks)
    updates = _only(free, updates)
    rates = learning_rates(config, pace)
    moved = jax.tree.map(
        lambda x, update, group: x - (rates[group] * update).astype(x.dtype),
        state.networks,
        updates,
        groups_of(state.networks),
    )
    good = jnp.isfinite(value)
    for leaf in jax.tree.leaves(moved):
        good = good & jnp.isfinite(leaf).all()

    def kept(new, old):
        return jax.tree.map(lambda a, b: jnp.where(good, a, b), new, old)

    networks = kept(moved, state.networks)
    total = jax.tree.map(jnp.add, state.average, own_parameters(networks))
    state = State(networks, kept(optimiser_state, state.optimiser), total, state.refused + ~good)
    return state, Record(objective, *[jnp.mean(x) for x in terms], occupancy=occupancy)


def _only(free: dict[str, Array], changes: Any) -> Networks:
    """Changes to networks, with nothing for entries of the emission that are not free."""
    return eqx.tree_at(lambda n: n.emission, changes, jax.tree.map(jnp.multiply, changes.emission, free))


@partial(jax.jit, static_argnames=("setup", "batch"))
def evaluate_all(setup: AnySetup, networks: Networks, block: AnyBlock, batch: int) -> Evaluated | CountsEvaluated:
    """Every series, `batch` at a time, without anything random."""
    n = block.n_series
    rows = jnp.minimum(jnp.arange(-(-n // batch) * batch), n - 1).reshape(-1, batch)
    found = jax.lax.map(lambda some: setup.evaluate(networks, block.take(some), key=None), rows)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:n], found)


def batch_rows(seed: int, restart: int, first_step: int, n_steps: int, n_series: int, batch: int) -> np.ndarray:
    """Which series each step sees: every epoch a new order, the same for a run that was interrupted."""
    per_epoch = max(n_series // batch, 1)
    steps = np.arange(first_step, first_step + n_steps)
    epochs = {
        epoch: np.random.default_rng((seed, restart, epoch)).permutation(n_series)[: per_epoch * batch]
        for epoch in np.unique(steps // per_epoch).tolist()
    }
    whole = np.stack([epochs[epoch].reshape(per_epoch, batch) for epoch in (steps // per_epoch).tolist()])
    return whole[np.arange(n_steps), steps % per_epoch].astype(np.int32)


def rows_of_restarts(seed: int, n_restarts: int, *place: int) -> Int[np.ndarray, "restart step batch"]:
    """`batch_rows` for each of several restarts."""
    return np.stack([batch_rows(seed, k, *place) for k in range(n_restarts)])
