"""Exact simulation of jump processes (Gillespie 1977), one path or very many at given times."""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from ..errors import InputError
from .generators import check_one, exit_rates
from .paths import JumpPath, joined
from .precision import in_double_precision
from .processes import FiniteProcess, JumpProcess, State, ThinnedProcess, ThinnedState, choose
from .types import ArrayLike

# Jumps drawn per compiled call while a single path grows.
JUMPS_PER_CALL = 1024
# Times at which the bound of an inhomogeneous process is checked before it is simulated.
PROBES = 257


def observe(process: JumpProcess, initial: State, gaps: Float[Array, "time"], key: Key[Array, ""]) -> State:
    """Run one process and note its state after each gap; the others here are built on it.

    Waiting times, not absolute times, are carried along, so that long durations lose no precision.
    """

    def waiting_time(state, key):
        return jax.random.exponential(key, dtype=gaps.dtype) / process.intensities(state).sum()

    def jump(carry):
        state, wait, left, key = carry
        key, flow_key, choice_key, jump_key, wait_key = jax.random.split(key, 5)
        state = process.flow(state, wait, flow_key)
        state = process.jump(state, choose(process.intensities(state), choice_key), jump_key)
        return state, waiting_time(state, wait_key), left - wait, key

    def until_next(carry, gap):
        state, wait, key = carry
        state, wait, left, key = jax.lax.while_loop(lambda c: c[1] < c[2], jump, (state, wait, gap, key))
        key, flow_key = jax.random.split(key)
        state = process.flow(state, left, flow_key)
        return (state, wait - left, key), state

    key, first_key = jax.random.split(key)
    _, states = jax.lax.scan(until_next, (initial, waiting_time(initial, first_key), key), gaps)
    return states


@in_double_precision
@eqx.filter_jit
def observe_many(process: JumpProcess, initial: State, gaps: Float[Array, "series time"], key: Key[Array, ""]) -> State:
    """`observe` for many series at once: every leaf of `initial`, and of the result, has a leading axis of series."""
    keys = jax.random.split(key, len(gaps))
    return jax.vmap(partial(observe, process))(initial, gaps, keys)


@in_double_precision
def simulate_states(
    rates: ArrayLike, times: ArrayLike, *, initial: ArrayLike, key: Key[Array, ""], n_series: int | None = None
) -> Int[np.ndarray, "series time"]:
    """States of many independent copies of one process at given times.

    Args:
        rates: (K, K).
        times: (N, L), or (L,) shared by all series (then give `n_series`); non-negative, non-decreasing.
        initial: law at time 0, (K,), or one state per series, (N,) integers.
        key: JAX random key.
        n_series: N, when times are shared.

    >>> states = simulate_states([[0, 2.0], [1.0, 0]], [0.0, 100.0], initial=[1.0, 0.0], key=jax.random.key(0),
    ...                          n_series=10_000)
    >>> (states[:, 0] == 0).all(), abs(states[:, 1].mean() - 2 / 3) < 0.02
    (np.True_, np.True_)
    """
    rates = check_one(rates)
    gaps = gaps_from_times(times, n_series)
    initial_key, key = jax.random.split(key)
    start = initial_states(initial, len(rates), len(gaps), initial_key)
    return np.asarray(observe_many(FiniteProcess(jnp.asarray(rates)), start, gaps, key))


@in_double_precision
def simulate_inhomogeneous(
    rates: Callable[[Array], Array],
    times: ArrayLike,
    *,
    bound: float,
    initial: ArrayLike,
    key: Key[Array, ""],
    n_series: int | None = None,
) -> Int[np.ndarray, "series time"]:
    """As `simulate_states`, with rates that change with time, by thinning.

    Args:
        rates: t -> (K, K), traceable by JAX.
        bound: at least the largest exit rate of any state at any time; a bound that proves too low is an error.
    """
    gaps = gaps_from_times(times, n_series)
    # Candidates alone would miss a bound so low that none comes: look at the rates before, too.
    probes = jnp.linspace(0.0, gaps.sum(-1).max(initial=0.0), PROBES)
    if not exit_rates(jax.vmap(rates)(probes)).max() <= bound * (1 + 1e-5) or not 0 < bound < np.inf:
        raise InputError(f"the rates rose above the bound {bound:g}: simulate again with a larger bound")
    initial_key, key = jax.random.split(key)
    n_states = jax.eval_shape(rates, jnp.zeros(())).shape[-1]
    start = initial_states(initial, n_states, len(gaps), initial_key)
    nothing = jnp.zeros(len(gaps))
    state = ThinnedState(start, nothing, nothing > 0)
    observed = observe_many(ThinnedProcess(rates, jnp.asarray(bound, float)), state, gaps, key)
    if bool(observed.exceeded.any()):
        raise InputError(f"the rates rose above the bound {bound:g}: simulate again with a larger bound")
    return np.asarray(observed.state)


@in_double_precision
def simulate_path(
    process: JumpProcess | ArrayLike, duration: float, *, initial: ArrayLike, key: Key[Array, ""]
) -> JumpPath:
    """One whole path from time 0 to `duration`, with every jump.

    Args:
        process: rates (K, K), or a process without flow whose state is an integer array.
        initial: the state at time 0, or for rates a law (K,) to draw it from.
    """
    if not (np.isfinite(duration) and duration > 0):
        raise InputError(f"the duration of a path must be positive and finite, got {duration}")
    if not isinstance(process, JumpProcess):
        rates = check_one(process)
        initial_key, key = jax.random.split(key)
        first = np.atleast_1d(initial) if np.ndim(initial) == 0 else initial
        state = initial_states(first, len(rates), 1, initial_key)[0]
        process = FiniteProcess(jnp.asarray(rates))
    else:
        state = jnp.asarray(initial)
    waits, states, reached = [], [np.asarray(state)[None]], 0.0
    while reached < duration:
        key, call_key = jax.random.split(key)
        state, (some_waits, some_states) = _more_jumps(process, state, call_key)
        waits.append(np.asarray(some_waits, dtype=np.float64))
        states.append(np.asarray(some_states))
        reached += waits[-1].sum()
    jump_times = np.cumsum(np.concatenate(waits))
    inside = int(np.searchsorted(jump_times, duration))
    return joined(jump_times[:inside], np.concatenate(states)[: inside + 1], float(duration))


@eqx.filter_jit
def _more_jumps(process: JumpProcess, state: Array, key: Key[Array, ""]):
    def jump(state, key):
        choice_key, jump_key, wait_key = jax.random.split(key, 3)
        intensities = process.intensities(state)
        wait = jax.random.exponential(wait_key, dtype=intensities.dtype) / intensities.sum()
        new = process.jump(state, choose(intensities, choice_key), jump_key)
        new = jnp.where(intensities.sum() > 0, new, state)  # absorbed: the wait is infinite, nothing changes
        return new, (wait, new)

    return jax.lax.scan(jump, state, jax.random.split(key, JUMPS_PER_CALL))


def initial_states(initial: ArrayLike, n_states: int, n_series: int, key: Key[Array, ""]) -> Int[Array, "series"]:
    """One starting state per series, as given (integers) or drawn from a law (K,)."""
    given = np.asarray(initial)
    if given.dtype.kind in "iu":
        if given.shape not in ((n_series,), (1,)) or given.min() < 0 or given.max() >= n_states:
            raise InputError(f"initial must name one state in 0..{n_states - 1} per series ({n_series}), or be a law")
        return jnp.broadcast_to(jnp.asarray(given, dtype=int), (n_series,))
    law = given.astype(float)
    if law.shape != (n_states,) or not (law >= 0).all() or abs(law.sum() - 1) > 1e-6:
        raise InputError(f"an initial law holds {n_states} probabilities that sum to one; got {initial!r}")
    return jax.vmap(partial(choose, jnp.asarray(law)))(jax.random.split(key, n_series))


def gaps_from_times(times: ArrayLike, n_series: int | None = None) -> Float[Array, "series time"]:
    """Time from 0 to the first observation and between each and the next, differenced in double precision."""
    grid = np.asarray(times, dtype=np.float64)
    if grid.ndim == 1:
        if n_series is None:
            raise InputError("times shared by all series need n_series")
        grid = np.broadcast_to(grid, (n_series, len(grid)))
    if grid.ndim != 2 or n_series not in (None, len(grid)):
        raise InputError(f"times must be (series, time), or (time,) with n_series; got shape {grid.shape}")
    gaps = np.diff(grid, axis=-1, prepend=0.0)
    if not (gaps >= 0).all() or not np.isfinite(gaps).all():
        raise InputError("observation times must be finite, non-negative and in increasing order")
    return jnp.asarray(gaps)
