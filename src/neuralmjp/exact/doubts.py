"""Does a fit tell more than its data know? Rates that hardly matter, states that are hardly there."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..emissions.wrapped import SHARED
from ..mjp.interval import Z
from .evidence import Laid
from .fit import ExactFit, Height
from .information import Information
from .reseed import VISITED

WIDEST = 1e3  # a factor between the ends of an interval, above which a rate is as good as unknown
FEWEST_JUMPS = 2.0  # expected in all the data
CLOSEST = 1.0  # noise widths between two levels
ALIKE = 2.0  # a factor between the spreads of two states, above which the spread tells them apart
COLLAPSED = 0.02  # spread of a state, relative to that of the others, that no noise has
NOISELESS = 1e-4  # spread inside every state, relative to that of all the data, of values that are no measurement
POOLING = 10  # steps to the one state that stands for all


def hardly_determined(fit: ExactFit, information: Information) -> list[str]:
    """A warning about rates with an interval so wide that it says nothing."""
    error = np.sqrt(np.diag(information.covariance))[fit.packing.rates]
    wide = (2 * Z * error > np.log(WIDEST)) & ~information.unidentified[fit.packing.rates]
    if not wide.any():
        return []
    names = ", ".join(np.array(fit.model.rate_model.names)[wide])
    return [
        f"the data hardly determine {names}: the interval spans more than a factor of {WIDEST:g}; "
        "where jumps are faster than the samples only faster sampling helps, else more data"
    ]


def hardly_there(fit: ExactFit, top: Height, thoroughly: bool) -> list[str]:
    """Warnings about hidden states that the data may not hold at all; thoroughly: one state is tried for all."""
    words = []
    if (jumps := float(top.jumps.sum())) < FEWEST_JUMPS:
        few = f"fewer than {FEWEST_JUMPS:g} jumps are expected in all the data ({jumps:.2g})"
        words.append(f"{few}: rates need a longer recording")
    words += _close_together(fit, top)
    gain = _gain_over_one_state(fit, top) if thoroughly else None
    if gain is not None and gain < 0:
        words.append(
            "one state explains the data as well (by BIC): they may never leave it, and rates and levels then tell of "
            "noise alone; record until jumps show"
        )
    return words


def _close_together(fit: ExactFit, top: Height) -> list[str]:
    """Levels that differ by less than the noise, and states that have shrunk onto a few equal values."""
    found = {} if fit.model.emission.hidden_level else fit.model.emission.natural(fit.parameters.emission)
    spread = next((found[name] for name in ("sd", "shared_sd") if name in found), None)
    if "mean" not in found or spread is None:
        return []
    mean, sd = np.asarray(found["mean"].value), np.asarray(spread.value)
    if mean.ndim != 2 or sd.shape not in (mean.shape, mean.shape[1:]):
        return []
    sd = np.broadcast_to(sd, mean.shape)
    exact = ", ".join(map(str, np.flatnonzero((sd < NOISELESS).all(0))))
    if exact:
        return [
            f"value {exact} (counted from 0) is constant in every state: labels, no measurement; leave its column out"
        ]
    weight = np.maximum(top.time, 0.0) / top.time.sum()
    noise = np.sqrt((weight[:, None] * sd**2).sum(0))
    words = [
        f"state {k} has shrunk onto a few nearly equal values: try fewer states, or the emission student-t"
        for k in np.flatnonzero((sd < COLLAPSED * noise).any(1) & (weight >= VISITED))
    ]
    for i, j in zip(*np.triu_indices(len(mean), 1), strict=True):
        shared = (mean[i] == mean[j]).all()  # on purpose: they are one level
        apart = float(np.sqrt((2 * (mean[i] - mean[j]) ** 2 / (sd[i] ** 2 + sd[j] ** 2)).sum()))
        if not shared and apart < CLOSEST and (np.abs(np.log(sd[i] / sd[j])) < np.log(ALIKE)).all():
            words.append(
                f"the levels of states {i} and {j} lie {apart:.2g} noise widths apart: they are hard to tell from each "
                "other; look whether fewer states do as well (select)"
            )
    return words


def _gain_over_one_state(fit: ExactFit, top: Height) -> float | None:
    """What several states add to the log-likelihood beyond their price by BIC; None where that is not known."""
    emission, laid = fit.model.emission, fit.laid
    if not isinstance(laid, Laid) or emission.by_em_alone or emission.hidden_level:
        return None
    n_states = fit.model.rate_model.n_states
    weights = jnp.asarray(laid.evidence.valid)[..., None] * jnp.full(n_states, 1 / n_states)
    pooled: Any = fit.parameters.emission
    for _ in range(POOLING):
        pooled = _pooled(emission, pooled, laid.evidence.seen, weights)
        if pooled is None:
            return None
    alike = fit.parameters._replace(emission={name: np.asarray(value) for name, value in pooled.items()})
    alone = fit.objective(fit.packing.vector(alike)).log_likelihood
    learned = {name: int(np.asarray(x).sum()) for name, x in emission.learned(fit.parameters.emission).items()}
    of_one = sum(n if name.startswith(SHARED) else n / n_states for name, n in learned.items())
    more = len(fit.packing.free) - of_one
    return top.log_likelihood - alone - 0.5 * more * float(np.log(np.asarray(laid.evidence.valid).sum()))


@partial(jax.jit, static_argnames="emission")
def _pooled(emission: Any, params: dict[str, Any], seen: Any, weights: Float[Array, "step lane state"]) -> Any:
    return emission.maximised(params, seen, weights)
