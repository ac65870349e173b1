"""The two figures of the paper's appendix on Lotka-Volterra: what was, what was seen, what is thought, what comes."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from ..baselines.forecasting import forecast
from ..baselines.opper_sanguinetti import MeanFieldFit
from ..errors import InputError
from ..fitted_network import FittedNetwork
from ..systems import Simulation
from ..timeseries import TimeSeries
from .tables import Drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPREAD = 1.645  # standard deviations to either side: a band of 90 % of a normal law


class Belief(NamedTuple):
    """Counts at all times of a series: mean and band."""

    mean: Float[np.ndarray, "time species"]
    lower: Float[np.ndarray, "time species"]
    upper: Float[np.ndarray, "time species"]


Believing = Callable[[TimeSeries, Float[np.ndarray, "later"]], Belief]  # from what is given, and at later times


def grid_figure(longer: Simulation, exact: FittedNetwork | MeanFieldFit, n_given: int) -> dict[str, Drawing]:
    """One series of the prediction set; drawn when called."""
    one = {"exact": partial(believed, exact)}
    return {"lotka-volterra-prediction": lambda: drawn(longer, n_given, one, "A series of the prediction set")}


def single_figure(
    single: Simulation, exact: FittedNetwork | MeanFieldFit, swept: FittedNetwork | MeanFieldFit, n_given: int
) -> dict[str, Drawing]:
    """The single trajectory by both engines; drawn when called."""
    two = {"exact": partial(believed, exact), "mean field": partial(believed, swept)}
    return {"lotka-volterra-single": lambda: drawn(single, n_given, two, f"One trajectory of {n_given} observations")}


def believed(model: FittedNetwork | MeanFieldFit, given: TimeSeries, later: Float[np.ndarray, "later"]) -> Belief:
    """Mean and a 90 % band, of each engine by its own law."""
    if isinstance(model, MeanFieldFit):
        if not model.posterior.data.equals(given):
            raise InputError("the mean field's figure shows the series it was fitted to")
        after = forecast(model, later)
        mean = np.concatenate([model.posterior.means, after.means[0]])
        sd = np.concatenate([model.posterior.sds, after.sds[0]])
        return Belief(mean, np.maximum(mean - SPREAD * sd, 0.0), mean + SPREAD * sd)
    past, future = model.decode(given), model.predict(given, later).counts
    laws = past.probabilities
    ends = [np.stack([(law.cumsum(1) >= q).argmax(1) for law in laws], 1) for q in (0.05, 0.95)]
    return Belief(
        np.concatenate([past.mean, future.mean]),
        np.concatenate([ends[0], future.lower]).astype(float),
        np.concatenate([ends[1], future.upper]).astype(float),
    )


def drawn(simulation: Simulation, n_given: int, models: dict[str, Believing], title: str) -> "Figure":
    """One panel per species; what was not given on grey."""
    from matplotlib.figure import Figure

    from ..plots import plot_belief, plot_counts

    data = simulation.data
    given = TimeSeries.from_arrays(
        data.times[None, :n_given], data.values[None, :n_given], time_unit=data.time_unit, value_names=data.value_names
    )
    beliefs = {name: believe(given, data.times[n_given:]) for name, believe in models.items()}
    figure = Figure(figsize=(10, 5.5), layout="constrained")
    panels = figure.subplots(data.n_features, 1, sharex=True)
    for s, ax in enumerate(panels):
        until = float(data.times[n_given - 1])
        plot_counts(
            data.times, ax, readings=data.values[:, s], truth=simulation.states[:, s].astype(float), until=until
        )
        for k, (name, belief) in enumerate(beliefs.items()):
            band = (belief.lower[:, s], belief.upper[:, s])
            plot_belief(data.times, belief.mean[:, s], ax, band=band, colour=k, label=f"{name}: mean, 90 % band")
        ax.set_ylabel(data.value_names[s])
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].set_title(f"{title}: given on white, forecast on grey", loc="left")
    panels[0].legend(loc="upper left", frameon=False, ncols=2 + len(models), fontsize="small")
    panels[-1].set_xlabel(f"time ({data.time_unit})")
    return figure
