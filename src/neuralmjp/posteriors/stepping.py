"""The master equation with rates known on a grid of nodes: one exponential per piece, all pieces at once.

Matrices here keep their rows and columns in front, (n, n, ...): a product of a hundred thousand small ones is then a
few multiplications of long vectors, which is what processors like.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..mjp.master_equation import GAUSS, HEAVY, LIGHT

WIDEST_UNROLLED = 16  # states up to which a product is written out
WIDEST_PARALLEL = 8  # and up to which products of all prefixes are cheaper than one step after the other

Order = int  # 2: one exponential per piece, of the rates in its middle; 4: two, of the rates at two Gauss points


@jax.custom_vjp
def small_product(a: Float[Array, "row inner *lead"], b: Float[Array, "inner column *lead"]) -> Array:
    """Products of many small matrices."""
    if len(b) > WIDEST_UNROLLED:
        return jnp.einsum("ij...,jk...->ik...", a, b)
    total = a[:, 0, None] * b[None, 0]
    for j in range(1, len(b)):
        total = total + a[:, j, None] * b[None, j]
    return total


def _product_forward(a: Array, b: Array) -> tuple[Array, tuple[Array, Array]]:
    return small_product(a, b), (a, b)


def _product_backward(kept: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    """Two more products; left to itself, the derivative of a sum of slices would be sums of padded slices."""
    a, b = kept
    return small_product(slope, b.swapaxes(0, 1)), small_product(a.swapaxes(0, 1), slope)


small_product.defvjp(_product_forward, _product_backward)


def short_expm(matrix: Float[Array, "n n *lead"], n_states: int) -> Float[Array, "n n *lead"]:
    """exp of a generator with extra columns, for pieces in which few jumps happen; rows of states sum to one.

    As `mjp.exponential.expm`, which bears any number of jumps, but short enough for every step of a training run:
    exact to rounding for up to 4 jumps per piece, a proper transition matrix whatever the rates.
    """
    terms, halvings = (14, 5) if matrix.dtype == jnp.float64 else (7, 4)
    n = len(matrix)
    eye = jnp.eye(n, dtype=matrix.dtype).reshape(n, n, *([1] * (matrix.ndim - 2)))
    shift = jnp.max(-jnp.stack([matrix[k, k] for k in range(n)]), axis=0)
    scaled = (matrix + shift * eye) / 2**halvings
    total = eye + scaled / terms
    for k in range(terms - 1, 0, -1):
        total = eye + small_product(scaled, total) / k
    total = _states_to_one(total, n_states)
    for _ in range(halvings):
        total = small_product(total, total)
    return _states_to_one(total, n_states)


def _states_to_one(matrix: Array, n_states: int) -> Array:
    rows = matrix[:n_states] / matrix[:n_states, :n_states].sum(1, keepdims=True)
    if n_states == len(matrix):
        return rows
    eye = jnp.eye(len(matrix), dtype=matrix.dtype)[n_states:]
    below = jnp.broadcast_to(eye.reshape(*eye.shape, *([1] * (matrix.ndim - 2))), (*eye.shape, *matrix.shape[2:]))
    return jnp.concatenate([rows, below])


def piece_times(nodes: Float[Array, "series node"], substeps: int, order: Order) -> Float[Array, "series piece point"]:
    """Where the rates are needed in each of `substeps` pieces between neighbouring nodes."""
    starts, pieces = _pieces(nodes, substeps)
    inside = (0.5,) if order == 2 else (GAUSS, 1 - GAUSS)
    return jnp.stack([starts + float(x) * pieces for x in inside], axis=-1)


def march_pieces(
    matrices: Float[Array, "series piece point n n"],
    initial: Float[Array, "series n"],
    nodes: Float[Array, "#series node"],
    substeps: int,
    n_states: int,
) -> Float[Array, "series node n"]:
    """Solve dy/dt = y A(t) at the nodes, with A at the `piece_times`: a Magnus step of order two or four."""
    _, pieces = _pieces(nodes, substeps)
    front = jnp.moveaxis(matrices, (-2, -1), (0, 1)) * pieces[..., None]
    if front.shape[-1] == 2:
        early, late = front[..., 0], front[..., 1]
        heavy, light = float(HEAVY), float(LIGHT)
        front = jnp.stack([heavy * early + light * late, light * early + heavy * late], axis=-1)
        front = _as_generators(front, n_states)  # the light weight is negative, and so may its part be
    n = len(front)
    # (n, n, series, piece, point) -> (n, n, node, point, series): neighbours in memory are independent
    steps = jnp.moveaxis(short_expm(front, n_states), 2, -1).reshape(n, n, nodes.shape[1] - 1, -1, len(initial))
    whole = steps[:, :, :, 0]
    for k in range(1, steps.shape[3]):
        whole = small_product(whole, steps[:, :, :, k])
    return propagated(initial, whole)


def propagated(
    initial: Float[Array, "series n"], steps: Float[Array, "n n step series"]
) -> Float[Array, "series node n"]:
    """Rows before the first step and after each."""
    if len(steps) <= WIDEST_PARALLEL:
        all_before = jax.lax.associative_scan(small_product, steps, axis=2)
        rows = jnp.einsum("sn,nmks->skm", initial, all_before)
        return jnp.concatenate([initial[:, None], rows], axis=1)

    def advance(row, step):
        row = jnp.einsum("sn,nms->sm", row, step)
        return row, row

    _, rows = jax.lax.scan(advance, initial, jnp.moveaxis(steps, 2, 0), unroll=2)
    return jnp.concatenate([initial[:, None], jnp.moveaxis(rows, 0, 1)], axis=1)


def quadrature(horizon: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [0, horizon]."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (nodes + 1) * horizon / 2, weights * horizon / 2


def _pieces(nodes: Array, substeps: int) -> tuple[Array, Array]:
    gaps = jnp.diff(nodes, axis=1) / substeps
    starts = nodes[:, :-1, None] + gaps[:, :, None] * jnp.arange(substeps, dtype=nodes.dtype)
    return starts.reshape(len(nodes), -1), jnp.repeat(gaps, substeps, axis=1)


def _as_generators(matrices: Array, n_states: int) -> Array:
    """No negative rates, rows of states that sum to zero; the extra columns as they are."""
    eye = jnp.eye(n_states, dtype=matrices.dtype).reshape(n_states, n_states, *([1] * (matrices.ndim - 2)))
    rates = jnp.maximum(matrices[:n_states, :n_states], 0.0) * (1 - eye)
    return matrices.at[:n_states, :n_states].set(rates - rates.sum(1, keepdims=True) * eye)
