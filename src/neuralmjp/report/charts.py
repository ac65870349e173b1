"""The drawings of a fit."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from ..fitted import FittedMJP
from . import svg
from .tables import Table

BINS = 24


def by_rows(table: Table, alt: str, unit: str, *, log: bool) -> str:
    """A dot with its interval for each row."""
    return svg.dots([str(row[0]) for row in table.rows], [tuple(row[1:4]) for row in table.rows], unit, alt, log=log)


def transition_network(fitted: FittedMJP) -> str:
    law = np.asarray(fitted.stationary_distribution.mean)
    words = ", ".join(f"state {name} {share:.3f}" for name, share in zip(fitted.state_names, law, strict=True))
    alt = f"Transition network; share of the time: {words}"
    return svg.network(fitted.rates, law, fitted.time_unit, alt, fitted.state_names)


def dwell_chart(fitted: FittedMJP, visits: Float[np.ndarray, "visit"], state: int) -> str:
    """Density of dwell times on a logarithmic axis, and the exponential of the fit."""
    times = visits[visits > 0]
    if len(times) < 5:
        return ""
    edges = np.geomspace(times.min() * 0.99, times.max() * 1.01, min(BINS, max(len(times) // 4, 4)))
    heights = np.histogram(times, edges)[0] / (len(times) * np.diff(edges))
    leaving = float(fitted.rates[state].sum())
    grid = np.geomspace(edges[0], edges[-1], 60)
    curve = leaving * np.exp(-leaving * grid)
    return svg.lines(
        [("fitted", grid.tolist(), curve.tolist())],
        f"dwell time ({fitted.time_unit})",
        "density",
        f"Dwell times of state {fitted.state_names[state]}: {len(times)} visits, and the fitted exponential",
        log_x=True,
        stairs=[("visits", edges.tolist(), heights.tolist())],
    )


def training_curve(history: Sequence[dict[str, Any]]) -> str:
    """The bound against steps."""
    steps = [float(row["step"]) for row in history]
    bound = [float(row["objective"]) for row in history]
    return svg.lines([("bound", steps, bound)], "training step", "nats per series", "The bound while training")
