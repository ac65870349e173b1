"""Do data simulated from the fitted model look like the data? Dwell times, autocorrelation, density of the values."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError
from ..exact.alternatives import resimulated
from ..fitted import FittedMJP
from ..mjp.precision import in_double_precision
from ..timeseries import TimeSeries
from .verdict import REJECTED, Band, Verdict, band, require_enough, require_hidden_states

BINS = 40
PLACES = 12  # at which dwell times and correlations are compared
TOO_FEW = 10  # dwells of a state that say something about their law


@dataclass(frozen=True)
class Predictive:
    """Three ways in which simulated data may differ from the observed; every band has one row per state or value."""

    dwell_times: Float[np.ndarray, "place"]
    survival: Band  # (state, place): share of the dwells of the decoded path that last longer
    dwells: tuple[Float[np.ndarray, "_"], ...]  # of each state, as observed
    correlation_lags: Float[np.ndarray, "lag"]  # in time units, median gaps apart
    autocorrelation: Band  # (value, lag)
    edges: Float[np.ndarray, "value edge"]
    density: Band  # (value, bin)
    time_unit: str
    value_names: tuple[str, ...]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        state, place = _furthest(self.survival)
        longer = "more" if self.survival.deviations[state, place] > 0 else "fewer"
        at = f"dwells in state {state} longer than {self.dwell_times[place]:.3g} {self.time_unit}"
        value, lag = _furthest(self.autocorrelation)
        stronger = "more strongly" if self.autocorrelation.deviations[value, lag] > 0 else "less strongly"
        column, bin_ = _furthest(self.density)
        centre = self.edges[column, bin_ : bin_ + 2].mean()
        commoner = "more" if self.density.deviations[column, bin_] > 0 else "fewer"
        return (
            _verdict("dwell times", self.survival, f"the data show {longer} {at} than the model makes"),
            _verdict(
                "autocorrelation",
                self.autocorrelation,
                f"values {self.correlation_lags[lag]:.3g} {self.time_unit} apart are {stronger} correlated "
                "than the model makes them",
            ),
            _verdict(
                "density",
                self.density,
                f"the data hold {commoner} values of {self.value_names[column]} near {centre:.3g} than the model makes",
            ),
        )


def _verdict(check: str, judged: Band, deviation: str) -> Verdict:
    if judged.p_value >= REJECTED:
        return Verdict(check, True, f"as in data simulated from the model (p = {judged.p_value:.2g})")
    return Verdict(check, False, f"{deviation} (p = {judged.p_value:.2g})")


def _furthest(judged: Band) -> tuple[int, int]:
    off = np.nan_to_num(np.abs(judged.deviations))
    row, column = np.unravel_index(int(off.argmax()), off.shape)
    return int(row), int(column)


@in_double_precision
def predictive(fitted: FittedMJP, data: TimeSeries, *, simulations: int = 50, seed: int = 0) -> Predictive:
    """Simulate from the fitted model at the times of the data, and compare.

    The path of every simulated data set is decoded as that of the data is, so that what decoding misses is missed in
    both.
    """
    require_hidden_states(fitted, "predictive")
    if fitted.panel.exact_entry is not None:
        raise InputError(
            "the model cannot simulate exact times of entry; where states are seen as they are, prevalence "
            "and Pearson's test can"
        )
    require_enough(simulations, seed)
    runs = [resimulated(fitted, data, seed=seed + k + 1) for k in range(simulations)]
    lags = _lags(data)
    edges = np.stack([_edges(column) for column in data.values.T])
    dwells = [fitted.decode(one).dwells(data) for one in (data, *runs)]
    times = _places(dwells[0])
    survival = np.stack([[_longer(each, times) for each in one] for one in dwells])
    correlation = np.stack([_autocorrelation(one, lags) for one in (data, *runs)])
    density = np.stack([[_shares(*pair) for pair in zip(one.values.T, edges, strict=True)] for one in (data, *runs)])
    return Predictive(
        times,
        band(survival[0], survival[1:]),
        dwells[0],
        lags * float(np.median(data.gaps)),
        band(correlation[0], correlation[1:]),
        edges,
        band(density[0], density[1:]),
        data.time_unit,
        data.value_names,
    )


def _places(dwells: tuple[np.ndarray, ...]) -> Float[np.ndarray, "place"]:
    """Times from the shortest to the longest dwells, evenly in the logarithm."""
    every = np.concatenate(dwells)
    if every.size < 2:
        return np.ones(1)
    low, high = np.quantile(every, [0.05, 0.99])
    return np.unique(np.geomspace(low, max(high, low * 1.01), PLACES))


def _longer(dwells: np.ndarray, times: Float[np.ndarray, "place"]) -> Float[np.ndarray, "place"]:
    if len(dwells) < TOO_FEW:
        return np.full(len(times), np.nan)
    return 1 - np.searchsorted(np.sort(dwells), times, side="right") / len(dwells)


def _lags(data: TimeSeries) -> Int[np.ndarray, "lag"]:
    """In observations, up to a quarter of the longest series."""
    return np.unique(np.geomspace(1, max(int(data.lengths.max()) // 4, 1), PLACES).astype(int))


def _autocorrelation(data: TimeSeries, lags: Int[np.ndarray, "lag"]) -> Float[np.ndarray, "value lag"]:
    """Between observations so many places apart in a series."""
    centred = data.values - np.nanmean(data.values, axis=0)
    variance = np.maximum(np.nanmean(centred**2, axis=0), np.finfo(float).tiny)
    series = np.repeat(np.arange(len(data)), data.lengths)
    result = np.full((data.n_features, len(lags)), np.nan)
    for k, lag in enumerate(lags):
        together = series[lag:] == series[:-lag]
        products = (centred[lag:] * centred[:-lag])[together]
        known = (~np.isnan(products)).any(0)
        result[known, k] = np.nanmean(products[:, known], axis=0) / variance[known]
    return result


def _edges(values: np.ndarray) -> Float[np.ndarray, "edge"]:
    """Of bins from the smallest value to the largest."""
    seen = values[~np.isnan(values)]
    low, high = float(seen.min()), float(seen.max())
    pad = 1e-9 * max(high - low, 1e-300)
    return np.linspace(low - pad, high + pad, BINS + 1)


def _shares(values: np.ndarray, edges: np.ndarray) -> Float[np.ndarray, "bin"]:
    """Share of the values in each bin; those beyond the ends count in the outermost."""
    seen = np.clip(values[~np.isnan(values)], edges[0], edges[-1])
    return np.histogram(seen, edges)[0] / max(len(seen), 1)
