"""Counts of a species: what was hidden, what was read, what is thought of both, and what comes next."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from .palette import FUTURE, TRACE, TRUTH, state_colour


def plot_counts(
    times: Float[np.ndarray, "time"],
    ax: Axes,
    *,
    readings: Float[np.ndarray, "time"] | None = None,
    truth: Float[np.ndarray, "time"] | None = None,
    until: float | None = None,
) -> Axes:
    """Draw one species of one series: readings as dots, true counts as a line, the future on grey.

    Args:
        times: of the observations.
        ax: where to draw; it is returned.
        readings: noisy values; NaN where there are none.
        truth: counts behind them.
        until: end of what a model was given; the region after it is grey.
    """
    if until is not None:
        ax.axvspan(until, float(times[-1]), color=FUTURE, linewidth=0, zorder=0)
    if truth is not None:
        ax.step(times, truth, where="mid", linewidth=1, color=TRUTH, label="true count")
    if readings is not None:
        ax.plot(times, readings, ".", markersize=4, color=TRACE, label="read")
    ax.margins(x=0)
    return ax


def plot_belief(
    times: Float[np.ndarray, "time"],
    mean: Float[np.ndarray, "time"],
    ax: Axes,
    *,
    band: tuple[Float[np.ndarray, "time"], Float[np.ndarray, "time"]] | None = None,
    colour: int = 0,
    label: str = "",
) -> Axes:
    """Draw what is thought of a count over time: its mean, and a band between two quantiles.

    Args:
        band: lower and upper end.
        colour: position in the palette.
        label: in the legend; none if empty.
    """
    if band is not None:
        ax.fill_between(times, *band, color=state_colour(colour), alpha=0.2, linewidth=0)
    ax.plot(times, mean, linewidth=1.6, color=state_colour(colour), label=label or None)
    return ax
