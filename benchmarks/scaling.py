"""How seconds and memory grow: with series, observations per series, states, features, batch and devices.

    python benchmarks/scaling.py [--part exact] [--part neural] [--part devices]
    python benchmarks/scaling.py --part card --out FOLDER  (on a GPU)

The exact engine is measured by one likelihood with its gradient, the neural one by a training step (tilted posterior,
GRU encoder of width 64, windows of 200 observations, batches of 64, unless that changes). Each point is a process
of its own, whose memory is that of the largest moment, JAX and its compiler included (0.3 to 0.6 GiB). What must hold:
on the processor cut into 8 devices, a step is not slower than on one by more than a fifth; on a card, a step with
batches of 1024 takes less than three times one with 64, by small networks and by those of the paper's size.
"""

import os
import sys
import time
from typing import Any

import matplotlib
import numpy as np

from harness import Benchmark, fresh, peak_gigabytes, table
from neuralmjp import NeuralMJP
from neuralmjp.training.config import Preset
from states import costs, simulated

SLOWER = 1.25  # 1 / (1 - 20 %)
POINT = {"states": 3, "length": 200, "series": 500, "features": 1}
EXACT = {
    "series": (100, 1000, 10_000),
    "length": (1000, 10_000, 100_000, 1_000_000),
    "states": (2, 4, 8, 16, 32),
    "features": (1, 4, 16),
}
NEURAL = {
    "series": (500, 5000, 50_000),
    "length": (50, 100, 200, 400),
    "states": (2, 4, 8, 16, 32),
    "features": (1, 4, 16),
    "batch": (16, 64, 256, 1024),
}
CARD_BATCHES, CARD_TIMES = (64, 1024), 3.0
DEVICES, DEVICE_BATCH = (1, 2, 4, 8), 512
UNITS = {"exact": "ms per likelihood with gradient", "neural": "ms per step", "devices": "ms per step"}


def exact(states: int, length: int, series: int, features: int, rounds: int) -> dict[str, float]:
    """Milliseconds, the least of several, and gigabytes."""
    (found,) = costs([(states, length * series, series, features)], rounds)
    return {"ms": 1000 * found["least"], "compile": found["first"], "gib": peak_gigabytes()}


def neural(
    states: int,
    length: int,
    series: int,
    features: int,
    rounds: int,
    batch: int = 64,
    mesh: int = 1,
    preset: Preset = "quick",
) -> dict[str, float]:
    """The same of a training step."""
    steps, marks = 20, []
    data = simulated(states, length * series, series, features)[1]
    changes = {"steps": steps * (rounds + 1), "round_steps": steps, "batch": batch, "window": length, "mesh": mesh}
    began = time.perf_counter()
    estimator = NeuralMJP(states, emission="gaussian", preset=preset, changes=changes | {"reseed": 0})
    estimator.train(data, lambda *_: marks.append(time.perf_counter()))
    taken = np.diff(marks)[:rounds]
    return {"ms": 1000 * float(taken.min()) / steps, "compile": marks[0] - began, "gib": peak_gigabytes()}


def kept(bench: Benchmark, run: dict[str, Any]) -> None:
    """Every point is on disk as soon as it is measured."""
    bench.results.setdefault("runs", []).append(run)
    bench.write()


def grown(bench: Benchmark, engine: str, axes: dict[str, tuple[int, ...]], rounds: int) -> list[dict[str, Any]]:
    """One axis after the other, the others as they are at the point."""
    runs = []
    for axis, values in axes.items():
        for value in values[:2] if bench.quick else values:
            size = {**POINT, axis: value}
            if engine == "exact" and axis == "length":
                size["series"] = 1
            if axis == "batch":
                size["series"] = 2 * max(values)
            one = fresh("scaling", engine, **size, rounds=rounds)
            runs.append({"engine": engine, "axis": axis, "value": value, **one})
            kept(bench, runs[-1])
            print(f"{engine}, {axis} {value}: {one['ms']:.3g} ms, {one['gib']:.2f} GiB", flush=True)
    return runs


def over_devices(bench: Benchmark, rounds: int) -> list[dict[str, Any]]:
    """The same batch on one device and on several, made of the same cores; in turns, because others use them, too."""
    runs, batch = [], 64 if bench.quick else DEVICE_BATCH
    size = {**POINT, "series": 2 * batch, "length": 50 if bench.quick else 200}
    for turn in range(1 if bench.quick else 3):
        for n in DEVICES[:2] if bench.quick else DEVICES:
            os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={n}"
            one = fresh("scaling", "neural", **size, batch=batch, mesh=n, rounds=rounds)
            runs.append({"engine": "devices", "axis": "devices", "value": n, "turn": turn, **one})
            kept(bench, runs[-1])
            print(f"{n} devices, batch {batch}: {one['ms']:.3g} ms, {one['gib']:.2f} GiB", flush=True)
    del os.environ["XLA_FLAGS"]
    return runs


def on_card(bench: Benchmark, rounds: int) -> list[dict[str, Any]]:
    """Small and large batches by small and large networks; others may use the card, so the least of many rounds."""
    runs, batches = [], (4, 8) if bench.quick else CARD_BATCHES
    size = {**POINT, "series": 2 * max(batches), "length": 100}
    for preset in ("quick", "paper"):
        for batch in batches:
            one = fresh("scaling", "neural", **size, batch=batch, preset=preset, rounds=4 * rounds)
            runs.append({"engine": f"neural, {preset}", "axis": "batch", "value": batch, **one})
            kept(bench, runs[-1])
            print(
                f"{preset} networks, batch {batch}: {one['ms']:.3g} ms, compiled in {one['compile']:.0f} s", flush=True
            )
        times = runs[-1]["ms"] / runs[-2]["ms"]
        what = f"{preset} networks: batch {batches[1]} takes {times:.2f} times batch {batches[0]}"
        bench.require(f"{what} (less than {CARD_TIMES:g})", times < CARD_TIMES)
    return runs


def slope(runs: list[dict[str, Any]]) -> float:
    """Exponent between the last two points, where what does not grow no longer counts."""
    first, last = runs[-2:]
    return float(np.log(last["ms"] / first["ms"]) / np.log(last["value"] / first["value"]))


def draw(path: Any, runs: list[dict[str, Any]]) -> None:
    """A column per axis: milliseconds above, memory below; devices are those of the neural engine."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    axes = list(dict.fromkeys(run["axis"] for run in runs))
    figure, panels = plt.subplots(2, len(axes), figsize=(2.6 * len(axes), 5), layout="constrained", squeeze=False)
    for column, axis in enumerate(axes):
        values = sorted({run["value"] for run in runs if run["axis"] == axis})
        for engine, colour in (("exact", "C0"), ("neural", "C1"), ("devices", "C1")):
            some = [run for run in runs if run["axis"] == axis and run["engine"] == engine]
            for row, number in enumerate(("ms", "gib") if some else ()):
                points = [run["value"] for run in some], [run[number] for run in some]
                panels[row, column].plot(*points, "o-", color=colour, label=UNITS[engine])
        low, high = panels[0, column].get_ylim()
        panels[0, column].set(xscale="log", yscale="log", title=axis, ylim=(max(low, 0.5) / 2, 2 * high))
        panels[1, column].set(xscale="log", xlabel=axis)
        panels[1, column].set_ylim(0, 1.1 * panels[1, column].get_ylim()[1])
        for ax in panels[:, column]:
            ax.set_xticks(values, [f"{x:g}" if x < 10_000 else f"{x:.0e}" for x in values], fontsize=7, rotation=40)
            ax.minorticks_off()
            ax.spines[["top", "right"]].set_visible(False)
    panels[0, 0].set_ylabel("milliseconds")
    panels[1, 0].set_ylabel("GiB, largest moment")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(path, dpi=110)


def main() -> int:
    bench = Benchmark("scaling", __doc__ or "", more=options)
    parts, rounds, runs = bench.options.part or ["exact", "neural", "devices"], 1 if bench.quick else 4, []
    for engine, axes in (("exact", EXACT), ("neural", NEURAL)):
        if engine in parts:
            runs += grown(bench, engine, dict(list(axes.items())[:1]) if bench.quick else axes, rounds)
    if "devices" in parts:
        runs += over_devices(bench, rounds)
    if "card" in parts:
        runs += on_card(bench, rounds)
    rows = []
    for engine, axis in dict.fromkeys((run["engine"], run["axis"]) for run in runs):
        some = [run for run in runs if (run["engine"], run["axis"]) == (engine, axis)]
        exponent = slope(some) if axis != "devices" else float("nan")
        rows += [[engine, axis, run["value"], run["ms"], run["gib"], ""] for run in some]
        rows[-1][-1] = f"{exponent:.2f}" if np.isfinite(exponent) else ""
    table("How cost grows", ["engine", "axis", "value", "ms", "GiB", "exponent at the end"], rows)
    shared = [run for run in runs if run["engine"] == "devices"]
    if shared:
        least = {n: min(run["ms"] for run in shared if run["value"] == n) for n in {run["value"] for run in shared}}
        most = max(least)
        what = f"{most} devices on the same cores: {least[most] / least[1]:.2f} times the step of one"
        bench.require(f"{what} (at most {SLOWER:g})", least[most] < SLOWER * least[1])
    if bench.out is not None and parts != ["card"]:
        bench.out.mkdir(parents=True, exist_ok=True)
        draw(bench.out / "scaling.png", runs)
    return bench.finish()


def options(parser: Any) -> None:
    parser.add_argument("--part", action="append", choices=["exact", "neural", "devices", "card"])


if __name__ == "__main__":
    sys.exit(main())
