"""Classical methods to compare with, and tools in their own right. Nothing here is neural.

opper_sanguinetti   variational EM for reaction networks, species by species
forecasting         what its posterior says of later times
"""

from .forecasting import MeanFieldForecast, forecast
from .opper_sanguinetti import MeanFieldFit, MeanFieldPosterior, fit_mean_field, posterior
from .problem import Settings

__all__ = [
    "MeanFieldFit",
    "MeanFieldForecast",
    "MeanFieldPosterior",
    "Settings",
    "fit_mean_field",
    "forecast",
    "posterior",
]
