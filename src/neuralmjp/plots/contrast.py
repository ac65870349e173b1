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
        ratios: of each; those that are not known are left out, and limits on one side end in an arrow.
        sure: p-values; a ratio below 0.05 is drawn filled.
        label: what was divided by what.
    """
    mean, lower, upper = (np.asarray(part, float) for part in (ratios.mean, ratios.lower, ratios.upper))
    places, known = np.arange(len(names))[::-1], np.isfinite(lower) & ~np.isnan(upper) & (upper > 0)
    ends = np.concatenate([part[np.isfinite(part) & (part > 0)] for part in (lower[known], upper[known])])
    left, right = (ends.min() / 2, ends.max() * 2) if ends.size else (0.5, 2.0)
    ax.axvline(1.0, color="0.6", linewidth=1, linestyle="--")
    for k in np.flatnonzero(known):
        colour, filled = state_colour(0), sure is None or sure[k] < 0.05
        ax.plot([max(lower[k], left), min(upper[k], right)], [places[k]] * 2, color=colour)
        for end, edge, arrow in ((lower[k], left, "<"), (upper[k], right, ">")):
            there = left <= end <= right
            ax.plot(end if there else edge, places[k], "|" if there else arrow, color=colour)
        if left <= mean[k] <= right:
            ax.plot(mean[k], places[k], "o", color=colour, markerfacecolor=colour if filled else "white")
    ax.set(xscale="log", xlabel=label, ylim=(-0.7, len(names) - 0.3))
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_yticks(places, names)
    return ax
