"""The states of a fitted process and the jumps between them, as a picture."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch

from ..mjp.interval import interval_or_unknown
from ..units import per
from .palette import TRACE, TRUTH, state_colour

if TYPE_CHECKING:
    from ..fitted import FittedMJP

SMALLEST, LARGEST = 0.2, 0.36  # radius of a state, for shares of 0 and 1; states stand on a circle of radius 1
BEND = 0.18  # of an arrow, so that both directions are seen


def plot_transition_network(fitted: "FittedMJP", ax: Axes, *, least: float = 1e-3) -> Axes:
    """Draw states as large as they are frequent, and jumps as arrows with their rates, thick where many happen.

    Where a state is never left, they are as thick as they are fast.

    Jumps that may not happen at all (their interval begins at zero) are dashed.

    Args:
        ax: where to draw; it is returned.
        least: jumps are left out that happen less often than this share of the most frequent one.
    """
    rates = fitted.rates
    law = np.asarray(fitted.stationary_distribution.mean)
    unsure = np.asarray(interval_or_unknown(fitted.intervals, "rates", rates).lower) == 0
    # Where all end in one state nothing flows in the long run: the rates alone tell which jumps count.
    flow = rates * law[:, None] if (law > 0).all() else rates
    most = float(flow.max()) or 1.0
    places, radius = _places(len(rates)), SMALLEST + (LARGEST - SMALLEST) * np.sqrt(law)
    for i, j in np.argwhere((rates > 0) & (flow >= least * most)).tolist():
        width = 0.8 + 3.2 * np.sqrt(flow[i, j] / most)
        _arrow(ax, places[i], places[j], radius[i], radius[j], width=float(width), dashed=bool(unsure[i, j]))
        x, y = _beside(places[i], places[j])
        ax.text(x, y, f"{rates[i, j]:.3g}", ha="center", va="center", fontsize="small")
    for k, (x, y) in enumerate(places):
        ax.add_patch(Circle((x, y), radius[k], facecolor="white", edgecolor=state_colour(k), linewidth=2.5, zorder=3))
        words = f"{fitted.state_names[k]}\n{law[k]:.1%}"
        ax.text(x, y, words, ha="center", va="center", fontsize="small", color=TRUTH, zorder=4)
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal", xticks=[], yticks=[])
    ax.set_xlabel(f"rates {per(fitted.time_unit)}")
    return ax


def _places(n: int) -> Float[np.ndarray, "state 2"]:
    """On a circle, the first on the left, then clockwise."""
    angle = np.pi - 2 * np.pi * np.arange(n) / n
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _arrow(
    ax: Axes,
    start: Float[np.ndarray, "2"],
    end: Float[np.ndarray, "2"],
    leaves: float,
    arrives: float,
    *,
    width: float,
    dashed: bool,
) -> None:
    """From the rim of one circle to the rim of another, bent to its own side."""
    way = (end - start) / np.linalg.norm(end - start)
    ax.add_patch(
        FancyArrowPatch(
            tuple(start + leaves * way),
            tuple(end - (arrives + 0.02) * way),
            connectionstyle=f"arc3,rad={BEND}",
            arrowstyle="-|>",
            mutation_scale=12,
            linewidth=width,
            linestyle="--" if dashed else "-",
            color=TRACE,
            shrinkA=0,
            shrinkB=0,
        )
    )


def _beside(start: Float[np.ndarray, "2"], end: Float[np.ndarray, "2"]) -> Float[np.ndarray, "2"]:
    """Where the number of an arrow stands: at its bend, on the outer side."""
    way = end - start
    side = np.array([way[1], -way[0]])
    return (start + end) / 2 + (BEND / 2) * side + 0.09 * side / np.linalg.norm(side)
