"""A fitted reaction network on a terminal: constants with intervals, noise, and what to be careful about."""

from pathlib import Path

import numpy as np

from ..fitted_network import FittedNetwork
from ..mjp.interval import interval_or_unknown
from ..mjp.precision import in_double_precision
from ..units import per
from .result_tables import rows_of
from .show import console, number, table

MATTERS = 1e-6  # probability lost at the edges of windows, per series, that people should know of


def show(fitted: FittedNetwork, path: Path) -> None:
    """The result as tables with units and intervals."""
    screen = console()
    shown = ", ".join(fitted.value_names)
    screen.print(
        f"{path}: {fitted.network.name}, seen: {shown} ({fitted.readings.noise} noise), "
        f"{fitted.n_observations} observations, {fitted.seconds:.1f} s",
        soft_wrap=True,
    )
    screen.print(fitted.message, soft_wrap=True)
    screen.print(_likelihood(fitted), soft_wrap=True)
    known = fitted.uncertainty != "none"
    screen.print(f"intervals: {f'95 %, from {fitted.uncertainty}' if known else 'none'}", soft_wrap=True)
    level = ", 95 %" if known else ""
    found = interval_or_unknown(fitted.intervals, "parameters", fitted.constants)
    reactions = [fitted.reactions_of(name) for name in fitted.names]
    rows = [[name, text, *cells] for (name, *cells), text in zip(rows_of(fitted.names, found), reactions, strict=True)]
    constants = table(f"Rate constants ({per(fitted.time_unit)}){level}", ["", "reaction", "value", "from", "to"], rows)
    constants.columns[1].justify = "left"
    screen.print(constants)
    _show_noise(fitted, level)
    if fitted.truncated is not None and fitted.truncated > MATTERS:
        screen.print(f"note: probability lost at the edges of windows: {number(fitted.truncated)}", soft_wrap=True)
    for warning in fitted.warnings:
        screen.print(f"note: {warning}", soft_wrap=True)


def _likelihood(fitted: FittedNetwork) -> str:
    """The exact log-likelihood, the bound that was raised, or both."""
    exact = None if fitted.log_likelihood is None else f"log-likelihood {fitted.log_likelihood:.4f}"
    size = f"{fitted.n_parameters} parameters"
    if fitted.elbo is None:
        return f"{exact}, {size}"
    bound = f"engine {fitted.engine}, posterior {fitted.posterior}: ELBO {fitted.elbo:.4f}"
    return f"{bound}, {'exact ' + exact if exact else 'exact log-likelihood out of reach'}, {size}"


@in_double_precision
def _show_noise(fitted: FittedNetwork, level: str) -> None:
    known = fitted.readings.fixed is not None
    for name, entry in fitted.readings.natural(fitted.noise).items():
        value = np.asarray(entry.value, dtype=float)
        found = interval_or_unknown({} if known else fitted.intervals, f"emission.{name}", value)
        unit = "" if entry.kind == "probability" else " (counts)"
        title = f"Noise{unit}{', known' if known else level}"
        console().print(table(title, ["", name, "from", "to"], rows_of(fitted.value_names, found)))
