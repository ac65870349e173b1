"""Figures of the checks of a fit: numbers in, the same numbers drawn."""

import numpy as np
import pytest

from neuralmjp import plots
from neuralmjp.mjp import Interval
from neuralmjp.validation import Prevalence
from test_plots import labels


def heights(band):
    """Lowest and highest point of a band."""
    return [float(end) for end in np.quantile(band.get_paths()[0].vertices[:, 1], [0, 1])]


class TestChecks:
    LAGS = np.array([1.0, 2.0, 4.0])

    def test_chapman_kolmogorov(self, ax):
        stay = np.array([0.9, 0.8, 0.6])
        foreseen = np.stack([np.stack([stay, 1 - stay], 1)] * 2, 1)  # (lag, state, state)
        predicted = Interval(foreseen, foreseen - 0.1, foreseen + 0.05)
        observed = Interval(foreseen + 0.02, foreseen - 0.03, foreseen + 0.04)
        assert plots.plot_chapman_kolmogorov(self.LAGS, predicted, observed, ax, state=1, time_unit="ms") is ax
        assert labels(ax) == ["1 → 0", "1 → 1"]
        named = {"state": 1, "time_unit": "ms", "names": ("shut", "open")}
        plots.plot_chapman_kolmogorov(self.LAGS, predicted, observed, ax, **named)
        assert labels(ax)[2:] == ["open → shut", "open → open"]
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), stay)
        bars = ax.containers[0]
        np.testing.assert_allclose(bars.lines[0].get_ydata(), stay + 0.02)
        np.testing.assert_allclose(
            [segment[:, 1] for segment in bars.lines[2][0].get_segments()], np.stack([stay - 0.03, stay + 0.04], 1)
        )
        np.testing.assert_allclose(heights(ax.collections[0]), [0.5, 0.95])
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("lag (ms)", "probability")

    def test_timescales_against_thinning(self, ax):
        mean = np.array([[3.0, 1.0], [5.0, 1.2], [5.1, 1.3]])
        upper = np.where(mean == 5.1, np.inf, 2 * mean)
        found = Interval(mean, mean / 2, upper)
        assert plots.plot_timescales(np.array([1, 2, 5]), found, ax, time_unit="ns", plateau=2) is ax
        np.testing.assert_array_equal(ax.containers[0].lines[0].get_ydata(), mean[:, 0])
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "5"]
        (line,) = [line for line in ax.lines if line.get_linestyle() == "--"]
        assert line.get_xdata() == [2, 2]
        assert (ax.get_yscale(), ax.get_ylabel()) == ("log", "timescale (ns)")
        ax.figure.canvas.draw()

    def test_dwell_times_beside_their_exponentials(self, ax):
        rng = np.random.default_rng(0)
        dwells = [rng.exponential(2.0, 4000), np.empty(0), rng.exponential(0.5, 4000)]
        assert plots.plot_dwell_times(dwells, np.array([0.5, 1.0, 2.0]), ax, time_unit="ms") is ax
        assert labels(ax) == ["state 0", "state 2"]  # a state without dwells is left out
        for stairs, curve in zip(ax.patches, ax.lines, strict=True):
            counts, edges, _ = stairs.get_data()
            middles = np.sqrt(edges[1:] * edges[:-1])
            expected = np.interp(middles, curve.get_xdata(), curve.get_ydata())
            assert counts.sum() == 4000
            assert np.abs(counts - expected).max() < 5 * np.sqrt(expected.max())
        assert ax.get_xlabel() == "dwell time (ms)"
        plots.plot_dwell_times(dwells, np.array([0.5, 1.0, 2.0]), ax, time_unit="ms", names=("shut", "open", "deep"))
        assert labels(ax)[2:] == ["state shut", "state deep"]

    def test_autocorrelation(self, ax):
        observed = np.array([0.9, 0.5, 0.1])
        assert (
            plots.plot_autocorrelation(self.LAGS, observed, (observed - 0.1, observed + 0.2), ax, time_unit="s") is ax
        )
        assert labels(ax) == ["model, 95 %", "data"]
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), observed)
        np.testing.assert_allclose(heights(ax.collections[0]), [0.0, 1.1])
        assert ax.get_xlabel() == "lag (s)"

    def test_density_is_per_unit_of_the_value(self, ax):
        edges, share = np.array([0.0, 0.5, 2.0]), np.array([0.4, 0.6])
        assert plots.plot_density(edges, share, (share - 0.1, share + 0.1), ax, label="current (pA)") is ax
        band, data = ax.patches
        np.testing.assert_allclose(data.get_data().values, [0.8, 0.4])
        np.testing.assert_allclose(band.get_data().values, [1.0, 0.7 / 1.5])
        np.testing.assert_allclose(band.get_data().baseline, [0.6, 0.5 / 1.5])
        assert ax.get_xlabel() == "current (pA)"

    def test_prevalence(self, ax):
        share = np.array([[1.0, 0.0], [0.7, 0.3], [0.5, 0.5]])
        expected = Interval(share, share - 0.05, share + 0.1)
        assert plots.plot_prevalence(self.LAGS, share + 0.01, expected, ax, labels=["1", "2"], time_unit="year") is ax
        assert labels(ax) == ["state 1", "state 2", "expected, 95 %", "observed"]
        np.testing.assert_array_equal(ax.lines[2].get_ydata(), share[:, 1])
        np.testing.assert_array_equal(ax.lines[3].get_ydata(), share[:, 1] + 0.01)
        assert ax.get_xlabel() == "time since the first observation (year)"

    def test_prevalence_as_the_verdict_compares_it(self, ax):
        """Curve and dots of the state last seen, at the times compared; the band is that of the error."""
        seen = np.array([[1.0, 0.0], [0.7, 0.3], [0.5, 0.5]])
        other = Interval(seen / 2, seen / 2, seen / 2)  # of exp(F t), which the verdict does not compare
        compared, names = np.array([True, True, False]), ("well", "ill")
        at_risk = np.array([100.0, 84.0, 9.0])
        found = Prevalence(self.LAGS, at_risk, seen, other, 0.9 * seen, compared, ("1", "2"), names, "year")
        assert plots.plot_prevalence(found, ax) is ax
        assert labels(ax) == ["well", "ill", "expected, 95 %", "observed"]
        np.testing.assert_array_equal(ax.lines[2].get_xydata(), [[1, 0], [2, 0.27]])
        np.testing.assert_array_equal(ax.lines[3].get_xydata(), [[1, 0], [2, 0.3]])
        low, high = heights(ax.collections[0])
        assert low == pytest.approx(0.63 - 1.96 * np.sqrt(0.63 * 0.37 / 84))
        assert high == pytest.approx(0.9 + 1.96 * np.sqrt(0.9 * 0.1 / 100))
        assert ax.get_ylabel() == "share, by the state last seen"

    def test_residuals_are_flat_inside_their_band(self, ax):
        ranks = np.append(np.tile((np.arange(20) + 0.5) / 20, 50), np.nan)
        assert plots.plot_residuals(ranks, ax) is ax
        *bars, band = ax.patches
        np.testing.assert_allclose([bar.get_height() for bar in bars], 1.0)
        spread = 1.96 * np.sqrt(19 / 1000)
        np.testing.assert_allclose([band.get_y(), band.get_y() + band.get_height()], [1 - spread, 1 + spread])


def test_forecasts_and_how_far_off_they_are(ax):
    assert plots.plot_forecasts(np.array([0.9, 0.8]), 0.9, ax) is ax
    meant, seen = ax.lines
    assert list(meant.get_ydata()) == [0.9, 0.9]
    np.testing.assert_array_equal(seen.get_xydata(), [[1, 0.9], [2, 0.8]])
    assert plots.plot_forecast_errors(np.array([0.3, 0.5]), ax) is ax
    np.testing.assert_array_equal(ax.lines[-1].get_xydata(), [[1, 0.3], [2, 0.5]])
    assert ax.get_ylim()[0] == 0
