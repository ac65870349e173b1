"""States that nobody visits begin anew while there is time to learn them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from ..exact.model import Evidence, Model, Parameters
from ..exact.reseed import reseeded
from ..priors.generator import ExplicitParameters
from .loop import State


def revived(
    model: Model, evidence: Evidence, state: State, visited: Float[np.ndarray, "restart state"]
) -> tuple[State, Bool[np.ndarray, "restart"]]:
    """Every restart with one of its dead states moved to what is explained worst, and which restarts have one."""
    networks = state.networks
    thetas = jax.vmap(lambda prior: prior.draw(None))(networks.prior)
    found = Parameters(thetas, networks.emission, networks.initial)
    new, moved = reseeded(model, found, evidence, visited)
    if not moved.any():
        return state, moved
    emission = {name: jnp.asarray(x, networks.emission[name].dtype) for name, x in new.emission.items()}
    shift = (jnp.asarray(new.rates) - thetas).astype(thetas.dtype)
    networks = eqx.tree_at(lambda n: (n.emission, n.prior), networks, (emission, _shifted(networks.prior, shift)))
    return state._replace(networks=networks), moved


def _shifted(prior: Any, by: Float[Any, "restart parameter"]) -> Any:
    """A generator keeps its network: only what it is centred on moves."""
    if isinstance(prior, ExplicitParameters):
        return eqx.tree_at(lambda p: p.theta, prior, prior.theta + by)
    return eqx.tree_at(lambda p: p.around, prior, prior.around + by)
