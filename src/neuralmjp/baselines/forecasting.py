"""What comes next: the master equation of independent species, from the last observation on."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import InputError
from ..mjp.ladder import carried
from ..mjp.precision import in_double_precision
from ..systems.events import Events
from ..systems.reaction_network import ReactionNetwork
from .opper_sanguinetti import MeanFieldFit, MeanFieldPosterior

JUMPS = 0.5  # most events expected in a substep at the count that is left fastest


@dataclass(frozen=True)
class MeanFieldForecast:
    """Law of each species at some times after the last observation of each series."""

    times: Float[np.ndarray, "series time"]
    laws: tuple[Float[np.ndarray, "series time _"], ...]

    @property
    def means(self) -> Float[np.ndarray, "series time species"]:
        return np.stack([law @ np.arange(law.shape[-1]) for law in self.laws], -1)

    @property
    def sds(self) -> Float[np.ndarray, "series time species"]:
        squares = np.stack([law @ np.arange(law.shape[-1]) ** 2 for law in self.laws], -1)
        return np.sqrt(np.maximum(squares - self.means**2, 0.0))


@in_double_precision
def forecast(
    fit: MeanFieldFit,
    times: Float[np.ndarray, "time"] | Float[np.ndarray, "series time"],
    posterior: MeanFieldPosterior | None = None,
) -> MeanFieldForecast:
    """Laws at later times, of the series that were fitted or of those behind another posterior.

    Each species moves at its rates in the mean over the others, E[f]: with independent species that keeps the means
    right, where exp(E[log f]) would stop all that needs a species which may have died out.

    Args:
        times: increasing, after the last observation, for all series or for each.
    """
    known = fit.posterior if posterior is None else posterior
    last = known.data.offsets[1:] - 1
    whole = np.tile(times, (len(last), 1)) if times.ndim == 1 else times
    gaps = np.diff(np.concatenate([known.data.times[last, None], whole], 1), axis=1)
    if len(whole) != len(last) or not (gaps >= 0).all():
        raise InputError("a forecast needs increasing times after the last observation of each series")
    laws = tuple(jnp.asarray(law[last]) for law in known.laws)
    substeps = max(1, int(np.ceil(gaps.max() * _fastest(fit.network) / JUMPS)))
    constants = jnp.asarray(list(fit.constants.values()))
    events = fit.network.events()
    after = _propagated(events, substeps, laws, events.scales(constants), jnp.asarray(gaps))
    return MeanFieldForecast(whole, tuple(np.asarray(law) for law in after))


def _fastest(network: ReactionNetwork) -> float:
    """Largest rate in the middle of the box, where all that is made from counts is far above what is usual."""
    process = network.process()
    middle = jnp.array([n // 2 for n in network.box])
    return float(process.intensities(middle).sum())


@partial(jax.jit, static_argnums=1)
def _propagated(
    events: Events,
    substeps: int,
    laws: tuple[Float[Array, "series _"], ...],
    scales: Float[Array, "event"],
    gaps: Float[Array, "series time"],
) -> tuple[Float[Array, "series time _"], ...]:
    """Midpoint steps: half a step to learn the rates, then the whole step with those."""
    changes = np.array(events.changes)
    ways = [jnp.asarray(events.factors)[:, s, :n] for s, n in enumerate(events.box)]

    def moved(laws, rates_of, duration):
        means = jnp.stack([law @ table.T for law, table in zip(rates_of, ways, strict=True)])
        result = []
        for s, law in enumerate(laws):
            own = np.flatnonzero(changes[:, s])
            rest = [other for other in range(len(laws)) if other != s]
            alone = (scales * means[jnp.array(rest, int)].prod(0))[:, own] * duration[:, None]
            jumps = jnp.einsum("be,en->ebn", alone, ways[s][own])
            result.append(carried(law, jumps, [int(changes[e, s]) for e in own]))
        return tuple(result)

    def across(laws, gap):
        def once(laws, _):
            halfway = moved(laws, laws, 0.5 * gap / substeps)
            return moved(laws, halfway, gap / substeps), None

        laws, _ = jax.lax.scan(once, laws, length=substeps)
        return laws, laws

    _, path = jax.lax.scan(across, laws, gaps.T)
    return tuple(jnp.moveaxis(law, 0, 1) for law in path)
