"""A model that something else has found, as if the exact engine had: for its likelihood and its intervals."""

import numpy as np

from ..mjp.precision import in_double_precision
from ..timeseries import TimeSeries
from .evidence import Panel, Scaling
from .fit import ExactFit, bounds_of, objective, observed, standardised
from .model import Model, Parameters
from .packing import Packing
from .settle import with_densities


@in_double_precision
def located(
    data: TimeSeries, model: Model, parameters: Parameters, *, panel: Panel, converged: bool, message: str
) -> ExactFit:
    """The likelihood at these parameters, which are in the units of the data; nothing is improved."""
    scaling = Scaling.of(model.emission, data.values)
    found = standardised(model, parameters, scaling)
    laid, packing = observed(data, model, scaling, panel), Packing(model, found)
    if model.emission.by_em_alone:
        laid = with_densities(laid, model, found)
    theta, bounds = packing.vector(found), bounds_of(model, packing, data)
    at_bound = (theta <= bounds[:, 0]) | (theta >= bounds[:, 1])
    likelihood = objective(model, packing, laid, theta).log_likelihood + laid.log_scale
    return ExactFit(model, found, scaling, laid, packing, likelihood, at_bound, converged, message, np.array([]))
