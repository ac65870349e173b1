"""The master equation dp/dt = p F(t) when the rates change with time.

The rates depend on time alone, never on p, so the equation is linear with known coefficients: evaluate them at all
nodes in one batched call, exponentiate each step, and multiply. `solve_adaptively` is the independent witness.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import InputError
from .exponential import expm
from .generators import generator_from_rates
from .types import ArrayLike

RateFunction = Callable[[Any], Any]  # time -> matrix

# Two Gauss points per step, and the weights of the commutator-free Magnus method of order four: the step is the
# product of two exponentials, each of a mixture of the two generators (Blanes & Moan 2006).
GAUSS = 0.5 - np.sqrt(3) / 6
HEAVY, LIGHT = 0.25 + np.sqrt(3) / 6, 0.25 - np.sqrt(3) / 6


class MasterSolution(NamedTuple):
    """Marginals at the asked times, and an estimate of their error."""

    marginals: Float[Array, "time state"]
    error: Float[Array, ""]  # largest absolute error over times and states, estimated by halving the steps


def solve_master_equation(
    rates: RateFunction,
    initial: ArrayLike,
    times: ArrayLike,
    *,
    substeps: int = 8,
    order: Literal[2, 4] = 4,
) -> MasterSolution:
    """Solve dp/dt = p F(t) by linear stepping on a fixed grid.

    Order 2 (exponential midpoint) keeps probabilities non-negative whatever the step; order 4 does once the steps
    resolve how the rates change.

    Args:
        rates: t -> (K, K), traceable by JAX. Pass the same function object again to reuse what was compiled.
        initial: law at times[0].
        times: increasing.
        substeps: steps per interval between two times.
        order: order of convergence in the step.

    Returns:
        marginals (T, K) from twice as many substeps as asked, and the estimated error of those.
    """
    check_grid(times, substeps)
    initial, times = jnp.asarray(initial, float), jnp.asarray(times, float)
    return _solve(rates, initial, times, substeps, order)


def solve_adaptively(
    rates: RateFunction, initial: ArrayLike, times: ArrayLike, *, tolerance: float = 1e-8
) -> Float[Array, "time state"]:
    """Solve the same equation by Diffrax's adaptive Dormand-Prince method of order eight: slow and sure."""
    check_grid(times, 1)
    initial, times = jnp.asarray(initial, float), jnp.asarray(times, float)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, p, _: p @ generator_from_rates(rates(t))),
        diffrax.Dopri8(),
        t0=times[0],
        t1=times[-1],
        dt0=None,
        y0=initial,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
        max_steps=1_000_000,
    )
    assert solution.ys is not None
    return solution.ys


def march(
    matrices: RateFunction,
    initial: Float[Array, "row"],
    times: Float[Array, "time"],
    substeps: int,
    order: int,
    n_states: int,
) -> Float[Array, "time row"]:
    """Solve dy/dt = y A(t) for a generator A, or one with extra columns (see `expm`); the core of everything here."""
    steps = jnp.repeat(jnp.diff(times) / substeps, substeps)
    starts = (times[:-1, None] + jnp.diff(times)[:, None] * (jnp.arange(substeps) / substeps)).reshape(-1)
    if order == 2:
        exponents = (jax.vmap(matrices)(starts + steps / 2) * steps[:, None, None])[:, None]
    else:
        early = jax.vmap(matrices)(starts + GAUSS * steps)
        late = jax.vmap(matrices)(starts + (1 - GAUSS) * steps)
        halves = jnp.stack([HEAVY * early + LIGHT * late, LIGHT * early + HEAVY * late], axis=1)
        exponents = halves * steps[:, None, None, None]

    def advance(row, exponentials):
        for exponential in exponentials:
            row = row @ exponential
        return row, row

    _, rows = jax.lax.scan(advance, initial, expm(exponents, n_states))
    return jnp.concatenate([initial[None], rows[substeps - 1 :: substeps]])


@partial(jax.jit, static_argnames=("rates", "substeps", "order"))
def _solve(rates: RateFunction, initial: Array, times: Array, substeps: int, order: int) -> MasterSolution:
    def generator(t):
        return generator_from_rates(rates(t))

    coarse = march(generator, initial, times, substeps, order, len(initial))
    fine = march(generator, initial, times, 2 * substeps, order, len(initial))
    return MasterSolution(fine, jnp.abs(fine - coarse).max() / (2**order - 1))


def check_grid(times: ArrayLike, substeps: int) -> None:
    grid = np.asarray(times)
    if grid.ndim != 1 or len(grid) < 2 or not np.isfinite(grid).all() or not (np.diff(grid) > 0).all():
        raise InputError("times must be a list of at least two increasing numbers")
    if substeps < 1:
        raise InputError(f"substeps must be at least 1, got {substeps}")
