"""Training on more data than memory holds: peak memory, and seconds per step, against the size of the data.

    python benchmarks/streaming.py [--observations 100000000] [--scratch DIR]

Writes folders of Parquet files with recordings of a three-level channel, of 1/100, 1/10 and all of the given number of
observations, trains on each for the same number of steps in a process of its own, and fits. The requirements: all of it
within 4 GiB resident at 10^8 observations, and seconds per step that do not depend on the size (twice at most, on a
machine that others use).
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import expm

from harness import Benchmark, fresh, peak_gigabytes, table
from neuralmjp import NeuralMJP, TimeSeries, io, systems
from neuralmjp.io.folders import write_parts
from neuralmjp.mjp import generator_from_rates

MOST = 4.0  # GiB
SLOWER = 2.0  # times
STEPS, ROUND = 300, 100
PART, LENGTH = 1_000_000, 5000  # observations in a file, and in a recording


def recordings(n: int) -> Iterator[TimeSeries]:
    """Parts, with the law of `IonChannel.simulate` at the samples; many recordings are drawn sample by sample."""
    channel = systems.IonChannel.paper("full")
    step = np.cumsum(expm(np.asarray(generator_from_rates(np.array(channel.rates))) / channel.frequency), axis=1)
    levels, times = np.array(channel.levels), np.arange(LENGTH) / channel.frequency
    for k in range(-(-n // PART)):
        rng, count = np.random.default_rng(k), PART // LENGTH
        states = np.empty((LENGTH, count), np.int8)
        states[0] = rng.integers(0, len(levels), count)
        for i in range(1, LENGTH):
            states[i] = (rng.random(count)[:, None] > step[states[i - 1]]).sum(1)
        values = levels[states.T] + channel.noise_sd * rng.standard_normal((count, LENGTH))
        names = [f"{k}-{i}" for i in range(count)]
        yield TimeSeries.from_arrays(
            np.tile(times, (count, 1)), values, time_unit="s", value_names=("current",), names=names
        )


def train(folder: str, steps: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Look through, train, fit; each with its seconds and the memory at its end."""
    marks, rounds = [("start", time.perf_counter(), peak_gigabytes())], []
    estimator = NeuralMJP(3, emission="gaussian", changes={"steps": steps, "round_steps": ROUND, **changes})

    def mark(name: str) -> None:
        marks.append((name, time.perf_counter(), peak_gigabytes()))

    data = estimator.opened(io.open_store(folder))
    mark("survey")
    trained = estimator.train(data, lambda *_: rounds.append(time.perf_counter()))
    mark("training")
    fitted = estimator.fitted(data, trained)
    mark("intervals")
    held = fitted.intervals["rates"]
    truth = np.array(systems.IonChannel.paper("full").rates)
    inside = ((held.lower <= truth) & (truth <= held.upper))[truth > 0]
    return {
        "seconds": {name: now - marks[i][1] for i, (name, now, _) in enumerate(marks[1:])},
        "peak_gib": {name: memory for name, _, memory in marks},
        "step_ms": 1000 * (rounds[-1] - rounds[0]) / (ROUND * (len(rounds) - 1)),  # the first round compiles
        "rates": fitted.rates.tolist(),
        "inside": f"{inside.sum()} of {inside.size}",
    }


def main() -> int:
    bench = Benchmark("streaming", __doc__ or "", more=options)
    largest = PART if bench.quick else bench.options.observations
    sizes = [largest] if bench.quick else [largest // 100, largest // 10, largest]
    scratch = Path(tempfile.mkdtemp(dir=bench.options.scratch))
    changes = {"width": 8, "batch": 16} if bench.quick else {}
    rows, found = [], {}
    try:
        for n in sizes:
            folder, began = scratch / str(n), time.perf_counter()
            write_parts(recordings(n), folder)
            written = time.perf_counter() - began
            size = sum(file.stat().st_size for file in folder.iterdir())
            one = fresh("streaming", "train", folder=str(folder), steps=STEPS, changes=changes)
            found[n] = one | {"write_seconds": written, "bytes": size}
            shutil.rmtree(folder)
            peak = one["peak_gib"]
            rows.append(
                [
                    f"{n:.0e}",
                    f"{size / 2**30:.2f}",
                    f"{written:.0f}",
                    *(f"{one['seconds'][name]:.0f}" for name in ("survey", "training", "intervals")),
                    f"{one['step_ms']:.1f}",
                    *(f"{peak[name]:.2f}" for name in ("survey", "training", "intervals")),
                    one["inside"],
                ]
            )
            print(f"{n} observations: {one}", flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    table("Training from disk", HEADINGS, rows)
    bench.results["by size"] = found
    last, steps = found[largest], [one["step_ms"] for one in found.values()]
    bench.require(f"{largest:.0e} observations within {MOST:g} GiB", max(last["peak_gib"].values()) < MOST)
    bench.require("seconds per step do not depend on the size", max(steps) < SLOWER * min(steps))
    return bench.finish()


HEADINGS = ["observations", "GiB on disk", "write s", "survey s", "train s", "intervals s", "ms/step", "survey GiB",
            "train GiB", "intervals GiB", "true rates inside"]  # fmt: skip


def options(parser: Any) -> None:
    parser.add_argument("--observations", type=int, default=10**8)
    parser.add_argument("--scratch", type=Path, default=os.environ.get("TMPDIR"), help="where the folders are written")


if __name__ == "__main__":
    sys.exit(main())
