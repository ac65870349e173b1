"""The flashing ratchet: parameters, standard errors and seconds on the three grids, and whether intervals cover.

    python benchmarks/ratchet.py

Each fit of 4480 series x 50 runs in a process of its own, compilation included. Coverage: how often the 95 % intervals
of fits to 300 series hold the truth. With 40 data sets a perfect interval covers all of them with probability 0.13, so
the first 40 are shown and 400 are judged.
"""

import sys

import numpy as np

from harness import Benchmark, fresh, table, timed
from neuralmjp import ExactMJP
from neuralmjp.systems import FlashingRatchet

NAMES = ("V", "r", "b")
TRUTHS = {"V = r = b = 1": (1.0, 1.0, 1.0), "V = 2, r = 0.4, b = 1.7": (2.0, 0.4, 1.7)}
PUBLISHED_ERRORS = (0.015, 0.010, 0.011)  # of a sketch, at the first truth
SERIES, SMALL, DATA_SETS, FIRST = 4480, 300, 400, 40
LIMIT = 10.0  # seconds


def fit_once(truth: list[float], grid: str, n_series: int) -> dict:
    """Parameters with standard errors, and the seconds of the fit."""
    data = FlashingRatchet(*truth).simulate(n_series, grid=grid, seed=0).data
    fitted, seconds = timed(lambda: ExactMJP(6, prior=FlashingRatchet()).fit(data))
    found = fitted.intervals["parameters"]
    error = found.mean * np.log(found.upper / found.lower) / (2 * 1.96)  # intervals are even in the logarithm
    return {"mean": found.mean.tolist(), "error": error.tolist(), "converged": fitted.converged, **seconds}


def cover(truth: list[float], n_sets: int) -> dict:
    """Which intervals hold the truth: one row per data set, columns V, r, b and the five timescales."""
    system = FlashingRatchet(*truth)
    scales, rows = system.answers()["timescales"], []
    for seed in range(n_sets):
        fitted = ExactMJP(6, prior=FlashingRatchet(), seed=seed).fit(system.simulate(SMALL, seed=1000 + seed).data)
        found, times = fitted.intervals["parameters"], fitted.timescales
        held = (found.lower <= truth) & (truth <= found.upper), (times.lower <= scales) & (scales <= times.upper)
        rows.append(np.concatenate(held).astype(int).tolist())
    return {"held": rows}


def chosen(bench: Benchmark) -> list[tuple[str, tuple[float, ...]]]:
    return list(TRUTHS.items())[: 1 if bench.quick else None]


def fits(bench: Benchmark) -> None:
    """The three grids, for both truths."""
    rows = []
    for label, truth in chosen(bench):
        for grid in ("irregular",) if bench.quick else ("irregular", "shared", "regular"):
            found = fresh("ratchet", "fit_once", truth=truth, grid=grid, n_series=60 if bench.quick else SERIES)
            bench.results.setdefault("fits", {}).setdefault(label, {})[grid] = found
            off = (np.array(found["mean"]) - truth) / found["error"]
            numbers = [f"{m:.4f} ({e:.4f})" for m, e in zip(found["mean"], found["error"], strict=True)]
            rows.append([f"{label}, {grid}", *numbers, float(np.abs(off).max()), found["seconds"]])
            rows[-1].append(found["cpu_seconds"])
            where = f"{label}, {grid}"
            bench.require(f"{where}: within 3 standard errors ({np.abs(off).max():.2f})", np.abs(off).max() < 3)
            bench.require(f"{where}: under {LIMIT:g} s ({found['seconds']:.1f} s)", found["seconds"] < LIMIT)
            if truth == (1.0, 1.0, 1.0):
                near = np.abs(np.array(found["error"]) / PUBLISHED_ERRORS - 1).max()
                bench.require(f"{where}: standard errors near 0.015, 0.010, 0.011 ({100 * near:.0f} %)", near < 0.2)
    headings = ["", *(f"{name} (error)" for name in NAMES), "errors off, at most", "seconds", "of processor"]
    table(f"fits of {SERIES} series x 50", headings, rows)


def coverage(bench: Benchmark) -> None:
    """Both truths, in the first 40 data sets and in all."""
    quantities = [*NAMES, *(f"timescale {k + 1}" for k in range(5)), "timescales"]
    rows = []
    for label, truth in chosen(bench):
        result, seconds = timed(lambda truth=truth: cover(truth, 2 if bench.quick else DATA_SETS))
        held = np.array(result["held"])
        held = np.concatenate([held, held[:, 3:].mean(1, keepdims=True)], axis=1)
        share, first = held.mean(0), held[:FIRST].mean(0)
        bench.results.setdefault("coverage", {})[label] = {
            "data_sets": len(held), "all": dict(zip(quantities, share, strict=True)),
            "first_40": dict(zip(quantities, first, strict=True)), **seconds,
        }  # fmt: skip
        rows += [[f"{label}, all {len(held)}", *share.round(4)], [f"{label}, first {FIRST}", *first.round(4)]]
        for name, value in zip(quantities, share, strict=True):
            holds = 0.90 <= value <= 0.99
            bench.require(f"{label}: the interval of {name} covers 90 to 99 % ({100 * value:.1f} %)", holds)
    table(f"coverage of 95 % intervals, {SMALL} series x 50, irregular grid", ["", *quantities], rows)


def main() -> int:
    bench = Benchmark("ratchet", __doc__)
    fits(bench)
    coverage(bench)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
