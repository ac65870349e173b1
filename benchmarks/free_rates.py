"""Free 6 x 6 rates from paths of the flashing ratchet: the error that is left with few paths and with many.

    python benchmarks/free_rates.py

The data are 10,000 noise-free paths at 100 times each, with the true rates. A published foundation model for jump
processes has a root mean square error of 0.16 with 300 of them, and 0.72 with 5000. Every jump may happen, so that
12 of the 30 rates are truly zero; the error is over all 30.
"""

import sys

import numpy as np

from harness import Benchmark, fresh, peak_gigabytes, table, timed
from neuralmjp import ExactMJP, TimeSeries

DURATION = 2.5  # the file's times run from 0 to 1
LIMITS = {300: 0.10, 10_000: 0.02}


def fit_paths(path: str, n_paths: int) -> dict:
    """Root mean square error of the off-diagonal rates, in a process of its own."""
    with np.load(path) as file:
        times = file["fine_grid_grid"][0, :n_paths, :, 0].astype(float) * DURATION
        states = file["fine_grid_sample_paths"][0, :n_paths, :, 0]
        truth = file["fine_grid_intensity_matrices"][0].astype(float)
    data = TimeSeries.from_arrays(times, states)
    fitted, seconds = timed(lambda: ExactMJP(6).fit(data))
    off = ~np.eye(6, dtype=bool)
    interval = fitted.intervals["rates"]
    held = (interval.lower <= truth + 1e-9) & (truth <= interval.upper)
    errors = fitted.rates[off] - truth[off]
    return {
        "rmse": float(np.sqrt((errors**2).mean())),
        "rmse_present": float(np.sqrt((errors[truth[off] > 0] ** 2).mean())),
        "largest_error": float(np.abs(errors).max()),
        "covered_present": int(held[off & (truth > 0)].sum()),
        "covered_absent": int(held[off & (truth == 0)].sum()),
        "converged": fitted.converged,
        "gigabytes": peak_gigabytes(),
        **seconds,
    }


def main() -> int:
    bench = Benchmark("free_rates", __doc__, data="flashing_ratchet/dfr_V1.npz")
    rows = []
    for n_paths in (50,) if bench.quick else (300, 1000, 5000, 10_000):
        found = fresh("free_rates", "fit_paths", path=str(bench.data), n_paths=n_paths)
        bench.results[f"{n_paths} paths"] = found
        covered = f"{found['covered_present']} of 18, {found['covered_absent']} of 12"
        rows.append([n_paths, found["rmse"], found["rmse_present"], found["largest_error"], covered])
        rows[-1] += [found["converged"], found["seconds"], found["cpu_seconds"], found["gigabytes"]]
        print(f"{n_paths} paths: {found['seconds']:.1f} s", flush=True)
        if n_paths in LIMITS:
            limit, rmse = LIMITS[n_paths], found["rmse"]
            bench.require(f"{n_paths} paths: root mean square error at most {limit} ({rmse:.4f})", rmse <= limit)
    headings = ["paths", "rmse", "of rates > 0", "largest", "intervals that cover: rates > 0, = 0", "converged"]
    table("free rates of the flashing ratchet", [*headings, "seconds", "of processor", "GB"], rows)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
