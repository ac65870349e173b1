"""Emissions from a dictionary: kernels that all states share, and for every state how much of each it shows.

Any shape can be followed, yet states differ in nothing but weights: none can shrink onto a few points, and no two can
trade places in a shape. So the time scales of the process, not the shapes of its states, decide what is a state.
"""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .emission import Emission, Natural, Observations, Params
from .gaussian import LOG_2PI
from .kernels import cells_with_data, spread_centres

LEAST_WEIGHT = 1e-12  # of a kernel in a state: EM could never bring back a weight of zero
ROWS_AT_ONCE = 4096  # observations whose kernels are in memory together
TURN = 2 * np.pi
# States of a start that knows nothing of time differ by this much in the logarithms of their weights.
RANDOM_LOGITS = 1.0
FARTHEST_ANGLE = 4 * np.pi  # a number beyond this is no angle in radians


class Dictionary(Emission):
    """p(x | z) = sum_m W_zm phi_m(x). Kernels phi are placed where data live and are not learned; the weights W are."""

    @property
    def by_em_alone(self) -> bool:
        return True

    @abstractmethod
    def kernels(self, values: Float[np.ndarray, "row feature"]) -> Params:
        """Centres and widths for these data."""

    @abstractmethod
    def features(self, values: Float[Array, "row feature"], observed: Float[Array, "row feature"]) -> Array:
        """What the log density of every kernel is linear in, one row per observation; 0 where it is missing."""

    @abstractmethod
    def loadings(self, params: Params) -> Float[Array, "loading kernel"]:
        """The factors of these features, one column per kernel."""

    def log_kernels(
        self, params: Params, values: Float[Array, "row feature"], mask: Bool[Array, "row feature"] | None
    ) -> Float[Array, "row kernel"]:
        """Log density of every kernel; a product of components leaves out the missing ones."""
        observed = jnp.ones_like(values) if mask is None else mask.astype(values.dtype)
        return self.features(values, observed) @ self.loadings(params).astype(values.dtype)

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        """Kernels where the data live, and states that differ a little: only time can tell what they are."""
        placed = self.kernels(values)
        shape = (n_states, len(placed["shared_centres"]))
        logits = RANDOM_LOGITS * (rng or np.random.default_rng(0)).normal(size=shape)
        return {"logits": logits - logits[:, :1], **placed}

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        weights = weights_of(params)

        @jax.checkpoint  # kernels are cheaper to compute twice than to keep
        def of_rows(rows: tuple) -> Array:
            shown, top = self.scaled_kernels(params, *rows)
            return jnp.log(shown @ weights.T.astype(shown.dtype)) + top

        logs = jax.lax.map(of_rows, (_chunked(seen.values), _chunked(seen.mask)))
        n_rows = int(np.prod(seen.values.shape[:-1]))
        return logs.reshape(-1, len(weights))[:n_rows].reshape(*seen.values.shape[:-1], len(weights))

    def scaled_kernels(
        self, params: Params, values: Float[Array, "row feature"], mask: Bool[Array, "row feature"] | None
    ) -> tuple[Float[Array, "row kernel"], Float[Array, "row 1"]]:
        """Kernels divided by the highest of each row, and the logarithm of that: far from all of them none is zero."""
        logs = self.log_kernels(params, values, mask)
        top = jax.lax.stop_gradient(logs.max(-1, keepdims=True))
        return jnp.exp(logs - top), top

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        """One step of EM for a mixture: it never does harm, but is not yet the top."""
        table = weights_of(params)
        if seen.mask is not None:
            weights = weights * seen.mask.any(-1, keepdims=True)  # who sees nothing learns nothing

        def add(total: Array, rows: tuple) -> tuple[Array, None]:
            values, mask, gamma = rows
            shown, _ = self.scaled_kernels(params, values, mask)
            return total + (gamma / (shown @ table.T)).T @ shown, None

        chunks = (_chunked(seen.values), _chunked(seen.mask), _chunked(weights))
        total, _ = jax.lax.scan(add, jnp.zeros_like(table), chunks)
        return {**params, "logits": reweighted(table, total)}

    def learned(self, params: Params) -> Params:
        fixed = {name: np.zeros(np.shape(value), dtype=bool) for name, value in params.items()}
        n_states, n_kernels = np.shape(params["logits"])
        return {**fixed, "logits": np.tile(np.arange(n_kernels) > 0, (n_states, 1))}

    def _drawn(self, params: Params, states: Int[np.ndarray, "time"], rng: np.random.Generator) -> np.ndarray:
        """The centre of a kernel for each time, by the weights of its state."""
        cumulative = np.cumsum(np.asarray(weights_of(params)), axis=-1)
        level = rng.random(len(states)) * cumulative[states, -1]
        chosen = np.empty(len(states), dtype=int)
        for state in np.unique(states):
            here = states == state
            chosen[here] = np.searchsorted(cumulative[state], level[here], side="right")
        return np.asarray(params["shared_centres"])[chosen]

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        return np.asarray(self.natural(params)["mean"].value)[:, 0]


class Torus(Dictionary):
    """Angles: phi_m is a product of von Mises densities, one per angle, as wide as a normal one of `shared_width`.

    Args:
        period: a whole turn in the units of the data: 2 pi, or 360.
    """

    period: float = eqx.field(static=True, default=TURN)

    @classmethod
    def of(cls, values: Float[np.ndarray, "row feature"]) -> "Torus":
        """For radians, or for degrees where numbers are too large for radians."""
        return cls(360.0 if np.nanmax(np.abs(values), initial=0.0) > FARTHEST_ANGLE else TURN)

    @property
    def name(self) -> str:
        return "torus"

    @property
    def real_valued(self) -> bool:
        return False

    def kernels(self, values: Float[np.ndarray, "row feature"]) -> Params:
        unit = self.period / TURN
        centres, width = cells_with_data(values / unit)
        return {"shared_centres": centres * unit, "shared_width": np.full(values.shape[1], width * unit)}

    def _sharpness(self, params: Params) -> Array:
        """kappa of each angle."""
        return (self.period / TURN / jnp.asarray(params["shared_width"])) ** 2

    def features(self, values: Float[Array, "row feature"], observed: Float[Array, "row feature"]) -> Array:
        angle = values * (TURN / self.period)
        return jnp.concatenate([jnp.cos(angle) * observed, jnp.sin(angle) * observed, observed], axis=-1)

    def loadings(self, params: Params) -> Float[Array, "loading kernel"]:
        angle, kappa = jnp.asarray(params["shared_centres"]) * (TURN / self.period), self._sharpness(params)
        log_mass = jnp.log(self.period * jax.scipy.special.i0e(kappa)) + kappa
        constant = jnp.broadcast_to(-log_mass, angle.shape)
        return jnp.concatenate([kappa * jnp.cos(angle), kappa * jnp.sin(angle), constant], axis=-1).T

    def natural(self, params: Params) -> dict[str, Natural]:
        """Circular means, and circular standard deviations sqrt(-2 log R)."""
        unit, weights = self.period / TURN, weights_of(params)
        angle, kappa = jnp.asarray(params["shared_centres"]) / unit, self._sharpness(params)
        within = jax.scipy.special.i1e(kappa) / jax.scipy.special.i0e(kappa)
        x, y = weights @ jnp.cos(angle) * within, weights @ jnp.sin(angle) * within
        return {
            "mean": Natural(unit * jnp.arctan2(y, x), "real"),
            "sd": Natural(unit * jnp.sqrt(-jnp.log(x**2 + y**2)), "positive"),
        }

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        return params

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        unit = self.period / TURN
        centres = self._drawn(params, states, rng) / unit
        return unit * rng.vonmises(np.arctan2(np.sin(centres), np.cos(centres)), np.asarray(self._sharpness(params)))


class GaussianDictionary(Dictionary):
    """Real values: phi_m(x) = N(x; centre_m, diag(width^2))."""

    @property
    def name(self) -> str:
        return "dictionary"

    @property
    def real_valued(self) -> bool:
        return True

    def kernels(self, values: Float[np.ndarray, "row feature"]) -> Params:
        centres, width = spread_centres(values)
        return {"shared_centres": centres, "shared_width": width}

    def features(self, values: Float[Array, "row feature"], observed: Float[Array, "row feature"]) -> Array:
        return jnp.concatenate([values * observed, values**2 * observed, observed], axis=-1)

    def loadings(self, params: Params) -> Float[Array, "loading kernel"]:
        centres, width = jnp.asarray(params["shared_centres"]), jnp.asarray(params["shared_width"])
        squared = jnp.broadcast_to(-0.5 / width**2, centres.shape)
        constant = -0.5 * (centres / width) ** 2 - jnp.log(width) - 0.5 * LOG_2PI
        return jnp.concatenate([centres / width**2, squared, constant], axis=-1).T

    def natural(self, params: Params) -> dict[str, Natural]:
        weights, centres = weights_of(params), jnp.asarray(params["shared_centres"])
        mean = weights @ centres
        variance = (weights[..., None] * (centres - mean[:, None, :]) ** 2).sum(1)
        sd = jnp.sqrt(variance + jnp.asarray(params["shared_width"]) ** 2)
        return {"mean": Natural(mean, "real"), "sd": Natural(sd, "positive")}

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        centres, width = params["shared_centres"], params["shared_width"]
        return {**params, "shared_centres": shift + scale * centres, "shared_width": scale * width}

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        return rng.normal(self._drawn(params, states, rng), np.asarray(params["shared_width"]))


def weights_of(params: Params) -> Float[Array, "state kernel"]:
    """How much of each kernel a state shows."""
    return jax.nn.softmax(jnp.asarray(params["logits"]), axis=-1)


def reweighted(
    weights: Float[Array, "state kernel"], demand: Float[Array, "state kernel"]
) -> Float[Array, "state kernel"]:
    """Logits of W_zm times the demand sum_t gamma_t(z) phi_m(x_t) / p(x_t | z), to a sum of one per state.

    A state that explains nothing keeps its weights.
    """
    share = weights * demand
    explained = share.sum(-1, keepdims=True)
    share = jnp.maximum(share / jnp.where(explained > 0, explained, 1.0), LEAST_WEIGHT)
    logits = jnp.log(jnp.where(explained > 0, share, weights))
    return logits - logits[:, :1]


def _chunked(rows: Array | None) -> Array | None:
    """Any leading axes as (chunk, row), filled up with zeros."""
    if rows is None:
        return None
    flat = jnp.asarray(rows).reshape(-1, rows.shape[-1])
    size = min(ROWS_AT_ONCE, len(flat))
    padded = jnp.pad(flat, ((0, -len(flat) % size), (0, 0)))
    return padded.reshape(-1, size, flat.shape[-1])
