"""The E step: one sweep back, which values every mode and level, and one forth, which chooses how the modes jump.

A value is a quadratic in the level, V_z(y) = c_z + h_z y - y P_z y / 2, one for each mode and node: what the rest of
the posterior's path earns from there (the multipliers of Koehs et al.). In a step the mode jumps, then the level moves:

    W_z'(y) = log E[exp V_z'(Y') | y, z']                             the best diffusion, in closed form
    U_z(y)  = sum_z' q(z'|z) [ W_z'(y) - log q(z'|z) / p(z'|z) ]      V = U + log-likelihood of what is seen there

Going back, q is the one of the sweep before. Going forth with moments of the level in each mode, the best q is
p(z'|z) exp E[W_z'(Y) | z], and the bound gains what it is better by, here and now: no sweep can lower it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from .koehs_model import Moves, Parameters, applied, diffused, inverse, outer, product, transposed

LOG_2PI = 1.8378770664093453
LONG, FINELY = 30.0, 14  # median gaps, and how often they are halved
FARTHEST = 10.0  # that a mode may rest from the middle of the values, for a first guess
PRIOR_SPREAD = 2.0  # of the level at first, in units of the spread of all values


class Value(NamedTuple):
    """Quadratics in the level: constant + slope y - y curve y / 2."""

    constant: Float[Array, "*lead"]
    slope: Float[Array, "*lead feature"]
    curve: Float[Array, "*lead feature feature"]


class Belief(NamedTuple):
    """Log-probability of each mode, and mean and covariance of the level in it."""

    log_law: Float[Array, "*lead state"]
    mean: Float[Array, "*lead state feature"]
    spread: Float[Array, "*lead state feature feature"]


class Swept(NamedTuple):
    """What is believed at every node (`nodes`), and in every step between jump and diffusion (`jumped`)."""

    bound: Float[Array, ""]
    gained: Float[Array, ""]
    log_q: Float[Array, "step state state"]
    nodes: Belief
    jumped: Belief
    keep: Float[Array, "step state feature feature"]
    shift: Float[Array, "step state feature"]
    fresh: Float[Array, "step state feature feature"]


def seen_value(
    noise: Float[Array, "feature feature"], values: Float[Array, "node feature"], mask: Float[Array, "node feature"]
) -> Value:
    """Log-likelihood of what is seen at each node, of the features seen there."""
    precision, log_det = seen_precision(noise, mask)
    slope = applied(precision, values)
    square = (slope * values).sum(-1)
    return Value(-0.5 * (square + log_det + mask.sum(-1) * LOG_2PI), slope, precision)


def seen_precision(
    noise: Float[Array, "feature feature"], mask: Float[Array, "*lead feature"]
) -> tuple[Float[Array, "*lead feature feature"], Float[Array, "*lead"]]:
    """Inverse of the block of the noise that is seen, zero elsewhere, and the logarithm of its determinant."""
    both = outer(mask, mask)
    precision, log_det = inverse(both * noise + (1 - mask)[..., None] * jnp.eye(len(noise)))
    return both * precision, log_det


def best_diffusion(
    value: Value, keep: Array, shift: Array, spread: Array
) -> tuple[Value, Float[Array, "*s x x"], Float[Array, "*s x x"]]:
    """Value before the level diffuses; the matrix that pulls it towards the future; covariance that it gathers."""
    pull, log_det = inverse(jnp.eye(keep.shape[-1]) + product(spread, value.curve))
    fresh = product(pull, spread)
    curve = product(value.curve, pull)
    curve = 0.5 * (curve + transposed(curve))
    to = applied(transposed(pull), value.slope) - applied(curve, shift)
    constant = (
        value.constant
        - 0.5 * log_det
        + 0.5 * (value.slope * applied(fresh, value.slope)).sum(-1)
        + (applied(transposed(pull), value.slope) * shift).sum(-1)
        - 0.5 * (shift * applied(curve, shift)).sum(-1)
    )
    back = transposed(keep)
    return Value(constant, applied(back, to), product(product(back, curve), keep)), pull, fresh


def expected(value: Value, mean: Array, spread: Array) -> Array:
    second = spread + outer(mean, mean)
    return value.constant + (value.slope * mean).sum(-1) - 0.5 * (value.curve * second).sum((-1, -2))


def sweep(
    theta: Parameters,
    moves: Moves,
    log_q: Float[Array, "step state state"],
    kind: Int[Array, "step"],
    values: Float[Array, "node feature"],
    mask: Float[Array, "node feature"],
) -> Swept:
    """One series, back and forth. `log_q` are the logs of q(z'|z) that the sweep before chose."""
    seen = seen_value(theta.noise, values, mask)
    step_moves = Moves(*(table[kind] for table in moves))
    excess = jnp.exp(log_q) * (log_q - step_moves.log_jump)

    def back(after: Value, inputs):
        move, log_jumps, paid, here = inputs
        before, pull, fresh = best_diffusion(after, move.keep, move.shift, move.spread)
        q = jnp.exp(log_jumps)
        mixed = Value(
            q @ before.constant - paid.sum(-1) + here.constant,
            q @ before.slope + here.slope,
            (q[:, :, None, None] * before.curve).sum(1) + here.curve,
        )
        return mixed, (before, product(pull, move.keep), applied(pull, move.shift) + applied(fresh, after.slope), fresh)

    last = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[-1], (len(theta.initial), *leaf.shape[1:])), seen)
    earlier = jax.tree.map(lambda leaf: leaf[:-1], seen)
    first, (before, keep, shift, fresh) = jax.lax.scan(back, last, (step_moves, log_q, excess, earlier), reverse=True)
    log_z, start = first_belief(theta, first)

    def forth(belief: Belief, inputs):
        value, log_p, old, kept, moved, gathered = inputs
        ahead = expected(jax.tree.map(lambda leaf: leaf[None], value), belief.mean[:, None], belief.spread[:, None])
        best = logsumexp(log_p + ahead, axis=-1)
        new = log_p + ahead - best[:, None]
        gain = jnp.exp(belief.log_law) @ (best - (jnp.exp(old) * (ahead - old + log_p)).sum(-1))
        joint = belief.log_law[:, None] + new
        log_law = logsumexp(joint, axis=0)
        share = jnp.exp(joint - log_law)
        mean = (share[..., None] * belief.mean[:, None]).sum(0)
        away = belief.mean[:, None] - mean
        spread = (share[..., None, None] * (belief.spread[:, None] + outer(away, away))).sum(0)
        jumped = Belief(log_law, mean, spread)
        moved_spread = product(product(kept, spread), transposed(kept)) + gathered
        arrived = Belief(log_law, applied(kept, mean) + moved, moved_spread)
        return arrived, (arrived, jumped, new, gain)

    _, (later, jumped, log_q, gains) = jax.lax.scan(
        forth, start, (before, step_moves.log_jump, log_q, keep, shift, fresh)
    )
    nodes = jax.tree.map(lambda one, rest: jnp.concatenate([one[None], rest]), start, later)
    gained = gains.sum()
    return Swept(log_z + gained, gained, log_q, nodes, jumped, keep, shift, fresh)


def first_belief(theta: Parameters, value: Value) -> tuple[Float[Array, ""], Belief]:
    """The best law at the first node, its level being broad beforehand; and what the whole path then earns."""
    broad = PRIOR_SPREAD**2 * jnp.eye(theta.offset.shape[-1])
    nowhere = jnp.zeros_like(theta.offset)
    before, _, fresh = best_diffusion(value, jnp.zeros_like(broad), nowhere, broad)
    joint = jnp.log(theta.initial) + before.constant
    log_z = logsumexp(joint)
    return log_z, Belief(joint - log_z, applied(fresh, value.slope), fresh)


def first_jumps(
    theta: Parameters,
    moves: Moves,
    kind: Int[Array, "step"],
    values: Float[Array, "node feature"],
    mask: Float[Array, "node feature"],
) -> Float[Array, "step state state"]:
    """q(z'|z) to begin with: as if what is seen were drawn around the mode's resting level, each time anew."""
    rest, spread = resting(theta)
    total = spread + theta.noise
    precision, log_det = jax.vmap(seen_precision, in_axes=(0, None), out_axes=1)(total, mask)
    away = values[:, None] - rest
    density = -0.5 * ((away * applied(precision, away)).sum(-1) + log_det)
    log_p = moves.log_jump[kind]

    def back(after, inputs):
        log_jumps, here = inputs
        joint = log_jumps + after
        total = logsumexp(joint, axis=-1)
        return total + here, joint - total[:, None]

    return jax.lax.scan(back, density[-1], (log_p, density[:-1]), reverse=True)[1]


def resting(theta: Parameters) -> tuple[Float[Array, "state feature"], Float[Array, "state feature feature"]]:
    """Mean and covariance of the level in each mode after a time that is long to it, or long to us."""
    long = jax.vmap(lambda a, b, q: diffused(a, b, q, jnp.asarray(LONG), FINELY))
    _, shift, spread = long(theta.drift, theta.offset, theta.dispersion)
    size = jnp.abs(spread).max((-1, -2), keepdims=True)
    return jnp.clip(shift, -FARTHEST, FARTHEST), spread * jnp.minimum(1.0, FARTHEST / size)
