"""What one likelihood with its gradient costs: many states, and against the number of observations and of states.

    python benchmarks/states.py

Gaussian observations of a random process at irregular times; the time is that of the compiled function. The smallest of
several measurements is drawn: other work on the machine can only add.
"""

import sys
import time
from collections.abc import Callable, Sequence

import jax
import matplotlib
import numpy as np

from harness import Benchmark, fresh, peak_gigabytes, table
from neuralmjp import TimeSeries, mjp
from neuralmjp.emissions import Gaussian
from neuralmjp.exact.evidence import Panel, Scaling, make_evidence
from neuralmjp.exact.fit import Height, objective
from neuralmjp.exact.model import Model, Parameters
from neuralmjp.exact.packing import Packing
from neuralmjp.mjp.precision import in_double_precision
from neuralmjp.priors import FreeRates

OBSERVATIONS = (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000)
BEYOND_CACHE = 16_000  # below, the transition matrices of 10 states fit into a processor's cache: a step, not a slope
STATES = (2, 3, 5, 8, 10, 16, 25, 35, 50)
NAMES = ("states", "observations", "series", "first", "median", "least")
MANY_STATES, MANY_OBSERVATIONS, LIMIT = 50, 20_000, 5.0


def simulated(n_states: int, n_observations: int, n_series: int, n_features: int = 1) -> tuple[np.ndarray, TimeSeries]:
    """Random rates, and series with gaps of 0.3 mean dwell times, which no two observations share."""
    rng = np.random.default_rng(0)
    rates = rng.exponential(1 / (n_states - 1), (n_states, n_states)) * ~np.eye(n_states, dtype=bool)
    times = np.cumsum(rng.exponential(0.3, (n_series, n_observations // n_series)), axis=1)
    law = mjp.stationary_distribution(rates)
    states = mjp.simulate_states(rates, times - times[:, :1], initial=law, key=jax.random.key(0))
    return rates, TimeSeries.from_arrays(times, states[..., None] + rng.normal(size=(*states.shape, n_features)))


def evaluation(n_states: int, n_observations: int, n_series: int, n_features: int = 1) -> Callable[[], Height]:
    """One likelihood with gradient, ready to be called."""
    rates, data = simulated(n_states, n_observations, n_series, n_features)
    model = Model(FreeRates(n_states), Gaussian(), "free")
    shape = (n_states, n_features)
    emission = {"mean": np.arange(n_states)[:, None] * np.ones(shape), "log_sd": np.zeros(shape)}
    start = Parameters(model.rate_model.nearest(rates), emission, np.zeros(n_states))
    packing = Packing(model, start)
    laid = make_evidence(data, model.emission, n_states, Scaling(np.zeros(n_features), np.ones(n_features)), Panel())
    return lambda: objective(model, packing, laid, packing.vector(start))


@in_double_precision
def costs(sizes: Sequence[Sequence[int]], rounds: int) -> list[dict]:
    """Seconds for each (states, observations, series[, features]); in rounds, as other work falls on all."""
    ready = [evaluation(*size) for size in sizes]
    taken = []
    for _ in range(rounds + 1):
        taken.append([])
        for evaluate in ready:
            began = time.perf_counter()
            found = evaluate()
            taken[-1].append(time.perf_counter() - began)
            assert np.isfinite([found.value, *found.gradient]).all()
    first, later = np.array(taken[0]), np.array(taken[1:])
    numbers = np.stack([first, np.median(later, axis=0), later.min(0)], axis=1).tolist()
    return [dict(zip(NAMES, (*size[:3], *seconds), strict=True)) for size, seconds in zip(sizes, numbers, strict=True)]


def many_states(**choices) -> dict:
    """One size alone, in a process of its own, with the memory it took."""
    return {**costs(**choices)[0], "gigabytes": peak_gigabytes()}


def exponent(runs: list[dict], against: str = "observations") -> float:
    """Slope of a straight line through logarithms."""
    x, y = [run[against] for run in runs], [run["least"] for run in runs]
    return float(np.polyfit(np.log(x), np.log(y), 1)[0]) if len(runs) > 1 else float("nan")


def draw(path, lines: dict, against_states: list[dict]) -> None:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name, runs in lines.items():
        large = exponent([run for run in runs if run["observations"] >= BEYOND_CACHE])
        points = [run["observations"] for run in runs], [run["least"] for run in runs]
        left.loglog(*points, "o-", label=f"{name}: exponent {large:.2f} from {BEYOND_CACHE:,}")
    points = [run["states"] for run in against_states], [run["least"] for run in against_states]
    many = [run for run in against_states if run["states"] >= 10]
    right.loglog(*points, "o-", label=f"exponent {exponent(many, 'states'):.2f} from 10")
    left.set(xlabel="observations (10 states)", ylabel="seconds, likelihood and gradient")
    right.set(xlabel=f"states ({against_states[0]['observations']} observations, one recording)")
    for ax in (left, right):
        ax.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> int:
    bench = Benchmark("states", __doc__)
    rounds, rows = (2, []) if bench.quick else (9, [])
    k, n = (12, 600) if bench.quick else (MANY_STATES, MANY_OBSERVATIONS)
    how_many = (1,) if bench.quick else (1, n // 50)
    many = [fresh("states", "many_states", sizes=[(k, n, series)], rounds=rounds) for series in how_many]
    sizes, counts = (OBSERVATIONS[:2], (2, 3)) if bench.quick else (OBSERVATIONS, STATES)
    lines = {"one recording": costs([(10, n, 1) for n in sizes], rounds)}
    lines["series of 50"] = costs([(10, n, n // 50) for n in sizes], rounds)
    against_states = costs([(k, sizes[0] if bench.quick else 8000, 1) for k in counts], rounds)
    for run in [*many, *lines["one recording"], *lines["series of 50"], *against_states]:
        rows.append([run[name] for name in NAMES])
    table("seconds of one likelihood with gradient", NAMES, rows)
    print(f"memory with {k} states: " + ", ".join(f"{run['gigabytes']:.1f} GB" for run in many))
    bench.results |= {"many_states": many, "against_observations": lines, "against_states": against_states}
    for run in many:
        what = f"{k} states, {n} irregular observations in {run['series']} series"
        bench.require(f"{what}: under {LIMIT:g} s ({run['median']:.2f} s)", run["median"] < LIMIT)
    for name, runs in lines.items():
        found, large = exponent(runs), exponent([run for run in runs if run["observations"] >= BEYOND_CACHE])
        print(f"{name}: seconds grow as observations^{found:.2f}, from {BEYOND_CACHE} on as observations^{large:.2f}")
        bench.require(f"{name}: cost linear in observations (exponent {large:.2f})", 0.8 < large < 1.1)
    if bench.out is not None:
        bench.out.mkdir(parents=True, exist_ok=True)
        draw(bench.out / "states.png", lines, against_states)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
