"""Figures of the checks of a fit: what the model says in colour, what the data show in black or grey."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from ..mjp import Interval
from .palette import TRACE, TRUTH, state_colour

if TYPE_CHECKING:
    from ..validation import Prevalence


def plot_chapman_kolmogorov(
    lags: Float[np.ndarray, "lag"],
    predicted: Interval,
    observed: Interval,
    ax: Axes,
    *,
    state: int,
    time_unit: str,
    names: Sequence[str] | None = None,
) -> Axes:
    """Draw the probabilities of all states a lag after one of them: foreseen as lines with bands, seen as dots.

    Args:
        predicted, observed: (lag, state, state).
        state: the one that is left.
        names: of the states, such as `fitted.state_names`; their numbers if not given.
    """
    names = names or [str(k) for k in range(predicted.mean.shape[-1])]
    for k in range(predicted.mean.shape[-1]):
        line, low, high = (end[:, state, k] for end in (predicted.mean, predicted.lower, predicted.upper))
        ax.fill_between(lags, low, high, color=state_colour(k), alpha=0.2, linewidth=0)
        ax.plot(lags, line, linewidth=1.6, color=state_colour(k), label=f"{names[state]} → {names[k]}")
        seen, below, above = (end[:, state, k] for end in (observed.mean, observed.lower, observed.upper))
        ax.errorbar(
            lags, seen, yerr=np.maximum([seen - below, above - seen], 0), fmt="o", capsize=3, color=state_colour(k)
        )
    ax.set(xlabel=f"lag ({time_unit})", ylabel="probability", ylim=(-0.02, 1.02))
    return ax


def plot_timescales(
    thinnings: Int[np.ndarray, "thinning"],
    timescales: Interval,
    ax: Axes,
    *,
    time_unit: str,
    plateau: int | None = None,
) -> Axes:
    """Draw relaxation times with their intervals against thinning, both axes logarithmic; the plateau as a line.

    Args:
        timescales: (thinning, timescale), slowest first.
    """
    for k in range(timescales.mean.shape[1]):
        mean, low, high = (end[:, k] for end in (timescales.mean, timescales.lower, timescales.upper))
        spread = np.nan_to_num(np.maximum([mean - low, np.minimum(high, 1e3 * mean) - mean], 0.0))
        ax.errorbar(thinnings, mean, yerr=spread, fmt="o-", capsize=3, color=state_colour(k))
    if plateau is not None:
        ax.axvline(plateau, linewidth=1, linestyle="--", color=TRACE)
    ax.set(xscale="log", yscale="log", xlabel="every n-th observation", ylabel=f"timescale ({time_unit})")
    ax.set_xticks(thinnings, [str(n) for n in thinnings])
    ax.minorticks_off()
    return ax


def plot_dwell_times(
    dwells: Sequence[Float[np.ndarray, "_"]],
    exit_rates: Float[np.ndarray, "state"],
    ax: Axes,
    *,
    time_unit: str,
    names: Sequence[str] | None = None,
) -> Axes:
    """Draw histograms of the decoded dwell times, in steps of the logarithm, and the exponentials of the fitted rates.

    Args:
        dwells: of each state.
        exit_rates: of the fitted process.
        names: of the states, such as `fitted.state_names`; their numbers if not given.
    """
    every = np.concatenate([one for one in dwells if len(one)] or [np.ones(1)])
    edges = np.geomspace(every.min() * 0.99, every.max() * 1.01, 25)
    fine = np.geomspace(edges[0], edges[-1], 300)
    for k, (found, rate) in enumerate(zip(dwells, exit_rates, strict=True)):
        if len(found) == 0:
            continue
        counts = np.histogram(found, edges)[0]
        ax.stairs(counts, edges, color=state_colour(k), linewidth=1.2, label=f"state {names[k] if names else k}")
        # Expected in a step of the logarithm; shorter ones than the first edge are not seen.
        expected = len(found) * rate * fine * np.exp(-rate * (fine - edges[0])) * np.log(edges[1] / edges[0])
        ax.plot(fine, expected, linewidth=1, linestyle="--", color=state_colour(k))
    ax.set(xscale="log", xlabel=f"dwell time ({time_unit})", ylabel="dwells")
    return ax


def plot_autocorrelation(
    lags: Float[np.ndarray, "lag"],
    observed: Float[np.ndarray, "lag"],
    band: tuple[Float[np.ndarray, "lag"], Float[np.ndarray, "lag"]],
    ax: Axes,
    *,
    time_unit: str,
) -> Axes:
    """Draw the autocorrelation of one value, and the band of simulated data."""
    ax.fill_between(lags, *band, color=state_colour(0), alpha=0.3, linewidth=0, label="model, 95 %")
    ax.plot(lags, observed, "o-", markersize=4, linewidth=1, color=TRUTH, label="data")
    ax.set(xscale="log", xlabel=f"lag ({time_unit})", ylabel="autocorrelation")
    return ax


def plot_density(
    edges: Float[np.ndarray, "edge"],
    observed: Float[np.ndarray, "bin"],
    band: tuple[Float[np.ndarray, "bin"], Float[np.ndarray, "bin"]],
    ax: Axes,
    *,
    label: str,
) -> Axes:
    """Draw the density of one value, and the band of simulated data; shares of the observations per bin are given."""
    width = np.diff(edges)
    low, high = (end / width for end in band)
    ax.stairs(high, edges, baseline=low, fill=True, color=state_colour(0), alpha=0.3, label="model, 95 %")
    ax.stairs(observed / width, edges, color=TRUTH, linewidth=1.2, label="data")
    ax.set(xlabel=label, ylabel="density")
    return ax


@overload
def plot_prevalence(found: "Prevalence", ax: Axes) -> Axes: ...
@overload
def plot_prevalence(
    times: Float[np.ndarray, "time"],
    observed: Float[np.ndarray, "time state"],
    expected: Interval,
    ax: Axes,
    *,
    labels: Sequence[str],
    time_unit: str,
) -> Axes: ...
def plot_prevalence(*drawn: Any, **words: Any) -> Axes:
    """Draw the share in each state over time: observed as dots, expected as lines with bands.

    What `validation.prevalence` found is drawn as its verdict sees it: by the state last seen, at the times that are
    compared (at all where none are), with bands that hold 95 % of the dots of a right model. Or give numbers.

    >>> # plot_prevalence(prevalence(fitted, data), ax)
    """
    return _shares_found(*drawn, **words) if len(drawn) + len(words) == 2 else _shares(*drawn, **words)


def _shares_found(found: "Prevalence", ax: Axes) -> Axes:
    some = found.compared if found.compared.any() else found.at_risk > 0
    mean, width = found.expected_last[some], 1.96 * found.error[some]
    band = Interval(mean, np.clip(mean - width, 0, 1), np.clip(mean + width, 0, 1))
    _shares(found.times[some], found.observed[some], band, ax, names=found.names, time_unit=found.time_unit)
    ax.set_ylabel("share, by the state last seen")
    return ax


def _shares(
    times: Float[np.ndarray, "time"],
    observed: Float[np.ndarray, "time state"],
    expected: Interval,
    ax: Axes,
    *,
    labels: Sequence[str] = (),
    names: Sequence[str] = (),
    time_unit: str,
) -> Axes:
    for k, name in enumerate(names or [f"state {label}" for label in labels]):
        colour = state_colour(k)
        ax.fill_between(times, expected.lower[:, k], expected.upper[:, k], color=colour, alpha=0.2, linewidth=0)
        ax.plot(times, expected.mean[:, k], linewidth=1.6, color=colour, label=name)
        ax.plot(times, observed[:, k], "o", markersize=4, color=colour)
    ax.plot([], [], linewidth=1.6, color=TRUTH, label="expected, 95 %")
    ax.plot([], [], "o", markersize=4, color=TRUTH, label="observed")
    ax.set(xlabel=f"time since the first observation ({time_unit})", ylabel="share", ylim=(-0.02, 1.02))
    return ax


def plot_residuals(ranks: Float[np.ndarray, "row"], ax: Axes, *, bins: int = 20) -> Axes:
    """Draw the histogram of one value's one-step-ahead residuals; flat inside the band if the model is right."""
    seen = ranks[~np.isnan(ranks)]
    ax.hist(seen, bins=bins, range=(0, 1), density=True, color=state_colour(0), alpha=0.6)
    spread = 1.96 * np.sqrt((bins - 1) / max(len(seen), 1))
    ax.axhspan(1 - spread, 1 + spread, color=TRACE, alpha=0.3, linewidth=0, label="95 % of a right model's bins")
    ax.set(xlim=(0, 1), xlabel="rank of an observation in its forecast", ylabel="density")
    return ax


def plot_forecasts(inside: Float[np.ndarray, "step"], meant: float, ax: Axes) -> Axes:
    """Draw the share of later observations inside their forecast intervals, by how far ahead, and what it should be."""
    ahead = np.arange(1, len(inside) + 1)
    ax.axhline(meant, linewidth=1, linestyle="--", color=TRUTH, label=f"should be {meant:.0%}")
    ax.plot(ahead, inside, "o-", markersize=4, linewidth=1, color=state_colour(0), label="observed")
    ax.set(xlabel="observations ahead", ylabel="share inside the interval", ylim=(0, 1.02), xticks=ahead)
    return ax


def plot_forecast_errors(errors: Float[np.ndarray, "step"], ax: Axes) -> Axes:
    """Draw the root mean square error of forecasts, by how far ahead."""
    ahead = np.arange(1, len(errors) + 1)
    ax.plot(ahead, errors, "o-", markersize=4, linewidth=1, color=state_colour(0))
    ax.set(xlabel="observations ahead", ylabel="root mean square error", xticks=ahead)
    ax.set_ylim(bottom=0)
    return ax
