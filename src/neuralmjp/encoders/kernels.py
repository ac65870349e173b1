"""Two kernels of a graphics card: a recurrence over all observations, and the slopes of all that goes on in it.

A few series stay with one multiprocessor from one end to the other: what they need of the weights streams past, all
else stays near. The sums are those of `ODERNN` and `GRUEncoder`; see `fused_scan`.

What products read is rounded to sixteen bits on its way, half the bytes of single precision and a fifth of the
instructions: ahead to float16, whose ten bits are those that a card keeps of single precision, too; back to bfloat16,
for which no slope is too small. Sums and all that is no product stay in single precision.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float

from .taped import Layer

ROWS = 32  # series that share a multiprocessor, at most: more leave others idle, fewer ask for every weight too often
FEWEST = 16  # rows of a product that a card takes
CHUNK = 64  # rows of a weight matrix on their way at once
WARPS, STAGES = 8, 4
AHEAD, BACK = jnp.float16, jnp.bfloat16  # what products read
SMALL = 1e-5  # of the normalisation, see `MLP`


class Shapes(NamedTuple):
    """What one program is made for; hashable."""

    width: int
    hidden: tuple[int, ...]  # of the differential equation between observations; none without one
    order: int  # evaluations of it per observation
    rows: int
    interpreted: bool

    def read(self, dtype: Any, *, back: bool) -> Any:
        """What products read; nothing is rounded where kernels are interpreted to be tested."""
        if self.interpreted:
            return dtype
        return BACK if back else AHEAD

    @property
    def evaluations(self) -> int:
        return self.order if self.hidden else 0

    @property
    def noted(self) -> list[tuple[int, bool]]:
        """Widths of all that is noted, and whether products read it: of each evaluation its input, and of each hidden
        layer what comes in and goes out of the activation; then reset, update, candidate, and what the state says to
        the candidate. Slopes are laid out alike, and products read all of them."""
        each = [(self.width, True), *((size, read) for size in self.hidden for read in (False, True))]
        return each * self.evaluations + [(self.width, False)] * 4


def ahead(
    shapes: Shapes, layers: dict[str, Layer], prepared: Array, spans: Array, there: Array
) -> tuple[Array, Array, list[Array]]:
    """The summary at the first observation, before each, and notes."""
    n_times, n_rows, _ = prepared.shape
    width, hidden, dtype = shapes.width, shapes.hidden, prepared.dtype
    read = shapes.read(dtype, back=False)
    gates, gate_biases = layers["gates"]
    weights = [layers[f"layer {k}"] for k in range(len(hidden) + 1)] if hidden else []
    weights = [(matrix.astype(read), bias) for matrix, bias in weights]
    scales = [layers[f"scale {k}"] for k in range(len(hidden))]
    given = [prepared, spans, there, gates.astype(read), gate_biases, *jax.tree.leaves((weights, scales))]
    settle, tanh = _settling(shapes), _tanh_of(shapes)
    product = partial(_product, dtype)

    def kernel(*refs):
        prepared, spans, there, gates, gate_biases, *more = refs[: len(given)]
        weights, scales = _paired(more, len(hidden))
        whole, before_each, gates_read, *notes = refs[len(given) :]
        each, gate_notes = by_evaluation(notes, shapes)

        def drift(number, t, x):
            """One evaluation of the differential equation's right side."""
            source, *activations = each[number]
            source[t] = x.astype(read)
            for k, size in enumerate(hidden):
                settle()
                u = product(source, t, weights[k][0], 0, size)
                y = tanh(scales[k][0][:] * (u * inverse_size(u)) + scales[k][1][:])
                activations[2 * k][t], activations[2 * k + 1][t] = u, y.astype(read)
                source = activations[2 * k + 1]
            settle()
            return product(source, t, weights[-1][0], 0, width) + weights[-1][1][:]

        def sigmoid(x):
            return (1 + tanh(x / 2)) / 2

        def step(i, state):
            t = n_times - 1 - i
            before = _stepped(shapes, partial(drift, t=t), state, spans[t])
            before_each[t], gates_read[t] = before, before.astype(read)
            settle()
            asked = [
                product(gates_read, t, gates, k * width, width) + gate_biases[pl.ds(k * width, width)] for k in range(3)
            ]
            reset = sigmoid(prepared[t, :, pl.ds(0, width)] + asked[0])
            update = sigmoid(prepared[t, :, pl.ds(width, width)] + asked[1])
            candidate = tanh(prepared[t, :, pl.ds(2 * width, width)] + reset * asked[2])
            for ref, value in zip(gate_notes, (reset, update, candidate, asked[2]), strict=True):
                ref[t] = value
            return before + there[t] * (1 - update) * (candidate - before)

        start = jnp.zeros((shapes.rows, width), dtype)
        whole[...] = jax.lax.fori_loop(0, n_times, step, start)

    made = [(width, dtype), (width, read), *((n, read if products else dtype) for n, products in shapes.noted)]
    whole, before, _, *notes = _called(
        kernel,
        shapes,
        given,
        [jax.ShapeDtypeStruct((n_rows, width), dtype)]
        + [jax.ShapeDtypeStruct((n_times, n_rows, n), kind) for n, kind in made],
    )
    return whole, before, notes


def back(
    shapes: Shapes,
    layers: dict[str, Layer],
    before: Array,
    notes: list[Array],
    spans: Array,
    there: Array,
    d_whole: Array,
    d_before: Array,
) -> list[Array]:
    """The slope at all that was noted, from those at what `ahead` returned."""
    n_times, n_rows, width = before.shape
    hidden, read = shapes.hidden, shapes.read(before.dtype, back=True)
    gates, _ = layers["gates"]
    turned = [layers[f"layer {k}"][0].T.astype(read) for k in range(len(hidden) + 1)] if hidden else []
    gains = [layers[f"scale {k}"][0] for k in range(len(hidden))]
    given = [d_whole, d_before, before, spans, there, gates.T.astype(read), *turned, *gains, *notes]
    settle = _settling(shapes)
    product = partial(_product, before.dtype)

    def kernel(*refs):
        d_whole, d_before, before_each, spans, there, gates, *more = refs[: len(given)]
        turned, gains = more[: len(hidden) + 1] if hidden else [], more[len(more) - len(notes) - len(hidden) :]
        each, gate_notes = by_evaluation(more[len(more) - len(notes) :], shapes)
        slopes, gate_slopes = by_evaluation(refs[len(given) :], shapes)

        def drift_back(number, t, slope):
            """From the slope at what an evaluation returns to the slope at what it reads."""
            _, *activations = each[number]
            source, *at_activations = slopes[number]
            source[t] = slope.astype(read)
            for k in reversed(range(len(hidden))):
                settle()
                at_y = product(source, t, turned[k + 1], 0, hidden[k])
                u, y = activations[2 * k][t], activations[2 * k + 1][t].astype(at_y.dtype)
                size = inverse_size(u)
                at_z = at_y * (1 - y * y)
                at_n, n = at_z * gains[k][:], u * size
                source = at_activations[2 * k]
                source[t] = (size * (at_n - n * _mean(at_n * n))).astype(read)
                at_activations[2 * k + 1][t] = at_z.astype(read)
            settle()
            return product(source, t, turned[0], 0, width)

        def step(t, slope):
            before = before_each[t]
            reset, update, candidate, asked = (ref[t] for ref in gate_notes)
            after = there[t] * slope
            at_candidate = after * (1 - update) * (1 - candidate * candidate)
            found = (
                at_candidate * asked * reset * (1 - reset),
                after * (before - candidate) * update * (1 - update),
                at_candidate * reset,
                at_candidate,
            )
            for ref, value in zip(gate_slopes, found, strict=True):
                ref[t] = value.astype(read)
            settle()
            total = slope - after * (1 - update) + d_before[t]
            for k in range(3):
                total = total + product(gate_slopes[k], t, gates, 0, width, first=k * width)
            return _stepped_back(shapes, partial(drift_back, t=t), total, spans[t])

        jax.lax.fori_loop(0, n_times, step, d_whole[...])

    return _called(kernel, shapes, given, [jax.ShapeDtypeStruct((n_times, n_rows, n), read) for n, _ in shapes.noted])


def _stepped(shapes: Shapes, drift: Callable[..., Array], state: Array, span: Array) -> Array:
    """A Runge-Kutta step, as in `ODERNN`."""
    if not shapes.evaluations:
        return state
    one = drift(0, x=state)
    two = drift(1, x=state + span / 2 * one)
    if shapes.order == 2:
        return state + span * two
    three = drift(2, x=state + span / 2 * two)
    four = drift(3, x=state + span * three)
    return state + span / 6 * (one + 2 * two + 2 * three + four)


def _stepped_back(shapes: Shapes, drift_back: Callable[..., Array], slope: Array, span: Array) -> Array:
    if not shapes.evaluations:
        return slope
    if shapes.order == 2:
        middle = drift_back(1, slope=span * slope)
        return slope + middle + drift_back(0, slope=span / 2 * middle)
    four = drift_back(3, slope=span / 6 * slope)
    three = drift_back(2, slope=span / 3 * slope + span * four)
    two = drift_back(1, slope=span / 3 * slope + span / 2 * three)
    return slope + four + three + two + drift_back(0, slope=span / 6 * slope + span / 2 * two)


def _product(
    dtype: Any, x: Any, t: Any, weight: Any, column: int, n: int, *, first: int = 0
) -> Float[Array, "row out"]:
    """x[t] times n columns of a matrix, or of rows from `first` on; a chunk after the other."""
    n_rows, fan_in = x.shape[1], x.shape[2]
    chunk = min(CHUNK, fan_in)

    def add(k, total):
        part = weight[pl.ds(first + k * chunk, chunk), pl.ds(column, n)]
        return total + jnp.dot(x[t, :, pl.ds(k * chunk, chunk)], part, preferred_element_type=dtype)

    return jax.lax.fori_loop(0, fan_in // chunk, add, jnp.zeros((n_rows, n), dtype))


def _settling(shapes: Shapes) -> Callable[[], None]:
    """What one thread of a kernel wrote another reads only after all have come so far."""
    return (lambda: None) if shapes.interpreted else triton.debug_barrier


def _tanh_of(shapes: Shapes) -> Callable[[Array], Array]:
    """As a card has it in one instruction, which errs by as much as rounding to float16 does."""
    return jnp.tanh if shapes.interpreted else triton.approx_tanh


def _mean(x: Array) -> Array:
    return x.sum(-1, keepdims=True) / x.shape[-1]


def inverse_size(u: Array) -> Array:
    """What a layer is multiplied by to be normalised; its weights centre it, see `MLP.layers`."""
    return jax.lax.rsqrt(_mean(u * u) + SMALL)


def _paired(refs: list[Any], n_hidden: int) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]]]:
    """Matrices with their biases, and gains with theirs."""
    pairs = list(zip(refs[::2], refs[1::2], strict=True))
    return (pairs[: n_hidden + 1], pairs[n_hidden + 1 :]) if n_hidden else ([], [])


def by_evaluation(flat: Any, shapes: Shapes) -> tuple[list[list[Any]], list[Any]]:
    """Notes of each evaluation, and of the gates."""
    n = 1 + 2 * len(shapes.hidden)
    return [list(flat[k * n : (k + 1) * n]) for k in range(shapes.evaluations)], list(flat[-4:])


def _called(kernel: Any, shapes: Shapes, given: list[Array], made: list[jax.ShapeDtypeStruct]) -> list[Array]:
    """Run a kernel with its share of the rows: the last axis but one of what has rows, all of what has none."""
    n_rows = made[-1].shape[1]

    def share(shape):
        if len(shape) == 3:
            return pl.BlockSpec((shape[0], shapes.rows, shape[2]), lambda i: (0, i, 0))
        return pl.BlockSpec((shapes.rows, shape[1]), lambda i: (i, 0))

    def all_of(shape):
        return pl.BlockSpec(shape, lambda i: (0,) * len(shape))

    run = pl.pallas_call(
        kernel,
        grid=(n_rows // shapes.rows,),
        in_specs=[share(x.shape) if x.ndim == 3 or x is given[0] else all_of(x.shape) for x in given],
        out_specs=[share(one.shape) for one in made],
        out_shape=made,
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=STAGES),
        interpret=shapes.interpreted,
    )
    return list(run(*given))
