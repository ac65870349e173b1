"""States that nobody visits get another chance: where the data are explained worst."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..errors import InputError
from ..mjp import stationary_distribution
from ..priors import ParametricRates, rates_of
from .model import Evidence, Model, Parameters

VISITED = 1e-3  # share of the time, or of the observations, below which a state counts as never visited
WORST = 0.01  # share of the observations, explained worst, that a new state begins with
FEWEST = 20  # of them at least
VISITS = 0.1  # a new state is entered at this share of the usual rate


def reseeded(
    model: Model, found: Parameters, evidence: Evidence, visited: Float[np.ndarray, "start state"] | None = None
) -> tuple[Parameters, Bool[np.ndarray, "start"]]:
    """Parameters of all starts with dead states moved to what is explained worst, and which starts have such a state.

    Args:
        found: where fitting is, with a leading axis of starts.
        visited: share of the observations in each state; the stationary law if None.
    """
    rate_model = model.rate_model
    own = [name for name in found.emission if not name.startswith("shared")]
    with np.errstate(over="ignore"):  # of a start that diverges
        rates = np.array(rates_of(rate_model, np.asarray(found.rates)))
    emission = {name: np.array(value) for name, value in found.emission.items()}
    theta, moved = np.array(found.rates), np.zeros(len(rates), bool)
    if not own:
        return found, moved
    for k in range(len(rates)):
        try:
            law = np.asarray(stationary_distribution(rates[k])) if visited is None else visited[k]
        except InputError:
            continue
        dead = np.flatnonzero(law < VISITED)
        if not dead.size or len(dead) > len(law) - 1 or not np.isfinite(rates[k]).all():
            continue
        here = {name: value[k] for name, value in emission.items()}
        new = _from_worst(model, here, law, evidence)
        state = dead[0]  # one at a time: the next one may find the same place
        for name in own:
            emission[name][k, state] = new[name][0]
        usual = float(np.median(np.delete(rates[k].sum(1), dead)))
        rates[k, state] = np.where(rate_model.allowed[state], usual / (len(law) - 1), 0.0)
        rates[k][:, state] = np.where(rate_model.allowed[:, state], VISITS * usual, 0.0)
        moved[k] = True
        if not isinstance(rate_model, ParametricRates):
            theta[k] = rate_model.nearest(rates[k])
    return found._replace(
        rates=jnp.asarray(theta), emission={name: jnp.asarray(x) for name, x in emission.items()}
    ), moved


def _from_worst(
    model: Model, params: dict[str, Any], law: Float[np.ndarray, "state"], evidence: Evidence
) -> dict[str, Any]:
    """Parameters of one state, from the observations that all states together explain worst."""
    height = np.asarray(_explained(model, params, jnp.asarray(law), evidence))
    rows = np.asarray(evidence.seen.values)[np.asarray(evidence.valid)]
    if evidence.seen.mask is not None:
        rows = np.where(np.asarray(evidence.seen.mask)[np.asarray(evidence.valid)], rows, np.nan)
    height = height[np.asarray(evidence.valid)]
    n = max(int(WORST * len(rows)), min(FEWEST, len(rows)))
    return model.emission.start(rows[np.argsort(height)[:n]], 1, None)


@partial(jax.jit, static_argnames="model")
def _explained(
    model: Model, params: dict[str, Any], law: Float[Array, "state"], evidence: Evidence
) -> Float[Array, "step lane"]:
    """Log density of each observation on its own."""
    return jax.nn.logsumexp(model.emission.log_prob(params, evidence.seen) + jnp.log(jnp.maximum(law, 1e-12)), axis=-1)
