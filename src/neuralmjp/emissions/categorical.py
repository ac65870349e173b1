"""Emissions that are labels: states seen exactly, or through a table of misreadings."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..errors import InputError
from ..mjp.types import ArrayLike, as_tuples
from .emission import Emission, Natural, Observations, Params

NEVER = -1e30  # a finite stand-in for log 0, whose exponential is 0 and whose derivative is finite


class Categorical(Emission):
    """Labels 0 ... C - 1 with probability table[z, label].

    Args:
        labels: the values that stand for the labels, in the order of the columns.
        readable: (K, C), true where state z can show the label. A state that shows one label alone teaches nothing.
    """

    labels: tuple[float, ...] = eqx.field(static=True)
    shows: tuple[tuple[bool, ...], ...] = eqx.field(static=True)

    def __init__(self, labels: tuple[float, ...], readable: ArrayLike):
        self.shows = as_tuples(np.asarray(readable).astype(bool))
        self.labels = tuple(float(label) for label in labels)
        if self.readable.shape[1] != len(self.labels):
            raise InputError(f"the table of readings has {self.readable.shape[1]} columns for {len(labels)} labels")
        if not self.readable.any(1).all():
            raise InputError(f"state {int(np.argmin(self.readable.any(1)))} shows no label at all")

    @property
    def readable(self) -> Bool[np.ndarray, "state label"]:
        return np.array(self.shows)

    @classmethod
    def exact(cls, labels: tuple[float, ...]) -> "Categorical":
        """Labels that are the states themselves."""
        return cls(labels, np.eye(len(labels)))

    @property
    def is_exact(self) -> bool:
        """Every observation tells its state."""
        return bool((self.readable.sum(1) == 1).all() and (self.readable.sum(0) <= 1).all())

    @property
    def name(self) -> str:
        return "categorical"

    @property
    def real_valued(self) -> bool:
        return False

    def codes(self, values: Float[np.ndarray, "row 1"]) -> Float[np.ndarray, "row 1"]:
        """Labels as numbers 0 ... C - 1; missing ones stay missing."""
        known = np.asarray(self.labels)
        order = np.argsort(known)
        place = np.clip(np.searchsorted(known[order], values), 0, len(known) - 1)
        code = order[place]
        wrong = ~np.isnan(values) & (known[code] != values)
        if wrong.any():
            shown = ", ".join(f"{label:g}" for label in self.labels)
            raise InputError(f"the data hold the label {values[wrong][0]:g}, which is not among {shown}")
        return np.where(np.isnan(values), np.nan, code)

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        """Each state mostly shows its own label where there is one, and misreads a little."""
        own = np.eye(*self.readable.shape, dtype=bool) & self.readable
        logits = np.where(own, 2.0, 0.0)
        if rng is not None or not own.any(1).all():
            logits = logits + (rng or np.random.default_rng(0)).normal(size=logits.shape)
        return {
            "logits": np.where(self.readable, logits - np.take_along_axis(logits, self._reference[:, None], 1), 0.0)
        }

    @property
    def _reference(self) -> Int[np.ndarray, "state"]:
        """The label of each state against which the others are weighed: its own where it has one."""
        own = np.eye(*self.readable.shape, dtype=bool) & self.readable & self.named_states
        return np.where(own.any(1), own.argmax(1), self.readable.argmax(1))

    @property
    def named_states(self) -> bool:
        """States differ in what they can show, so that their order has a meaning."""
        return not self.readable.all()

    @property
    def labelled(self) -> bool:
        """Every state has a label of its own, though it may be misread: the data name their states."""
        own = np.eye(*self.readable.shape, dtype=bool) & self.readable
        return self.is_exact or (self.named_states and bool(own.any(1).all()))

    def learned(self, params: Params) -> Params:
        chosen = self.readable.copy()
        chosen[np.arange(len(chosen)), self._reference] = False
        return {"logits": chosen}

    def log_table(self, params: Params) -> Float[Array, "state label"] | Float[np.ndarray, "state label"]:
        """Log probability of each label in each state; NumPy in, NumPy out."""
        xp = params["logits"].__array_namespace__()
        logits = xp.where(self.readable, params["logits"], NEVER)
        logits = logits - logits.max(-1, keepdims=True)
        return logits - xp.log(xp.exp(logits).sum(-1, keepdims=True))

    def pulled_back(
        self, table: Float[np.ndarray, "state label"], slope: Float[np.ndarray, "state label"]
    ) -> dict[str, np.ndarray]:
        """From a derivative by the probabilities in the table to that by the parameters."""
        by_log = table * slope
        return {"logits": np.where(self.readable, by_log - table * by_log.sum(-1, keepdims=True), 0.0)}

    def log_prob(
        self, params: Params, seen: Observations
    ) -> Float[Array, "*lead state"] | Float[np.ndarray, "*lead state"]:
        xp = params["logits"].__array_namespace__()
        table = xp.where(self.readable, self.log_table(params), -np.inf)
        code = seen.values[..., 0].astype(int)
        read = table.T[code]
        return read if seen.mask is None else xp.where(seen.mask, read, 0.0)

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        shown = jax.nn.one_hot(seen.values[..., 0].astype(int), len(self.labels))
        if seen.mask is not None:
            shown = shown * seen.mask
        counts = jnp.einsum("...k,...c->kc", weights, shown)
        logits = jnp.log(jnp.maximum(counts, 1e-12)) - jnp.log(jnp.maximum(counts.sum(-1, keepdims=True), 1e-12))
        free = (self.readable.sum(1) > 1)[:, None]
        reference = jnp.take_along_axis(logits, self._reference[:, None], axis=-1)
        return {"logits": jnp.where(free & self.readable, logits - reference, 0.0)}

    def natural(self, params: Params) -> dict[str, Natural]:
        xp = params["logits"].__array_namespace__()
        return {"probability": Natural(xp.where(self.readable, xp.exp(self.log_table(params)), 0.0), "probability")}

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        return params

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        table = np.asarray(self.natural(params)["probability"].value)
        level = rng.random(len(states))[:, None]
        code = np.minimum((np.cumsum(table[states], axis=-1) < level).sum(-1), len(self.labels) - 1)
        return np.asarray(self.labels)[code][:, None]

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        return None
