"""Tables of a fitted process as heat maps: jump rates and first-passage times, with their intervals in the cells."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize

from ..mjp import Interval
from ..mjp.interval import interval_or_unknown
from ..units import per
from .palette import FUTURE, TRUTH

if TYPE_CHECKING:
    from ..fitted import FittedMJP

SHADES = "Blues"  # from light to dark: reads in greyscale
DARK = 0.55  # share of the shades beyond which letters are white


def plot_rate_matrix(fitted: "FittedMJP", ax: Axes) -> Axes:
    """Draw jump rates from row to column, the darker the faster, with their intervals; jumps not allowed are empty.

    A jump of which the data show no sign is told by its upper limit, on white.
    """
    rates = interval_or_unknown(fitted.intervals, "rates", fitted.rates)
    return _heat_map(rates, ax, shown=fitted.rates > 0, limits=fitted.unseen, label=f"rate ({per(fitted.time_unit)})")


def plot_passage_times(fitted: "FittedMJP", ax: Axes) -> Axes:
    """Draw mean first-passage times from row to column, the darker the longer, with their intervals."""
    times = fitted.mfpt
    off = ~np.eye(fitted.n_states, dtype=bool)
    label = f"mean first-passage time ({fitted.time_unit})"
    return _heat_map(times, ax, shown=off, limits=np.zeros_like(off), label=label)


def _heat_map(
    table: Interval,
    ax: Axes,
    *,
    shown: Bool[np.ndarray, "state state"],
    limits: Bool[np.ndarray, "state state"],
    label: str,
) -> Axes:
    """Cells by the logarithm of their value, each with its numbers; `limits` are told as upper limits, on white."""
    mean, lower, upper = (np.asarray(end, dtype=float) for end in (table.mean, table.lower, table.upper))
    coloured = shown & ~limits & np.isfinite(mean) & (mean > 0)
    shades = _shades(mean[coloured])
    image = ax.imshow(np.where(coloured, mean, np.nan), cmap=SHADES, norm=shades)
    for i, j in np.ndindex(*mean.shape):
        if i == j:
            ax.add_patch(_square(i, j))
        elif shown[i, j]:
            value, low, high = (float(end[i, j]) for end in (mean, lower, upper))
            words = f"≤ {_short(high)}" if limits[i, j] else _cell(value, low, high)
            dark = coloured[i, j] and float(shades(value)) > DARK
            ax.text(j, i, words, ha="center", va="center", fontsize="small", color="white" if dark else TRUTH)
    states = range(len(mean))
    ax.set(xticks=states, yticks=states, xlabel="to state", ylabel="from state")
    assert ax.figure is not None
    ax.figure.colorbar(image, ax=ax, label=label)
    return ax


def _shades(values: Float[np.ndarray, "value"]) -> Normalize:
    """Logarithmic between the smallest and the largest value; the lightest shades are left to white."""
    if values.size == 0:
        return LogNorm(0.1, 1.0)
    low, high = float(values.min()), float(values.max())
    return LogNorm(low / max(high / low, 2.0) ** 0.25, high * 1.01)


def _square(i: int, j: int):
    """A grey cell where there is nothing to tell."""
    from matplotlib.patches import Rectangle

    return Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=FUTURE, edgecolor="none")


def _cell(mean: float, lower: float, upper: float) -> str:
    """The estimate, and its interval below where it is known."""
    if np.isnan(lower) or np.isnan(upper):
        return _short(mean)
    return f"{_short(mean)}\n[{_short(lower)}, {_short(upper)}]"


def _short(value: float) -> str:
    """Three digits."""
    return "∞" if np.isinf(value) else f"{value:.3g}"
