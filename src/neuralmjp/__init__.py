"""Hidden Markov jump processes: rates with uncertainty, the hidden path, the forecast.

    read      a table, an array, a recording          -> TimeSeries
    open_store a folder that memory does not hold     -> Store, for NeuralMJP
    systems   processes with known truth              -> TimeSeries and what is hidden behind it
    ExactMJP  exact likelihood, few states            -> FittedMJP: rates with intervals, decoding, observables
    NeuralMJP neural variational inference, any size  -> FittedMJP, the same
    NetworkMJP reaction networks: counts that react   -> FittedNetwork: constants with intervals, counts, forecasts
    contrast  what differs between two fits            -> Contrast
    priors    what is assumed of the rates
    emissions what a state looks like
    mjp       the mathematics of jump processes: simulation, propagation, observables
    plots     figures that take data and an `ax`
    preprocess thinning, burn-in, angles, scales
    validation is a fit true to the data; how many states

>>> import neuralmjp as nm
>>> channel = nm.systems.IonChannel.paper("one-second")
>>> recording = channel.simulate(n_series=1, length=5000, seed=0)
>>> recording.data.time_unit
's'
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__
from .errors import InputError

if TYPE_CHECKING:
    from . import emissions, io, mjp, plots, preprocess, priors, systems, validation
    from .contrasts import contrast
    from .estimators import ExactMJP, NetworkMJP, NeuralMJP
    from .exact.evidence import Panel
    from .fitted import FittedMJP
    from .fitted_network import FittedNetwork
    from .io import open_store, read, write
    from .timeseries import TimeSeries

__all__ = [
    "ExactMJP",
    "FittedMJP",
    "FittedNetwork",
    "InputError",
    "NetworkMJP",
    "NeuralMJP",
    "Panel",
    "TimeSeries",
    "__version__",
    "contrast",
    "emissions",
    "io",
    "mjp",
    "open_store",
    "plots",
    "preprocess",
    "priors",
    "read",
    "systems",
    "validation",
    "write",
]

_HOMES = {
    "ExactMJP": ".estimators",
    "NetworkMJP": ".estimators",
    "NeuralMJP": ".estimators",
    "FittedMJP": ".fitted",
    "contrast": ".contrasts",
    "FittedNetwork": ".fitted_network",
    "Panel": ".exact.evidence",
    "TimeSeries": ".timeseries",
    "open_store": ".io",
    "read": ".io",
    "write": ".io",
}
_SUBPACKAGES = ("emissions", "io", "mjp", "plots", "preprocess", "priors", "systems", "validation")


def __getattr__(name: str):
    # Names are loaded when first used: `neuralmjp --help` must not wait for JAX.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)
    if name in _SUBPACKAGES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
