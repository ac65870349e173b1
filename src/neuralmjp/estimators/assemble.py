"""From what an engine found to the fitted model that people use."""

from typing import Any

import numpy as np
from jaxtyping import Float

from ..emissions import Emission
from ..emissions.clipped import clipping_told
from ..emissions.gaussian import Independent
from ..exact.evidence import Panel
from ..exact.fit import ExactFit
from ..exact.information import Information, observed_information, with_plain_emission
from ..exact.model import Model, Parameters
from ..exact.report import intervals_of, rate_samples_of, warnings_of
from ..exact.slowness import slowness_told
from ..fitted import FittedMJP
from ..timeseries import TimeSeries

FEW_VALUES = 20  # different whole numbers that are rather labels or counts than a signal


def assemble(found: ExactFit, data: TimeSeries, *, panel: Panel, seed: int, intervals: bool, **more: Any) -> FittedMJP:
    """A fitted model with intervals from the curvature of the exact likelihood; `more` fills or replaces its fields."""
    counted = with_plain_emission(found)
    information: Information | None = observed_information(counted) if intervals else None
    known: dict[str, Any] = {
        "engine": "exact",
        "model": found.model,
        "parameters": in_units(found),
        "time_unit": data.time_unit,
        "value_names": data.value_names,
        "log_likelihood": found.log_likelihood,
        "n_parameters": len(counted.packing.free) + numbers_by_em(counted),
        "n_observations": data.n_observations,
        "converged": found.converged,
        "message": found.message,
        "rate_samples": rate_samples_of(counted, information, seed),
        "intervals": intervals_of(counted, information),
        "uncertainty": uncertainty_of(counted) if information else "none",
        "warnings": (
            *steadiness_told(data.values),
            *labels_told(found.model.emission, data.values),
            *clipping_told(found.model.emission, data.values),
            *warnings_of(counted, information),
            *slowness_told(found.restarts, found.slowest, data.time_unit),
        ),
        "seed": seed,
        "panel": panel,
        "restarts": tuple(float(value) for value in found.restarts),
        "restart_timescales": tuple(float(value) for value in found.slowest),
    }
    return FittedMJP(**{**known, **more})


def steadiness_told(values: Float[np.ndarray, "row feature"]) -> tuple[str, ...]:
    """Of values that are all the same, whatever else is said of the fit."""
    seen = [column[~np.isnan(column)] for column in values.T]
    same = all((column == column[0]).all() for column in seen if len(column))
    return ("the values never change: no jump can be seen, and the states are made up",) if same else ()


def labels_told(emission: Emission, values: Float[np.ndarray, "row feature"]) -> tuple[str, ...]:
    """Of a few whole numbers under a law for measurements: they may be labels, or counts."""
    if not isinstance(emission, Independent) or values.shape[1] > 1:
        return ()
    seen = values[~np.isnan(values)]
    if (seen != np.round(seen)).any():
        return ()
    kinds = len(np.unique(seen))
    few = f"the values are {kinds} whole numbers, read as measurements: if they are labels"
    return (f"{few}, take the emission categorical; if counts, poisson",) if 1 < kinds <= FEW_VALUES else ()


def numbers_by_em(found: ExactFit) -> int:
    """Numbers of the emission that were learned, though the climb took them as given."""
    emission = found.model.emission
    learned = emission.learned(found.parameters.emission) if emission.by_em_alone else {}
    return int(sum(free.sum() for free in learned.values()))


def uncertainty_of(found: ExactFit) -> str:
    return "observed information" + (", given the emission" if found.model.emission.by_em_alone else "")


def in_units(found: ExactFit) -> Parameters:
    """The parameters for values as they are in the data."""
    return unscaled(found.model, found.parameters, found.scaling.shift, found.scaling.scale)


def unscaled(model: Model, parameters: Parameters, shift: np.ndarray, scale: np.ndarray) -> Parameters:
    """Parameters for values in the data's units, given those for standardised values."""
    emission = model.emission.rescaled(parameters.emission, shift, scale)
    return Parameters(
        parameters.rates, {name: np.asarray(value) for name, value in emission.items()}, parameters.initial
    )
