"""Reaction networks by the exact likelihood on their box of counts: seconds, accuracy, coverage of intervals.

    python benchmarks/lattice.py [--part fit|small|coverage|single|beyond] [--seeds 2]

On whatever device JAX has; the results say which. `fit` is Lotka-Volterra at the paper's size, 4480 series x 50, on
three grids; `small` 128 series of it. `coverage` asks how often 95 % intervals of fits to 32 series hold the truth,
over 40 data sets, all constants together. `single` is the paper's one trajectory of 16 observations, simulated 20
times. `beyond` fits an epidemic, a gene whose switch is not seen, and three species in a box of 40 x 40 x 40. Each fit
of the first two parts runs in a process of its own, compilation included.
"""

import sys
import time

import numpy as np

from harness import Benchmark, fresh, table
from neuralmjp import NetworkMJP
from neuralmjp.systems import ReactionNetwork, lotka_volterra, paper_dataset, parse_network, sir, telegraph

PARTS = ("fit", "small", "coverage", "single", "beyond")
GRIDS = ("irregular", "shared", "regular")
PUBLISHED_ERRORS = (0.015, 0.006, 0.006, 0.008)  # of the logarithms, in a sketch with 4480 series
ON_GPU, ON_CPU = 45.0, 60.0  # seconds for 4480 series on an accelerator, for 128 on two cores
THREE = """
0 -> A @ inflow = 6
A -> B @ step = 0.5
B -> C @ next = 0.4
C -> 0 @ outflow = 0.3
A + C -> C @ brake = 0.02
box A 39
box B 39
box C 39
start A 5..15
start B 5..15
start C 5..15
seen A, C
duration 20
"""


def report(network: ReactionNetwork, estimator: NetworkMJP, data) -> dict:
    """One fit: how far off, in standard errors of the logarithms, and what it took."""
    import jax

    began = time.perf_counter()
    fitted = estimator.fit(data)
    seconds = time.perf_counter() - began
    found = fitted.intervals["parameters"]
    truth = np.array(list(network.parameters.values()))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.log(found.upper / found.lower) / (2 * 1.96)
        off = np.log(found.mean / truth) / error
    device = jax.devices()[0]
    return {
        "device": f"{device.platform} {device.device_kind}",
        "names": list(network.parameters),
        "mean": found.mean.tolist(),
        "error": error.tolist(),
        "off": off.tolist(),
        "held": ((found.lower <= truth) & (truth <= found.upper)).astype(int).tolist(),
        "noise": {name: np.exp(value).tolist() for name, value in fitted.noise.items() if name != "logit_detection"},
        "log_likelihood": fitted.log_likelihood,
        "truncated": fitted.truncated,
        "at_edge": fitted.at_edge,
        "converged": fitted.converged,
        "message": fitted.message,
        "warnings": list(fitted.warnings),
        "seconds": seconds,
    }


def fit_once(grid: str, n_series: int, seed: int) -> dict:
    network = lotka_volterra()
    data = network.simulate(n_series, grid=grid, seed=seed).data
    return report(network, NetworkMJP(network), data)


def shown(label: str, found: dict) -> list:
    """One row of a table."""
    numbers = [f"{m:.4g} ({100 * e:.1f} %)" for m, e in zip(found["mean"], found["error"], strict=True)]
    return [label, *numbers, float(np.abs(found["off"]).max()), found["seconds"]]


def judged(bench: Benchmark, where: str, found: dict) -> None:
    worst = float(np.abs(found["off"]).max())
    bench.require(f"{where}: converged, within 3 standard errors ({worst:.2f})", found["converged"] and worst < 3)


HEADINGS = ["", "alpha", "beta", "delta", "gamma", "errors off, at most", "seconds"]


def fit(bench: Benchmark) -> None:
    """The paper's size, on three grids."""
    rows = []
    for grid in GRIDS[: 1 if bench.quick else None]:
        for seed in range(1 if bench.quick else bench.options.seeds):
            found = fresh("lattice", "fit_once", grid=grid, n_series=12 if bench.quick else 4480, seed=seed)
            bench.results.setdefault("fit", {}).setdefault(grid, []).append(found)
            rows.append(shown(f"{grid}, seed {seed}", found))
            judged(bench, f"4480 series, {grid}, seed {seed}", found)
            if not found["device"].startswith("cpu"):
                seconds = found["seconds"]
                bench.require(f"{grid}, seed {seed}: under {ON_GPU:g} s ({seconds:.1f} s)", seconds < ON_GPU)
            near = np.abs(np.array(found["error"]) / PUBLISHED_ERRORS - 1).max()
            bench.require(f"{grid}: standard errors as in the sketch ({100 * near:.0f} %)", near < 0.35)
            bench.write()
    table("Lotka-Volterra, 4480 series x 50 (standard errors)", HEADINGS, rows)


def small(bench: Benchmark) -> None:
    """What a laptop can do."""
    rows = []
    for seed in range(1 if bench.quick else 3):
        found = fresh("lattice", "fit_once", grid="irregular", n_series=8 if bench.quick else 128, seed=seed)
        bench.results.setdefault("small", []).append(found)
        rows.append(shown(f"seed {seed}", found))
        judged(bench, f"128 series, seed {seed}", found)
        seconds = found["seconds"]
        bench.require(f"128 series, seed {seed}: under {ON_CPU:g} s ({seconds:.1f} s)", seconds < ON_CPU)
    table("Lotka-Volterra, 128 series x 50", HEADINGS, rows)


def covered(bench: Benchmark, label: str, names: list[str], held: np.ndarray, seconds: float) -> None:
    share = held.mean(0)
    bench.results[label] = {"data_sets": len(held), "share": dict(zip(names, share, strict=True)), "seconds": seconds}
    table(
        f"{label}: {len(held)} data sets", ["", *names, "all", "seconds"], [["covered", *share, share.mean(), seconds]]
    )


def coverage(bench: Benchmark) -> None:
    """Forty data sets of 32 series."""
    network, held, began = lotka_volterra(), [], time.perf_counter()
    for seed in range(2 if bench.quick else 40):
        data = network.simulate(4 if bench.quick else 32, seed=1000 + seed).data
        held.append(report(network, NetworkMJP(network), data)["held"])
    covered(bench, "coverage", list(network.parameters), np.array(held), time.perf_counter() - began)
    share = float(np.mean(held))
    bench.require(f"95 % intervals cover 88 to 99 % ({100 * share:.1f} %)", 0.88 <= share <= 0.99)


def single(bench: Benchmark) -> None:
    """The paper's single trajectory, 16 observations, decay length of the noise learned."""
    network = lotka_volterra(start=((19, 19), (7, 7)), noise="two-sided-exponential")
    found, began = [], time.perf_counter()
    for seed in range(2 if bench.quick else 20):
        data = paper_dataset("lotka-volterra-single", seed=seed).train.data
        found.append(report(network, NetworkMJP(network), data))
    bench.results["single_fits"] = found
    held = np.array([each["held"] for each in found])
    covered(bench, "single", list(network.parameters), held, time.perf_counter() - began)
    share = float(held.mean())
    bench.require(f"intervals of a single trajectory cover 85 to 100 % ({100 * share:.1f} %)", share >= 0.85)


def beyond(bench: Benchmark) -> None:
    """Other networks: an epidemic, a hidden switch, three species of which two are seen."""
    n = 3 if bench.quick else 40
    cases = {"epidemic": (sir(), n), "telegraph": (telegraph(), n)}
    import jax

    if jax.default_backend() != "cpu" and not bench.quick:
        cases["three species"] = (parse_network(THREE, name="three"), 40)
    for label, (network, n_series) in cases.items():
        data = network.simulate(n_series, 30, seed=7).data
        found = report(network, NetworkMJP(network, initial="start"), data)
        bench.results.setdefault("beyond", {})[label] = found
        judged(bench, label, found)
        headings = ["", *found["names"], "errors off, at most", "seconds"]
        table(f"{label}, {n_series} series x 30, box {network.box}", headings, [shown("", found)])
        bench.write()


def main() -> int:
    def more(parser):
        parser.add_argument("--part", choices=PARTS, action="append", help="only these; all if left out")
        parser.add_argument("--seeds", type=int, default=2, help="of the fits at the paper's size")

    bench = Benchmark("lattice", __doc__, more=more)
    for part in bench.options.part or PARTS:
        globals()[part](bench)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
