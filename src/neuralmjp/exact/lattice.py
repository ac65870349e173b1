"""The exact likelihood of a reaction network on its box of counts, without writing its generator down.

Probability lives on a window of the box that moves with the readings. Inside it the generator is a handful of shifted
adds, and exp(F t) a sum of Poisson weights times powers of I + F / q: nothing is subtracted. One pass forwards filters;
one pass backwards gives every derivative: by constants, by the noise, and by a tilt of each count's emission, which is
its posterior probability.
"""

import math
import operator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, xlogy
from jaxtyping import Array, Float, Int

from ..emissions.emission import Params
from ..emissions.readings import NEVER, Readings
from ..mjp.uniformisation import most_jumps
from ..systems.events import Events

JUMPS = 16.0  # most expected jumps of the uniformised process in a substep; exp(-JUMPS) must not underflow
TAIL = 1e-12  # probability that a substep may leave out
MOST_TERMS = int(most_jumps(TAIL, JUMPS))


class Steps(NamedTuple):
    """Series side by side, each cut into substeps; the first takes no time and reads the first observation."""

    offset: Int[Array, "step species series"] | Int[np.ndarray, "step species series"]  # smallest counts of the window
    fastest: Float[Array, "step series"] | Float[np.ndarray, "step series"]  # at least its largest exit rate
    jumps: Float[Array, "step series"] | Float[np.ndarray, "step series"]  # fastest x duration, at most `JUMPS`
    values: Float[Array, "step column series"] | Float[np.ndarray, "step column series"]  # NaN: nothing is read
    terms: Int[Array, "step"] | Int[np.ndarray, "step"]  # of the sum, for the most jumps of any series
    n_steps: Int[Array, ""] | Int[np.ndarray, ""] | int  # the rest is padding


class Filtered(NamedTuple):
    """The log-likelihood of some series, with everything that one backward pass gives."""

    log_norms: Float[Array, "step series"]  # they add up to the log-likelihood of a series; 0 in padding
    constants: Float[Array, "constant"]  # slope by the logarithm of each constant, all series together
    noise: Params  # slope by what the readings learn
    marginals: tuple[Float[Array, "step _ series"], ...]  # of each of `shown` after each step, given all readings
    highest: Float[Array, "species step series"]  # of them, the probability of the highest count in the window
    last: Float[Array, "cell series"]  # the law of all species at the end
    lost: Float[Array, "series"]  # posterior probability of having left a window, as if all were well just outside


def shown(readings: Readings, n_species: int) -> list[tuple[int, ...]]:
    """The totals whose posterior laws are computed: each species, then each sum that is read."""
    return [(s,) for s in range(n_species)] + [column for column in readings.columns if len(column) > 1]


class _Here(NamedTuple):
    """One substep."""

    shift: Int[Array, "species series"]  # of the window, before it
    offset: Int[Array, "species series"]
    fastest: Float[Array, "series"]
    jumps: Float[Array, "series"]
    values: Float[Array, "column series"]
    terms: Int[Array, ""]


@partial(jax.jit, static_argnames="window")
def filtered(
    events: Events,
    readings: Readings,
    log_constants: Float[Array, "constant"],
    noise: Params,
    law: Float[Array, "species count"],
    steps: Steps,
    *,
    window: tuple[int, ...],
) -> Filtered:
    """Filter forwards, differentiate backwards.

    Args:
        law: of each species at the first observation, independent of the others; zero beyond its box.
        steps: what happens to each series.
        window: counts of each species that are followed.
    """
    n_steps, _, n_series = steps.offset.shape
    n_cells = math.prod(window)
    shifts = jnp.diff(steps.offset, axis=0, prepend=steps.offset[:1])
    inputs = _Here(shifts, *(jnp.asarray(each) for each in steps[:-1]))
    parameters = log_constants, noise

    def step(parameters, tilt, spill, mass, here):
        return _step(events, readings, window, parameters, tilt, spill, mass, here)

    sizes = [sum(window[s] - 1 for s in total) + 1 for total in shown(readings, len(window))]
    no_tilt = tuple(jnp.zeros((n, n_series)) for n in sizes)
    no_spill = jnp.zeros(n_series)

    def ahead(t, carry):
        mass, lost, before, log_norms = carry
        before = jax.lax.dynamic_update_index_in_dim(before, mass, t, 0)
        mass, log_norm, cut = step(parameters, no_tilt, no_spill, mass, _at(inputs, t))
        return mass, lost + cut, before, jax.lax.dynamic_update_index_in_dim(log_norms, log_norm, t, 0)

    start = _start(law, window, steps.offset[0])
    empty = jnp.zeros((n_steps, n_cells, n_series)), jnp.zeros((n_steps, n_series))
    last, lost, before, log_norms = jax.lax.fori_loop(0, steps.n_steps, ahead, (start, no_spill, *empty))

    def back(k, carry):
        t = steps.n_steps - 1 - k
        slope, total, marginals, lost = carry
        taken = partial(step, here=_at(inputs, t))
        _, pull = jax.vjp(taken, parameters, no_tilt, no_spill, before[t])
        by_parameters, by_tilt, by_spill, slope = pull((slope, jnp.ones(n_series), no_spill))
        total = jax.tree.map(jnp.add, total, by_parameters)
        marginals = tuple(
            jax.lax.dynamic_update_index_in_dim(m, now, t, 0) for m, now in zip(marginals, by_tilt, strict=True)
        )
        return slope, total, marginals, lost - by_spill

    zero = jax.tree.map(jnp.zeros_like, parameters)
    unseen = tuple(jnp.zeros((n_steps, n, n_series)) for n in sizes)
    carry = jnp.zeros((n_cells, n_series)), zero, unseen, lost
    _, (constants, noise_slope), marginals, lost = jax.lax.fori_loop(0, steps.n_steps, back, carry)
    highest = jnp.stack([each[:, -1] for each in marginals[: len(window)]])
    return Filtered(log_norms, constants, noise_slope, marginals, highest, last, lost)


def _at(inputs: _Here, t: Int[Array, ""]) -> _Here:
    return jax.tree.map(lambda each: jax.lax.dynamic_index_in_dim(each, t, 0, keepdims=False), inputs)


def _start(
    law: Float[Array, "species count"], window: tuple[int, ...], offset: Int[Array, "species series"]
) -> Float[Array, "cell series"]:
    """The law at the first observation, inside the first window."""
    inside = [law[s][x] for s, x in enumerate(_counts(window, offset))]
    product = inside[0]
    for each in inside[1:]:
        product = product * each
    return product.reshape(-1, offset.shape[1])


def _counts(window: tuple[int, ...], offset: Int[Array, "species series"]) -> list[Int[Array, "..."]]:
    """Counts of each species in the window, in shapes that broadcast to (window, series)."""
    result = []
    for s, n in enumerate(window):
        shape = [1] * len(window)
        shape[s] = n
        result.append(jnp.arange(n).reshape(*shape, 1) + offset[s])
    return result


def _step(
    events: Events,
    readings: Readings,
    window: tuple[int, ...],
    parameters: tuple[Float[Array, "constant"], Params],
    tilt: tuple[Float[Array, "_ series"], ...],
    spill: Float[Array, "series"],
    mass: Float[Array, "cell series"],
    here: _Here,
) -> tuple[Float[Array, "cell series"], Float[Array, "series"], Float[Array, "series"]]:
    """Move the window, let time pass, read: the law afterwards, the logarithm of its norm, what the move cut off.

    `tilt` adds to the log emission and `spill` to the share that leaves the window: both are zero, for derivatives.
    """
    log_constants, noise = parameters
    counts = _counts(window, here.offset)
    moved: Array = _moved(window, mass, here.shift)
    cut = mass.sum(0) - moved.sum(0)
    changes, rates = _rates(events, window, log_constants, counts, here.fastest)
    inside = np.stack([_stays_inside(window, change) for change in changes])
    leaving = (rates * ~inside).sum(0)
    stay = 1.0 - rates.sum(0) - leaving * spill
    orders = jnp.arange(MOST_TERMS + 1.0)[:, None]
    weights = jnp.exp(xlogy(orders, here.jumps) - here.jumps - gammaln(orders + 1))
    steps = tuple(sum(map(operator.mul, change, _strides(window))) for change in changes)
    mass = _propagated(steps, stay, tuple(rates * inside), moved, weights, here.terms)

    seen, height = mass.reshape(*window, -1), jnp.zeros_like(spill)
    for log_emission in _log_emissions(readings, noise, counts, here.values, tilt):
        best = jax.lax.stop_gradient(log_emission.max(tuple(range(len(window)))))
        seen, height = seen * jnp.exp(log_emission - best), height + best
    norm = seen.sum(tuple(range(len(window))))
    possible = norm > 0
    norm = jnp.where(possible, norm, 1.0)
    return (seen / norm).reshape(mass.shape), jnp.where(possible, jnp.log(norm) + height, NEVER), cut


def _rates(
    events: Events,
    window: tuple[int, ...],
    log_constants: Float[Array, "constant"],
    counts: list[Int[Array, "..."]],
    fastest: Float[Array, "series"],
) -> tuple[list[tuple[int, ...]], Float[Array, "change cell series"]]:
    """The different changes of counts, and how often each happens in every cell, per jump of the uniformised process.

    Written as one product of matrices, whose derivative is another.
    """
    changes = [change for change in dict.fromkeys(events.changes) if any(change)]
    which = [e for e, change in enumerate(events.changes) if any(change)]
    belongs = np.array([[float(events.changes[e] == change) for e in which] for change in changes])
    scales = events.scales(jnp.exp(log_constants))
    # Looked up once per count: fused with the product, they would be once per cell.
    factors = jax.lax.optimization_barrier([jnp.asarray(events.factors)[:, s][:, x] for s, x in enumerate(counts)])
    shape, ways = (*window, len(fastest)), []
    for e in which:
        way, function = 1.0 / fastest, events.functions[e]
        for factor in factors:
            way = way * factor[e]
        if function is not None:
            way = way * function(dict(zip(events.species, counts, strict=True)))
        ways.append(jnp.broadcast_to(way, shape).ravel())
    table = jnp.stack(ways)
    rates = jnp.asarray(belongs * scales[np.array(which)]) @ table
    return changes, rates.reshape(len(changes), -1, len(fastest))


def _log_emissions(
    readings: Readings,
    noise: Params,
    counts: list[Int[Array, "..."]],
    values: Float[Array, "column series"],
    tilt: tuple[Float[Array, "_ series"], ...],
) -> list[Float[Array, "..."]]:
    """Logarithms whose sum is that of the emission: a small array per species, or one large one if sums are read."""
    logs = [each.reshape(x.shape) for x, each in zip(counts, tilt, strict=False)]
    window, together, sums = [x.size // x.shape[-1] for x in counts], jnp.zeros(()), iter(tilt[len(counts) :])
    for column, some in enumerate(readings.columns):
        known = ~jnp.isnan(values[column])
        total = sum((counts[s] for s in some[1:]), counts[some[0]])
        log_density = readings.log_density(noise, column, jnp.where(known, values[column], 0.0), total)
        log_density = jnp.where(known, log_density, 0.0)
        if len(some) == 1:
            logs[some[0]] = logs[some[0]] + log_density
        else:
            place = np.indices(window)[list(some)].sum(0).ravel()  # of each cell among the totals
            belongs = np.eye(sum(window[s] - 1 for s in some) + 1)[place]
            together = together + log_density + (belongs @ next(sums)).reshape(*window, -1)
    return logs if together.ndim == 0 else [sum(logs, together)]


def _strides(window: tuple[int, ...]) -> list[int]:
    """How far one more of each species is in an array whose cells are laid end to end."""
    return [math.prod(window[s + 1 :]) for s in range(len(window))]


def _stays_inside(window: tuple[int, ...], change: tuple[int, ...]) -> np.ndarray:
    """From which cells of the window a change leads to another: a column of bool."""
    result = np.ones(window, dtype=bool)
    for after, n in zip(np.indices(window) + np.reshape(change, (-1,) + (1,) * len(window)), window, strict=True):
        result &= (after >= 0) & (after < n)
    return result.reshape(-1, 1)


def _shifted(mass: Float[Array, "cell series"], step: int) -> Float[Array, "cell series"]:
    """What stands `step` cells before, zero beyond the ends."""
    n, far = len(mass), min(abs(step), len(mass))
    padded = jnp.pad(mass, ((far, far), (0, 0)))
    first = far - max(min(step, far), -far)
    return jax.lax.slice_in_dim(padded, first, first + n, axis=0)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _propagated(steps, stay, rates, mass, weights, terms):
    """sum_n weights[n] mass P^n for n = 0..terms, where P keeps `stay` and carries `rates` along `steps`; by Horner.

    Args:
        steps: of cells laid end to end, one per array of rates; no rate leads out of the window.
        stay, rates, mass: (cell, series).
        weights: (term, series).
        terms: how many powers count.
    """
    return _horner(steps, stay, rates, mass, weights, terms, None)[0]


def _horner(steps, stay, rates, mass, weights, terms, tape):
    arrivals = [_shifted(rate, step) for rate, step in zip(rates, steps, strict=True)]

    def term(k, carry):
        total, tape = carry
        n = terms - 1 - k
        if tape is not None:
            tape = jax.lax.dynamic_update_index_in_dim(tape, total, n, 0)
        moved = stay * total + weights[n] * mass
        for rate, step in zip(arrivals, steps, strict=True):
            moved = moved + rate * _shifted(total, step)
        return moved, tape

    return jax.lax.fori_loop(0, terms, term, (weights[terms] * mass, tape))


def _propagated_ahead(steps, stay, rates, mass, weights, terms):
    tape = jnp.zeros((MOST_TERMS, *mass.shape))
    result, tape = _horner(steps, stay, rates, mass, weights, terms, tape)
    return result, (stay, rates, weights, terms, tape)


def _propagated_back(steps, kept, slope):
    """Expected uses of every rate: what came before each term times what follows it."""
    stay, rates, weights, terms, tape = kept

    def term(n, carry):
        slope, by_mass, by_stay, by_rates = carry
        before = tape[n]
        ahead = [_shifted(slope, -step) for step in steps]
        by_mass = by_mass + weights[n] * slope
        by_stay = by_stay + before * slope
        by_rates = tuple(total + before * there for total, there in zip(by_rates, ahead, strict=True))
        slope = stay * slope
        for rate, there in zip(rates, ahead, strict=True):
            slope = slope + rate * there
        return slope, by_mass, by_stay, by_rates

    zero = jnp.zeros_like(slope)
    carry = slope, zero, zero, (zero,) * len(steps)
    slope, by_mass, by_stay, by_rates = jax.lax.fori_loop(0, terms, term, carry)
    return by_stay, by_rates, by_mass + weights[terms] * slope, None, None


_propagated.defvjp(_propagated_ahead, _propagated_back)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _moved(window, mass, shift):
    """The same mass in a window that lies `shift` (species, series) further up; what falls outside is lost."""
    here = np.indices(window).reshape(len(window), -1, 1)
    inside, cell = True, np.arange(mass.shape[0])[:, None]
    for s, (n, stride) in enumerate(zip(window, _strides(window), strict=True)):
        there = here[s] + shift[s]
        inside = inside & (there >= 0) & (there < n)
        cell = cell + stride * shift[s]
    return jnp.where(inside, jnp.take_along_axis(mass, jnp.where(inside, cell, 0), axis=0), 0.0)


def _moved_ahead(window, mass, shift):
    return _moved(window, mass, shift), shift


def _moved_back(window, shift, slope):
    return _moved(window, slope, -shift), None


_moved.defvjp(_moved_ahead, _moved_back)
