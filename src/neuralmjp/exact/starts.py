"""Starting values, so that nobody ever has to give any."""

from functools import partial
from itertools import permutations
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from ..emissions import (
    Categorical,
    Emission,
    FullGaussian,
    Gaussian,
    NeuralGaussian,
    Observations,
    OrnsteinUhlenbeck,
    reordered,
)
from ..emissions.dictionary import Dictionary
from ..emissions.diffusion import Diffusion
from ..emissions.emission import Params
from ..emissions.wrapped import Wrapped
from ..timeseries import TimeSeries
from .metastable import Start, metastable_start

HIDDEN_RESTARTS = 5
MOST_RELABELLED = 4  # states of which every numbering is tried; 24 starts
RANDOM_FACTOR = 0.7  # standard deviation of the log factor by which a random start varies each rate


def default_restarts(emission: Emission) -> int:
    """Starts from which the best is sought, if nobody says how many: one where labels or time tell the states."""
    labelled = isinstance(emission, Categorical) and emission.labelled
    return 1 if labelled or isinstance(emission, Dictionary) else HIDDEN_RESTARTS


def starting_point(
    data: TimeSeries,
    emission: Emission,
    values: Float[np.ndarray, "row feature"],
    allowed: np.ndarray,
    rng: np.random.Generator | None,
    order: Int[np.ndarray, "state"] | None = None,
) -> Start:
    """Parameters of the emission and rates to start from, varied at random if `rng` is given.

    Args:
        values: of the data, as the emission reads them.
        allowed: (K, K), which jumps may happen.
        order: which of the emission's own states each state begins as, if not in its order.
    """
    params = emission.start(values, len(allowed), rng)
    if order is not None:
        params = reordered(params, order)
    if isinstance(emission, Dictionary):
        return metastable_start(data, emission, params, values, allowed, rng)
    states = nearest_states(emission, params, values)
    return Start(params, crude_rates(data, states, allowed, rng))


def labellings(allowed: np.ndarray, given: tuple[float, ...] | None) -> list[Int[np.ndarray, "state"]]:
    """Ways to number a start's states that differ in what they may do; the first leaves them as they are.

    Where every jump may happen there is no other; of more than a few states only random starts try others.

    >>> [order.tolist() for order in labellings(np.array([[0, 1], [0, 0]]), None)]
    [[0, 1], [1, 0]]
    >>> len(labellings(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), None))
    3
    """
    n = len(allowed)
    law = np.zeros(n) if given is None else np.array(given)
    if n > MOST_RELABELLED or allowed[~np.eye(n, dtype=bool)].all():
        return [np.arange(n)]
    found: dict[bytes, np.ndarray] = {}
    for each in permutations(range(n)):
        order = np.array(each)
        # New state k begins as old state order[k]: the old states then jump as the mask, turned back, says.
        back = np.argsort(order)
        found.setdefault(allowed[np.ix_(back, back)].tobytes() + law[back].tobytes(), order)
    return list(found.values())


def crude_rates(
    data: TimeSeries, states: Int[np.ndarray, "row"], allowed: np.ndarray, rng: np.random.Generator | None
) -> Float[np.ndarray, "state state"]:
    """Changes seen between neighbouring observations over the time spent: rough, but of the right magnitude."""
    n_states = len(allowed)
    inside = np.ones(len(states), dtype=bool)
    inside[data.offsets[:-1]] = False
    here, before = states[inside], states[np.flatnonzero(inside) - 1]
    counts = np.zeros((n_states, n_states))
    np.add.at(counts, (before, here), 1.0)
    time = np.bincount(before, weights=data.gaps, minlength=n_states)
    typical = data.gaps.sum() / n_states
    rates = np.where(allowed, (counts + 0.5) / (time + typical / n_states)[:, None], 0.0)
    if rng is not None:
        rates = rates * np.exp(RANDOM_FACTOR * rng.normal(size=rates.shape))
    return rates


def nearest_states(
    emission: Emission, params: Params, values: Float[np.ndarray, "row feature"]
) -> Int[np.ndarray, "row"]:
    """The likeliest state at each observation on its own; missing ones take the state before."""
    mask = ~np.isnan(values)
    filled, nothing = np.where(mask, values, 0.0), np.zeros(values.shape)
    still = nothing[:, 0]  # at time zero: hum and drift begin at zero, too
    seen = Observations(filled, None if mask.all() else mask, nothing, nothing > 0, still, still)  # type: ignore[arg-type]
    log_prob = emission.log_prob if isinstance(emission, Categorical) else partial(_compiled_log_prob, emission)
    guess = np.asarray(log_prob(params, seen)).argmax(-1)
    return guess[np.maximum.accumulate(np.where(mask.any(1), np.arange(len(guess)), 0))]


@partial(jax.jit, static_argnames="emission")
def _compiled_log_prob(emission: Emission, params: Params, seen: Observations) -> Any:
    return emission.log_prob(params, seen)


def em_emission(emission: Emission, complete: bool) -> Emission | None:
    """The emission that EM can fit in place of this one: itself, a plain Gaussian, or none."""
    if isinstance(emission, Wrapped):
        inside = em_emission(emission.base, complete)
        if inside is None:
            return None
        return emission if inside == emission.base else emission.around(inside)
    if isinstance(emission, NeuralGaussian):
        return em_emission(emission.form, complete)
    if isinstance(emission, (Diffusion, OrnsteinUhlenbeck)) or (isinstance(emission, FullGaussian) and not complete):
        return Gaussian()
    return None if emission.name == "custom" else emission


def refined(emission: Emission, found: Params, time_scale: float) -> Params:
    """Parameters of `emission` from those that EM found for the Gaussian in its place."""
    if isinstance(emission, Wrapped):
        return emission.outer(refined(emission.base, emission.inner(found), time_scale), found)
    plain = {name: np.asarray(value) for name, value in found.items()}
    if isinstance(emission, OrnsteinUhlenbeck):
        return {**plain, "log_relaxation": np.full_like(plain["mean"], -np.log(time_scale))}
    if isinstance(emission, NeuralGaussian):
        return emission.around(refined(emission.form, plain, time_scale), None)
    if isinstance(emission, Diffusion):
        return emission.around(plain, time_scale)
    if isinstance(emission, FullGaussian) and "log_sd" in plain:
        n = plain["mean"].shape[1]
        lower = np.zeros((len(plain["mean"]), n * (n - 1) // 2))
        return {"mean": plain["mean"], "log_diagonal": plain["log_sd"], "lower": lower}
    return plain
