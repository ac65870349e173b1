"""`neuralmjp simulate`: data from a system whose truth is known."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .. import systems
from ..errors import InputError
from ..io import write
from ..systems import Simulation, System
from ..systems.system import Grid
from ..timeseries import TimeSeries
from ..units import per
from . import molecule
from .options import assignments
from .show import console, number, table


def run(
    name: str,
    *,
    out: Path,
    n_series: int | None,
    length: int | None,
    grid: Grid | None,
    duration: float | None,
    seed: int,
    changes: list[str],
    truth: Path | None,
    ns: float | None,
) -> None:
    if name == molecule.NAME:
        others = {"--series": n_series, "--length": length, "--grid": grid, "--duration": duration, "--truth": truth}
        foreign = [option for option, value in others.items() if value is not None] + ["--set"] * bool(changes)
        molecule.run(out, ns, seed, foreign)
        return
    if ns is not None:
        raise InputError(f"--ns is for {molecule.NAME}; other systems take --length or --duration")
    if truth is not None and truth.resolve() == out.resolve():
        raise InputError(f"--out and --truth both name {out}: the one would overwrite the other")
    with warnings.catch_warnings(record=True) as notes:  # on how a file was read
        warnings.simplefilter("always")
        system = systems.named(name).with_parameters(**assignments(changes))
    for note in notes:
        console().print(f"note: {note.message}", soft_wrap=True)
    chosen: dict[str, Any] = {} if grid is None else {"grid": grid}
    simulation = system.simulate(100 if n_series is None else n_series, length, duration=duration, seed=seed, **chosen)
    write(simulation.data, out)
    if truth is not None:
        write(hidden(simulation), truth)
    show(system, simulation, out, truth)


def hidden(simulation: Simulation) -> TimeSeries:
    """The hidden states at the observation times, as a table of the same rows."""
    data, states = simulation.data, simulation.states
    columns = states.reshape(len(states), -1).astype(float)
    names = tuple(f"true_{name}" for name in simulation.state_names) or ("state",)
    return TimeSeries(data.times, columns, data.offsets, data.names, names, data.time_unit)


def show(system: System, simulation: Simulation, out: Path, truth: Path | None) -> None:
    """What was made, and the truth behind it."""
    data, unit, screen = simulation.data, system.time_unit, console()
    screen.print(f"{system.name}: {len(data)} series, {data.n_observations} observations -> {out}", soft_wrap=True)
    if truth is not None:
        screen.print(f"hidden states -> {truth}", soft_wrap=True)
    if system.parameters:
        rows = [[name, number(value)] for name, value in system.parameters.items()]
        screen.print(table("True parameters", ["parameter", "value"], rows))
    answers = system.answers()
    if "rates" in answers:
        names = [f"to {j}" for j in range(len(answers["rates"]))]
        rows = [[f"from {i}", *map(number, row)] for i, row in enumerate(answers["rates"])]
        screen.print(table(f"True rates ({per(unit)})", ["state", *names], rows))
        law, scales = answers["stationary_distribution"], answers["timescales"]
        screen.print("stationary law  " + "  ".join(number(p) for p in law))
        screen.print("timescales      " + "  ".join(number(t) for t in np.atleast_1d(scales)) + f"  ({unit})")
