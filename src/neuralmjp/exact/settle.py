"""EM to its end on all the data, for emissions that nothing else can finish: see `Emission.by_em_alone`.

Plain EM creeps where states overlap. Here every step of the weights is stretched: their logarithms go `stretch` times
as far as EM says, farther each time that helps, and back to where plain EM would be when it does not (Salakhutdinov &
Roweis 2003). Rates are known well given the weights: stretched, they would only swing.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..emissions.dictionary import Dictionary, reweighted, weights_of
from ..priors import rates_of
from .blocks import Blocks
from .em import with_new_rates
from .evidence import Laid
from .labels import Labels
from .model import Evidence, Model, Parameters, expectations
from .transitions import Halving, halving_needed

MOST_STEPS = 200
GAIN = 2e-5  # nats per observation and step below which EM has arrived: rates have long done so
TRIAL = 10  # steps after which the best of several starts is kept
LONGER, LONGEST, SHORTENED = 1.2, 10.0, 0.4  # how a stretch grows, no further than this, and shrinks
FARTHEST = 0.5  # beyond plain EM, in logarithms


class Settled(NamedTuple):
    """Where EM came to rest."""

    parameters: Parameters
    log_likelihood: float  # of standardised values
    steps: int
    arrived: bool


class Shown(NamedTuple):
    """The kernels of a dictionary at every observation, which stay what they are while EM runs."""

    kernels: Float[Array, "step lane kernel"]  # over the highest of each observation; single precision will do
    log_top: Float[Array, "step lane 1"]


@partial(jax.jit, static_argnames="emission")
def kernels_shown(emission: Dictionary, params: dict, seen) -> Shown:
    """Step by step of the lanes, so that no more than one step is in memory in double precision."""

    def one(rows: tuple) -> tuple[Array, Array]:
        shown, top = emission.scaled_kernels(params, *rows)
        return shown.astype(jnp.float32), top

    return Shown(*jax.lax.map(one, (seen.values, seen.mask)))


def settled(
    model: Model,
    start: Parameters,
    laid: Laid,
    shown: Shown,
    *,
    most_steps: int = MOST_STEPS,
    progress: Callable[[float], None] = lambda _: None,
) -> Settled:
    """From a start to where EM gains next to nothing.

    Args:
        model: with a dictionary, and rates that are free or reversible.
        shown: its kernels at the observations.
    """
    place = jax.tree.map(lambda x: jnp.asarray(x, float), start)
    safe, height, stretch = place, -np.inf, 1.0
    least = GAIN * int((laid.layout.rows >= 0).sum())
    for step in range(most_steps):
        progress(step / most_steps)
        halving = halving_needed(np.asarray(rates_of(model.rate_model, np.asarray(place.rates))), laid.layout.gaps)
        ahead, value = _step(model, place, laid.evidence, shown, laid.layout.aligned, halving)
        value = float(value)
        if not value >= height:  # the last stretch went too far
            place, height, stretch = safe, -np.inf, max(SHORTENED * stretch, 1.0)
            continue
        if value - height < least:
            return Settled(jax.tree.map(np.asarray, ahead), value, step, True)
        safe, height = ahead, value
        place = ahead._replace(emission=jax.tree.map(partial(_stretched, by=stretch), place.emission, ahead.emission))
        stretch = min(stretch * LONGER, LONGEST)
    return Settled(jax.tree.map(np.asarray, safe), height, most_steps, False)


def _stretched(here: Array, there: Array, by: float) -> Array:
    """Beyond where EM leads."""
    return there + jnp.clip((by - 1) * (there - here), -FARTHEST, FARTHEST)


@partial(jax.jit, static_argnames=("model", "aligned", "halving"))
def _step(
    model: Model, place: Parameters, evidence: Evidence, shown: Shown, aligned: bool, halving: Halving
) -> tuple[Parameters, Float[Array, ""]]:
    """One iteration of EM; returns the new parameters and the log-likelihood of the old ones."""
    weights = weights_of(place.emission)
    density = shown.kernels @ weights.T.astype(shown.kernels.dtype)
    logs = jnp.log(density).astype(weights.dtype) + shown.log_top
    expected = expectations(model, place, evidence._replace(logs=logs), aligned, halving)
    gamma = expected.smoothed
    if evidence.seen.mask is not None:
        gamma = gamma * evidence.seen.mask.any(-1, keepdims=True)
    share = (gamma / density).astype(shown.kernels.dtype)
    demand = jnp.einsum("slk,slm->km", share, shown.kernels).astype(weights.dtype)
    new = with_new_rates(model, place, expected)
    return new._replace(emission={**place.emission, "logits": reweighted(weights, demand)}), expected.log_likelihood


def with_densities(laid: Laid | Labels | Blocks, model: Model, parameters: Parameters) -> Laid | Labels | Blocks:
    """The data with the log densities of a settled emission, so that nobody computes them again."""
    if isinstance(laid, Blocks):
        return Blocks([replace(part, laid=_with_logs(part.laid, model, parameters)) for part in laid.parts])
    return _with_logs(laid, model, parameters) if isinstance(laid, Laid) else laid


def _with_logs(laid: Laid, model: Model, parameters: Parameters) -> Laid:
    logs = _densities(model.emission, parameters.emission, laid.evidence.seen)
    return replace(laid, evidence=laid.evidence._replace(logs=logs))


@partial(jax.jit, static_argnames="emission")
def _densities(emission, params: dict, seen) -> Float[Array, "step lane state"]:
    return emission.log_prob(params, seen)
