"""What one likelihood with its gradient costs: many states, and against the number of observations and of states.

    python benchmarks/states.py

Gaussian observations of a random process at irregular times; the time is that of the compiled function. The smallest of
several measurements is drawn: other work on the machine can only add.
"""

import sys
import time

import matplotlib
import numpy as np

from harness import Benchmark, fresh, peak_gigabytes, table
from neuralmjp import TimeSeries, mjp
from neuralmjp.emissions import Gaussian
from neuralmjp.exact.evidence import Panel, Scaling, make_evidence
from neuralmjp.exact.fit import objective
from neuralmjp.exact.model import Model, Parameters
from neuralmjp.exact.packing import Packing
from neuralmjp.mjp.precision import in_double_precision
from neuralmjp.priors import FreeRates

OBSERVATIONS = (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)
STATES = (2, 3, 5, 8, 10, 16, 25, 35, 50)
MANY_STATES, MANY_OBSERVATIONS, LIMIT = 50, 20_000, 5.0


def simulated(n_states: int, n_observations: int, n_series: int) -> tuple[np.ndarray, TimeSeries]:
    """Random rates, and series with gaps of 0.3 mean dwell times, which no two observations share."""
    import jax

    rng = np.random.default_rng(0)
    rates = rng.exponential(1 / (n_states - 1), (n_states, n_states)) * ~np.eye(n_states, dtype=bool)
    times = np.cumsum(rng.exponential(0.3, (n_series, n_observations // n_series)), axis=1)
    law = mjp.stationary_distribution(rates)
    states = mjp.simulate_states(rates, times - times[:, :1], initial=law, key=jax.random.key(0))
    return rates, TimeSeries.from_arrays(times, states + rng.normal(size=states.shape))


@in_double_precision
def cost(n_states: int, n_observations: int, n_series: int, repeats: int) -> dict:
    """Seconds of one likelihood with gradient: compiling once, then `repeats` times."""
    rates, data = simulated(n_states, n_observations, n_series)
    model = Model(FreeRates(n_states), Gaussian(), "free")
    emission = {"mean": np.arange(n_states)[:, None] * 1.0, "log_sd": np.zeros((n_states, 1))}
    start = Parameters(model.rate_model.nearest(rates), emission, np.zeros(n_states))
    packing = Packing(model, start)
    laid = make_evidence(data, model.emission, n_states, Scaling(np.zeros(1), np.ones(1)), Panel())
    theta, seconds = packing.vector(start), []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        value, gradient, _ = objective(model, packing, laid, theta)
        seconds.append(time.perf_counter() - began)
    assert np.isfinite([value, *gradient]).all()
    first, later = seconds[0], seconds[1:]
    numbers = {"first": first, "median": float(np.median(later)), "least": min(later), "gigabytes": peak_gigabytes()}
    return {"states": n_states, "observations": n_observations, "series": n_series, **numbers}


def slope(x: list[int], y: list[float]) -> float:
    """Of a straight line through logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def draw(path, lines: dict, against_states: list[dict]) -> None:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name, runs in lines.items():
        x, y = [run["observations"] for run in runs], [run["least"] for run in runs]
        left.loglog(x, y, "o-", label=f"{name}: slope {slope(x, y):.2f}")
    x, y = [run["states"] for run in against_states], [run["least"] for run in against_states]
    large = -5 if len(x) > 5 else 0
    right.loglog(x, y, "o-", label=f"slope from {x[large]} states on {slope(x[large:], y[large:]):.2f}")
    left.set(xlabel="observations (10 states)", ylabel="seconds, likelihood and gradient")
    right.set(xlabel=f"states ({against_states[0]['observations']} observations, one recording)")
    for ax in (left, right):
        ax.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> int:
    bench = Benchmark("states", __doc__)
    repeats, rows = (2, []) if bench.quick else (7, [])
    k, n = (12, 600) if bench.quick else (MANY_STATES, MANY_OBSERVATIONS)
    many = [fresh("states", "cost", n_states=k, n_observations=n, n_series=s, repeats=repeats) for s in (1, n // 50)]
    sizes, counts = (OBSERVATIONS[:2], (2, 3)) if bench.quick else (OBSERVATIONS, STATES)
    lines = {"one recording": [cost(10, n, 1, repeats) for n in sizes]}
    lines["series of 50"] = [cost(10, n, n // 50, repeats) for n in sizes]
    against_states = [cost(k, sizes[0] if bench.quick else 8000, 1, repeats) for k in counts]
    for run in [*many, *lines["one recording"], *lines["series of 50"], *against_states]:
        run.pop("import_seconds", None)
        rows.append([run["states"], run["observations"], run["series"], run["median"], run["least"], run["first"]])
    table(
        "seconds of one likelihood with gradient",
        ["states", "observations", "series", "median", "least", "first"],
        rows,
    )
    print(f"memory with {k} states: " + ", ".join(f"{run['gigabytes']:.1f} GB" for run in many))
    bench.results |= {"many_states": many, "against_observations": lines, "against_states": against_states}
    for run in many:
        what = f"{k} states, {n} irregular observations in {run['series']} series"
        bench.require(f"{what}: under {LIMIT:g} s ({run['median']:.2f} s)", run["median"] < LIMIT)
    for name, runs in lines.items():
        found = slope([run["observations"] for run in runs], [run["least"] for run in runs])
        print(f"{name}: seconds grow as observations^{found:.2f}")
        bench.require(f"{name}: cost at most linear in observations (slope {found:.2f})", found < 1.1)
    if bench.out is not None:
        bench.out.mkdir(parents=True, exist_ok=True)
        draw(bench.out / "states.png", lines, against_states)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
