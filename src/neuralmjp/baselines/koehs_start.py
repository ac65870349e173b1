"""Where variational EM begins: levels by clusters of the values, and a guess of how fast the level follows."""

import warnings

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.cluster.vq import kmeans2

from ..timeseries import TimeSeries
from .koehs_model import Parameters
from .koehs_steps import Scale

FOLLOWS = (1.0, 0.3, 3.0)  # times a median gap: the level's relaxation rate in one start after the other
SHARE = (0.5, 0.2, 0.8)  # of the spread around a level that is taken for noise of the observations
LEAST = 0.02  # of the variance of all values: clusters may be points


def start(data: TimeSeries, scale: Scale, n_states: int, attempt: int, seed: int) -> Parameters:
    """The first attempt takes quantiles and mild guesses; later ones clusters from random places, faster and slower."""
    values = (np.where(data.mask, data.values, scale.mean) - scale.mean) / scale.spread
    levels = _levels(values, n_states, np.random.default_rng([seed, attempt]) if attempt >= len(FOLLOWS) else None)
    nearest = ((values[:, None] - levels) ** 2).sum(-1).argmin(1)
    away = values - levels[nearest]
    around = away.T @ away / len(away) + LEAST * np.eye(data.n_features)
    follows, share = FOLLOWS[attempt % len(FOLLOWS)], SHARE[(attempt // len(FOLLOWS)) % len(SHARE)]
    spread = 2 * follows * (1 - share) * around
    return Parameters(
        rates=jnp.asarray(_rates(data, scale, nearest, n_states)),
        initial=jnp.asarray(np.full(n_states, 1.0 / n_states)),
        drift=jnp.asarray(np.tile(-follows * np.eye(data.n_features), (n_states, 1, 1))),
        offset=jnp.asarray(follows * levels),
        dispersion=jnp.asarray(np.tile(spread, (n_states, 1, 1))),
        noise=jnp.asarray(share * around),
    )


def _levels(
    values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None
) -> Float[np.ndarray, "state feature"]:
    if rng is None:  # evenly spread over the first principal direction, then settled
        direction = np.linalg.svd(values - values.mean(0), full_matrices=False)[2][0]
        order = np.argsort(values @ direction)
        chosen = order[((np.arange(n_states) + 0.5) / n_states * len(values)).astype(int)]
    else:
        chosen = rng.choice(len(values), n_states, replace=False)
    with warnings.catch_warnings(action="ignore"):  # of clusters that lost all their values, which stay where they are
        levels = kmeans2(values, values[chosen], minit="matrix")[0]
    return levels + 1e-6 * np.arange(n_states)[:, None]  # clusters that fell together may still part


def _rates(data: TimeSeries, scale: Scale, nearest: np.ndarray, n_states: int) -> Float[np.ndarray, "state state"]:
    """Changes of the nearest level over the time spent near each; half of the changes are taken for noise."""
    inside = np.ones(data.n_observations, bool)
    inside[data.offsets[:-1]] = False
    later = np.flatnonzero(inside)
    jumps, time = np.zeros((n_states, n_states)), np.zeros(n_states)
    np.add.at(jumps, (nearest[later - 1], nearest[later]), 0.5)
    np.add.at(time, nearest[later - 1], data.gaps / scale.gap)
    rates = (jumps + 0.1) / (time + 1.0)[:, None]
    return rates * (1 - np.eye(n_states))
