"""The discrete flashing ratchet: Table 1 of the paper, and the table of its appendix with five runs per row.

Seifner & Sanchez 2023, https://proceedings.mlr.press/v202/seifner23a.html
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..errors import InputError
from ..estimators import ExactMJP, NeuralMJP
from ..fitted import FittedMJP
from ..mjp.interval import Z
from ..priors import ParametricRates
from ..priors.generator import GeneratorParameters
from ..systems import FlashingRatchet, paper_dataset
from ..timeseries import TimeSeries
from ..training.config import Preset
from ..training.networks import Evaluated
from ..training.run import Trained
from .runs import Told, chosen, columns_over_runs, held_out_terms, how_long, reported, several, size_of, train_there
from .tables import AS_PUBLISHED, EXACT, PUBLISHED, TILTED, Line, Number, Progress, Report, ResultTable, Row, noted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARAMETERS = ("V", "r", "b")
GRIDS = ("irregular", "shared", "regular")
MASKED = "masked posterior"
SYSTEM, N_STATES = "flashing-ratchet", 6
METHODS = (AS_PUBLISHED, TILTED, EXACT)
N_GIVEN = 50  # observations before a forecast
N_DRAWS = 1000  # of the generator prior, as in the paper
START = 0.5  # of every parameter: away from the truth, which is 1, so that what comes near it was learned


def published(**numbers: tuple[float, float]) -> Line:
    """Means and standard deviations as printed."""
    return Line(PUBLISHED, {name: Number(*pair, decimals=1 if name == "KL" else 2) for name, pair in numbers.items()})


TABLE_1 = {
    "irregular": published(V=(1.06, 0.02), r=(1.17, 0.01), b=(1.14, 0.02)),
    "shared": published(V=(0.97, 0.02), r=(1.17, 0.02), b=(1.17, 0.01)),
    "regular": published(V=(0.98, 0.05), r=(1.37, 0.04), b=(1.39, 0.04)),
}
APPENDIX = {
    "irregular": published(KL=(20.0, 1.1), NLL=(0.21, 0.01), V=(0.98, 0.05), r=(1.11, 0.06), b=(1.13, 0.04)),
    "shared": published(KL=(18.7, 0.5), NLL=(0.14, 0.01), V=(0.95, 0.03), r=(1.18, 0.04), b=(1.14, 0.06)),
    "regular": published(KL=(21.8, 0.7), NLL=(0.18, 0.02), V=(1.00, 0.05), r=(1.37, 0.05), b=(1.36, 0.05)),
    MASKED: published(KL=(17.1, 0.4), NLL=(0.22, 0.01), V=(0.99, 0.02), r=(1.18, 0.04), b=(1.16, 0.03)),
}


@dataclass(frozen=True)
class Size:
    """How much data and training; `paper` and `tilted` change the training configuration of the preset."""

    n_series: int
    n_test: int
    n_runs: int
    paper: dict[str, Any] = field(default_factory=dict)
    tilted: dict[str, Any] = field(default_factory=dict)


SIZES = {
    # As many test as training series, so that one compiled program evaluates both.
    "quick": Size(256, 256, 1, paper={"steps": 60, "round_steps": 60}, tilted={"steps": 200}),
    "paper": Size(70 * 64, 260, 5),
}


@dataclass(frozen=True)
class Found:
    """One method on one data set: a line for each of the two tables."""

    table_1: Line
    appendix: Line
    model: Any = None  # the best run, where the figure needs it


def run(
    preset: Preset,
    n_runs: int | None,
    seed: int,
    progress: Progress = lambda *_: None,
    only: Sequence[str] | None = None,
) -> Report:
    """Fit by all methods on all grids; runs of one row go side by side as restarts.

    Args:
        preset: "quick" or "paper".
        n_runs: per row; the preset's if None.
        seed: of the data and of the first run.
        only: rows to run, of the grids and "masked posterior", and methods; all if None.
    """
    began, size = time.perf_counter(), size_of(SIZES, preset)
    neural = partial(NeuralMJP, N_STATES, emission="categorical", prior=unknown_ratchet(), preset=preset, seed=seed)
    runs = size.n_runs if n_runs is None else n_runs
    first_rows, rows, figures = [], [], {}
    wanted, methods = chosen((*GRIDS, MASKED), METHODS, only)
    grids, masked = [row for row in wanted if row != MASKED], MASKED in wanted and AS_PUBLISHED in methods
    told = Told(progress, n_fits=len(grids) * len(methods) + masked)
    for grid in grids:
        data, test = data_of(grid, size, seed)
        ways = {
            AS_PUBLISHED: partial(by_paper, neural(posterior="paper", changes=size.paper, restarts=runs)),
            TILTED: partial(by_tilted, neural(changes=size.tilted, restarts=runs)),
            EXACT: partial(by_exact, seed),
        }
        found = {method: ways[method](data, test, told.next(f"{grid} grid, {method}")) for method in methods}
        if not figures and TILTED in found:
            figures["dfr-trajectory"] = partial(drawn, grid, seed, found[TILTED].model)
        first_rows.append(Row(f"{grid} grid", (TABLE_1[grid], *(one.table_1 for one in found.values()))))
        rows.append(Row(f"{grid} grid", (APPENDIX[grid], *(one.appendix for one in found.values()))))
    if masked:
        data, test = data_of("irregular", size, seed)
        estimator = neural(posterior="paper", changes={**size.paper, "masked": True}, restarts=runs)
        found = by_paper(estimator, data, test, told.next(f"{MASKED}, {AS_PUBLISHED}"))
        rows.append(Row(MASKED, (APPENDIX[MASKED], found.appendix)))
    tables = [
        ResultTable(
            "Table 1: parameters of the flashing ratchet (truth: 1, 1, 1)",
            PARAMETERS,
            tuple(first_rows),
            noted(
                methods,
                (AS_PUBLISHED, f"as implemented here, {how_long(size.paper)}"),
                f"± is the sd of {N_DRAWS} draws of the generator prior, which is no uncertainty (published, paper's), "
                "or a standard error (tilted, exact)",
            ),
        ),
        ResultTable(
            "Appendix: several runs, and the test set",
            ("KL", "NLL", *PARAMETERS),
            tuple(rows),
            noted(
                methods,
                f"{several(runs)} (published: 5)",
                "KL in nats per series, NLL per observation",
                (TILTED, "its posterior never makes a jump that the prior forbids, so it is masked in every row"),
            ),
        ),
    ]
    shown = tuple(one for one in tables if one.rows)  # the masked posterior is in the appendix alone
    return reported("dfr", preset, seed, runs, {**asdict(size), "start": START}, began, shown, figures)


@cache  # one object, so that what was compiled for it is found again
def unknown_ratchet() -> ParametricRates:
    """The ratchet's rates as a function of V, r and b."""
    return ParametricRates(lambda p: jnp.asarray(FlashingRatchet(**p).rates), dict.fromkeys(PARAMETERS, START))


def data_of(grid: Any, size: Size, seed: int) -> tuple[TimeSeries, TimeSeries]:
    """Training and test series of the paper's data set, as many as asked for."""
    whole = paper_dataset(SYSTEM, grid=grid, seed=seed)
    assert whole.test is not None
    return whole.train.data[: size.n_series], whole.test.data[: size.n_test]


def without_last(data: TimeSeries) -> TimeSeries:
    """Series as the paper's method sees them: the last observation, whose gap is not known, is left out."""
    return data.windows(int(data.lengths.max()) - 1, drop_tail=True)


def by_paper(estimator: NeuralMJP, data: TimeSeries, test: TimeSeries, progress: Progress) -> Found:
    """The published model and training; parameters are means over draws of the generator prior."""
    trained = train_there(estimator, data, progress)
    best = generated(trained, trained.best, estimator.seed)
    spread = _named([Number(float(x.mean()), float(x.std())) for x in best.T])
    return Found(
        Line(AS_PUBLISHED, spread, trained.seconds, trained.message),
        appendix_line(AS_PUBLISHED, trained, test, estimator.seed),
    )


def by_networks(name: str, estimator: NeuralMJP, data: TimeSeries, test: TimeSeries, progress: Progress) -> Line:
    """Any configuration of the neural engine, as a line of the appendix."""
    return appendix_line(name, train_there(estimator, data, progress), test, estimator.seed)


def appendix_line(name: str, trained: Trained, test: TimeSeries, seed: int) -> Line:
    """All runs, and how they do on test series without their last observation."""
    short = without_last(test)
    seen = trained.evaluate_each(test if trained.setup.config.drop_last else short)
    each = np.stack([constants_of(trained, k, seed) for k in range(len(trained.restarts))])
    return Line(name, {**on_test(seen, short), **_over_runs(each)}, trained.seconds, trained.message)


def constants_of(trained: Trained, k: int, seed: int) -> Float[np.ndarray, "parameter"]:
    """V, r and b of one run: means over draws, where a generator makes them."""
    prior = trained.all_networks[k].prior
    if isinstance(prior, GeneratorParameters):
        return generated(trained, k, seed).mean(0)
    return np.exp(np.asarray(prior.draw(None), np.float64))


def generated(trained: Trained, k: int, seed: int) -> Float[np.ndarray, "draw parameter"]:
    """V, r and b as the generator prior of one run draws them."""
    prior = trained.all_networks[k].prior
    if not isinstance(prior, GeneratorParameters):
        raise InputError("the paper's tables need the generator prior")
    with jax.enable_x64(trained.setup.config.precision == "double"):
        return np.exp(np.asarray(prior.sample(N_DRAWS, jax.random.key(seed)), np.float64))


def by_tilted(estimator: NeuralMJP, data: TimeSeries, test: TimeSeries, progress: Progress) -> Found:
    """The library's default posterior; standard errors of the best run."""
    trained = train_there(estimator, data, progress)
    fitted = estimator.fitted(data, trained)
    return Found(
        Line(TILTED, _named(with_errors(fitted)), trained.seconds, trained.message),
        appendix_line(TILTED, trained, test, estimator.seed),
        fitted,
    )


def by_exact(seed: int, data: TimeSeries, test: TimeSeries, progress: Progress) -> Found:
    """Maximum likelihood: no engine can do better. States are seen, so NLL is 0 and KL is all of -log p."""
    fitted = ExactMJP(N_STATES, emission="categorical", prior=unknown_ratchet(), seed=seed).fit(data, progress)
    found = with_errors(fitted)
    short, how = without_last(test), (fitted.seconds, fitted.message)
    limit = {"KL": Number(-fitted.score(short) / len(short), None, 1), "NLL": Number(0.0, None, 2)}
    return Found(
        Line(EXACT, _named(found), *how),
        Line(EXACT, {**limit, **_named([Number(one.mean, None, 2) for one in found])}, *how),
    )


def with_errors(fitted: FittedMJP) -> list[Number]:
    """V, r and b with standard errors, from intervals that are symmetric in the logarithms."""
    interval = fitted.intervals["parameters"]
    errors = interval.mean * np.log(interval.upper / interval.lower) / (2 * Z)
    return [Number(float(mean), float(error)) for mean, error in zip(interval.mean, errors, strict=True)]


def on_test(runs: list[Evaluated], test: TimeSeries) -> dict[str, Number]:
    """Path divergence per series and reconstruction loss per observation."""
    kl, nll = held_out_terms([one.terms for one in runs], test.n_observations)
    return {"KL": Number.over(kl, 1), "NLL": Number.over(nll, 2)}


def _over_runs(each: Float[np.ndarray, "run parameter"]) -> dict[str, Number]:
    return columns_over_runs(PARAMETERS, each, (2,) * len(PARAMETERS))


def _named(numbers: list[Number]) -> dict[str, Number]:
    return dict(zip(PARAMETERS, numbers, strict=True))


def drawn(grid: Any, seed: int, fitted: FittedMJP) -> "Figure":
    """The paper's figure: a true trajectory, the most likely path through its first half, and the forecast (grey)."""
    from matplotlib.figure import Figure

    from ..plots.palette import FUTURE, TRUTH, state_colour

    longer = paper_dataset(SYSTEM, grid=grid, seed=seed).prediction
    assert longer is not None
    whole = longer.data[:1]
    times, states = whole.times, whole.values[:, 0]
    given = whole.between(0.0, float(times[N_GIVEN - 1]))
    law = fitted.predict(given, times[N_GIVEN:], samples=1).probabilities
    figure = Figure(figsize=(9, 4), layout="constrained")
    ax = figure.subplots()
    ax.axvspan(float(times[N_GIVEN - 1]), float(times[-1]), color=FUTURE, zorder=0)
    later, label = np.meshgrid(times[N_GIVEN:], np.arange(fitted.n_states), indexing="ij")
    ax.scatter(later, label, s=80 * law, color=state_colour(0), label="forecast: area is probability")
    decoded = fitted.decode(given)
    ax.step(given.times, decoded.states, where="post", color=state_colour(1), label="most likely path")
    ax.plot(times, states, ".", color=TRUTH, markersize=4, label="true state when observed")
    ax.set_xlabel(f"time ({whole.time_unit})")
    ax.set_ylabel("state")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure
