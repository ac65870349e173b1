"""`neuralmjp decode`: what was hidden behind the observations of a file."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..events import Events
from ..fitted import FittedMJP
from ..fitted_network import FittedNetwork
from ..io import write
from ..io.frames import require_table, write_frame
from ..report.tables import stays_of
from ..timeseries import TimeSeries
from .result_tables import which_states
from .runs import load_any, read_for
from .show import console, number, table


def run(folder: Path, path: Path, columns: dict[str, Any], out: Path, events: Path | None = None) -> None:
    fitted = load_any(folder)
    if events is not None:
        require_table(events)
        if events.resolve() == out.resolve():
            raise InputError(f"--out and --events are both {out}: give them different names")
        if isinstance(fitted, FittedNetwork):
            raise InputError("--events lists stays in hidden states; a reaction network has counts: leave it out")
    data = read_for(fitted, path, columns)
    if isinstance(fitted, FittedNetwork):
        decode_counts(fitted, data, path, out)
    else:
        decode_states(fitted, data, path, out, events)


def decode_states(fitted: FittedMJP, data: TimeSeries, path: Path, out: Path, events: Path | None) -> None:
    """The most likely state, and the probability of each, at every observation."""
    counted = data.in_unit(fitted.time_unit)
    decoded = fitted.decode(counted)
    shared = {} if decoded.levels is None else {"level": decoded.levels}
    values = np.column_stack([decoded.states, *shared.values(), decoded.probabilities])
    names = ("state", *shared, *(f"p_{k}" for k in range(fitted.n_states)))
    write(replace(data, values=values, value_names=names), out)
    share = np.bincount(decoded.states, minlength=fitted.n_states) / len(decoded.states)
    jumps = int((np.diff(decoded.states) != 0)[np.isin(np.arange(1, len(data.times)), data.offsets, invert=True)].sum())
    screen = console()
    screen.print(
        f"{path}: {data.n_observations} observations decoded, {jumps} changes of state -> {out}", soft_wrap=True
    )
    for line in which_states(fitted):
        screen.print(line, soft_wrap=True)
    rows = [
        [name, number(float(share[k])), number(float(decoded.probabilities[:, k].mean()))]
        for k, name in enumerate(fitted.state_names)
    ]
    screen.print(table("Occupancy", ["state", "most likely path", "mean probability"], rows))
    if events is not None:
        found = fitted.events(counted, decoded)
        write_frame(found.to_frame(), events)
        show_events(found, events)


def show_events(found: Events, out: Path) -> None:
    """How often each state was visited, for how long, and what was read there."""
    screen, whole = console(), int(found.whole.sum())
    screen.print(f"{len(found)} events, {whole} of them from beginning to end -> {out}", soft_wrap=True)
    told = stays_of(found)
    screen.print(table(told.title, told.headings, told.shown()))


def decode_counts(fitted: FittedNetwork, data: TimeSeries, path: Path, out: Path) -> None:
    """Mean, 95 % interval and most probable count of every species at every observation."""
    decoded = fitted.decode(data.in_unit(fitted.time_unit))
    parts = {"mean": decoded.mean, "lower": decoded.lower, "upper": decoded.upper, "mode": decoded.most_probable}
    names = tuple(f"{one}_{part}" for one in decoded.species for part in parts)
    values = np.stack([np.asarray(each, float) for each in parts.values()], axis=-1).reshape(data.n_observations, -1)
    write(replace(data, values=values, value_names=names), out)
    screen = console()
    screen.print(f"{path}: {data.n_observations} observations decoded -> {out}", soft_wrap=True)
    width = (decoded.upper - decoded.lower).mean(0)
    rows = [
        [one, number(float(decoded.mean[:, s].mean())), number(float(width[s]))]
        for s, one in enumerate(decoded.species)
    ]
    screen.print(table("Hidden counts", ["species", "mean count", "mean width of the 95 % intervals"], rows))
