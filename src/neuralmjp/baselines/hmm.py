"""The plain hidden Markov model in discrete time with Gaussian emissions, through `hmmlearn` (extra `compare`)."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.vq import kmeans2

from ..errors import InputError
from ..mjp import stationary_distribution
from ..timeseries import TimeSeries
from .chain import MarkovChain, make_chain
from .features import Features

UNEVEN = 1e-3  # by which share gaps may differ
STAYS = 0.9  # probability to stay, where EM begins
NARROWEST, WIDEST = 0.4, 1.4  # standard deviations of states around one centre, where EM begins
FIRST_STEPS = 10  # of EM, before a start is chosen
ENOUGH = 1e-5  # gain of log-likelihood per observation at which EM ends


@dataclass(frozen=True)
class GaussianHMM:
    """Gaussian states on a regular time grid, fitted by EM; rates by the matrix logarithm.

    With `every` above 1 the model steps that many observations at a time: each series is dealt out to as many thinned
    ones. That helps where emissions do not fit: at short times what they miss is taken for jumps. The score is the
    log-likelihood per observation (of sines and cosines, for angles).

    Args:
        n_states: K.
        every: observations per step of the model.
        angles: values are angles in radians; the emission is Gaussian in their sines and cosines.
        covariance: "full" or "diag".
        starts: of EM, the likeliest goes on after a few steps: k-means, states that differ in width alone, random ones.
        steps: of EM, at most.
        seed: of the starts.
    """

    n_states: int
    every: int = 1
    angles: bool = False
    covariance: Literal["full", "diag"] = "full"
    starts: int = 4
    steps: int = 200
    seed: int = 0

    def fit(self, data: TimeSeries) -> MarkovChain:
        """EM from several starts."""
        try:
            from hmmlearn.hmm import GaussianHMM as Estimator
        except ImportError:
            raise InputError("discrete-time models need hmmlearn: pip install 'neuralmjp[compare]'") from None
        gap, features, hands = regular_gap(data), Features.of(data, self.angles), dealt(data, self.every)
        rows = features(data)[hands.rows]
        rng = np.random.default_rng(self.seed)
        models: list[Any] = [
            Estimator(self.n_states, self.covariance, n_iter=FIRST_STEPS, tol=ENOUGH * len(rows), init_params="")
            for _ in range(self.starts)
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of states that a poor start leaves empty
            for number, model in enumerate(models):
                self._begin(model, rows, number, rng)
                model.fit(rows, hands.lengths)
            best = max(models, key=lambda model: model.monitor_.history[-1])
            best.n_iter = self.steps
            best.fit(rows, hands.lengths)
        if len(data) == 1:  # where a single series began says nothing of others
            jumps = np.asarray(best.transmat_) * (1 - np.eye(self.n_states))
            best.startprob_ = np.asarray(stationary_distribution(jumps))

        def prepared(some: TimeSeries) -> tuple[Float[np.ndarray, "row feature"], Hands]:
            if abs(regular_gap(some) - gap) > UNEVEN * gap:
                raise InputError(f"the model was fitted to gaps of {gap:g}, these data have {regular_gap(some):g}")
            hands = dealt(some, self.every)
            return features(some)[hands.rows], hands

        def memberships(some: TimeSeries) -> Float[np.ndarray, "row state"]:
            rows, hands = prepared(some)
            found = np.empty((len(rows), self.n_states))
            found[hands.rows] = best.predict_proba(rows, hands.lengths)
            return found

        def scored(some: TimeSeries) -> float:
            rows, hands = prepared(some)
            return float(best.score(rows, hands.lengths) / len(rows) - np.log(features.scale).sum())

        matrix = np.asarray(best.transmat_)
        return make_chain("HMM", matrix, self.every * gap, data, memberships, scored, "log-likelihood per observation")

    def _begin(self, model: Any, rows: Float[np.ndarray, "row feature"], number: int, rng: np.random.Generator) -> None:
        """Where EM starts: the first time from k-means, then from widths, then anywhere."""
        k, whole = self.n_states, np.cov(rows.T).reshape(rows.shape[1], -1)
        means, widths = rows[rng.choice(len(rows), k, replace=False)], np.full(k, 0.5)
        if number == 0:
            means = kmeans2(rows, k, minit="++", rng=rng, iter=50)[0]
        elif number == 1:
            means, widths = np.tile(rows.mean(0), (k, 1)), np.geomspace(NARROWEST, WIDEST, k)
        covariances = widths[:, None, None] ** 2 * whole
        model.means_ = means
        model.covars_ = covariances if self.covariance == "full" else np.diagonal(covariances, axis1=1, axis2=2)
        model.startprob_ = np.full(k, 1 / k)
        model.transmat_ = np.full((k, k), (1 - STAYS) / max(k - 1, 1)) * (1 - np.eye(k)) + STAYS * np.eye(k)


class Hands(NamedTuple):
    """Rows of the data, dealt out to thinned series that follow each other."""

    rows: Int[np.ndarray, "row"]
    lengths: Int[np.ndarray, "thinned"]


def dealt(data: TimeSeries, every: int) -> Hands:
    """Each series as `every` thinned ones, no observation left out.

    >>> dealt(TimeSeries.from_arrays(np.arange(5.0), np.arange(5.0)), 2)
    Hands(rows=array([0, 2, 4, 1, 3]), lengths=array([3, 2]))
    """
    if every < 1:
        raise InputError(f"a model steps at least 1 observation at a time, got every={every}")
    ends = zip(data.offsets[:-1].tolist(), data.offsets[1:].tolist(), strict=True)
    parts = [np.arange(start, end, every) for begin, end in ends for start in range(begin, min(begin + every, end))]
    return Hands(np.concatenate(parts), np.array([len(part) for part in parts]))


def regular_gap(data: TimeSeries) -> float:
    """The time between neighbouring observations, which must all be the same."""
    gaps = data.gaps
    if np.ptp(gaps) > UNEVEN * gaps.min():
        raise InputError(
            f"a hidden Markov model in discrete time needs equal gaps, these run from {gaps.min():g} to {gaps.max():g} "
            f"{data.time_unit}: use ExactMJP"
        )
    return float(gaps.mean())
