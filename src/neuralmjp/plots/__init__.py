"""Figures. Each function takes what it draws and an `ax`, and returns the `ax`."""

from .comparison import plot_comparison
from .contrast import plot_contrast
from .counts import plot_belief, plot_counts
from .observables import plot_relaxation_times, plot_stationary_law
from .ramachandran import plot_ramachandran
from .rates import plot_rates
from .tables import plot_passage_times, plot_rate_matrix
from .trace import plot_trace
from .training import plot_training
from .transitions import plot_transition_network
from .validation import (
    plot_autocorrelation,
    plot_chapman_kolmogorov,
    plot_density,
    plot_dwell_times,
    plot_forecast_errors,
    plot_forecasts,
    plot_prevalence,
    plot_residuals,
    plot_timescales,
)

__all__ = [
    "plot_autocorrelation",
    "plot_belief",
    "plot_chapman_kolmogorov",
    "plot_comparison",
    "plot_contrast",
    "plot_counts",
    "plot_density",
    "plot_dwell_times",
    "plot_forecast_errors",
    "plot_forecasts",
    "plot_passage_times",
    "plot_prevalence",
    "plot_ramachandran",
    "plot_rate_matrix",
    "plot_rates",
    "plot_relaxation_times",
    "plot_residuals",
    "plot_stationary_law",
    "plot_timescales",
    "plot_trace",
    "plot_training",
    "plot_transition_network",
]
