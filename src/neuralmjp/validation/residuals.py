"""One-step-ahead residuals: where each observation falls in the law that the ones before it led to expect."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float
from scipy.stats import kstest, norm

from ..arguments import require_seed
from ..emissions.emission import Emission, Params
from ..emissions.wrapped import Wrapped
from ..exact.forecast import draw
from ..fitted import FittedMJP
from ..mjp.precision import in_double_precision
from ..timeseries import TimeSeries
from .verdict import Verdict, require_hidden_states

MOST = 10_000  # observations looked at
DRAWS = 200
CORRELATED = 4.0  # standard errors between neighbours
REJECTED = 0.001  # thousands of observations see what does not matter; this asks for a little more


@dataclass(frozen=True)
class Residuals:
    """Probability integral transforms, one column per value: uniform and independent if the model is right."""

    ranks: Float[np.ndarray, "row value"]  # NaN where nothing was observed
    distance: Float[np.ndarray, "value"]  # Kolmogorov-Smirnov: largest difference to the uniform law
    p_values: Float[np.ndarray, "value"]  # of that distance
    correlation: Float[np.ndarray, "value"]  # between neighbours, as normal scores
    correlation_errors: Float[np.ndarray, "value"]  # in standard errors
    value_names: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        k = int(np.argmin(self.p_values))
        c = int(np.argmax(np.abs(self.correlation_errors)))
        uniform, free = bool(self.p_values[k] >= REJECTED), bool(abs(self.correlation_errors[c]) < CORRELATED)
        law = "have the right law" if uniform else "do not have the right law"
        told = [
            f"one-step-ahead forecasts of {self.value_names[k]} {law} "
            f"(KS distance {self.distance[k]:.3f}, p = {self.p_values[k]:.2g})"
        ]
        if not free:
            told.append(
                f"residuals of {self.value_names[c]} are correlated by {self.correlation[c]:.2f}: "
                "the noise has a memory, or a state is missing"
            )
        return Verdict("residuals", uniform and free, "; ".join(told))


@in_double_precision
def residuals(fitted: FittedMJP, data: TimeSeries, *, seed: int = 0) -> Residuals:
    """The rank of every observation among draws from its law given the past.

    Draws of the filtered state one step ahead, and of what it shows: an observation and its draws are exchangeable if
    the model is right, so that its randomised rank is uniform for any emission, also of counts. Of long recordings the
    first ten thousand observations are taken.
    """
    require_hidden_states(fitted, "residuals")
    require_seed(seed)
    rng = np.random.default_rng(seed)
    laws = fitted.one_step_ahead(data).states
    params = jax.tree.map(np.asarray, fitted.parameters.emission)
    first = np.zeros(data.n_observations, dtype=bool)
    first[data.offsets[:-1]] = True
    # The first state of a series may be given, not foreseen; and nothing is before it.
    rows = np.flatnonzero(~first)[:MOST]
    states = np.stack([draw(laws[rows], rng) for _ in range(DRAWS)])
    gaps = data.times[rows] - data.times[rows - 1]
    drawn = _shown(fitted.emission, params, data, rows, states, gaps, rng)
    seen = data.values[rows]
    below, equal = (drawn < seen).sum(0), (drawn == seen).sum(0)
    ranks = (below + rng.random(seen.shape) * (equal + 1)) / (DRAWS + 1)
    ranks = np.where(np.isnan(seen), np.nan, ranks)
    tests = [kstest(column[~np.isnan(column)], "uniform") for column in ranks.T]
    scores = norm.ppf(np.clip(ranks, 1e-6, 1 - 1e-6))
    following = np.flatnonzero(np.diff(rows) == 1)
    products = scores[following] * scores[following + 1]
    known = (~np.isnan(products)).sum(0)
    correlation = np.nansum(products, axis=0) / np.maximum(known, 1)
    return Residuals(
        ranks,
        np.array([float(test.statistic) for test in tests]),
        np.array([float(test.pvalue) for test in tests]),
        correlation,
        correlation * np.sqrt(known),
        data.value_names,
    )


def _shown(
    emission: Emission,
    params: Params,
    data: TimeSeries,
    rows: np.ndarray,
    states: np.ndarray,
    gaps: np.ndarray,
    rng: np.random.Generator,
) -> Float[np.ndarray, "draw row value"]:
    """What the drawn states show, each after the observation before it."""
    offset = np.asarray(emission.offset(params, data.times[rows]))
    if _forgets(emission):
        return emission.continued(params, data.values[0], states, gaps, rng) + offset
    values = np.empty((*states.shape, data.n_features))
    for k, row in enumerate(rows):
        before = data.values[row - 1] - np.asarray(emission.offset(params, data.times[row - 1]))
        values[:, k] = emission.continued(params, before, states[:, [k]], gaps[[k]], rng)[:, 0]
    return values + offset


def _forgets(emission: Emission) -> bool:
    """What is observed does not depend on the observation before."""
    while isinstance(emission, Wrapped):
        emission = emission.base
    return type(emission).continued is Emission.continued
