"""Figures. Each function takes what it draws and an `ax`, and returns the `ax`."""

from .rates import plot_rates
from .trace import plot_trace

__all__ = ["plot_rates", "plot_trace"]
