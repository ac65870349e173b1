"""What training found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError
from ..exact.evidence import Panel, Scaling
from ..exact.fit import ordered
from ..exact.model import Model, Parameters
from ..exact.reseed import VISITED
from ..timeseries import TimeSeries
from .blocks import Clock, as_configured, make_block
from .loop import State, evaluate_all
from .networks import Evaluated, Networks, Setup
from .problem import Problem

NO_BOUND = "training ended without a finite bound: lower the learning rate, or look for extreme values in the data"
USED_UP = "training used up"


class Restarts:
    """Several runs side by side, of which the best counts."""

    restarts: tuple[float, ...]  # bound of each, in nats
    all_networks: tuple[Networks, ...]
    histories: tuple[tuple[dict[str, Any], ...], ...]  # of each, one entry per round
    per_restart: ClassVar[tuple[str, ...]] = ("restarts", "all_networks", "histories")  # names of all such fields

    @property
    def best(self) -> int:
        """The restart with the highest bound."""
        return int(np.nanargmax(self.restarts))

    @property
    def networks(self) -> Networks:
        return self.all_networks[self.best]

    @property
    def history(self) -> tuple[dict[str, Any], ...]:
        """One entry per round of the best restart: terms of the bound, parameters, seconds."""
        return self.histories[self.best]

    @property
    def elbo(self) -> float:
        """Of all training data, in the data's own units."""
        return self.restarts[self.best]


SomeRestarts = TypeVar("SomeRestarts", bound=Restarts)


def alone(trained: SomeRestarts, k: int) -> SomeRestarts:
    """One restart, as if it had been the only one."""
    return replace(trained, **{name: getattr(trained, name)[k : k + 1] for name in trained.per_restart})  # type: ignore[type-var]


@dataclass(frozen=True)
class Trained(Restarts):
    """Networks and the bound they reach. Values are standardised, rates are per unit of the data's time."""

    setup: Setup
    scaling: Scaling
    clock: Clock
    panel: Panel
    all_networks: tuple[Networks, ...]  # of each restart
    histories: tuple[tuple[dict[str, Any], ...], ...]  # of each restart, one entry per round
    restarts: tuple[float, ...]  # bound of each, in nats
    evaluated: Evaluated  # the best on the training data, in double precision
    log_scale: float  # what standardising the values took from the log density
    occupancy: Float[np.ndarray, "state"]  # share of the observations in each state
    steps: int
    settled: bool
    message: str
    warnings: tuple[str, ...]
    seconds: float

    @property
    def parameters(self) -> Parameters:
        """The model's parameters, for standardised values."""
        theta = np.asarray(self.networks.prior.draw(None), np.float64)
        emission = {name: np.asarray(value, np.float64) for name, value in self.networks.emission.items()}
        return Parameters(theta, emission, np.asarray(self.networks.initial, np.float64))

    def evaluate(self, data: TimeSeries) -> Evaluated:
        """The bound, and the posterior at the observations, of other data."""
        return self.evaluate_each(data)[self.best]

    def evaluate_each(self, data: TimeSeries) -> list[Evaluated]:
        """The same for every restart."""
        data = as_configured(data, self.setup.config)
        return evaluated_precisely(self.setup, self.all_networks, data, self.scaling, self.clock, self.panel)


def evaluated_precisely(
    setup: Setup, all_networks: Sequence[Networks], data: TimeSeries, scaling: Scaling, clock: Clock, panel: Panel
) -> list[Evaluated]:
    """The bound in double precision, whatever the networks were trained in: rounding must not lift it."""
    with jax.enable_x64(True):
        block = make_block(data, setup.model, scaling, clock, panel, np.float64, masked=setup.masked)
        batch = min(setup.config.batch, block.n_series)
        doubled = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), list(all_networks))
        return [evaluate_all(setup.reading(block), networks, block, batch) for networks in doubled]


def averaged(state: State, n_restarts: int) -> list[Networks]:
    """Networks of each restart, the model's own parameters averaged over the last round."""
    found = []
    for k in range(n_restarts):
        networks, average = (_of_restart(tree, k) for tree in (state.networks, state.average))
        found.append(eqx.tree_at(lambda n: (n.prior, n.emission, n.initial), networks, average))
    return found


def ending(steps: int, settled: bool) -> str:
    """How training ended, in words; where it did not settle it has used up its steps."""
    why = "the bound no longer rises" if settled else f"the limit of {steps} steps"
    return f"stopped after {steps} steps: {why}"


def conclude(
    problem: Problem, setup: Setup, state: State, histories: list[list[dict[str, Any]]], settled: bool, seconds: float
) -> Trained:
    """Evaluate every restart, its own parameters averaged over the last round, and tell the best."""
    steps = histories[0][-1]["step"]
    all_networks = averaged(state, len(problem.starts))
    found = evaluated_precisely(setup, all_networks, problem.data, problem.scaling, problem.clock, problem.panel)
    bounds = [float(np.asarray(one.terms.elbo).sum()) + problem.log_scale for one in found]
    if not np.isfinite(bounds).any():
        raise InputError(NO_BOUND)
    best = int(np.nanargmax(bounds))
    weights = np.asarray(problem.block.evidence.valid)[..., None]
    occupancy = (np.asarray(found[best].marginals) * weights).sum((0, 1)) / weights.sum()
    trained = Trained(
        setup=setup,
        scaling=problem.scaling,
        clock=problem.clock,
        panel=problem.panel,
        all_networks=tuple(all_networks),
        histories=tuple(tuple(one) for one in histories),
        restarts=tuple(bounds),
        evaluated=found[best],
        log_scale=problem.log_scale,
        occupancy=occupancy,
        steps=steps,
        settled=settled,
        message=ending(steps, settled),
        warnings=(),
        seconds=seconds,
    )
    shown = occupancy[_lasting_order(problem.model, trained.parameters)]
    used_up = not settled and setup.config.decay_epochs == 0  # else steps are what ends it
    return replace(trained, warnings=_warnings(shown, int(state.refused[best]), steps, bounds, used_up))


def _lasting_order(model: Model, parameters: Parameters) -> Int[np.ndarray, "state"]:
    """Where each state of a fitted model comes from: warnings count states as people will see them."""
    numbered = parameters._replace(initial=np.arange(len(parameters.initial), dtype=float))
    shown = ordered(model, numbered).initial
    return (shown - shown.min()).astype(int)


def _warnings(occupancy: np.ndarray, refused: int, steps: int, bounds: list[float], used_up: bool) -> tuple[str, ...]:
    words = [
        f"state {k} is visited in {100 * occupancy[k]:.2g} % of the observations: it has collapsed; try more restarts, "
        "a curriculum or fewer states"
        for k in np.flatnonzero(occupancy < VISITED)
    ]
    if used_up:
        words.append(
            f"{USED_UP} all {steps} steps before the bound settled: rates and intervals may be off; resumed with more "
            "steps, it goes on"
        )
    if refused:
        words.append(f"{refused} of {steps} training steps were refused: their result was not finite")
    if len(bounds) > 1:
        spread = float(np.nanmax(bounds) - np.nanmin(bounds))
        words.append(f"the bounds of {len(bounds)} restarts lie within {spread:.3g} nats of each other")
    return tuple(words)


def _of_restart(tree: Any, k: int) -> Any:
    return jax.tree.map(lambda x: x[k], tree)
