"""Training from a data set to its end: rounds, looks at the objective, checkpoints."""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..errors import InputError
from ..exact.evidence import Panel
from ..exact.model import Model
from ..shapes import require_shape
from ..timeseries import TimeSeries
from .checkpoints import Checkpoints
from .config import Config
from .identity import require_same
from .lock import alone
from .loop import Learned, Pace, Record, State, run_round, start_state
from .mesh import on_all, on_one, with_mesh, writes
from .networks import Networks
from .problem import Problem, in_precision
from .schedules import n_laid_out, n_observed
from .stream import Stream
from .trained import Trained, conclude

__all__ = ["Progress", "Trained", "train"]

Progress = Callable[[str, float], None]
LOG_FILE = "log.jsonl"
NOTED = ("objective", "reconstruction", "path_kl", "initial_kl")  # of a record, in the history
MOST_REFUSED = 0.5  # share of refused steps in a round that counts as divergence
# What a ledger looks like in JSON.
_ROW = dict.fromkeys(NOTED, float) | {"step": int, "seconds": float, "theta": [float]}
_PACE = {"factor": float, "best": float, "waited": int, "reductions": int, "rounds": [float]}
LEDGER = {"done": int, "settled": bool, "seconds": float, "refused": [int], "revived": [int], "pace": [_PACE],
          "histories": [[_ROW]], "capacity": [int]}  # fmt: skip
MOST_CAPACITY = 4096


@dataclass
class Ledger:
    """How far a run has come; with the `State`, all that a checkpoint holds."""

    done: int
    settled: bool
    seconds: float
    refused: list[int]  # of each restart, in all
    revived: list[int]  # how often a state of each restart was begun anew
    pace: list[Pace]
    histories: list[list[dict[str, Any]]]
    capacity: tuple[int, ...]

    @classmethod
    def fresh(cls, restarts: int, capacity: tuple[int, ...]) -> "Ledger":
        none, pace = [0] * restarts, [Pace() for _ in range(restarts)]
        return cls(0, False, 0.0, none, none.copy(), pace, [[] for _ in range(restarts)], capacity)

    @classmethod
    def read(cls, known: dict[str, Any], like: "Ledger") -> "Ledger":
        """What a checkpoint noted, if it is of the same number of restarts as another ledger."""
        require_shape(known, LEDGER)
        if any(len(known[name]) != len(getattr(like, name)) for name in ("refused", "revived", "pace", "histories")):
            raise ValueError("another number of restarts")
        if len(known["capacity"]) != len(like.capacity) or max(known["capacity"], default=0) > MOST_CAPACITY:
            raise ValueError("another capacity")
        if known["done"] < 1 or not all(known["histories"]):
            raise ValueError("nothing was done")
        pace = [Pace(**one) for one in known["pace"]]
        return cls(**{**known, "pace": pace, "capacity": tuple(known["capacity"])})

    @property
    def objective(self) -> float:
        """Of the best run, over its last round."""
        return max(np.nan_to_num(history[-1]["objective"], nan=-np.inf) for history in self.histories)

    def told(self) -> str:
        """How the best run stands, in nats per series."""
        last = max(
            (history[-1] for history in self.histories), key=lambda row: np.nan_to_num(row["objective"], nan=-np.inf)
        )
        return (
            f"training: bound {last['objective']:.2f} (reconstruction {last['reconstruction']:.2f}, path KL "
            f"{last['path_kl']:.2f}, start {last['initial_kl']:.2f})"
        )

    def log(self, file: Path) -> None:
        """One line for the round that was, of every run; for those who watch from elsewhere."""
        with open(file, "a", encoding="utf-8") as lines:
            for k, history in enumerate(self.histories):
                lines.write(json.dumps({"run": k, **history[-1]}) + "\n")

    def note(self, n: int, record: Record, thetas: Float[np.ndarray, "restart parameter"], refused: Array) -> None:
        """Enter a round of `n` steps."""
        self.done += n
        now = np.asarray(refused).tolist()
        if all(after - before > MOST_REFUSED * n for before, after in zip(self.refused, now, strict=True)):
            raise InputError(
                f"training diverged: of the {n} steps before step {self.done} most gave no finite result; "
                "lower the learning rate, or look for extreme values in the data"
            )
        self.refused = now
        for k, history in enumerate(self.histories):
            means = {name: float(np.asarray(getattr(record, name)[k], np.float64).mean()) for name in NOTED}
            history.append({"step": self.done, "seconds": self.seconds, **means, "theta": thetas[k].tolist()})


def train(
    data: TimeSeries | Stream,
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
        data: held, or a stream of what is on disk.
        folder: where checkpoints go, one per round.
        resume: go on from the checkpoint in `folder`, if there is one.
    """
    began = time.perf_counter()
    with in_precision(config):
        problem = Problem.of(data, model, panel, config, restarts, seed)
        with closing(problem):
            end = descend(problem, began, folder=folder, resume=resume, progress=progress)
        return conclude(problem, end.setup, end.state, end.ledger.histories, end.ledger.settled, end.ledger.seconds)


class Descent(NamedTuple):
    """Where training ended."""

    setup: Any
    state: State
    ledger: Ledger


@runtime_checkable
class Trainable(Protocol):
    """What training needs to know of a problem."""

    @property
    def config(self) -> Config: ...
    @property
    def seed(self) -> int: ...
    @property
    def starts(self) -> Sequence[Any]: ...
    @property
    def n_series(self) -> int: ...
    @property
    def batch(self) -> int: ...
    @property
    def length(self) -> int: ...
    def served(self, first_step: int, n_steps: int) -> tuple[Any, Int[np.ndarray, "restart step batch"]]: ...
    def setup(self) -> Any: ...
    def with_headroom(self, setup: Any, thetas: Float[np.ndarray, "restart parameter"]) -> Any: ...
    def networks(self, setup: Any, keys: Array) -> Networks: ...
    def learned(self) -> Learned: ...
    def revived(
        self, state: State, visited: Float[np.ndarray, "restart state"]
    ) -> tuple[State, Bool[np.ndarray, "restart"]]: ...
    def identity(self) -> dict[str, Any]: ...


@alone
def descend(problem: Trainable, began: float, *, folder: Path | None, resume: bool, progress: Progress) -> Descent:
    """Rounds of training until the objective has settled or the steps are used up; in the precision of the moment.

    Args:
        began: when the clock was started.
    """
    config, seed, restarts = with_mesh(problem.config, problem.batch), problem.seed, len(problem.starts)
    setup = problem.setup()._replace(config=config)
    keys = jax.random.split(jax.random.key(seed), restarts)
    state = start_state(problem.networks(setup, keys), config)
    ledger = Ledger.fresh(restarts, setup.capacity)
    checkpoints = Checkpoints(folder or Path())
    if resume and folder is not None:
        state, ledger = _resumed(checkpoints, state, ledger, problem)
        setup = setup.with_capacity(ledger.capacity)
    state, keys, learned = on_all(config, (state, keys, problem.learned()))
    before, identity = ledger.seconds, None if folder is None else problem.identity()
    held, held_on_all = (None, 0), None
    per_epoch = max(problem.n_series // problem.batch, 1)
    while ledger.done < config.steps and not ledger.settled:
        n = min(config.round_steps, config.steps - ledger.done)
        block, rows = problem.served(ledger.done, n)
        used = np.asarray(n_observed(config, ledger.done + jnp.arange(n), problem.length))
        asked = (block, n_laid_out(config, int(used[-1]), problem.length))
        if asked[0] is not held[0] or asked[1] != held[1]:
            held, held_on_all = asked, on_all(config, block if asked[1] == problem.length else block.cut(asked[1]))
        factors = jnp.asarray([one.factor for one in ledger.pace], jnp.float32)
        rows, used, first_step, factors = on_all(config, (rows, jnp.asarray(used), jnp.asarray(ledger.done), factors))
        state, record = run_round(setup, state, learned, held_on_all, rows, used, keys, first_step, factors, per_epoch)
        thetas = np.asarray(_thetas(state.average[0]), np.float64)
        ledger.seconds = before + time.perf_counter() - began
        ledger.note(n, record, thetas, state.refused)
        # Schedules first: while they change the objective, its rise says nothing.
        if config.decay_epochs == 0 and ledger.done > _scheduled(config):
            objective = np.asarray(record.objective, np.float64)
            looks = [one.look(objective[k], config) for k, one in enumerate(ledger.pace)]
            ledger.settled = all(looks)
        state = _revived(problem, state, ledger, record)
        setup = problem.with_headroom(setup, thetas)
        ledger.capacity = setup.capacity
        if folder is not None and writes():
            note = {"identity": identity, "ledger": asdict(ledger)}
            checkpoints.save(state, note, step=ledger.done, objective=ledger.objective)
            with suppress(OSError):  # a full disk is told by the next checkpoint
                ledger.log(folder / LOG_FILE)
        progress(ledger.told(), ledger.done / config.steps)
    ledger.seconds = before + time.perf_counter() - began
    return Descent(setup, on_one(config, state), ledger)


def _revived(problem: Trainable, state: State, ledger: Ledger, record: Record) -> State:
    """States that nobody visits begin anew, in restarts that may still do so; schedules first."""
    visited = np.asarray(record.occupancy, np.float64).mean(1)
    may = np.array(ledger.revived) < problem.config.reseed
    in_time = _scheduled(problem.config) < ledger.done <= problem.config.steps / 2
    if not in_time or not may.any() or not visited.size:
        return state
    state, moved = problem.revived(state, np.where(may[:, None], visited, 1.0))
    for k in np.flatnonzero(moved):
        ledger.revived[k] += 1
        ledger.pace[k] = Pace(factor=ledger.pace[k].factor)
        ledger.settled = False
    return state


def _resumed(checkpoints: Checkpoints, state: State, ledger: Ledger, problem: Trainable) -> tuple[State, Ledger]:
    """What the last good checkpoint holds, if there is one and it belongs to this problem."""

    def accept(note: dict[str, Any]) -> Ledger:
        require_same(note["identity"], problem.identity(), checkpoints.run)
        return Ledger.read(note["ledger"], ledger)

    found = checkpoints.load(state, accept)
    return (state, ledger) if found is None else found


@jax.jit
def _thetas(prior: Any) -> Float[Array, "restart parameter"]:
    """The prior's parameters in each restart."""
    return jax.vmap(lambda one: one.draw(None))(prior)


def _scheduled(config: Config) -> int:
    """Steps during which a schedule changes the objective."""
    few_until = 0 if config.curriculum is None else sum(config.curriculum[1:])
    return max(config.kl_warmup, few_until, config.fixed_spread)
