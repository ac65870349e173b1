"""Brownian folding: the paper's stationary law and rates, and what cures the bias of its Gaussian emission.

Seifner & Sanchez 2023, https://proceedings.mlr.press/v202/seifner23a.html
Mardt, Pasquali, Wu & Noe 2018, https://doi.org/10.1038/s41467-017-02388-1
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from ..baselines.chain import MarkovChain
from ..emissions import GaussianMixture
from ..estimators import ExactMJP, NeuralMJP
from ..fitted import FittedMJP
from ..preprocess import thinned
from ..systems import BrownianFolding
from ..training.config import Preset
from .classical import MSM, VAMPNETS, by_chains, estimate, installed
from .published_training import EMISSION, trained_as_published
from .runs import Told, chosen_rows, how_long, reported, several, size_of
from .state_methods import Runs, by_networks, lost, over_data
from .tables import AS_PUBLISHED, EXACT, PUBLISHED, TILTED, Line, Number, Progress, Report, ResultTable, Row, noted

LAW, RATES = ("folded", "unfolded"), ("unfolding", "folding")
COLUMNS = (*LAW, *RATES)
DECIMALS = (3, 3, 4, 4)
MARDT, PLAIN = "Mardt 2018", "exact (Gaussian)"
METHODS = (AS_PUBLISHED, TILTED, PLAIN, EXACT, MSM, VAMPNETS)
LAG_WORDS = "lag a tenth of a series"  # their default here
THIN = 5  # steps between observations that are kept: closer ones see how the chain recrosses the barrier


@dataclass(frozen=True)
class Size:
    """How much data and training."""

    n_data: int
    n_series: int
    paper: dict[str, Any] = field(default_factory=dict)
    tilted: dict[str, Any] = field(default_factory=dict)


SIZES = {
    "quick": Size(1, 300, paper={"steps": 60, "round_steps": 60}, tilted={"steps": 300}),
    "paper": Size(5, 1000),
}
AS_PRINTED = (
    Line(MARDT, {"folded": Number(0.73, None, 2), "unfolded": Number(0.27, None, 2)}),
    Line(
        PUBLISHED,
        {
            "folded": Number(0.74, 0.02, 2),
            "unfolded": Number(0.26, 0.02, 2),
            "unfolding": Number(0.028, 0.007, 3),
            "folding": Number(0.085, 0.011, 3),
        },
    ),
)


def told_of(fitted: FittedMJP | MarkovChain) -> list[float]:
    """Stationary law and rates, the folded state first: it is visited more."""
    law = estimate(fitted.stationary_distribution)
    folded = int(law.argmax())
    out, back = fitted.rates[folded, 1 - folded], fitted.rates[1 - folded, folded]
    return [float(law[folded]), float(law[1 - folded]), float(out), float(back)]


def run(
    preset: Preset,
    n_runs: int | None,
    seed: int,
    progress: Progress = lambda *_: None,
    only: Sequence[str] | None = None,
) -> Report:
    """Fit by all methods to several simulated data sets; by the paper's, as often to the first, as published.

    Args:
        preset: "quick" or "paper".
        n_runs: simulated data sets, and runs of the paper's method; the preset's if None.
        seed: of the first data set.
        only: methods to run; all if None.
    """
    began, size = time.perf_counter(), size_of(SIZES, preset)
    runs = size.n_data if n_runs is None else n_runs
    methods = installed(chosen_rows(METHODS, only), only)
    at_once = (AS_PUBLISHED, MSM, VAMPNETS)
    told = Told(progress, n_fits=sum(1 if method in at_once else runs for method in methods))
    whole = [BrownianFolding().simulate(size.n_series, seed=seed + k).data for k in range(runs)]
    apart = [thinned(data, THIN) for data in whole]
    mixed = GaussianMixture()
    neural = partial(NeuralMJP, 2, preset=preset, seed=seed, intervals=False)
    exact = partial(ExactMJP, 2, initial="stationary", seed=seed, intervals=False)
    paper = trained_as_published("brownian-folding", size.paper)
    published = neural(emission=EMISSION, posterior="paper", changes=paper, restarts=runs)
    chosen = {
        TILTED: (neural(emission=mixed, initial="stationary", changes=size.tilted), apart),
        PLAIN: (exact(emission="gaussian"), whole),
        EXACT: (exact(emission=mixed), apart),
    }
    found: dict[str, Runs] = {}
    for method in methods:
        if method == AS_PUBLISHED:
            found[method] = by_networks(published, whole[0], told.next(method))
            continue
        if method in (MSM, VAMPNETS):
            found[method] = by_chains(method, 2, whole, range(seed, seed + runs), told.next(method))
            continue
        estimator, data = chosen[method]
        found[method] = over_data(estimator, data, lambda k, method=method: told.next(f"{method}, {k + 1} of {runs}"))
    answers = BrownianFolding().answers()
    law, rates = answers["stationary_distribution"], answers["rates"]
    truth = [*law, rates[0, 1], rates[1, 0]]
    known = Line(
        "truth", {name: Number(float(x), None, d) for name, x, d in zip(COLUMNS, truth, DECIMALS, strict=True)}
    )
    apart_words = (
        f"a mixture of two Gaussians per state, and every {THIN}th step alone, because neighbouring steps recross the "
        "barrier and no emission hides that"
    )
    lines = [each.line(method, COLUMNS, told_of, DECIMALS) for method, each in found.items()]
    shown = ResultTable(
        "Brownian folding: stationary law, and rates per time unit",
        COLUMNS,
        (Row(f"{size.n_series} series of 100 steps", (known, *AS_PRINTED, *lines)),),
        noted(
            methods,
            f"mean ± sd over {runs} simulated data sets (published: 5 runs on one)",
            (AS_PUBLISHED, f"{several(runs)} on the first of them, {how_long(paper)}, a Gaussian per state"),
            (TILTED, apart_words),
            (PLAIN, "a Gaussian per state, every step"),
            (EXACT, apart_words),
            (MSM, f"150 cells by k-means, {LAG_WORDS}"),
            (VAMPNETS, LAG_WORDS),
            lost(found),
        ),
    )
    return reported("brownian-folding", preset, seed, runs, asdict(size), began, (shown,), {})
