"""The neural engine: seconds per training step at the paper's sizes, and how soon and how well it finds V, r, b.

    python benchmarks/neural.py [--part steps|tilted|quick|paper|coverage] [--seeds 5]

On whatever device JAX has; the results say which. `steps` times training steps alone, after compilation. `tilted` (the
paper's sizes) and `quick` fit the flashing ratchet on three grids, for two truths and several seeds. `coverage` asks
how often intervals hold the truth. `paper` trains the published model on the three grids, and once more with a masked
posterior, all seeds side by side as restarts.
"""

import sys
import time
from typing import Any

import jax
import numpy as np

import lotka_volterra as lv
from harness import Benchmark, peak_gigabytes, table
from neuralmjp import NeuralMJP, TimeSeries
from neuralmjp.emissions import NeuralGaussian
from neuralmjp.systems import BrownianFolding, FlashingRatchet, lotka_volterra
from neuralmjp.training.config import preset
from neuralmjp.training.coupled import coupled_preset, train_coupled
from neuralmjp.training.run import train

NAMES = ("V", "r", "b")
TRUTHS = {"V = r = b = 1": (1.0, 1.0, 1.0), "V = 2, r = 0.4, b = 1.7": (2.0, 0.4, 1.7)}
GRIDS = ("irregular", "shared", "regular")
LIMITS = {"flashing ratchet": 0.015, "Lotka-Volterra": 0.020, "Brownian folding": 0.012}  # seconds per step on an H200
PUBLISHED = {
    "flashing ratchet": 4.04,
    "Lotka-Volterra": 3.12,
    "Brownian folding": 1.26,
}  # on the same card
SERIES = 70 * 64


def ratchet(truth: tuple[float, ...], grid: str, n_series: int, seed: int) -> TimeSeries:
    return FlashingRatchet(*truth).simulate(n_series, grid=grid, seed=seed).data


def step_cases() -> dict[str, tuple[Any, TimeSeries, dict[str, Any]]]:
    folding = BrownianFolding().simulate(64, 100, seed=0).data
    ratchets = ratchet((1.0, 1.0, 1.0), "irregular", 256, 0)
    return {
        "flashing ratchet": (NeuralMJP(6, prior=FlashingRatchet()), ratchets, {"batch": 64}),
        "Lotka-Volterra": (None, lotka_volterra().simulate(256, seed=0).data, {"batch": 64}),
        "Brownian folding": (NeuralMJP(2, emission=NeuralGaussian()), folding, {"batch": 32}),
    }


def time_steps(estimator: NeuralMJP | None, data: TimeSeries, config: Any, n: int) -> dict[str, float]:
    """Seconds of the first round, which is compiled, and per step of the later ones; of counts without an estimator."""
    config = config.changed(steps=4 * n, round_steps=n, decay_epochs=1)
    if estimator is None:
        run = train_coupled(data, lotka_volterra(), lv.READINGS, lv.starts(1), config=config)
    else:
        run = train(data, estimator.model(data), panel=estimator.panel, config=config)
    seconds = np.diff([0.0] + [entry["seconds"] for entry in run.history])
    return {"first_round": float(seconds[0]), "seconds_per_step": float(np.min(seconds[1:]) / n)}


def steps(bench: Benchmark) -> None:
    rows = []
    on_gpu = jax.default_backend() == "gpu"
    for name, (estimator, data, changes) in step_cases().items():
        for posterior in ("paper", "tilted"):
            config = (preset if estimator else coupled_preset)("paper", posterior).changed(**changes)
            found = time_steps(estimator, data, config, 2 if bench.quick else (100 if on_gpu else 5))
            found["peak_gigabytes"] = device_gigabytes()
            bench.results.setdefault("steps", {}).setdefault(name, {})[posterior] = found
            bench.write()
            ratio = PUBLISHED[name] / found["seconds_per_step"]
            rows.append([f"{name}, {posterior}", 1e3 * found["seconds_per_step"], found["first_round"], ratio])
            rows[-1].append(found["peak_gigabytes"])
            if on_gpu:
                holds = found["seconds_per_step"] <= LIMITS[name]
                bench.require(f"{name}, {posterior}: at most {1e3 * LIMITS[name]:.0f} ms per step", holds)
    headings = ["", "ms per step", "first round (s)", "published code / ours", "peak memory (GB)"]
    table(f"Training steps, paper's sizes, on {jax.devices()[0].device_kind}", headings, rows)


def device_gigabytes() -> float:
    """Largest memory so far: of the device where it counts, else of the process."""
    counted = jax.devices()[0].memory_stats()
    return counted["peak_bytes_in_use"] / 2**30 if counted else peak_gigabytes()


def tilted(bench: Benchmark, n_seeds: int, name: str) -> None:
    rows, truths = [], list(TRUTHS.items())[: 1 if bench.quick else None]
    for label, truth in truths:
        for grid in GRIDS[: 1 if bench.quick else None]:
            found = []
            for seed in range(n_seeds):
                data = ratchet(truth, grid, 128 if bench.quick else SERIES, seed)
                began = time.perf_counter()
                changes = {"steps": 200} if bench.quick else {}
                fitted = NeuralMJP(6, prior=FlashingRatchet(), preset=name, seed=seed, intervals=False, changes=changes)
                run = fitted.train(data)
                values = np.exp(run.parameters.rates)
                found.append({"values": values, "seconds": time.perf_counter() - began, "steps": run.steps})
                found[-1]["near"] = next((h["seconds"] for h in run.history if near(h["theta"], truth)), None)
                found[-1]["elbo"] = run.elbo
            bench.results.setdefault(f"tilted, {name}", {}).setdefault(label, {})[grid] = found
            bench.write()
            off = np.array([f["values"] for f in found]) / truth - 1
            cells = [f"{100 * np.mean(off[:, k]):+.1f} ({100 * np.abs(off[:, k]).max():.1f})" for k in range(3)]
            seconds = [f["seconds"] for f in found]
            near_by = [f["near"] for f in found]
            rows.append([f"{label}, {grid}", *cells, max(seconds), max(x if x else np.inf for x in near_by)])
            bench.require(f"{label}, {grid}: within 4 % on average", bool((np.abs(off.mean(0)) <= 0.04).all()))
            bench.require(f"{label}, {grid}: no seed off by more than 8 %", bool((np.abs(off) <= 0.08).all()))
            if jax.default_backend() == "gpu" or name == "quick":
                limit = 60 if name == "paper" else 300
                bench.require(f"{label}, {grid}: under {limit} s", max(seconds) < limit)
    headings = ["", *(f"{n}, % off (worst)" for n in NAMES), "seconds (worst)", "until within 5 %"]
    table(f"Tilted posterior, preset {name}, {n_seeds} seeds", headings, rows)


def coverage(bench: Benchmark) -> None:
    """How often the 95 % intervals of fits to 300 series hold the truth."""
    rows = []
    for label, truth in list(TRUTHS.items())[: 1 if bench.quick else None]:
        held = []
        for seed in range(2 if bench.quick else 20):
            data = ratchet(truth, "irregular", 300, 1000 + seed)
            found = NeuralMJP(6, prior=FlashingRatchet(), seed=seed).fit(data).intervals["parameters"]
            held.append(((found.lower <= truth) & (truth <= found.upper)).tolist())
            bench.results.setdefault("coverage", {})[label] = held
            bench.write()
        share = np.mean(held, axis=0)
        rows.append([label, *(float(x) for x in share), len(held)])
        bench.require(f"{label}: intervals cover at least 85 %", bool((share >= 0.85).all()))
    table("Coverage of 95 % intervals, tilted posterior, preset quick", ["", *NAMES, "data sets"], rows)


def near(theta: list[float], truth: tuple[float, ...]) -> bool:
    return bool((np.abs(np.exp(theta) / truth - 1) < 0.05).all())


def paper(bench: Benchmark, n_seeds: int, grids: list[str], limit: int) -> None:
    rows = []
    for case in grids:
        grid, masked = case.removesuffix("-masked"), case.endswith("-masked")
        data = FlashingRatchet().simulate(5000, grid=grid, seed=0).data
        training, test = data[:SERIES], data[SERIES:]
        changes = {"masked": masked, "steps": limit}
        if bench.quick:
            training, changes = training[:128], {**changes, "steps": 4, "round_steps": 2}
        estimator = NeuralMJP(
            6, prior=FlashingRatchet(), posterior="paper", preset="paper", restarts=n_seeds, changes=changes
        )
        began = time.perf_counter()
        run = estimator.train(training)
        seconds = time.perf_counter() - began
        curves = [
            [{k: h[k] for k in ("step", "seconds", "path_kl", "reconstruction", "theta")} for h in one]
            for one in run.histories
        ]
        values = np.exp([one[-1]["theta"] for one in run.histories])
        tested = run.evaluate_each(test)
        kl = [float(np.mean(t.terms.path_kl)) for t in tested]
        nll = [float(-np.mean(t.terms.reconstruction) / (test.lengths[0] - 1)) for t in tested]
        bench.results.setdefault("paper", {})[case] = {
            "values": values,
            "kl": kl,
            "nll": nll,
            "seconds": seconds,
            "curves": curves,
        }
        bench.write()
        cells = [f"{np.mean(x):.2f} ± {np.std(x):.2f}" for x in (kl, nll, *values.T)]
        print(case, *cells, f"{seconds:.0f} s")
        rows.append([case, *cells, seconds])
    table(f"The published model, {n_seeds} seeds side by side", ["", "KL", "NLL", *NAMES, "seconds"], rows)


def main() -> int:
    bench = Benchmark(
        "neural",
        __doc__ or "",
        more=lambda parser: (
            parser.add_argument("--part", action="append", choices=["steps", "tilted", "quick", "paper", "coverage"]),
            parser.add_argument("--seeds", type=int, default=5),
            parser.add_argument("--grids", default="irregular,shared,regular,irregular-masked"),
            parser.add_argument("--steps", type=int, default=12_000),
        ),
    )
    options = bench.options
    bench.results["device"] = jax.devices()[0].device_kind
    seeds = 1 if bench.quick else options.seeds
    for part in options.part or ["steps", "quick"]:
        if part == "steps":
            steps(bench)
        elif part == "coverage":
            coverage(bench)
        elif part == "paper":
            paper(bench, seeds, options.grids.split(","), options.steps)
        else:
            tilted(bench, seeds, "paper" if part == "tilted" else "quick")
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
