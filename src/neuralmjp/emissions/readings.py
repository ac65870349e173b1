"""What is seen of counts: a reading of one species, or of the sum of several, through noise."""

from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, xlogy
from jaxtyping import Array, Float, Int

from ..errors import InputError
from .emission import Natural, Params

Noise = Literal["none", "gaussian", "poisson", "binomial", "two-sided-exponential"]
WHOLE = ("none", "poisson", "binomial", "two-sided-exponential")  # readings that are whole numbers
NEVER = -1e30  # a finite stand-in for log 0, so that no derivative is undefined
DARK = 1e-3  # mean Poisson reading of nothing at all


class Readings(eqx.Module):
    """Each value is a reading of a total: of one species or of several.

    Args:
        columns: for each value, the positions of the species whose sum it shows.
        noise: "gaussian" (standard deviation learned), "poisson" (mean: the total), "binomial" (each individual is
            seen with a probability that is learned), "two-sided-exponential" (whole numbers, decay length learned), or
            "none".
        fixed: the noise parameter of every value, if it is known and not learned.

    >>> Readings(((0,), (1,))).log_density({"log_sd": jnp.zeros(2)}, 0, 3.0, jnp.arange(3)).round(2).tolist()
    [-5.42, -2.92, -1.42]
    """

    columns: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    noise: Noise = eqx.field(static=True, default="gaussian")
    fixed: tuple[float, ...] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.noise not in get_args(Noise):
            raise InputError(f"noise is one of {', '.join(get_args(Noise))}; got {self.noise!r}")
        if not self.columns or not all(self.columns):
            raise InputError("every value must show at least one species")
        if self.fixed is not None and len(self.fixed) != len(self.columns):
            raise InputError(f"{len(self.columns)} values need as many noise parameters, got {len(self.fixed)}")

    @property
    def n_species_shown(self) -> int:
        return len({s for column in self.columns for s in column})

    @property
    def parameter(self) -> str | None:
        """Name of what is learned, as arrays with one entry per value."""
        names = {"gaussian": "log_sd", "two-sided-exponential": "log_scale", "binomial": "logit_detection"}
        return names.get(self.noise)

    def start(self, scale: Float[np.ndarray, "column"]) -> Params:
        """Starting values: the noise that is known, or a rough guess of its size."""
        if self.parameter is None:
            return {}
        known = np.asarray(self.fixed if self.fixed is not None else scale, dtype=float)
        if self.noise == "binomial":
            known = known if self.fixed is not None else np.full(len(self.columns), 0.5)
            return {self.parameter: np.log(known) - np.log1p(-known)}
        return {self.parameter: np.log(np.maximum(known, 1e-3))}

    def learned(self, params: Params) -> Params:
        """Which entries are free: arrays of bool."""
        return {name: np.full(np.shape(value), self.fixed is None) for name, value in params.items()}

    def natural(self, params: Params) -> dict[str, Natural]:
        """The parameters as people know them; traceable."""
        if self.noise == "gaussian":
            return {"sd": Natural(jnp.exp(params["log_sd"]), "positive")}
        if self.noise == "two-sided-exponential":
            return {"scale": Natural(jnp.exp(params["log_scale"]), "positive")}
        if self.noise == "binomial":
            return {"detection": Natural(jax.nn.sigmoid(params["logit_detection"]), "probability")}
        return {}

    def log_density(self, params: Params, column: int, value: Any, total: Any) -> Float[Array, "..."]:
        """Log density of a reading given the total behind it, element by element; `total` may be a real number."""
        value, total = jnp.asarray(value), jnp.asarray(total)
        dtype = jnp.result_type(value, float)
        total = total.astype(dtype)
        if self.noise == "none":
            return jnp.where(value == total, 0.0, NEVER).astype(dtype)
        if self.noise == "gaussian":
            log_sd = params["log_sd"][column]
            return -0.5 * ((value - total) * jnp.exp(-log_sd)) ** 2 - log_sd - 0.5 * np.log(2 * np.pi)
        if self.noise == "two-sided-exponential":
            decay = jnp.exp(-params["log_scale"][column])
            return -jnp.abs(value - total) * decay + jnp.log(jnp.tanh(decay / 2))
        if self.noise == "poisson":
            mean = jnp.maximum(total, DARK)
            return jnp.where(value < 0, NEVER, xlogy(value, mean) - mean - gammaln(jnp.maximum(value, 0.0) + 1))
        possible = (value >= 0) & (value <= total)
        seen = jnp.where(possible, value, 0.0)
        logit = params["logit_detection"][column]
        ways = gammaln(total + 1) - gammaln(seen + 1) - gammaln(total - seen + 1)
        chance = seen * jax.nn.log_sigmoid(logit) + (total - seen) * jax.nn.log_sigmoid(-logit)
        return jnp.where(possible, ways + chance, NEVER)

    def rough(self, params: Params, column: int, value: Any) -> tuple[Array, Array]:
        """Where the total lies, judged by one reading, and with what variance."""
        value = jnp.asarray(value)
        if self.noise == "gaussian":
            return value, jnp.exp(2 * params["log_sd"][column]) + jnp.zeros_like(value)
        if self.noise == "two-sided-exponential":
            return value, 2 * jnp.exp(2 * params["log_scale"][column]) + jnp.zeros_like(value)
        if self.noise == "binomial":
            chance = jax.nn.sigmoid(params["logit_detection"][column])
            return (value + 0.5) / chance, (value + 0.5) * (1 - chance) / chance**2 + 0.1
        return value, jnp.maximum(value, 1.0) if self.noise == "poisson" else jnp.full_like(value, 0.1)

    def sample(
        self, params: Params, counts: Int[np.ndarray, "row species"], rng: np.random.Generator
    ) -> Float[np.ndarray, "row column"]:
        """Readings of these counts."""
        totals = self.totals(counts)
        if self.noise == "none":
            return totals.astype(float)
        if self.noise == "gaussian":
            return totals + rng.normal(size=totals.shape) * np.exp(params["log_sd"])
        if self.noise == "two-sided-exponential":  # the difference of two geometric numbers
            stop = 1 - np.exp(-np.exp(-np.asarray(params["log_scale"])))
            return totals + (rng.geometric(stop, totals.shape) - rng.geometric(stop, totals.shape)).astype(float)
        if self.noise == "poisson":
            return rng.poisson(np.maximum(totals, DARK)).astype(float)
        detection = 1 / (1 + np.exp(-np.asarray(params["logit_detection"])))
        return rng.binomial(totals, np.broadcast_to(detection, totals.shape)).astype(float)

    def totals(self, counts: Int[np.ndarray, "*lead species"]) -> Int[np.ndarray, "*lead column"]:
        """What each value would show without noise."""
        return np.stack([counts[..., list(column)].sum(-1) for column in self.columns], axis=-1)

    def check(self, values: Float[np.ndarray, "row column"], names: tuple[str, ...]) -> None:
        """One line for a reading that this noise can never give."""
        if values.shape[1] != len(self.columns):
            raise InputError(f"the data have {values.shape[1]} values, but {len(self.columns)} readings are described")
        if self.noise not in WHOLE:
            return
        for column, name in enumerate(names):
            seen = values[:, column]
            odd = np.flatnonzero((seen != np.round(seen)) & ~np.isnan(seen))
            if self.noise != "two-sided-exponential":
                odd = np.union1d(odd, np.flatnonzero(seen < 0))
            if odd.size:
                raise InputError(
                    f"{name}, observation {odd[0] + 1}: {seen[odd[0]]:g} is no count, but {self.noise} readings are; "
                    "use gaussian noise"
                )
