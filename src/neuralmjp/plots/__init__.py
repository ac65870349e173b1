"""Figures. Each function takes what it draws and an `ax`, and returns the `ax`."""

from .comparison import plot_comparison
from .counts import plot_belief, plot_counts
from .ramachandran import plot_ramachandran
from .rates import plot_rates
from .trace import plot_trace
from .validation import (
    plot_autocorrelation,
    plot_chapman_kolmogorov,
    plot_density,
    plot_dwell_times,
    plot_prevalence,
    plot_residuals,
    plot_timescales,
)

__all__ = [
    "plot_autocorrelation",
    "plot_belief",
    "plot_chapman_kolmogorov",
    "plot_comparison",
    "plot_counts",
    "plot_density",
    "plot_dwell_times",
    "plot_prevalence",
    "plot_ramachandran",
    "plot_rates",
    "plot_residuals",
    "plot_timescales",
    "plot_trace",
]
