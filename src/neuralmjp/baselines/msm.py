"""Markov state models: many small cells, transitions counted between them, and the groups of cells that last.

Through `deeptime` (extra `compare`): Hoffmann et al. 2022, https://doi.org/10.1088/2632-2153/ac3de0
Prinz et al. 2011, https://doi.org/10.1063/1.3565032; PCCA+: Roeblitz & Weber 2013; intervals: Trendelkamp-Schroer et
al. 2015, https://doi.org/10.1063/1.4934536
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from .. import mjp
from ..errors import InputError
from ..timeseries import TimeSeries
from .chain import Intervals, MarkovChain, decay_times, make_chain
from .features import Features
from .lagged import Pairs, chosen_lag, lagged_pairs, vamp2

MOST_ROWS = 50_000  # for k-means
KEPT_TIMESCALES = 10


@dataclass(frozen=True)
class MarkovStateModel:
    """Reversible maximum-likelihood Markov state model with PCCA+ on top.

    Args:
        n_states: K, metastable sets.
        lag: in the data's time unit; by default 20 median gaps (20 ps where frames are saved every picosecond), at
            most a tenth of a typical series. Take the shortest beyond which `timescales` no longer grow.
        cells: k-means clusters.
        sets_lag: lag of the model in which PCCA+ looks for sets; by default a tenth of the lag, and at least one gap.
            After a long lag only the slowest sets can be told from noise; the faster ones are seen at a short one.
        grid: cells per value of a regular grid, used instead of k-means.
        angles: values are angles in radians.
        samples: of the Bayesian model, for intervals; 0 for none.
        seed: of k-means and of the samples.
    """

    n_states: int
    lag: float | None = None
    cells: int = 150
    grid: int | None = None
    sets_lag: float | None = None
    angles: bool = False
    samples: int = 100
    seed: int = 0

    def fit(self, data: TimeSeries) -> MarkovChain:
        """Cells, counts, transition matrix, metastable sets, intervals."""
        try:
            from deeptime.markov.msm import MaximumLikelihoodMSM
        except ImportError:
            raise InputError("Markov state models need deeptime: pip install 'neuralmjp[compare]'") from None
        features = Features.of(data, self.angles)
        rows = features(data)
        pairs = lagged_pairs(data, chosen_lag(data, self.lag))
        closer = lagged_pairs(data, self.sets_lag or max(pairs.lag / 10, float(np.median(data.gaps))))
        centres, counts, close_counts = connected(self._centres(features, data, rows), rows, pairs, closer)
        if len(centres) < self.n_states:
            raise InputError(
                f"{self.n_states} states need as many cells that lead to each other, there are {len(centres)}: "
                "shorten the lag"
            )
        estimator: Any = MaximumLikelihoodMSM(reversible=True)
        sets = np.asarray(estimator.fit_from_counts(close_counts).fetch_model().pcca(self.n_states).memberships)
        fine = estimator.fit_from_counts(counts).fetch_model()
        weighted = sets.T * fine.stationary_distribution
        coarse = np.linalg.solve(weighted @ sets, weighted @ fine.transition_matrix @ sets)
        law = weighted.sum(1)

        def memberships(some: TimeSeries) -> Float[np.ndarray, "row state"]:
            return sets[nearest(centres, features(some))]

        def scored(some: TimeSeries) -> float:
            return vamp2(memberships(some), lagged_pairs(some, pairs.lag))

        scales = reversible_timescales(fine.transition_matrix, fine.stationary_distribution, pairs.lag)
        chain = make_chain(
            "MSM", coarse, pairs.lag, data, memberships, scored, "VAMP-2", law=law, timescales=scales[:KEPT_TIMESCALES]
        )
        if not self.samples:
            return chain
        # Pairs that overlap in time are not independent: as many count as would fit end to end.
        independent = counts * min(float(np.median(data.gaps)) / pairs.lag, 1.0)
        return replace(chain, intervals=self._intervals(independent, sets[:, np.argsort(-law, kind="stable")], chain))

    def _centres(
        self, features: Features, data: TimeSeries, rows: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "cell feature"]:
        from deeptime.clustering import KMeans

        if self.grid is not None:
            return features.of_values(occupied(data.values, self.grid, self.angles))
        some = rows[:: math.ceil(len(rows) / MOST_ROWS)]
        n = min(self.cells, len(np.unique(some, axis=0)))
        options: dict[str, Any] = {"fixed_seed": self.seed, "n_jobs": 1, "max_iter": 100, "tolerance": 1e-4}
        found: Any = KMeans(n, **options).fit(some).fetch_model()
        return np.asarray(found.cluster_centers, dtype=float)

    def _intervals(
        self, counts: Float[np.ndarray, "cell cell"], sets: Float[np.ndarray, "cell state"], chain: MarkovChain
    ) -> Intervals:
        from deeptime.markov.tools.estimation.dense.tmat_sampling.sampler_rev import SamplerRev

        # The sampler beneath `BayesianMSM`, which itself takes no seed.
        sampler = SamplerRev(counts, seed=self.seed)
        laws, scales = [], []
        for _ in range(self.samples):
            transitions, law = sampler.sample(N=math.ceil(math.sqrt(len(counts))), return_statdist=True)
            laws.append(law @ sets)
            scales.append(reversible_timescales(transitions, law, chain.lag)[:KEPT_TIMESCALES])

        def interval(mean: np.ndarray, samples: list[np.ndarray]) -> mjp.Interval:
            tail = (1 - mjp.Interval(0, 0, 0).level) / 2
            return mjp.Interval(mean, *np.quantile(samples, [tail, 1 - tail], axis=0))

        return Intervals(interval(chain.stationary_distribution, laws), interval(chain.timescales, scales))


def connected(
    centres: Float[np.ndarray, "cell feature"], rows: Float[np.ndarray, "row feature"], *lags: Pairs
) -> tuple[Float[np.ndarray, "kept feature"], *tuple[Float[np.ndarray, "kept kept"], ...]]:
    """Cells that can all be reached from each other, and counts after every lag; rows go to the nearest of these."""
    from deeptime.markov.tools.estimation import largest_connected_set

    while True:
        cells = nearest(centres, rows)
        counts = [np.zeros((len(centres), len(centres))) for _ in lags]
        for table, pairs in zip(counts, lags, strict=True):
            np.add.at(table, (cells[pairs.first], cells[pairs.second]), 1.0)
        smallest = min((np.sort(largest_connected_set(table, directed=True)) for table in counts), key=len)
        if len(smallest) == len(centres):
            return centres, *counts
        centres = centres[smallest]


def nearest(
    centres: Float[np.ndarray, "cell feature"], rows: Float[np.ndarray, "row feature"]
) -> Int[np.ndarray, "row"]:
    """The cell of every row."""
    return np.asarray(KDTree(centres).query(rows)[1])


def occupied(values: Float[np.ndarray, "row value"], per_value: int, angles: bool) -> Float[np.ndarray, "cell value"]:
    """Centres of the cells of a regular grid that hold data."""
    low = np.full(values.shape[1], -np.pi) if angles else values.min(0)
    width = (np.full_like(low, 2 * np.pi) if angles else np.ptp(values, axis=0)) / per_value
    cells = np.floor(((values - low) % (2 * np.pi) if angles else values - low) / width)
    return low + (np.unique(np.minimum(cells, per_value - 1), axis=0) + 0.5) * width


def reversible_timescales(
    transitions: Float[np.ndarray, "cell cell"], law: Float[np.ndarray, "cell"], lag: float
) -> Float[np.ndarray, "scale"]:
    """-lag / log of the size of the eigenvalue, longest first, of a matrix in detailed balance."""
    root = np.sqrt(law)
    balanced = root[:, None] * transitions / root
    return decay_times(np.linalg.eigvalsh((balanced + balanced.T) / 2), lag)
