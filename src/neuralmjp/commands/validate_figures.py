"""The figures of `neuralmjp validate`, one file per check."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..validation.coverage import MEANT

MOST_PANELS = 6  # side by side


def draw(found: Mapping[str, Any], folder: Path, exits: np.ndarray, names: Sequence[str] | None = None) -> list[str]:
    """Write a figure for every check that was done; the names of their files.

    Args:
        exits: rates at which the states are left.
        names: of the states; their numbers if not given.
    """
    import matplotlib

    matplotlib.use("agg")
    folder.mkdir(parents=True, exist_ok=True)
    panels: dict[str, list[Callable]] = {}
    for name, one in found.items():
        panels |= PANELS[name](one, exits, names) if name in PANELS else {}
    return [_figure(folder, name, each) for name, each in panels.items()]


def _figure(folder: Path, name: str, panels: list[Callable]) -> str:
    from matplotlib import pyplot as plt

    panels = panels[:MOST_PANELS]
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.2), squeeze=False, layout="constrained")
    for ax, panel in zip(axes[0], panels, strict=True):
        panel(ax)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(fontsize="small")
    figure.savefig(folder / f"{name}.png", dpi=150)
    plt.close(figure)
    return f"{name}.png"


def _chapman_kolmogorov(one: Any, *_: Any) -> dict[str, list[Callable]]:
    from ..plots import plot_chapman_kolmogorov

    def panel(state: int) -> Callable:
        return lambda ax: plot_chapman_kolmogorov(
            one.lags, one.predicted, one.observed, ax, state=state, time_unit=one.time_unit, names=one.names
        )

    return {"chapman-kolmogorov": [panel(k) for k in range(one.predicted.mean.shape[1])]}


def _timescales(one: Any, *_: Any) -> dict[str, list[Callable]]:
    from ..plots import plot_timescales

    return {
        "timescales": [
            lambda ax: plot_timescales(one.thinnings, one.timescales, ax, time_unit=one.time_unit, plateau=one.plateau)
        ]
    }


def _predictive(one: Any, exits: np.ndarray, names: Sequence[str] | None) -> dict[str, list[Callable]]:
    from ..plots import plot_autocorrelation, plot_density, plot_dwell_times

    def correlation(k: int) -> Callable:
        ends = (one.autocorrelation.lower[k], one.autocorrelation.upper[k])
        return lambda ax: plot_autocorrelation(
            one.correlation_lags, one.autocorrelation.observed[k], ends, ax, time_unit=one.time_unit
        )

    def density(k: int) -> Callable:
        ends = (one.density.lower[k], one.density.upper[k])
        return lambda ax: plot_density(one.edges[k], one.density.observed[k], ends, ax, label=one.value_names[k])

    values = range(len(one.value_names))
    return {
        "dwell-times": [lambda ax: plot_dwell_times(one.dwells, exits, ax, time_unit=one.time_unit, names=names)],
        "autocorrelation": [correlation(k) for k in values],
        "density": [density(k) for k in values],
    }


def _residuals(one: Any, *_: Any) -> dict[str, list[Callable]]:
    from ..plots import plot_residuals

    def panel(k: int) -> Callable:
        return lambda ax: plot_residuals(one.ranks[:, k], ax)

    return {"residuals": [panel(k) for k in range(one.ranks.shape[1])]}


def _forecasts(one: Any, *_: Any) -> dict[str, list[Callable]]:
    from ..plots import plot_forecast_errors, plot_forecasts

    return {
        "forecasts": [
            lambda ax: plot_forecasts(one.inside, MEANT, ax),
            lambda ax: plot_forecast_errors(one.accuracy.at, ax),
        ]
    }


def _prevalence(one: Any, *_: Any) -> dict[str, list[Callable]]:
    from ..plots import plot_prevalence

    return {"prevalence": [lambda ax: plot_prevalence(one, ax)]}


PANELS = {
    "Chapman-Kolmogorov": _chapman_kolmogorov,
    "timescales": _timescales,
    "predictive": _predictive,
    "residuals": _residuals,
    "forecasts": _forecasts,
    "prevalence": _prevalence,
}
