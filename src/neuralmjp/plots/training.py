"""The course of a training run."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..errors import InputError
from .palette import TRUTH, state_colour

CURVES = {"objective": ("bound", "-"), "reconstruction": ("reconstruction", "--"), "path_kl": ("path divergence", ":")}


def plot_training(history: Sequence[Mapping[str, Any]], ax: Axes, *, evidence: float | None = None) -> Axes:
    """Draw the bound and its terms against training steps, in nats per series.

    Args:
        history: of `NeuralMJP.train`, or the rows of a `history.csv`.
        ax: where to draw; it is returned.
        evidence: exact log-likelihood per series, as a line that the bound may reach.
    """
    if not history:
        raise InputError("the history of this fit is empty: only the neural engine has one")
    steps = np.array([float(row["step"]) for row in history])
    for k, (name, (label, line)) in enumerate(CURVES.items()):
        values = np.array([float(row[name]) for row in history])
        ax.plot(steps, values, line, linewidth=1.6, color=state_colour(k), label=label)
    if evidence is not None:
        ax.axhline(evidence, linewidth=1, linestyle="-.", color=TRUTH, label="exact log-likelihood")
    ax.set(xlabel="training step", ylabel="nats per series")
    return ax
