"""Jump rates, found and true, side by side."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from ..mjp import Interval
from ..units import per
from .palette import TRUTH, state_colour


def plot_rates(
    estimates: dict[str, Interval],
    ax: Axes,
    *,
    time_unit: str,
    truth: Float[np.ndarray, "state state"] | None = None,
    names: Sequence[str] | None = None,
) -> Axes:
    """Draw every rate with its interval on a logarithmic axis, one colour per estimate, truth as a bar.

    Jumps that no estimate and no truth contains are left out.

    Args:
        names: of the states, such as `fitted.state_names`; their numbers if not given.
    """
    tables = [estimate.mean for estimate in estimates.values()] + ([] if truth is None else [truth])
    jumps = np.argwhere(np.any([table > 0 for table in tables], axis=0))
    places = np.arange(len(jumps), dtype=float)
    if truth is not None:
        ax.plot(truth[tuple(jumps.T)], places, "|", markersize=18, markeredgewidth=2, color=TRUTH, label="truth")
    for k, (name, estimate) in enumerate(estimates.items()):
        mean, lower, upper = (table[tuple(jumps.T)] for table in (estimate.mean, estimate.lower, estimate.upper))
        seen = mean > 0
        height = places + 0.14 * (k - (len(estimates) - 1) / 2)
        spread = np.maximum(np.stack([mean - lower, np.minimum(upper, 1e300) - mean]), 0.0)[:, seen]
        ax.errorbar(mean[seen], height[seen], xerr=spread, fmt="o", capsize=3, color=state_colour(k), label=name)
    ax.set_xscale("log")
    ax.set_yticks(places, [f"{names[i]} → {names[j]}" if names else f"{i} → {j}" for i, j in jumps])
    ax.invert_yaxis()
    ax.set_xlabel(f"rate ({per(time_unit)})")
    return ax
