"""Brownian folding: diffusion in five dimensions with a folded core and an unfolded shell (Mardt et al. 2018)."""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.stats import ncx2

from ..errors import InputError
from ..mjp.precision import in_double_precision
from ..timeseries import TimeSeries
from .system import Grid, Simulation, System, check_request, randomness

DIMENSION = 5
STEP = 0.1
SHELL = 3.0  # radius of the barrier
NOISE_SD = float(np.sqrt(2 * STEP))
OUTERMOST = 9.0  # radius that the chain practically never reaches
RADIAL_NODES = 400


@dataclass(frozen=True)
class BrownianFolding(System):
    """dx = -grad U(r) dt + sqrt(2) dW by Euler steps of 0.1; the chain itself is the benchmark, not its limit.

    U(r) = -2.5 (r - 3)^2 inside r < 3, 0.5 (r - 3)^3 - (r - 3)^2 outside. Hidden states: 0 folded, 1 unfolded.
    """

    burn_in: int = 1000

    name: ClassVar[str] = "brownian-folding"
    time_unit: ClassVar[str] = "time unit"
    default_length: ClassVar[int] = 100

    def __post_init__(self):
        if self.burn_in < 0:
            raise InputError(f"{self.name}: burn_in must not be negative, got {self.burn_in}")

    @property
    def parameters(self) -> dict[str, float]:
        return {}

    def _replaced(self, changes: dict[str, float]) -> "BrownianFolding":
        return self

    @in_double_precision
    def simulate(
        self,
        n_series: int,
        length: int | None = None,
        *,
        grid: Grid = "regular",
        duration: float | None = None,
        seed: int,
    ) -> Simulation:
        """Every step (regular), or `length` steps out of twice as many (irregular, shared)."""
        rng, key = randomness(seed)
        length = self.default_length if length is None else length
        check_request(grid, n_series, length, STEP if duration is None else duration)
        n_steps = length * (1 if grid == "regular" else 2) if duration is None else round(duration / STEP)
        if n_steps < length:
            raise InputError(
                f"{length} observations do not fit into {n_steps} steps of {STEP}: ask for a longer duration"
            )
        stride, rest = divmod(n_steps, length)
        if grid == "regular" and rest:
            raise InputError(
                f"{length} observations at equal gaps of whole steps need a duration that is a multiple of "
                f"{length * STEP:g}, got {duration:g}"
            )
        start = jnp.asarray(rng.normal(-1.0, 2.0, (n_series, DIMENSION)))
        keys = jax.random.split(key, n_series)
        trajectory = np.asarray(_trajectories(start, keys, self.burn_in, n_steps), dtype=np.float64)
        if grid == "regular":
            kept = np.tile(stride * np.arange(length), (n_series, 1))
        else:
            own = rng.random((n_series if grid == "irregular" else 1, n_steps)).argsort(-1)[:, :length]
            kept = np.tile(np.sort(own, axis=-1), (n_series // len(own), 1))
        values = np.take_along_axis(trajectory, kept[..., None], axis=1)
        names = tuple(f"x_{i}" for i in range(DIMENSION))
        data = TimeSeries.from_arrays(kept * STEP, values, time_unit=self.time_unit, value_names=names)
        radii = np.linalg.norm(values, axis=-1).reshape(-1)
        return Simulation(data, (radii > radial_answers()["boundary"]).astype(int))

    def answers(self) -> dict[str, Any]:
        """Exact for the Euler chain, from its transition density in the radius."""
        return dict(radial_answers())


def slope(radius: Any) -> Any:
    """U'(r)."""
    xp = radius.__array_namespace__()
    out = radius - SHELL
    return xp.where(radius < SHELL, -5 * out, 1.5 * out**2 - 2 * out)


@partial(jax.jit, static_argnames=("burn_in", "n_steps"))
def _trajectories(start: Array, keys: Array, burn_in: int, n_steps: int) -> Float[Array, "series time 5"]:
    def advance(x, key):
        radius = jnp.linalg.norm(x)
        drift = -slope(radius) * x / jnp.maximum(radius, jnp.finfo(x.dtype).tiny)
        x = x + STEP * drift + NOISE_SD * jax.random.normal(key, x.shape, x.dtype)
        return x, x

    def one(x, key):
        early, late = jax.random.split(key)
        x, _ = jax.lax.scan(lambda x, key: (advance(x, key)[0], None), x, jax.random.split(early, burn_in))
        return jax.lax.scan(advance, x, jax.random.split(late, n_steps))[1]

    return jax.vmap(one)(start, keys)


@cache
def radial_answers() -> dict[str, Any]:
    """Stationary law and rates of the two metastable states of the Euler chain.

    By symmetry the radius is itself a Markov chain: after a step it follows a noncentral chi law with five degrees
    of freedom around |r - U'(r) dt|. Its transition operator on Gauss-Legendre nodes gives the slowest timescale and,
    from the second eigenfunction, the membership of every radius in the two states (PCCA).
    """
    nodes, weights = np.polynomial.legendre.leggauss(RADIAL_NODES)
    radius, weights = (nodes + 1) * OUTERMOST / 2, weights * OUTERMOST / 2
    centre = np.abs(radius - STEP * slope(radius)) / NOISE_SD
    scaled = radius / NOISE_SD
    density = ncx2.pdf(scaled[None, :] ** 2, DIMENSION, centre[:, None] ** 2) * 2 * scaled[None, :] / NOISE_SD
    move = density * weights
    move /= move.sum(1, keepdims=True)
    values, right = np.linalg.eig(move)
    second = np.argsort(-np.real(values))[1]
    slow = np.real(right[:, second])
    slow = slow * np.sign(slow[np.searchsorted(radius, SHELL + 1)])  # positive in the shell
    unfolded = (slow - slow.min()) / (slow.max() - slow.min())
    left_values, left = np.linalg.eig(move.T)
    law = np.real(left[:, np.argmax(np.real(left_values))])
    law /= law.sum()
    outside = float(law @ unfolded)
    timescale = float(-STEP / np.log(np.real(values[second])))
    return {
        "stationary_distribution": np.array([1 - outside, outside]),
        "timescales": np.array([timescale]),
        "rates": np.array([[0.0, outside], [1 - outside, 0.0]]) / timescale,
        "boundary": float(radius[np.argmax(unfolded > 0.5)]),
    }
