"""Figures. Each function takes what it draws and an `ax`, and returns the `ax`."""

from .comparison import plot_comparison
from .counts import plot_belief, plot_counts
from .ramachandran import plot_ramachandran
from .rates import plot_rates
from .trace import plot_trace

__all__ = ["plot_belief", "plot_comparison", "plot_counts", "plot_ramachandran", "plot_rates", "plot_trace"]
