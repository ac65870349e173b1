"""`neuralmjp describe`: what is in a data file, before anything is fitted to it."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..dates import date_of
from ..timeseries import TimeSeries
from .show import console, histogram, number, table


def run(data: TimeSeries, *, path: Path, n_states: int | None, json_file: Path | None) -> None:
    if n_states is not None:
        data.check_states(n_states)
    facts = summary(data)
    show(data, facts, path)
    if n_states is not None:
        console().print(f"{n_states} states: the data can bear them.")
    if json_file is not None:
        json_file.write_text(json.dumps(facts, indent=2) + "\n")


def summary(data: TimeSeries) -> dict[str, Any]:
    """Counts, lengths, gaps and values, in the data's own units."""
    gaps = data.gaps
    seen = data.mask.sum(0)
    values = {
        name: {"missing": int(data.n_observations - n), **_spread(column[~np.isnan(column)])}
        for name, n, column in zip(data.value_names, seen, data.values.T, strict=True)
    }
    return {
        "series": len(data),
        "observations": int(data.n_observations),
        "missing_values": int((~data.mask).sum()),
        "time_unit": data.time_unit,
        **({} if data.origin is None else {"origin": data.origin}),
        "length": _spread(data.lengths),
        "gap": _spread(gaps),
        "regular": bool(np.allclose(gaps, gaps[0], rtol=1e-6, atol=0)),
        "observed_time": float(gaps.sum()),
        "values": values,
    }


def _spread(numbers: np.ndarray) -> dict[str, float]:
    if numbers.size == 0:
        return {}
    return {
        "smallest": float(numbers.min()),
        "median": float(np.median(numbers)),
        "mean": float(numbers.mean()),
        "largest": float(numbers.max()),
    }


def show(data: TimeSeries, facts: dict[str, Any], path: Path) -> None:
    """The summary as tables, then a histogram of every value."""
    screen, unit = console(), data.time_unit
    screen.print(f"{path}: {facts['series']} series, {facts['observations']} observations", soft_wrap=True)
    if data.origin is not None:
        last = date_of(float(data.times.max()), data.origin, unit)
        screen.print(f"dates from {data.origin} to {last}, counted in {unit}", soft_wrap=True)
    kind = "regular" if facts["regular"] else "irregular"
    columns = ["", "smallest", "median", "mean", "largest"]
    rows = [
        ["observations per series", *_cells(facts["length"])],
        [f"gap between observations ({unit}), {kind}", *_cells(facts["gap"])],
    ]
    screen.print(table("Times", columns, rows))
    rows = [
        [name, str(value["missing"]), *_cells({k: value[k] for k in columns[1:] if k in value})]
        for name, value in facts["values"].items()
    ]
    screen.print(table("Values", ["", "missing", *columns[1:]], rows))
    for name, column in zip(data.value_names, data.values.T, strict=True):
        observed = column[~np.isnan(column)]
        if observed.size:
            screen.print(f"\n{name}", soft_wrap=True)
            for line in histogram(observed):
                screen.print(line, soft_wrap=True)


def _cells(spread: dict[str, float]) -> list[str]:
    return [number(value) for value in spread.values()]
