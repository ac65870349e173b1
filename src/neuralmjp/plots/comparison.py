"""Numbers of several methods side by side."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from .palette import state_colour


def plot_comparison(
    names: Sequence[str],
    values: Mapping[str, Float[np.ndarray, "name run"]],
    ax: Axes,
    *,
    label: str,
    log: bool = False,
) -> Axes:
    """Draw the mean of every number with the spread of its runs, one colour and one sign per method.

    Args:
        names: of the numbers, along the axis.
        values: by method; NaN and columns that are not there leave a gap.
        label: of the values, with their unit.
    """
    signs = "osD^vP*X"
    for k, (method, each) in enumerate(values.items()):
        if each.shape[1] == 0:
            continue
        places = np.arange(len(names)) + 0.6 * ((k + 0.5) / len(values) - 0.5)
        mean = each.mean(1)
        spread = each.std(1, ddof=1) if each.shape[1] > 1 else np.zeros_like(mean)
        drawn = np.isfinite(mean) & ((mean > 0) | (not log))
        ax.errorbar(
            places[drawn],
            mean[drawn],
            yerr=spread[drawn],
            fmt=signs[k % len(signs)],
            capsize=3,
            color=state_colour(k),
            label=method,
        )
    if log:
        ax.set_yscale("log")
    ax.set_xticks(np.arange(len(names)), names)
    ax.set_ylabel(label)
    return ax
