"""Emissions made of another one: several states that look alike, and a mean that hums or drifts for every state."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..arguments import numbers_of
from ..errors import InputError
from .emission import Emission, Natural, Observations, Params, reordered

SHARED = "shared_"  # parameters that no state owns
# Weight of a pull towards zero in the least squares for hum and drift, relative to what the data say.
RIDGE = 1e-9


class Wrapped(Emission):
    """An emission around another one, whose parameters it carries along."""

    base: eqx.AbstractVar[Emission]

    @abstractmethod
    def inner(self, params: Params) -> Params:
        """The parameters of the emission inside."""

    @abstractmethod
    def outer(self, inner: Params, params: Params) -> Params:
        """These parameters with others for the emission inside."""

    @property
    def name(self) -> str:
        """That of the emission inside; what is around it shows in its options."""
        return self.base.name

    @property
    def real_valued(self) -> bool:
        return self.base.real_valued

    def signals(self, n_columns: int) -> Bool[np.ndarray, "column"]:
        return self.base.signals(n_columns)

    def counted(self, seen: Bool[np.ndarray, "row column"]) -> Bool[np.ndarray, "row column"]:
        return self.base.counted(seen)

    def scaled(
        self, shift: Float[np.ndarray, "column"], scale: Float[np.ndarray, "column"]
    ) -> tuple[Float[np.ndarray, "column"], Float[np.ndarray, "column"]]:
        return self.base.scaled(shift, scale)

    def around(self, base: Emission) -> "Wrapped":
        """The same around another emission."""
        return replace(self, base=base)

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        return self.outer(self.base.rescaled(self.inner(params), shift, scale), params)

    @property
    def timed(self) -> bool:
        return self.base.timed

    def inside(self, states: Int[np.ndarray, "*lead"]) -> Int[np.ndarray, "*lead"]:
        """States as the emission inside counts them."""
        return states

    def outside(self, params: Params, values: Float[np.ndarray, "*lead"]) -> Float[np.ndarray, "*lead"]:
        """What becomes of values that the emission inside shows."""
        return values

    def sample(
        self, params: Params, states: Int[np.ndarray, "time"], gaps: Float[np.ndarray, "time"], rng: np.random.Generator
    ) -> Float[np.ndarray, "time feature"]:
        return self.outside(params, self.base.sample(self.inner(params), self.inside(states), gaps, rng))

    def continued(
        self,
        params: Params,
        before: Float[np.ndarray, "feature"],
        states: Int[np.ndarray, "sample time"],
        gaps: Float[np.ndarray, "time"],
        rng: np.random.Generator,
    ) -> Float[np.ndarray, "sample time feature"]:
        drawn = self.base.continued(self.inner(params), before, self.inside(states), gaps, rng)
        return self.outside(params, drawn)

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        return self.base.locations(self.inner(params))

    def order(self, params: Params, exits: Float[np.ndarray, "state"]) -> Int[np.ndarray, "state"] | None:
        return self.base.order(self.inner(params), exits)


class Levels(Wrapped):
    """Several hidden states with one emission: two closed states and an open one are `levels=(0, 0, 1)`.

    Dwell times at a level are then no longer exponential.

    Args:
        base: the emission of a level.
        levels: the level of each state; all from 0 to the largest occur.
    """

    base: Emission
    levels: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, base: Emission, levels: Sequence[int]):
        found = numbers_of(levels, "levels").ravel().tolist()
        if len(set(found)) < 2 or set(found) != set(range(len(set(found)))):
            raise InputError(f"levels are whole numbers from 0 without a gap, at least two of them; got {levels}")
        _refuse_hidden_level(base)
        if not base.real_valued:
            raise InputError(f"states can share a level of a signal, not of {base.name} observations")
        self.base, self.levels = base, tuple(int(level) for level in found)

    @property
    def n_levels(self) -> int:
        return max(self.levels) + 1

    def inner(self, params: Params) -> Params:
        return {name.removeprefix(SHARED): value for name, value in params.items()}

    def outer(self, inner: Params, params: Params) -> Params:
        return {SHARED + name: value for name, value in inner.items()}

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        if len(self.levels) != n_states:
            raise InputError(f"{len(self.levels)} levels are given, one for each of {n_states} states is needed")
        inner = self.base.start(values, self.n_levels, rng)
        places = self.base.locations(inner)
        if places is not None:  # the level called 0 begins lowest
            inner = reordered(inner, np.argsort(places, kind="stable"))
        return self.outer(inner, {})

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        return jnp.asarray(self.base.log_prob(self.inner(params), seen))[..., np.array(self.levels)]

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        together = jnp.asarray(np.eye(self.n_levels)[list(self.levels)])
        found = self.base.maximised(self.inner(params), seen, weights @ together)
        return None if found is None else self.outer(found, params)

    def learned(self, params: Params) -> Params:
        return self.outer(self.base.learned(self.inner(params)), {})

    def natural(self, params: Params) -> dict[str, Natural]:
        inner = self.inner(params)
        return {
            name: entry if name.startswith(SHARED) else Natural(entry.value[np.array(self.levels)], entry.kind)
            for name, entry in self.base.natural(inner).items()
        }

    def inside(self, states: Int[np.ndarray, "*lead"]) -> Int[np.ndarray, "*lead"]:
        return np.array(self.levels)[states]

    def locations(self, params: Params) -> Float[np.ndarray, "state"] | None:
        places = self.base.locations(self.inner(params))
        return None if places is None else places[list(self.levels)]

    def order(self, params: Params, exits: Float[np.ndarray, "state"]) -> Int[np.ndarray, "state"]:
        """Only states of one level change places: those that last come first."""
        order, levels = np.arange(len(exits)), np.array(self.levels)
        for level in range(self.n_levels):
            same = np.flatnonzero(levels == level)
            order[same] = same[np.argsort(exits[same], kind="stable")]
        return order

    @property
    def between_levels(self) -> Bool[np.ndarray, "state state"]:
        """Jumps that can be seen; those within a level leave no trace of their own."""
        levels = np.array(self.levels)
        return levels[:, None] != levels


class Nuisance(Wrapped):
    """What shifts the mean of every state alike: mains hum with its harmonics, and a slowly wandering baseline.

    What it samples is without them: when it is, only the caller knows; see `offset`.

    Args:
        base: the emission of the signal without them.
        hum: frequency, per unit of the data's time; tuned by the fit. 0 for none.
        harmonics: of it, itself counted.
        drift: half-waves of the baseline over the recording; 0 for none.
        span: first and last time of the recording, for the drift.
    """

    base: Emission
    hum: float = eqx.field(static=True, default=0.0)
    harmonics: int = eqx.field(static=True, default=3)
    drift: int = eqx.field(static=True, default=0)
    span: tuple[float, float] = eqx.field(static=True, default=(0.0, 1.0))

    def __check_init__(self):
        _refuse_hidden_level(self.base)
        if not self.base.real_valued:
            raise InputError(f"hum and drift are for a signal, not for {self.base.name} observations")
        if not self.base.signals(2).all():
            raise InputError("hum and drift do not go with errors that are known for every observation")
        if not (self.hum > 0 or self.drift > 0):
            raise InputError("neither a frequency of hum nor a drift is given")

    @property
    def timed(self) -> bool:
        return True

    @property
    def own(self) -> tuple[str, ...]:
        """Names of the parameters of hum and drift."""
        return (*(("shared_hum", "shared_tune") if self.hum else ()), *(("shared_drift",) if self.drift else ()))

    def inner(self, params: Params) -> Params:
        return {name: value for name, value in params.items() if name not in self.own}

    def outer(self, inner: Params, params: Params) -> Params:
        return {**inner, **{name: params[name] for name in self.own}}

    def start(self, values: Float[np.ndarray, "row feature"], n_states: int, rng: np.random.Generator | None) -> Params:
        n = values.shape[1]
        own = {
            "shared_hum": np.zeros((2 * self.harmonics, n)),
            "shared_tune": np.zeros(1),
            "shared_drift": np.zeros((self.drift, n)),
        }
        return self.outer(self.base.start(values, n_states, rng), own)

    def basis(self, params: Params, time: Float[Array, "*lead"]) -> Float[Array, "*lead term"]:
        """Waves at these times: cosines and sines of the hum, then half-waves of the drift."""
        columns = []
        if self.hum:
            cycles = self.hum * jnp.exp(params["shared_tune"][0]) * time
            angles = 2 * jnp.pi * (cycles - jnp.floor(cycles))[..., None] * (1 + np.arange(self.harmonics))
            columns += [jnp.cos(angles), jnp.sin(angles)]
        if self.drift:
            along = jnp.clip((time - self.span[0]) / (self.span[1] - self.span[0]), 0.0, 1.0)
            columns.append(jnp.cos(jnp.pi * along[..., None] * (1 + np.arange(self.drift))))
        return jnp.concatenate(columns, axis=-1)

    def heights(self, params: Params) -> Float[Array, "term feature"]:
        """What each wave is multiplied by."""
        return jnp.concatenate([params[name] for name in self.own if name != "shared_tune"])

    def offset(self, params: Params, time: Any) -> Float[Array, "*lead feature"]:
        """What hum and drift add at these times."""
        return self.basis(params, jnp.asarray(time)) @ self.heights(params)

    def without(self, params: Params, seen: Observations) -> Observations:
        """Observations as they would be without hum and drift."""
        assert seen.time is not None
        now, before = self.offset(params, seen.time), self.offset(params, seen.time - seen.gap)
        values = seen.values - (now if seen.mask is None else now * seen.mask)
        return seen._replace(values=values, previous=seen.previous - before * seen.has_previous)

    def log_prob(self, params: Params, seen: Observations) -> Float[Array, "*lead state"]:
        return jnp.asarray(self.base.log_prob(self.inner(params), self.without(params, seen)))

    def maximised(self, params: Params, seen: Observations, weights: Float[Array, "*lead state"]) -> Params | None:
        """First the states without hum and drift, then these by one weighted least squares, exact for Gaussians.

        The frequency is left to the gradient.
        """
        clean = self.without(params, seen)
        found = self.base.maximised(self.inner(params), clean, weights)
        if found is None:
            return None
        assert seen.time is not None
        basis = self.basis(params, seen.time).reshape(-1, len(self.heights(params)))
        slopes, bends = _pulls(
            lambda values: (weights * self.base.log_prob(found, clean._replace(values=values))).sum(), clean.values
        )
        steps = []
        for d in range(seen.values.shape[-1]):
            weight = jnp.maximum(-bends[..., d].reshape(-1), 0.0)
            square = (basis * weight[:, None]).T @ basis
            square = square + RIDGE * jnp.trace(square) * jnp.eye(len(square))
            steps.append(jnp.linalg.solve(square, basis.T @ -slopes[..., d].reshape(-1)))
        heights = self.heights(params) + jnp.stack(steps, axis=-1)
        n_hum = 2 * self.harmonics if self.hum else 0
        new = {**params, "shared_hum": heights[:n_hum], "shared_drift": heights[n_hum:]}
        return self.outer(found, new)

    def learned(self, params: Params) -> Params:
        own = {name: np.ones(np.shape(params[name]), dtype=bool) for name in self.own}
        return {**self.base.learned(self.inner(params)), **own}

    def natural(self, params: Params) -> dict[str, Natural]:
        found = dict(self.base.natural(self.inner(params)))
        if self.hum:
            cosine, sine = params["shared_hum"][: self.harmonics], params["shared_hum"][self.harmonics :]
            found["shared_hum_amplitude"] = Natural(jnp.hypot(cosine, sine), "positive")
            found["shared_hum_frequency"] = Natural(self.hum * jnp.exp(params["shared_tune"]), "positive")
        if self.drift:
            found["shared_drift"] = Natural(params["shared_drift"], "real")
        return found

    def rescaled(
        self, params: Params, shift: Float[np.ndarray, "feature"], scale: Float[np.ndarray, "feature"]
    ) -> Params:
        heights = {name: params[name] * scale for name in self.own if name != "shared_tune"}
        return {**super().rescaled(params, shift, scale), **heights}


def _pulls(total: Callable[[Array], Array], values: Array) -> tuple[Array, Array]:
    """Slope of a sum by every value, and how that slope changes with the value itself."""
    slope = jax.grad(total)
    along = [jnp.zeros_like(values).at[..., d].set(1.0) for d in range(values.shape[-1])]
    bends = [jax.jvp(slope, (values,), (one,))[1][..., d] for d, one in enumerate(along)]
    return slope(values), jnp.stack(bends, axis=-1)


def _refuse_hidden_level(base: Emission) -> None:
    if base.hidden_level:
        raise InputError(f"the emission {base.name} goes with neither shared levels nor hum and drift")


def levels_of(emission: Emission) -> Levels | None:
    """The levels that states share, if they do, whatever is around them."""
    while isinstance(emission, Wrapped) and not isinstance(emission, Levels):
        emission = emission.base
    return emission if isinstance(emission, Levels) else None
