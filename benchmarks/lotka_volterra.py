"""Lotka-Volterra by a neural mean field: seconds per step, and how well it finds the four rate constants.

    python benchmarks/lotka_volterra.py [--part tilted|paper] [--grids irregular,shared,regular] [--seeds 5]

All seeds of a grid train side by side as restarts, from starting values a factor of two off, up or down at random.
"""

import sys
import time

import jax
import numpy as np

from harness import Benchmark, table
from neuralmjp.emissions.readings import Readings
from neuralmjp.systems import lotka_volterra, paper_dataset
from neuralmjp.timeseries import TimeSeries
from neuralmjp.training.config import Config
from neuralmjp.training.coupled import CoupledTrained, coupled_preset, train_coupled

NAMES = ("alpha", "beta", "delta", "gamma")
TRUTH = np.array([5e-4, 1e-4, 1e-4, 5e-4])
READINGS = Readings(((0,), (1,)))


def starts(n: int) -> list:
    """A factor of two off, with too much noise."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1, 1], (n, 4))
    return [(np.log(TRUTH) + np.log(2) * sign, {"log_sd": np.log([2.0, 2.0])}) for sign in signs]


def trained(data: TimeSeries, config: Config, n: int) -> tuple[CoupledTrained, float]:
    began = time.perf_counter()
    run = train_coupled(data, lotka_volterra(), READINGS, starts(n), config=config)
    return run, time.perf_counter() - began


def part(bench: Benchmark, posterior: str, grids: list[str], n_seeds: int, changes: dict) -> None:
    rows = []
    for grid in grids:
        whole = paper_dataset("lotka-volterra", grid=grid, seed=0)
        data, test = whole.train.data, whole.test.data
        config = coupled_preset("paper", posterior).changed(**changes)
        if bench.quick:
            data, test = data[:64], test[:16]
            small = {"width": 16, "steps": 4, "round_steps": 2, "batch": 16, "dynamics": (16,), "rates_hidden": (16,)}
            config = config.changed(**small)
        run, seconds = trained(data, config, n_seeds)
        found = np.exp([run.theta(k) for k in range(n_seeds)])
        evaluated = run.evaluate(test).terms
        bench.results.setdefault(posterior, {})[grid] = {
            "constants": found,
            "noise": [np.exp(net.emission["log_sd"]) for net in run.all_networks],
            "elbo_per_series": np.array(run.restarts) / len(data),
            "test": {name: float(np.mean(value)) for name, value in evaluated._asdict().items()},
            "seconds": seconds,
            "steps": run.steps,
            "message": run.message,
            "curve": [
                [{k: h[k] for k in ("step", "seconds", "objective", "theta")} for h in one[:: max(len(one) // 20, 1)]]
                for one in run.histories
            ],
        }
        bench.write()
        off = 100 * (found / TRUTH - 1)
        cells = [f"{off[:, k].mean():+.1f} ({np.abs(off[:, k]).max():.1f})" for k in range(4)]
        rows.append([grid, *cells, seconds, run.steps, float(np.mean(run.restarts)) / len(data)])
        print(rows[-1], flush=True)
        if posterior == "tilted":
            bench.require(f"{grid}: every constant within 5 %, every seed", bool((np.abs(off) <= 5).all()))
            if jax.default_backend() == "gpu":
                bench.require(f"{grid}: {n_seeds} seeds side by side under 90 s", seconds < 90)
    headings = ["", *(f"{n}, % off (worst)" for n in NAMES), "seconds", "steps", "bound per series"]
    table(f"Lotka-Volterra, {posterior} mean field, {n_seeds} seeds side by side", headings, rows)


def main() -> int:
    bench = Benchmark(
        "lotka_volterra",
        __doc__ or "",
        more=lambda parser: (
            parser.add_argument("--part", action="append", choices=["tilted", "paper"]),
            parser.add_argument("--grids", default="irregular,shared,regular"),
            parser.add_argument("--seeds", type=int, default=5),
            parser.add_argument("--steps", type=int),
        ),
    )
    options = bench.options
    bench.results["device"] = jax.devices()[0].device_kind
    changes = {} if options.steps is None else {"steps": options.steps}
    grids = options.grids.split(",")[: 1 if bench.quick else None]
    for name in options.part or ["tilted"]:
        part(bench, name, grids, 2 if bench.quick else options.seeds, changes)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
