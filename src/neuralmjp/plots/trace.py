"""A recording and the hidden path behind it."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from ..errors import InputError
from ..timeseries import TimeSeries
from .palette import TRACE, state_colour


def plot_trace(
    data: TimeSeries,
    ax: Axes,
    *,
    feature: int = 0,
    states: Int[np.ndarray, "observation"] | None = None,
    levels: Float[np.ndarray, "state"] | None = None,
    names: Sequence[str] | None = None,
) -> Axes:
    """Draw one series: observations in grey, and the path through its levels, coloured by state.

    Args:
        data: one series.
        ax: where to draw; it is returned.
        feature: which value to draw.
        states: state at each observation; None draws the observations alone.
        levels: (K,) height at which each state is drawn; the mean of its observations if not given.
        names: of the states, such as `fitted.state_names`; their numbers if not given.
    """
    if len(data) != 1:
        raise InputError(f"plot_trace draws one series, not {len(data)}: choose one, such as data[0]")
    values = data.values[:, feature]
    ax.plot(data.times, values, ".", markersize=2.5, color=TRACE, label="observed", rasterized=len(values) > 2000)
    if states is not None:
        for state in np.unique(states):
            here = states == state
            seen = values[here & ~np.isnan(values)]
            if levels is None and not seen.size:
                continue  # no value tells where to draw it
            level = seen.mean() if levels is None else levels[state]
            # NaN breaks the line wherever the path is elsewhere.
            ax.step(
                data.times,
                np.where(here, level, np.nan),
                where="post",
                linewidth=2,
                color=state_colour(int(state)),
                label=f"state {names[state] if names else state}",
            )
    ax.set_xlabel(f"time ({data.time_unit})")
    ax.set_ylabel(data.value_names[feature])
    return ax
