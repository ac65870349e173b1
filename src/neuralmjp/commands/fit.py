"""`neuralmjp fit`: rates with intervals, from a data file: of hidden states, or of a reaction network."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from .. import systems
from ..errors import InputError
from ..estimators import ExactMJP, NeuralMJP
from ..estimators.assumptions import require_states
from ..exact.evidence import Panel
from ..fitted_files import summary
from ..io.columns import labels_of
from ..naming import require_names
from ..preprocess import thinned
from ..store import Store
from ..systems import SYSTEMS, ReactionNetwork
from ..systems.system import randomness
from ..timeseries import TimeSeries
from ..training.lock import locked
from ..training.mesh import cores_as_devices, join_hosts, writes
from ..validation import thin_to_plateau
from . import fit_network
from .options import CountOptions, SignalOptions, emission_for, labels_as_names
from .result_tables import show
from .runs import write_run
from .show import console, progress_display
from .train import fit_neural
from .training_options import TrainingOptions

AUTO = "auto"
STATES_INITIAL, NETWORK_INITIAL = ("free", "stationary"), ("flat", "start")


def run(
    data: TimeSeries | Store,
    *,
    thin: str,
    path: Path,
    columns: dict[str, Any],
    n_states: int | None,
    state_names: str | None,
    engine: str,
    training: TrainingOptions,
    emission: str,
    prior: str,
    initial: str | None,
    counts: CountOptions,
    signal: SignalOptions,
    restarts: int | None,
    seed: int,
    exact_entry: str | None,
    first_known: bool,
    misread: Path | None,
    censored: list[str],
    out: Path | None,
    json_file: Path | None,
) -> None:
    if engine == "neural":
        cores_as_devices(training.mesh)
        join_hosts(training.hosts)
    randomness(seed)  # refused here, in words, if it is no seed
    chosen, mask = read_prior(prior)
    if isinstance(data, Store) and thin != "1":
        raise InputError(f"--thin needs all of {path} in memory: leave it out, or write fewer observations")
    if isinstance(data, TimeSeries) and thin != AUTO:
        data = thinned(data, steps_of(thin))
    panel = {"--exact-entry": exact_entry is not None, "--first-known": first_known, "--misread": misread is not None}
    panel |= {"--censored": bool(censored), "--labels": columns.get("labels") is not None}
    if isinstance(chosen, ReactionNetwork):
        others = {
            "--states": n_states is not None,
            "--state-names": state_names is not None,
            "--emission": emission != "auto",
        } | panel
        refuse(
            [
                *_typed(others | {f"--thin {AUTO}": thin == AUTO}),
                *signal.given,
                *(["--refine"] if training.refine else []),
            ],
            "hidden states",
            "a reaction network",
        )
        need_folder(training, out)
        fit_network.run(
            data.whole() if isinstance(data, Store) else data,
            chosen,
            path=path,
            columns=columns,
            engine=engine,
            training=training,
            counts=counts,
            initial=known_initial(initial, NETWORK_INITIAL, "a reaction network"),
            restarts=restarts or 1,
            seed=seed,
            out=out,
            json_file=json_file,
        )
        return
    refuse([*counts.given, *(["--engine meanfield"] if engine == "meanfield" else [])], "reaction networks", prior)
    if n_states is None and signal.level_of_state is not None:
        n_states = len(signal.level_of_state)
    if n_states is None:
        raise InputError(
            "say how many hidden states there are with --states K, or name a reaction network with --prior"
        )
    require_states(n_states)  # before anything is said of an engine
    names = () if state_names is None else read_names(state_names, n_states)
    if engine != "neural":
        refuse_training(training, engine == "auto")
    need_folder(training, out)
    labels = labels_of(columns.get("labels"))
    entry = None if exact_entry is None else code_of(exact_entry, labels, "--exact-entry takes a label")
    assumed: dict[str, Any] = {
        "emission": emission_for(emission, columns),
        "prior": chosen,
        "mask": mask,
        "initial": known_initial(initial, STATES_INITIAL, "hidden states"),
        "misread": None if misread is None else read_mask(misread),
        "panel": Panel(entry, first_known, dict(read_censored(text, labels) for text in censored)),
        "seed": seed,
        **signal.choices(),
    }
    screen = console()
    with locked(out):
        if thin == AUTO and isinstance(data, TimeSeries):
            data, every = thin_to_plateau(data, ExactMJP(n_states, restarts=restarts, **assumed))
            screen.print(f"every {every}. observation is fitted: there the slowest timescale settles", soft_wrap=True)
        if engine == "neural" or isinstance(data, Store):
            estimator = NeuralMJP(n_states, restarts=restarts or 1, **assumed, **training.choices())
            fitted = fit_neural(estimator, data, out, training.resume)
            bound_of = "the series without their last observations" if estimator.configuration().drop_last else ""
        else:
            why = f", chosen because with {n_states} states the likelihood can be computed exactly"
            screen.print(f"engine: exact{why if engine == 'auto' else ''}", soft_wrap=True)
            with progress_display() as progress:
                fitted = ExactMJP(n_states, restarts=restarts, **assumed).fit(data, progress)
            bound_of = ""
        fitted = fitted.named(*(names or labels_as_names(fitted, labels)))
        try:
            show(fitted, path, bound_of=bound_of)
        finally:  # kept, even if nobody listens any more
            if writes():
                write_run(fitted, summary(fitted), columns, out, json_file, data=path)


def steps_of(thin: str) -> int:
    if not thin.isdecimal() or int(thin) < 1:
        raise InputError(f"--thin takes a whole number above 0, or {AUTO}; got {thin!r}")
    return int(thin)


def refuse(options: list[str], belongs_to: str, given: str) -> None:
    """One line for options that mean nothing here."""
    if options:
        verb, them = ("belongs", "it") if len(options) == 1 else ("belong", "them")
        raise InputError(f"{', '.join(options)} {verb} to {belongs_to}, but --prior is {given}: leave {them} out")


def need_folder(training: TrainingOptions, out: Path | None) -> None:
    if training.resume and out is None:
        raise InputError("--resume goes on from the checkpoint in the folder of --out: give --out DIR too")


def refuse_training(training: TrainingOptions, automatic: bool) -> None:
    """One line for options of the neural engine where another one runs."""
    if training.given:
        one = len(training.given) == 1
        raise InputError(
            f"{', '.join(training.given)} {'belongs' if one else 'belong'} to the neural engine, but the engine is "
            f"exact{' unless another is asked for' if automatic else ''}: add --engine neural, or leave "
            f"{'it' if one else 'them'} out"
        )


def known_initial(initial: str | None, allowed: tuple[str, ...], of: str) -> str:
    """The law at first observations, or the first of those that may be asked for."""
    if initial not in (None, *allowed):
        raise InputError(f"--initial of {of} is {' or '.join(allowed)}; got {initial}")
    return initial or allowed[0]


def _typed(options: dict[str, bool]) -> list[str]:
    return [name for name, given in options.items() if given]


def read_prior(prior: str) -> tuple[Any, np.ndarray | None]:
    """free, reversible, the name of a system, or a file: a reaction network, or a mask."""
    if prior in ("free", "reversible"):
        return prior, None
    path = Path(prior)
    if prior in SYSTEMS:
        return systems.named(prior), None
    if is_network_file(path):
        return systems.named(prior if path.suffix else f"./{prior}"), None
    if path.suffix or path.exists():
        return "free", read_mask(path)
    raise InputError(
        f"--prior is free, reversible, one of {', '.join(SYSTEMS)}, or a file with a mask or a reaction network; "
        f"got {prior!r}"
    )


def is_network_file(path: Path) -> bool:
    """Reactions are written with arrows; a file of another kind than .csv or .txt is no mask either."""
    if path.suffix in ("", ".csv", ".txt"):
        return path.is_file() and "->" in path.read_text(encoding="utf-8", errors="replace")
    return True


def read_mask(path: Path) -> np.ndarray:
    """A table of 0 and 1 without header or row names."""
    try:
        mask = np.loadtxt(path, delimiter=",", ndmin=2)
    except OSError as error:
        raise InputError(f"cannot read the mask {path}: {error.strerror or error}") from None
    except ValueError as error:
        odd = re.search(r"string (.*) to float64 at row (\d+), column (\d+)", str(error))
        what = f"row {int(odd[2]) + 1}, column {odd[3]} holds {odd[1]}" if odd else str(error).split(";")[0]
        raise InputError(
            f"{path}: a mask is a table of 0 and 1, separated by commas, without header or row names; {what}"
        ) from None
    if not np.isin(mask, (0, 1)).all():
        raise InputError(f"{path}: a mask holds 0 and 1 alone")
    return mask.astype(int)


def read_names(text: str, n_states: int) -> tuple[str, ...]:
    """`well, ill, dead` -> ("well", "ill", "dead"); refused here, not after a long fit."""
    names = tuple(name.strip() for name in text.split(","))
    require_names(names, n_states)
    return names


def read_censored(text: str, labels: tuple[str, ...]) -> tuple[float, tuple[float, ...]]:
    """`99=1,2` -> (99, (1, 2)); labels that are words may stand on both sides.

    >>> read_censored("alive=well,ill", ("well", "ill", "dead", "alive"))
    (3.0, (0.0, 1.0))
    """
    example = "alive=well,ill" if labels else "99=1,2"
    wanted = f"--censored takes CODE=STATE,STATE, such as {example}, of labels"
    code, equals, states = text.partition("=")
    if not equals:
        raise InputError(f"{wanted}; got {text!r}")
    return code_of(code, labels, wanted), tuple(code_of(state, labels, wanted) for state in states.split(","))


def code_of(text: str, labels: tuple[str, ...], wanted: str) -> float:
    """A label as the data hold it: a number, or the place of a word."""
    if labels:
        if text.strip() not in labels:
            raise InputError(f"{wanted}, one of {', '.join(labels)}; got {text.strip()!r}")
        return float(labels.index(text.strip()))
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{wanted}, a number as in the data, or a word of --labels; got {text.strip()!r}") from None
