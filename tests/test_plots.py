"""Figures: each function draws what it is given on the axes it is given, with units, and returns them."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from neuralmjp import InputError, TimeSeries
from neuralmjp.mjp import Interval
from neuralmjp.plots import plot_belief, plot_counts, plot_rates, plot_trace
from neuralmjp.plots.palette import STATES, TRUTH, state_colour

TIMES = np.arange(6) * 0.5
STATE = np.array([0, 0, 1, 1, 0, 2])


@pytest.fixture
def ax():
    return Figure().subplots()


def series(*values, **names):
    return TimeSeries.from_arrays(TIMES, np.array(values, float).T, time_unit="ms", **names)


def labels(ax):
    return ax.get_legend_handles_labels()[1]


class TestTrace:
    def test_observations_alone(self, ax):
        data = series([0, 1, 5, 6, 1, 9], value_names=["current"])
        assert plot_trace(data, ax) is ax
        (points,) = ax.lines
        np.testing.assert_array_equal(points.get_xdata(), TIMES)
        np.testing.assert_array_equal(points.get_ydata(), data.values[:, 0])
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (ms)", "current")
        assert labels(ax) == ["observed"]

    def test_path_through_levels(self, ax):
        plot_trace(series([0, 1, 5, 6, 1, 9]), ax, states=STATE, levels=np.array([0.0, 5.0, 9.0]))
        assert labels(ax) == ["observed", "state 0", "state 1", "state 2"]
        np.testing.assert_array_equal(ax.lines[2].get_ydata(), [np.nan, np.nan, 5, 5, np.nan, np.nan])
        assert [line.get_color() for line in ax.lines[1:]] == [state_colour(state) for state in range(3)]
        assert {line.get_drawstyle() for line in ax.lines[1:]} == {"steps-post"}

    def test_levels_are_means_where_none_are_given(self, ax):
        plot_trace(series([0, 1, 5, np.nan, 2, 9]), ax, states=STATE)
        heights = [np.unique(line.get_ydata()[~np.isnan(line.get_ydata())]).tolist() for line in ax.lines[1:]]
        assert heights == [[1.0], [5.0], [9.0]]

    def test_a_state_whose_values_are_all_missing(self, ax):
        plot_trace(series([0, 1, np.nan, np.nan, 2, 9]), ax, states=STATE)
        assert labels(ax) == ["observed", "state 0", "state 2"]

    def test_choice_of_feature(self, ax):
        plot_trace(series(TIMES, -TIMES, value_names=["x", "y"]), ax, feature=1)
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), -TIMES)
        assert ax.get_ylabel() == "y"

    def test_several_series_are_refused(self, ax):
        data = TimeSeries.from_arrays([[0.0, 1.0]] * 2, [[0.0, 1.0]] * 2)
        with pytest.raises(InputError, match=r"one series, not 2: choose one, such as data\[0\]"):
            plot_trace(data, ax)


class TestRates:
    def estimate(self, rates, spread=4.0):
        rates = np.array(rates, float)
        return Interval(rates, rates / spread, rates * spread, 0.95)

    def test_every_rate_with_its_interval(self, ax):
        estimate = self.estimate([[0, 2], [8, 0]])
        assert plot_rates({"fit": estimate}, ax, time_unit="ms", truth=np.array([[0.0, 3.0], [6.0, 0.0]])) is ax
        assert ax.get_xlabel() == "rate (per ms)"
        assert ax.get_xscale() == "log"
        assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0 → 1", "1 → 0"]
        assert labels(ax) == ["truth", "fit"]
        np.testing.assert_array_equal(ax.lines[0].get_xdata(), [3, 6])
        (bars,) = ax.containers
        np.testing.assert_array_equal(bars.lines[0].get_xdata(), [2, 8])
        ends = [segment[:, 0].tolist() for segment in bars.lines[2][0].get_segments()]
        assert ends == [[0.5, 8], [2, 32]]

    def test_several_estimates_stand_side_by_side(self, ax):
        plot_rates({"a": self.estimate([[0, 2], [8, 0]]), "b": self.estimate([[0, 3], [7, 0]])}, ax, time_unit="s")
        assert labels(ax) == ["a", "b"]
        heights = [bars.lines[0].get_ydata() for bars in ax.containers]
        assert (heights[0] != heights[1]).all()
        assert len({bars.lines[0].get_color() for bars in ax.containers}) == 2

    def test_jumps_that_nobody_has_are_left_out(self, ax):
        seen = self.estimate([[0, 2, 0], [0, 0, 0], [0, 0, 0]])
        truth = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
        plot_rates({"fit": seen}, ax, time_unit="s", truth=truth)
        assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0 → 1", "1 → 2"]
        np.testing.assert_array_equal(ax.containers[0].lines[0].get_xdata(), [2])

    def test_a_state_never_visited(self, ax):
        rates = np.array([[0.0, 2.0], [0.0, 0.0]])
        estimate = Interval(rates, rates / 2, np.array([[0.0, 4.0], [np.inf, 0.0]]), 0.95)
        plot_rates({"fit": estimate}, ax, time_unit="s")
        ax.figure.canvas.draw()
        assert np.isfinite(ax.get_xlim()).all()


def test_colours_of_states_differ_and_repeat():
    assert len(set(STATES)) == 8
    assert state_colour(9) == state_colour(1)


class TestCounts:
    def test_truth_readings_and_the_future(self, ax):
        readings = TIMES + 0.3
        assert plot_counts(TIMES, ax, readings=readings, truth=TIMES, until=1.0) is ax
        assert labels(ax) == ["true count", "read"]
        assert ax.lines[0].get_color() == TRUTH
        np.testing.assert_array_equal(ax.lines[1].get_ydata(), readings)
        (future,) = ax.patches
        assert (future.get_x(), future.get_x() + future.get_width()) == (1.0, TIMES[-1])

    def test_nothing_but_times(self, ax):
        plot_counts(TIMES, ax)
        assert not ax.lines
        assert not ax.patches

    def test_belief(self, ax):
        assert plot_belief(TIMES, TIMES, ax, band=(TIMES - 1, TIMES + 1), colour=2, label="exact") is ax
        assert labels(ax) == ["exact"]
        assert ax.lines[0].get_color() == state_colour(2)
        heights = ax.collections[0].get_paths()[0].vertices[:, 1]
        assert (heights.min(), heights.max()) == (-1.0, TIMES[-1] + 1)

    def test_belief_without_band_or_name(self, ax):
        plot_belief(TIMES, TIMES, ax)
        assert not ax.collections
        assert labels(ax) == []
