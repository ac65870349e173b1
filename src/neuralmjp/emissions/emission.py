"""What every emission offers: the density of an observation in each state, and how to learn it."""

from abc import abstractmethod
from typing import Any, Literal, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int

Params = dict[str, Any]  # arrays by name; the first axis counts states, except for names that begin with "shared"
Kind = Literal["real", "positive", "probability"]


class Observations(NamedTuple):
    """Observations with any leading axes; values are 0 where they are missing."""

    values: Float[Array, "*lead feature"]
    mask: Bool[Array, "*lead feature"] | None  # None when nothing is missing
    previous: Float[Array, "*lead feature"]  # the observation before, of the same series
    has_previous: Bool[Array, "*lead feature"]
    gap: Float[Array, "*lead"]
    time: Float[Array, "*lead"] | None = None  # in the data's unit; only for emissions that ask for it


class Natural(NamedTuple):
    """One parameter as people know it."""

    value: Float[Array, "..."] | Float[np.ndarray, "..."]
    kind: Kind  # how an interval for it is made: on the plain, the log or the logit scale


class Emission(eqx.Module):
    """p(x | z). The object holds choices; what is learned travels in `params`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """As the command line calls it."""

    @property
    @abstractmethod
    def real_valued(self) -> bool:
        """Values are real numbers that may be shifted and scaled before a fit."""

    def signals(self, n_columns: int) -> Bool[np.ndarray, "column"]:
        """Which columns have a density; the others say how these were measured."""
        return np.ones(n_columns, dtype=bool)

    def counted(self, seen: Bool[np.ndarray, "row column"]) -> Bool[np.ndarray, "row column"]:
        """Which of the values that were seen add to the log density."""
        return seen & self.signals(seen.shape[1])

    def scaled(
        self, shift: Float[np.ndarray, "column"], scale: Float[np.ndarray, "column"]
    ) -> tuple[Float[np.ndarray, "column"], Float[np.ndarray, "column"]]:
        """How columns are standardised, given mean and spread of each."""
        return shift, scale

    @property
    def hidden_level(self) -> bool:
        """Between state and observation lies a level that takes time to follow; for the exact engine alone."""
        return False

    @property
    def timed(self) -> bool:
        """The density depends on the time itself, not on gaps alone."""
        return False

    @property
    def by_em_alone(self) -> bool:
        """EM finds all that is learned here, on all the data; climb and intervals take it as given."""
        return False

    @abstractmethod
    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        """Starting parameters from the data: a sensible one, or a random variation of it when `rng` is given."""

    @abstractmethod
    def log_prob(
        self, params: Params, seen: Observations
    ) -> Float[Array, "*lead state"] | Float[np.ndarray, "*lead state"]:
        """Log density of each observation in each state; missing components count nothing."""

    @abstractmethod
    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        """Parameters that maximise the weighted log density (the M step), or None where there is no closed form."""

    @abstractmethod
    def learned(self, params: Params) -> Params:
        """Which entries of the parameters are free: arrays of bool."""

    @abstractmethod
    def natural(self, params: Params) -> dict[str, Natural]:
        """The parameters as people know them; traceable."""

    @abstractmethod
    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        """Parameters for shift + scale * x, given those for x."""

    @abstractmethod
    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        """Observations of one series, given its states and the gap before each."""

    def continued(
        self,
        params: Params,
        before: Float[np.ndarray, "feature"],
        states: Int[np.ndarray, "sample time"],
        gaps: Float[np.ndarray, "time"],
        rng: np.random.Generator,
    ) -> Float[np.ndarray, "sample time feature"]:
        """Observations that follow a value, which an emission without memory has forgotten."""
        every = np.broadcast_to(gaps, states.shape).ravel()
        return self.sample(params, states.ravel(), every, rng).reshape(*states.shape, -1)

    def offset(self, params: Params, time: Any) -> Any:
        """What is added to an observation of any state at a time, beside what `sample` draws."""
        return 0.0

    @abstractmethod
    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        """A number per state that orders states for people, or None where there is none."""

    def order(self, params: Params, exits: Float[np.ndarray, "state"]) -> Int[np.ndarray, "state"] | None:
        """States as people want to see them: the new k-th is the old order[k]; None if nothing here tells.

        Args:
            exits: rate at which each state is left.
        """
        places = self.locations(params)
        return None if places is None else np.argsort(places, kind="stable")


def reordered(params: Params, order: Int[np.ndarray, "state"]) -> Params:
    """The same emission with states renumbered: new state k is old state order[k]."""
    return {name: value if name.startswith("shared") else np.asarray(value)[order] for name, value in params.items()}


def everything(params: Params) -> Params:
    """Every entry is learned."""
    return {name: np.ones(np.shape(value), dtype=bool) for name, value in params.items()}


def per_state(seen: Observations) -> tuple[Array, Array | float]:
    """Values and weights with an axis for states before the features: (..., 1, D)."""
    return seen.values[..., None, :], 1.0 if seen.mask is None else seen.mask[..., None, :]


def starting_centres(
    values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None
) -> Float[np.ndarray, "state feature"]:
    """Where states might lie: evenly spaced levels for one signal, k-means for several; random rows if `rng` is given.

    Evenly spaced levels between robust extremes find rare levels that k-means gives away.
    """
    complete = values[~np.isnan(values).any(-1)]
    if len(complete) < n_states:
        complete = np.where(np.isnan(values), np.nanmean(values, axis=0), values)
    if rng is not None:
        return _spread_out(complete, n_states, rng)
    if values.shape[1] == 1:
        if n_states == 1:
            return np.median(complete, axis=0)[None]
        low, high = np.quantile(complete[:, 0], [0.005, 0.995])
        return np.linspace(low, high, n_states)[:, None]
    return _k_means(complete, _spread_out(complete, n_states, np.random.default_rng(0)))


def _spread_out(rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows far from each other (k-means++ seeding), on at most 10,000 of them."""
    rows = rows[rng.permutation(len(rows))[:10_000]]
    scale = np.maximum(rows.std(0), np.finfo(float).tiny)
    chosen = [rows[0]]
    for _ in range(n - 1):
        distance = np.min([(((rows - c) / scale) ** 2).sum(-1) for c in chosen], axis=0)
        total = distance.sum()
        chosen.append(rows[rng.choice(len(rows), p=distance / total if total > 0 else None)])
    return np.array(chosen)


def _k_means(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    from scipy.cluster.vq import kmeans2

    scale = np.maximum(rows.std(0), np.finfo(float).tiny)
    found, _ = kmeans2(rows[:100_000] / scale, centres / scale, minit="matrix", missing="warn")
    return found * scale
