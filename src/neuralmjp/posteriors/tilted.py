"""The tilted posterior: the prior, bent by what the future says.

Given its observations a jump process is again a jump process, with rates g(z'|z,t) = f(z'|z) exp(phi(z',t) -
phi(z,t)), where phi(z,t) is the log likelihood of everything after t. A network that reads the series backwards says
phi(., t) just after each observation; in between phi obeys the backward equation of the prior, which is solved in
closed form, exp(phi(., t)) = exp(F (t_next - t)) exp(phi(., t_next)). The path divergence over a gap is then that of
two transition matrices, without quadrature, and an observation without noise is met exactly.

The network corrects a first guess, the likelihood of the next observation alone. Any correction gives a bound; the
right one gives the evidence.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..encoders import MLP, Encoder, Inputs
from ..objective import Terms
from .stepping import propagated

NEVER = -1e30  # a finite stand-in for log 0, so that no derivative is undefined


class Tilted(NamedTuple):
    """The posterior at the observations of each series."""

    terms: Terms
    marginals: Float[Array, "series time state"]


class TiltedPosterior(eqx.Module):
    """Potentials from the encoder's state at each observation."""

    encoder: Encoder
    head: MLP

    def __init__(self, encoder: Encoder, n_states: int, *, key: Array):
        self.encoder = encoder
        sizes = (encoder.width, encoder.width, n_states)
        self.head = MLP(sizes, activation="silu", start="kaiming", key=key, quiet=True)

    def corrections(self, inputs: Inputs, *, key: Array | None) -> Float[Array, "series time state"]:
        """What the network adds to the first guess of the potentials."""
        raw = self.head(self.encoder(inputs, key=key).before)
        return raw - raw.mean(-1, keepdims=True)


def tilted_terms(
    log_emissions: Float[Array, "series time state"],
    transitions: Float[Array, "series gap state state"],
    log_initial: Float[Array, "state"],
    corrections: Float[Array, "series time state"],
    valid: Bool[Array, "series time"],
) -> Tilted:
    """The bound and the marginals of the posterior with these corrections, for any K x K transitions of the prior.

    Args:
        log_emissions: 0 at padded steps.
        transitions: exp(F gap) for the gap after each observation but the last; the identity at padded steps.
    """
    tiny = jnp.finfo(transitions.dtype).tiny
    log_b = jnp.maximum(log_emissions, NEVER)
    goes_on = valid[:, 1:, None]
    # The potential just after an observation: a first guess from the next one alone, and the network's correction.
    later = jnp.where(goes_on, _log_product(transitions, log_b[:, 1:]) + corrections[:, :-1], 0.0)
    potentials = log_b + jnp.concatenate([later, jnp.zeros_like(later[:, :1])], axis=1)

    # From each state: the law of the next one, and its normaliser; by logarithms, because the only way out of a state
    # may lead to one that is less likely than others by more than a floating-point number can hold.
    possible = transitions > tiny
    log_moves = jnp.where(possible, jnp.log(jnp.where(possible, transitions, 1.0)), NEVER)
    log_joint = log_moves + potentials[:, 1:, None, :]
    peak = jax.lax.stop_gradient(log_joint.max(-1, keepdims=True))
    joint = jnp.exp(log_joint - peak)
    norm = joint.sum(-1, keepdims=True)
    moves, log_norm = joint / norm, (jnp.log(norm) + peak)[..., 0]
    first_logits = jnp.maximum(log_initial, NEVER) + potentials[:, 0]
    log_evidence = jax.nn.logsumexp(first_logits, axis=-1)
    first = jnp.exp(first_logits - log_evidence[:, None])

    marginals = propagated(first, jnp.transpose(moves, (2, 3, 1, 0)))

    def expected(x):
        """Under the posterior; where it never is, nothing counts."""
        return jnp.where(marginals[:, : x.shape[1]] > 0, marginals[:, : x.shape[1]] * x, 0.0).sum(-1)

    reached, left = expected(potentials), expected(log_norm)
    path_kl = jnp.where(valid[:, 1:], reached[:, 1:] - left, 0.0).sum(-1)
    reconstruction = jnp.where(valid, expected(log_b), 0.0).sum(-1)
    return Tilted(Terms(reconstruction, path_kl, reached[:, 0] - log_evidence), marginals)


def _log_product(matrices: Float[Array, "*lead state state"], logs: Float[Array, "*lead state"]) -> Array:
    """log(M exp(v)), for v of any size."""
    peak = jax.lax.stop_gradient(logs.max(-1, keepdims=True))
    product = jnp.einsum("...zy,...y->...z", matrices, jnp.exp(logs - peak))
    return jnp.log(jnp.maximum(product, jnp.finfo(product.dtype).tiny)) + peak
