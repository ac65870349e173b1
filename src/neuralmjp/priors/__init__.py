"""Rate models: what is assumed of the rates before data are seen."""

from .free import FreeRates
from .parametric import ParametricRates, system_rates
from .rate_model import RateModel, rates_of
from .reversible import ReversibleRates

__all__ = ["FreeRates", "ParametricRates", "RateModel", "ReversibleRates", "rates_of", "system_rates"]
