"""The paper's experiments, one module each: data, settings, published values, and a function that runs it."""

from collections.abc import Callable

from ..errors import InputError
from . import ablations, adp, brownian_folding, dfr, ion_channel, lotka_volterra, timing, two_mode
from .tables import Report

# preset, runs per row, seed, progress, rows to run; the data too, where they are not simulated
Experiment = Callable[..., Report]
MEASURED = ("adp", "ion-channel", "timing")  # which can be given

EXPERIMENTS: dict[str, Experiment] = {
    "dfr": dfr.run,
    "ion-channel": ion_channel.run,
    "lotka-volterra": lotka_volterra.run,
    "adp": adp.run,
    "brownian-folding": brownian_folding.run,
    "two-mode": two_mode.run,
    "ablations": ablations.run,
    "timing": timing.run,
}

__all__ = ["EXPERIMENTS", "MEASURED", "Report", "named"]


def named(name: str) -> Experiment:
    """An experiment by the name that the command line knows."""
    if name not in EXPERIMENTS:
        raise InputError(f"no experiment {name!r}; there are: {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
