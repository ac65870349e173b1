"""A start that looks at time: states that last, from a fine Markov model of the kernels of a dictionary.

Every observation belongs to the kernel nearest to it. How often one kernel follows another after a short lag gives a
reversible transition matrix, and PCCA+ finds in its slow eigenvectors the groups of kernels that hold together.

References: Deuflhard & Weber 2005 (PCCA+); Weber & Galliat 2002 (the inner simplex).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..emissions.dictionary import ROWS_AT_ONCE, Dictionary
from ..emissions.emission import Params
from ..timeseries import TimeSeries

LAG = 2  # median gaps over which kernels are seen to follow each other; longer ones hide the faster states
LAG_PER_SERIES = 0.1  # at most this share of a typical series
NEAR_LAG = 0.25  # where gaps are uneven, a pair may miss the lag by this share of it
FEWEST_VISITS = 10  # a kernel that begins fewer pairs follows the nearest one that begins more
LEAVES = 0.01  # pseudo-jumps from every kernel to anywhere, so that none is cut off
LEAST_MEMBERSHIP = 1e-3  # of a kernel in any state: EM could hardly bring back what starts at zero
FASTEST = 1e-3  # eigenvalues below count as this: they have no rate
LEAST_RATE = 1e-4  # of the mean rate: what PCCA+ makes zero or negative
RANDOM_FACTOR = 0.7  # standard deviation of the logarithms by which a random start varies memberships


class Start(NamedTuple):
    """Weights of the emission and rates to start from."""

    params: Params
    rates: Float[np.ndarray, "state state"]


def metastable_start(
    data: TimeSeries,
    emission: Dictionary,
    params: Params,
    values: Float[np.ndarray, "row feature"],
    allowed: np.ndarray,
    rng: np.random.Generator | None,
) -> Start:
    """States that last, as weights of kernels that are placed already, with the rates between them.

    Args:
        params: of the emission; its kernels are kept.
        values: of the data, as the emission reads them.
        allowed: (K, K), which jumps may happen.
        rng: varies memberships at random.
    """
    n_states, n_kernels = len(allowed), len(params["shared_centres"])
    lag = chosen_lag(data)
    nearest = nearest_kernels(emission, params, values)
    counts = lagged_counts(data, nearest, lag, n_kernels)
    visits = counts.sum(1)
    often = np.flatnonzero(visits >= min(FEWEST_VISITS, np.sort(visits)[-min(n_states, n_kernels)]))
    transitions, law = reversible(counts[np.ix_(often, often)])
    vectors, decay = slow_vectors(transitions, law, min(n_states, len(often)))
    corner = inner_simplex(vectors)
    memberships = _inside(vectors @ np.linalg.inv(vectors[corner]), n_states, rng)
    everywhere = memberships[closest(emission, params, often)]
    weights = everywhere * np.maximum(visits, 1.0)[:, None]
    logits = np.log(weights / weights.sum(0)).T
    rates = np.full((n_states, n_states), 1 / lag)  # between states for which there are no kernels: anything
    rates[: len(corner), : len(corner)] = rates_between(vectors[corner], decay, lag)
    return Start({**params, "logits": logits - logits[:, :1]}, np.where(allowed, rates, 0.0))


def chosen_lag(data: TimeSeries) -> float:
    """A few typical gaps, within what the series can bear; never less than one."""
    gap, spans = float(np.median(data.gaps)), data.times[data.offsets[1:] - 1] - data.times[data.offsets[:-1]]
    lag = min(LAG * gap, LAG_PER_SERIES * float(np.median(spans)))
    return max(round(lag / gap), 1) * gap


def nearest_kernels(
    emission: Dictionary, params: Params, values: Float[np.ndarray, "row feature"]
) -> Int[np.ndarray, "row"]:
    """The kernel that makes each observation likeliest; -1 where a component is missing."""

    @jax.jit
    def best(rows: Array) -> Array:
        return jax.lax.map(lambda some: emission.log_kernels(params, some, None).argmax(-1), rows)

    size = min(ROWS_AT_ONCE, len(values))
    filled = np.pad(np.nan_to_num(values), ((0, -len(values) % size), (0, 0)))
    found = np.asarray(best(jnp.asarray(filled.reshape(-1, size, values.shape[1])))).ravel()[: len(values)]
    return np.where(np.isnan(values).any(1), -1, found)


def lagged_counts(
    data: TimeSeries, kernels: Int[np.ndarray, "row"], lag: float, n_kernels: int
) -> Float[np.ndarray, "kernel kernel"]:
    """How often one kernel is followed by another after the lag; symmetric, as if time ran both ways.

    With uneven gaps an observation is paired with the one nearest to the lag, if that comes near it.
    """
    pairs = []
    for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        times = data.times[begin:end]
        after = np.clip(np.searchsorted(times, times + lag), 1, len(times) - 1) if len(times) > 1 else np.zeros(1, int)
        closer = np.abs(times[after - 1] - times - lag) < np.abs(times[after] - times - lag)
        after = after - closer
        fits = (np.abs(times[after] - times - lag) <= NEAR_LAG * lag) & (after > np.arange(len(times)))
        pairs.append(begin + np.stack([np.flatnonzero(fits), after[fits]]))
    first, second = kernels[np.concatenate(pairs, axis=1)]
    known = (first >= 0) & (second >= 0)
    counts = np.zeros((n_kernels, n_kernels))
    np.add.at(counts, (first[known], second[known]), 1.0)
    return (counts + counts.T) / 2


def reversible(
    counts: Float[np.ndarray, "kernel kernel"],
) -> tuple[Float[np.ndarray, "kernel kernel"], Float[np.ndarray, "kernel"]]:
    """Transition matrix in detailed balance from symmetric counts, and its stationary law."""
    share = counts.sum(1) / counts.sum()
    joined = counts + LEAVES * (share[:, None] + share[None, :]) / 2
    total = joined.sum(1)
    return joined / total[:, None], total / total.sum()


def slow_vectors(
    transitions: Float[np.ndarray, "kernel kernel"], law: Float[np.ndarray, "kernel"], n: int
) -> tuple[Float[np.ndarray, "kernel vector"], Float[np.ndarray, "vector"]]:
    """The right eigenvectors that decay most slowly, the constant one first, and their eigenvalues."""
    root = np.sqrt(law)
    values, vectors = np.linalg.eigh(root[:, None] * transitions / root[None, :])
    slow = np.argsort(-values)[:n]
    right = vectors[:, slow] / root[:, None]
    right[:, 0] = 1.0
    return right, values[slow]


def inner_simplex(vectors: Float[np.ndarray, "kernel vector"]) -> Int[np.ndarray, "vector"]:
    """The corners of the simplex that the rows fill: each time the row farthest from all corners before."""
    rest = vectors - vectors[np.argmax(np.linalg.norm(vectors, axis=1))]
    corners = [int(np.argmax(np.linalg.norm(vectors, axis=1)))]
    for _ in range(vectors.shape[1] - 1):
        corners.append(int(np.argmax(np.linalg.norm(rest, axis=1))))
        direction = rest[corners[-1]] / np.linalg.norm(rest[corners[-1]])
        rest = rest - np.outer(rest @ direction, direction)
    return np.array(corners)


def _inside(
    memberships: Float[np.ndarray, "kernel corner"], n_states: int, rng: np.random.Generator | None
) -> Float[np.ndarray, "kernel state"]:
    """Memberships as probabilities, none of them zero."""
    missing = n_states - memberships.shape[1]
    inside = np.maximum(np.pad(memberships, ((0, 0), (0, missing))), LEAST_MEMBERSHIP)
    if rng is not None:
        inside = inside * np.exp(RANDOM_FACTOR * rng.normal(size=inside.shape))
    return inside / inside.sum(1, keepdims=True)


def closest(emission: Dictionary, params: Params, often: Int[np.ndarray, "chosen"]) -> Int[np.ndarray, "kernel"]:
    """For every kernel its place among the chosen ones: its own, or that of the nearest."""
    logs = emission.log_kernels(params, jnp.asarray(params["shared_centres"]), None)
    return np.asarray(logs)[:, often].argmax(1)


def rates_between(
    corners: Float[np.ndarray, "state vector"], decay: Float[np.ndarray, "vector"], lag: float
) -> Float[np.ndarray, "state state"]:
    """The generator A^-1 (log of the eigenvalues / lag) A of the memberships X A; what is negative is made small."""
    speed = np.log(np.clip(decay, FASTEST, 1.0)) / lag
    rates = corners @ np.diag(speed) @ np.linalg.inv(corners)
    np.fill_diagonal(rates, 0.0)
    typical = np.maximum(rates, 0.0).sum() / max(len(rates) * (len(rates) - 1), 1)
    return np.maximum(rates, LEAST_RATE * typical) * (1 - np.eye(len(rates)))
