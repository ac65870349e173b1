"""How much two fits differ, number by number."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ..mjp.interval import Interval
from .palette import state_colour


def plot_contrast(
    names: Sequence[str],
    ratios: Interval,
    ax: Axes,
    *,
    sure: Float[np.ndarray, "name"] | None = None,
    label: str = "ratio",
) -> Axes:
    """Draw ratios with their intervals on a logarithmic scale, the first on top, and a line where nothing differs.

    Args:
        names: of the numbers.
        ratios: of each; those that are not known are left out.
        sure: p-values; a ratio below 0.05 is drawn filled.
        label: what was divided by what.
    """
    mean, lower, upper = (np.asarray(part, float) for part in (ratios.mean, ratios.lower, ratios.upper))
    places = np.arange(len(names))[::-1]
    drawn = np.isfinite(mean) & (mean > 0) & np.isfinite(upper) & (lower > 0)
    ax.axvline(1.0, color="0.6", linewidth=1, linestyle="--")
    for k in np.flatnonzero(drawn):
        filled = sure is None or sure[k] < 0.05
        ends = [[mean[k] - lower[k]], [upper[k] - mean[k]]]
        ax.errorbar(
            mean[k],
            places[k],
            xerr=ends,
            fmt="o",
            capsize=3,
            color=state_colour(0),
            markerfacecolor=state_colour(0) if filled else "white",
        )
    ax.set(xscale="log", xlabel=label, ylim=(-0.7, len(names) - 0.3))
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_yticks(places, names)
    return ax
