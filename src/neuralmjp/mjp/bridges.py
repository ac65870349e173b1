"""Paths conditioned on both ends, by uniformisation.

Candidate events come at a constant rate q; at each the state moves by the matrix P = I + F / q, which may leave it
where it is. Given both ends, the number of candidates has weights Poisson(n; q T) (P^n)_ab, their times are uniform,
and the states in between form a discrete bridge (Hobolth & Stone 2009, *Annals of Applied Statistics* 3, 1204).
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from ..errors import InputError
from .exponential import transition_matrix
from .generators import check_one, exit_rates
from .paths import JumpPath, joined
from .precision import in_double_precision
from .structure import reachable
from .types import ArrayLike
from .uniformisation import most_jumps

# Probability that a bridge needs more candidate events than are kept.
TRUNCATION = 1e-10


@dataclass(frozen=True)
class Bridges:
    """Many conditioned paths, padded: candidates after the last one of a path repeat its final state.

    `bridges[i]` is the i-th as a `JumpPath`.
    """

    event_times: Float[np.ndarray, "path event"]  # increasing; `duration` where padded
    states: Int[np.ndarray, "path visit"]
    durations: Float[np.ndarray, "path"]

    def __len__(self) -> int:
        return len(self.durations)

    def __getitem__(self, index: int) -> JumpPath:
        return joined(self.event_times[index], self.states[index], float(self.durations[index]))


@in_double_precision
def sample_bridges(
    rates: ArrayLike, starts: ArrayLike, ends: ArrayLike, durations: ArrayLike, *, key: Key[Array, ""]
) -> Bridges:
    """Paths of a jump process that start in state a, end in state b and last T; exact, vectorised over paths.

    Args:
        rates: (K, K).
        starts, ends: (N,) states.
        durations: (N,) positive.

    >>> bridges = sample_bridges([[0, 1.0], [1.0, 0]], [0, 0], [1, 0], [1.0, 2.0], key=jax.random.key(0))
    >>> bridges[0].states[0].item(), bridges[0].states[-1].item()
    (0, 1)
    """
    rates = check_one(rates)
    starts, ends, durations = np.broadcast_arrays(
        np.atleast_1d(starts).astype(int), np.atleast_1d(ends).astype(int), np.asarray(durations, dtype=float)
    )
    _check_ends(rates, starts, ends, durations)
    fastest = max(float(exit_rates(rates).max()), np.finfo(float).tiny)
    jumps = fastest * durations
    # The tail of the Poisson law matters relative to how likely the ends are.
    likely = transition_matrix(rates, durations)[np.arange(len(starts)), starts, ends]
    n_events = 1 + int(most_jumps(TRUNCATION * np.maximum(likely, 1e-290), jumps).max())
    n_events = 1 << (n_events - 1).bit_length()  # few shapes, few compilations
    step = np.eye(len(rates)) + (rates - np.diag(exit_rates(rates))) / fastest
    states, fractions = _sample(
        jnp.asarray(np.maximum(step, 0.0)),
        jnp.asarray(starts),
        jnp.asarray(ends),
        jnp.asarray(jumps),
        jax.random.split(key, len(starts)),
        n_events,
    )
    event_times = np.asarray(fractions, dtype=np.float64) * durations[:, None]
    return Bridges(event_times, np.asarray(states), durations)


@partial(jax.jit, static_argnames="n_events")
def _sample(step: Array, starts: Array, ends: Array, jumps: Array, keys: Array, n_events: int):
    eye = jnp.eye(len(step), dtype=step.dtype)
    _, powers = jax.lax.scan(lambda power, _: (power @ step, power), eye, length=n_events + 1)  # P^0 ... P^n
    count = jnp.arange(n_events + 1)
    log_factorial = jax.scipy.special.gammaln(count + 1.0)

    def one(start, end, jumps, key):
        count_key, time_key, state_key = jax.random.split(key, 3)
        log_weights = count * jnp.log(jumps) - log_factorial + jnp.log(powers[:, start, end])
        n = jax.random.categorical(count_key, log_weights)
        uniform = jax.random.uniform(time_key, (n_events,), step.dtype)
        fractions = jnp.sort(jnp.where(count[1:] <= n, uniform, 1.0))

        def advance(state, inputs):
            k, key = inputs
            log_law = jnp.log(step[state]) + jnp.log(powers[jnp.maximum(n - k, 0), :, end])
            new = jax.random.categorical(key, log_law)
            state = jnp.where(k <= n, new, state).astype(start.dtype)
            return state, state

        _, states = jax.lax.scan(advance, start, (count[1:], jax.random.split(state_key, n_events)))
        return jnp.concatenate([start[None], states]), fractions

    return jax.vmap(one)(starts, ends, jumps, keys)


def _check_ends(rates: np.ndarray, starts: np.ndarray, ends: np.ndarray, durations: np.ndarray) -> None:
    if not (np.isfinite(durations) & (durations > 0)).all():
        raise InputError("durations of bridges must be positive and finite")
    for name, states in (("start", starts), ("end", ends)):
        if states.min() < 0 or states.max() >= len(rates):
            raise InputError(f"{name} states of bridges must lie in 0..{len(rates) - 1}")
    impossible = ~reachable(rates)[starts, ends]
    if impossible.any():
        i = int(np.flatnonzero(impossible)[0])
        raise InputError(f"no path leads from state {starts[i]} to state {ends[i]} (bridge {i})")
