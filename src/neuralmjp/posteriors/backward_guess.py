"""A first guess of the potentials of counts, in closed form: what the future says, as a mean and a precision.

Backwards in time the expected count goes against its drift, and its variance grows by the jumps that happen; readings
add precision. This is a Kalman filter for the network, linearised around its own mean, one species at a time. The
networks only have to correct it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..emissions.emission import Params
from ..emissions.readings import Readings
from .coupling import Coupling

LEAST_SPREAD = 0.3  # standard deviation of a count that readings without noise leave


class Guess(NamedTuple):
    """exp(-precision (n - mean)^2 / 2), up to a factor."""

    means: Float[Array, "*lead species"]
    precisions: Float[Array, "*lead species"]


class Seen(NamedTuple):
    """Readings at the nodes where there are any."""

    values: Float[Array, "*lead column"]
    known: Bool[Array, "*lead column"]


def backward_guess(
    coupling: Coupling,
    readings: Readings,
    noise: Params,
    log_scales: Float[Array, "event"],
    durations: Float[Array, "piece series"],
    at_ends: Seen,  # of each piece
    at_start: Seen,  # of the first node
) -> tuple[Guess, Guess]:
    """In the middle of each piece, of what comes after; and at the start, of everything. Without derivatives."""
    noise, log_scales = jax.lax.stop_gradient((noise, log_scales))
    scales = jnp.exp(log_scales)
    middle = jnp.broadcast_to(
        jnp.asarray([n / 2 for n in coupling.box], durations.dtype), (durations.shape[1], coupling.n_species)
    )

    def back(guess, piece):
        duration, seen = piece
        guess = _with_readings(readings, noise, guess, seen)
        half = _before(coupling, scales, guess, duration / 2)
        return _before(coupling, scales, half, duration / 2), half

    end = Guess(middle, jnp.zeros_like(middle))
    first, along = jax.lax.scan(back, end, (durations, at_ends), reverse=True)
    return along, _with_readings(readings, noise, first, at_start)


def _with_readings(readings: Readings, noise: Params, guess: Guess, seen: Seen) -> Guess:
    means, precisions = guess
    for column, species in enumerate(readings.columns):
        value, variance = readings.rough(noise, column, seen.values[..., column])
        there = seen.known[..., column].astype(means.dtype)
        for s in species:
            rest = [r for r in species if r != s]
            # Of a sum, what the others leave over; they are not known themselves.
            left = value - sum((guess.means[..., r] for r in rest), jnp.zeros_like(value))
            spread = (
                variance
                + LEAST_SPREAD**2
                + sum((1 / jnp.maximum(guess.precisions[..., r], 1e-4) for r in rest), jnp.zeros_like(value))
            )
            gain = there / spread
            total = precisions[..., s] + gain
            share = jnp.where(total > 0, gain / jnp.where(total > 0, total, 1.0), 0.0)
            means = means.at[..., s].add(share * (left - means[..., s]))
            precisions = precisions.at[..., s].set(total)
    return Guess(means, precisions)


def _before(coupling: Coupling, scales: Array, guess: Guess, duration: Float[Array, "series"]) -> Guess:
    """What a guess was a little earlier."""
    means, precisions = guess
    counts = jnp.arange(coupling.n_counts, dtype=means.dtype)
    top = jnp.asarray([n - 1 for n in coupling.box], means.dtype)
    inside = jnp.clip(means, 0.0, top)
    near = jnp.maximum(1 - jnp.abs(counts - inside[..., None]), 0.0)  # linear between neighbouring counts
    table = jnp.asarray(coupling.table, means.dtype)
    factors = jnp.einsum("bsn,esn->bes", near, table, precision="highest")
    low = jnp.clip(jnp.floor(inside), 0, top - 1)
    step = (counts == low[..., None] + 1).astype(means.dtype) - (counts == low[..., None])
    slopes = jnp.einsum("bsn,esn->bes", step, table, precision="highest")
    changes = jnp.asarray(coupling.changes, means.dtype)
    rates = scales * factors.prod(-1)
    drift, spread = rates @ changes, rates @ changes**2
    others = jnp.stack(
        [jnp.delete(factors, s, axis=-1, assume_unique_indices=True).prod(-1) for s in range(factors.shape[-1])], -1
    )
    bent = jnp.einsum("be,bes,es->bs", jnp.broadcast_to(scales, rates.shape), slopes * others, changes)
    dt = duration[:, None]
    shrink = jnp.exp(jnp.clip(-bent * dt, -1.0, 1.0))
    earlier = jnp.clip(means - drift * dt, 0.0, top)
    return Guess(earlier, precisions / (shrink**2 + precisions * spread * dt))
