"""Single channels behind real amplifiers: what each method reads from a recording, beside the path where it is known.

Celik et al. 2020 (Deep-Channel), https://doi.org/10.1038/s42003-019-0729-3: simulated gating, played through a
patch-clamp amplifier and recorded again, as columns time, current and number of open channels, without a header.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from .. import io, mjp
from ..errors import InputError
from ..estimators import ExactMJP, NeuralMJP
from ..fitted import FittedMJP
from ..timeseries import TimeSeries
from ..training.config import Preset
from .published_training import EMISSION, trained_as_published
from .runs import Told, chosen, columns_over_runs, how_long, several
from .state_methods import Runs, by_networks, over_data
from .tables import AS_PUBLISHED, EXACT, TILTED, Line, Number, ResultTable, Row, noted

METHODS = (AS_PUBLISHED, TILTED, EXACT)
PATH = "true path"
COLUMNS = ("open", "jumps per s", "slowest (ms)", "read right")
DECIMALS = (3, 1, 2, 4)
ALONE = (".abf", ".npz")  # a current alone


@dataclass(frozen=True)
class Recording:
    """A current, and how many channels were open, where that is known."""

    data: TimeSeries
    opened: Int[np.ndarray, "row"] | None

    @property
    def n_states(self) -> int:
        """One for each number of open channels; a single channel where nothing is known."""
        return 2 if self.opened is None else int(self.opened.max()) + 1

    @property
    def columns(self) -> tuple[str, ...]:
        """Without the share that is read right, where nobody knows it."""
        return COLUMNS[:-1] if self.opened is None else COLUMNS


def recordings_of(folder: Path) -> dict[str, Path]:
    """Every table, and every file of a format that says its times, by name."""
    files = sorted(file for file in folder.iterdir() if file.suffix in (".csv", *ALONE))
    if not files:
        raise InputError(
            f"{folder}: it holds no recording, neither .csv (time, current, open channels) nor {', '.join(ALONE)}"
        )
    return {file.stem: file for file in files}


def read(file: Path) -> Recording:
    if file.suffix in ALONE:
        return Recording(io.read(file), None)
    whole = io.read(file, header=False, time=0, values=[1, 2], time_unit="s")
    current = TimeSeries.from_arrays(whole.times, whole.values[:, 0], time_unit="s", value_names=("current",))
    return Recording(current, whole.values[:, 1].astype(int))


def tables_of(
    folder: Path,
    paper: dict[str, Any],
    tilted: dict[str, Any],
    preset: Preset,
    runs: int,
    seed: int,
    told: Callable[[int], Told],
    only: Sequence[str] | None,
) -> tuple[ResultTable, ...]:
    """Each recording by all methods, as many states as there are levels."""
    files = recordings_of(folder)
    names, methods = chosen(tuple(files), METHODS, only)
    progress, rows = told(len(names) * len(methods)), []
    for name in names:
        one = read(files[name])
        neural = partial(NeuralMJP, one.n_states, preset=preset, seed=seed, restarts=runs, intervals=False)
        published = trained_as_published("ion-channel-full", {"window": 100, **paper})
        ways: dict[str, Callable[[Any], Runs]] = {
            AS_PUBLISHED: partial(
                by_networks, neural(emission=EMISSION, posterior="paper", changes=published), one.data
            ),
            TILTED: partial(by_networks, neural(changes=tilted), one.data),
            EXACT: lambda tell, one=one: over_data(ExactMJP(one.n_states, seed=seed), [one.data], lambda _: tell),
        }
        lines = [] if one.opened is None else [true_line(one, one.opened, seed)]
        for method in methods:
            found = ways[method](progress.next(f"{name}, {method}"))
            each = np.array([numbers_of(model, one) for model in found.models])
            numbers = columns_over_runs(one.columns, each, DECIMALS[: len(one.columns)])
            lines.append(Line(method, numbers, found.seconds, found.message))
        rows.append(Row(name, tuple(lines)))
    note = noted(
        methods,
        f"{several(runs)} of the neural engine",
        (AS_PUBLISHED, how_long(paper)),
        "open: mean number of open channels",
        "slowest: longest relaxation time",
        "read right: share of samples whose most likely path has the true number of open channels (played by a gating "
        "simulator into a patch-clamp amplifier, and recorded again)",
        f"{PATH}: a jump process fitted to it",
        "one state per level, though the simulated gating has more",
    )
    return (ResultTable("Recordings by real amplifiers", COLUMNS, tuple(rows), note),)


def numbers_of(fitted: FittedMJP, recording: Recording) -> list[float]:
    found = of_rates(fitted.rates)
    if recording.opened is not None:
        found.append(float((fitted.decode(recording.data).states == recording.opened).mean()))
    return found


def of_rates(rates: Float[np.ndarray, "state state"]) -> list[float]:
    """Mean number of open channels, jumps per second and the slowest relaxation in milliseconds."""
    law = np.asarray(mjp.stationary_distribution(rates))
    slowest = float(np.asarray(mjp.timescales(rates)).max())
    return [float(law @ np.arange(len(law))), float(law @ rates.sum(1)), 1000 * slowest]


def true_line(recording: Recording, opened: Int[np.ndarray, "row"], seed: int) -> Line:
    """The same numbers of the path itself."""
    path = TimeSeries.from_arrays(recording.data.times, opened, time_unit="s")
    exact = ExactMJP(recording.n_states, emission="categorical", seed=seed, intervals=False).fit(path)
    each = [*of_rates(exact.rates), 1.0]
    return Line(PATH, {name: Number(x, None, d) for name, x, d in zip(COLUMNS, each, DECIMALS, strict=True)})
