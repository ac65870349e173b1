"""What follows from the rates of a fitted process, each number with its interval."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from ..mjp import Interval
from .palette import TRUTH, state_colour

if TYPE_CHECKING:
    from ..fitted import FittedMJP

FARTHEST = 10.0  # times the estimate: how far an interval without end is drawn


def plot_stationary_law(fitted: "FittedMJP", ax: Axes) -> Axes:
    """Draw the share of the time in each state as bars, with their intervals."""
    law = fitted.stationary_distribution
    states = np.arange(fitted.n_states)
    ax.bar(states, law.mean, color=[state_colour(int(k)) for k in states], width=0.7, alpha=0.7)
    _whiskers(law, ax, [TRUTH] * fitted.n_states)
    ax.set(xticks=states, xlabel="state", ylabel="stationary probability")
    ax.set_ylim(0, min(1.02, 1.1 * float(np.nanmax([*law.mean, *law.upper]))))
    return ax


def plot_relaxation_times(fitted: "FittedMJP", ax: Axes) -> Axes:
    """Draw the relaxation times, slowest first, on a logarithmic axis; an arrow where an interval has no upper end."""
    times = fitted.timescales
    places = np.arange(len(times.mean))
    ax.plot(places, times.mean, "o", color=state_colour(0), markersize=6)
    ax.set_yscale("log")
    _whiskers(times, ax, [state_colour(0)] * len(places))
    ax.set(xticks=places, xticklabels=[str(k + 1) for k in places], xlabel="relaxation, slowest first")
    ax.set_ylabel(f"relaxation time ({fitted.time_unit})")
    ax.margins(x=0.2)
    return ax


def _whiskers(interval: Interval, ax: Axes, colours: list[str]) -> None:
    """A line from lower to upper with caps; where upper is infinite an arrow; nothing where nothing is known."""
    for k, (mean, lower, upper) in enumerate(zip(interval.mean, interval.lower, interval.upper, strict=True)):
        if np.isnan(lower) or np.isnan(upper) or not np.isfinite(mean):
            continue
        end = upper if np.isfinite(upper) else FARTHEST * mean
        ax.vlines(k, lower, end, color=colours[k], linewidth=1.6)
        ax.plot([k], [lower], "_", color=colours[k], markersize=9, markeredgewidth=1.6)
        ax.plot([k], [end], "_" if np.isfinite(upper) else "^", color=colours[k], markersize=9, markeredgewidth=1.6)
