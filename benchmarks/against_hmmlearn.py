"""EM on a regular grid, where discrete time is enough: the same likelihood as hmmlearn, and seconds per iteration.

    python benchmarks/against_hmmlearn.py        (needs hmmlearn: pip install hmmlearn)

Three Gaussian states, one recording of 100,000 observations. Both start from the same parameters, hmmlearn with the
transition matrix exp(F dt) of our rates. Iterations are measured in turns, so that other work on the machine falls on
both; hmmlearn has two implementations, and the faster one counts. Not called hmmlearn.py, which would hide the package.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from harness import Benchmark, table
from neuralmjp import TimeSeries, mjp
from neuralmjp.emissions import Gaussian
from neuralmjp.exact.em import run_em
from neuralmjp.exact.evidence import Laid, Panel, Scaling, make_evidence
from neuralmjp.exact.fit import objective
from neuralmjp.exact.model import Model, Parameters
from neuralmjp.exact.packing import Packing
from neuralmjp.mjp.precision import in_double_precision
from neuralmjp.priors import FreeRates

STEP, N = 0.1, 100_000
RATES = np.array([[0.0, 0.6, 0.1], [0.4, 0.0, 0.5], [0.2, 0.7, 0.0]])
MEANS, SDS = np.array([-1.0, 0.0, 1.5]), np.array([0.5, 0.6, 0.7])
MODEL = Model(FreeRates(3), Gaussian(), "free")
ITERATIONS, TURNS, LIMIT = 10, 11, 2.0


def simulated(n: int) -> TimeSeries:
    states = mjp.simulate_states(RATES, STEP * np.arange(n)[None], initial=np.ones(3) / 3, key=jax.random.key(0))[0]
    values = np.random.default_rng(0).normal(MEANS[states], SDS[states])
    return TimeSeries.from_arrays(STEP * np.arange(n), values)


def start() -> Parameters:
    """Near the truth, but not there: both have something to do."""
    emission = {"mean": MEANS[:, None] * 0.8, "log_sd": np.log(SDS)[:, None] + 0.1}
    return Parameters(MODEL.rate_model.nearest(RATES * 1.5), emission, np.zeros(3))


def peer(implementation: str, n_iter: int):
    """hmmlearn's model with the same parameters."""
    from hmmlearn.hmm import GaussianHMM

    model = GaussianHMM(
        3, "diag", n_iter=n_iter, tol=-np.inf, init_params="", implementation=implementation, covars_prior=0.0
    )
    model.startprob_, model.transmat_ = np.ones(3) / 3, mjp.transition_matrix(RATES * 1.5, STEP)
    model.means_, model.covars_ = MEANS[:, None] * 0.8, np.exp(2 * (np.log(SDS)[:, None] + 0.1))
    return model


def per_iteration(work) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) / ITERATIONS


def stacked(n_starts: int) -> Parameters:
    return jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * n_starts), start())


def contest(data: TimeSeries, laid: Laid, turns: int) -> dict[str, list[float]]:
    """Seconds per iteration, in turns; the first round of each warms up and does not count."""

    def ours(n_starts: int):
        starts, aligned = stacked(n_starts), laid.layout.aligned
        return lambda: run_em(MODEL, starts, laid.evidence, aligned, iterations=ITERATIONS, tolerance=0.0)

    work = {
        f"hmmlearn, {name}": lambda name=name: peer(name, ITERATIONS).fit(data.values) for name in ("log", "scaling")
    }
    work |= {"ours": ours(1), "ours, 5 starts at once": ours(5)}
    seconds = {name: [] for name in work}
    for turn in range(turns + 1):
        for name, run in work.items():
            taken = per_iteration(run)
            if turn:
                seconds[name].append(taken)
    return seconds


@in_double_precision
def main() -> int:
    bench = Benchmark("against_hmmlearn", __doc__)
    try:
        import hmmlearn.hmm  # noqa: F401
    except ImportError:
        sys.exit("against_hmmlearn: hmmlearn is not installed (pip install hmmlearn)")
    data = simulated(2000 if bench.quick else N)
    laid = make_evidence(data, MODEL.emission, 3, Scaling(np.zeros(1), np.ones(1)), Panel())
    packing = Packing(MODEL, start())
    own = objective(MODEL, packing, laid, packing.vector(start()))[2]
    theirs = {name: float(peer(name, 1).score(data.values)) for name in ("log", "scaling")}
    table("log-likelihood", ["", ""], [["ours", f"{own:.8f}"], *([k, f"{v:.8f}"] for k, v in theirs.items())])
    seconds = contest(data, laid, 1 if bench.quick else TURNS)
    middle = {name: float(np.median(taken)) for name, taken in seconds.items()}
    fastest = min(middle[name] for name in middle if name.startswith("hmmlearn"))
    rows = [[k, 1e3 * m, 1e3 * min(seconds[k]), 1e3 * max(seconds[k]), m / fastest] for k, m in middle.items()]
    table("ms per EM iteration", ["", "median", "least", "most", "times the faster hmmlearn"], rows)
    bench.results |= {"log_likelihood": {"ours": own, **theirs}, "seconds_per_iteration": seconds, "median": middle}
    off = max(abs(own / value - 1) for value in theirs.values())
    bench.require(f"same log-likelihood (to {off:.0e})", off < 1e-10)
    ratio = middle["ours"] / fastest
    bench.require(f"at most {LIMIT:g} times hmmlearn's time per EM iteration ({ratio:.2f} times)", ratio <= LIMIT)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
