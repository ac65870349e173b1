"""A linear diffusion for each hidden mode, and how it and the mode move in a step of given length."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..mjp import generator_from_rates

TERMS = 6  # of a power series, for a step halved as many times as this:
HALVINGS = 8
LEAST_DISPERSION = 1e-4  # variance gathered in a median gap, in units of the variance of all values
FASTEST = 60.0  # relaxation of a level per median gap: it forgets all between neighbouring observations
LEAST_PROBABILITY = 1e-300  # of a transition, so that its logarithm is a number


class Parameters(NamedTuple):
    """All that is learned: dY = (drift_z Y + offset_z) dt + noise of covariance dispersion_z per time."""

    rates: Float[Array, "state state"]
    initial: Float[Array, "state"]
    drift: Float[Array, "state feature feature"]
    offset: Float[Array, "state feature"]
    dispersion: Float[Array, "state feature feature"]
    noise: Float[Array, "feature feature"]  # covariance of the observations around Y


def slowed(theta: Parameters) -> Parameters:
    """No level faster than white noise: beyond that data say nothing of its speed, and exponentials overflow.

    Rest and spread of the level stay what they are.
    """
    speed = jnp.abs(theta.drift).sum(-1).max(-1)
    share = jnp.minimum(1.0, FASTEST / jnp.maximum(speed, 1e-12))[:, None]
    floor = LEAST_DISPERSION * jnp.eye(theta.offset.shape[-1])
    return theta._replace(
        drift=theta.drift * share[..., None],
        offset=theta.offset * share,
        dispersion=floor + (theta.dispersion - floor) * share[..., None],
    )


class Moves(NamedTuple):
    """Y' = keep Y + shift + N(0, spread) in each mode, and log-probabilities of the modes, for steps of each length."""

    keep: Float[Array, "kind state feature feature"]
    shift: Float[Array, "kind state feature"]
    spread: Float[Array, "kind state feature feature"]
    log_jump: Float[Array, "kind state state"]


def product(a: Float[Array, "*a x y"], b: Float[Array, "*b y z"]) -> Float[Array, "*c x z"]:
    """Of small matrices; sums of products compile into one loop, calls of a library do not."""
    return (a[..., :, :, None] * b[..., None, :, :]).sum(-2)


def applied(a: Float[Array, "*a x y"], v: Float[Array, "*b y"]) -> Float[Array, "*c x"]:
    return (a * v[..., None, :]).sum(-1)


def transposed(a: Float[Array, "*a x y"]) -> Float[Array, "*a y x"]:
    return jnp.swapaxes(a, -1, -2)


def outer(a: Float[Array, "*a x"], b: Float[Array, "*b y"]) -> Float[Array, "*c x y"]:
    return a[..., :, None] * b[..., None, :]


def inverse(a: Float[Array, "*a x x"]) -> tuple[Float[Array, "*a x x"], Float[Array, "*a"]]:
    """With the logarithm of the determinant, which must be positive."""
    if a.shape[-1] == 1:
        return 1 / a, jnp.log(a[..., 0, 0])
    if a.shape[-1] == 2:
        determinant = a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
        swapped = jnp.stack(
            [jnp.stack([a[..., 1, 1], -a[..., 0, 1]], -1), jnp.stack([-a[..., 1, 0], a[..., 0, 0]], -1)], -2
        )
        return swapped / determinant[..., None, None], jnp.log(determinant)
    return jnp.linalg.inv(a), jnp.linalg.slogdet(a)[1]


def diffused(
    drift: Float[Array, "*s x x"],
    offset: Float[Array, "*s x"],
    dispersion: Float[Array, "*s x x"],
    length: Array,
    halvings: int = HALVINGS,
) -> tuple[Float[Array, "*t x x"], Float[Array, "*t x"], Float[Array, "*t x x"]]:
    """Exact law of a linear diffusion after a time: exp(A h), its integral times b, and the covariance gathered.

    Power series for a tiny part of the step, then doubled: what two steps in a row do is one step of twice the length.
    """
    h = (length / 2.0**halvings)[..., None, None]
    first = (jnp.eye(drift.shape[-1]) * jnp.ones_like(h), offset * h[..., 0], dispersion * h)

    def add(carry, n):
        (power, shift, spread), total = carry
        half = product(drift, spread)
        terms = (
            h / n * product(drift, power),
            h[..., 0] / (n + 1) * applied(drift, shift),
            h / (n + 1) * (half + transposed(half)),
        )
        return (terms, jax.tree.map(jnp.add, total, terms)), None

    def double(total, _):
        keep, moved, gathered = total
        moved = applied(keep, moved) + moved
        gathered = product(product(keep, gathered), transposed(keep)) + gathered
        return (product(keep, keep), moved, gathered), None

    (_, total), _ = jax.lax.scan(add, (first, first), jnp.arange(1.0, TERMS + 1))
    return jax.lax.scan(double, total, None, length=halvings)[0]


def jump_logs(
    generator: Float[Array, "state state"], lengths: Float[Array, "kind"]
) -> Float[Array, "kind state state"]:
    """log exp(F h)."""
    nothing = jnp.zeros_like(generator)
    return jnp.log(jnp.maximum(diffused(generator, nothing[0], nothing, lengths)[0], LEAST_PROBABILITY))


def moves(theta: Parameters, lengths: Float[Array, "kind"]) -> Moves:
    one = jax.vmap(diffused, in_axes=(0, 0, 0, None), out_axes=1)
    diffusion = one(theta.drift, theta.offset, theta.dispersion, lengths)
    generator = jnp.asarray(generator_from_rates(theta.rates))
    return Moves(*diffusion, jump_logs(generator, lengths))
