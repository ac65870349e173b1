"""Figures: each function draws what it is given on the axes it is given, with units, and returns them."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from neuralmjp import ExactMJP, InputError, TimeSeries, plots
from neuralmjp.mjp import Interval
from neuralmjp.plots import plot_belief, plot_counts, plot_rates, plot_trace
from neuralmjp.plots.palette import STATES, TRUTH, state_colour
from neuralmjp.priors import FreeRates

TIMES = np.arange(6) * 0.5
STATE = np.array([0, 0, 1, 1, 0, 2])


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


@pytest.fixture(scope="module")
def fitted():
    """Three states in a row; the jump 0 -> 2 never happens, and 2 -> 0 is not allowed."""
    states = np.tile(np.repeat([0, 1, 2, 1, 0, 1, 0], [40, 10, 25, 8, 30, 9, 20]), 4)
    data = TimeSeries.from_dtrajs([states], lag=0.5, time_unit="ms")
    return ExactMJP(3, mask=[[0, 1, 1], [1, 0, 1], [0, 1, 0]]).fit(data)


def words(ax):
    return [text.get_text() for text in ax.texts]


def whiskers(ax):
    """Ends of the vertical lines."""
    return [segment[:, 1].tolist() for lines in ax.collections for segment in lines.get_segments()]


def ends(interval, where=...):
    return [float(np.asarray(part)[where]) for part in (interval.mean, interval.lower, interval.upper)]


class TestRateMatrix:
    def test_every_allowed_jump_has_its_numbers(self, ax, fitted):
        assert plots.plot_rate_matrix(fitted, ax) is ax
        rates = fitted.intervals["rates"]
        told = {text.get_position(): text.get_text() for text in ax.texts}  # column, row
        assert set(told) == {(1, 0), (2, 0), (0, 1), (2, 1), (1, 2)}
        mean, lower, upper = ends(rates, (0, 1))
        assert told[1, 0] == f"{mean:.3g}\n[{lower:.3g}, {upper:.3g}]"
        assert told[2, 0] == f"≤ {rates.upper[0, 2]:.3g}"  # no sign of it

    def test_shades_tell_rates_and_have_a_unit(self, ax, fitted):
        plots.plot_rate_matrix(fitted, ax)
        (image,) = ax.images
        drawn = np.ma.filled(image.get_array(), np.nan)
        assert np.isnan(drawn[[0, 1, 2, 0, 2], [0, 1, 2, 2, 0]]).all()
        assert drawn[1, 0] == pytest.approx(fitted.rates[1, 0])
        assert [other.get_ylabel() for other in ax.figure.axes[1:]] == ["rate (per ms)"]
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("to state", "from state")

    def test_letters_are_seen_on_their_cell(self, ax, fitted):
        plots.plot_rate_matrix(fitted, ax)
        (image,) = ax.images
        for text in ax.texts:
            column, row = text.get_position()
            value = fitted.rates[row, column]
            grey = 1.0 if "≤" in text.get_text() else np.mean(image.cmap(image.norm(value))[:3])
            letters = {"#ffffff": 1.0, TRUTH: 0.0}[to_hex(text.get_color())]
            assert abs(grey - letters) > 0.3

    def test_without_intervals(self, ax, fitted):
        plots.plot_rate_matrix(replace(fitted, intervals={}), ax)
        assert f"{fitted.rates[0, 1]:.3g}" in words(ax)


class TestPassageTimes:
    def test_from_row_to_column(self, ax, fitted):
        assert plots.plot_passage_times(fitted, ax) is ax
        told = {text.get_position(): text.get_text() for text in ax.texts}
        assert len(told) == 6
        mean, lower, upper = ends(fitted.mfpt, (2, 0))
        assert told[0, 2] == f"{mean:.3g}\n[{lower:.3g}, {upper:.3g}]"
        assert ax.figure.axes[1].get_ylabel() == "mean first-passage time (ms)"

    def test_what_never_happens(self, ax):
        data = TimeSeries.from_dtrajs([[0, 0, 0, 1, 1]] * 3, lag=1.0)
        plots.plot_passage_times(ExactMJP(2, mask=[[0, 1], [0, 0]]).fit(data), ax)
        told = {text.get_position(): text.get_text() for text in ax.texts}
        assert told[0, 1].startswith("∞")
        ax.figure.canvas.draw()


class TestObservables:
    def test_stationary_law(self, ax, fitted):
        assert plots.plot_stationary_law(fitted, ax) is ax
        law = fitted.stationary_distribution
        np.testing.assert_allclose([bar.get_height() for bar in ax.patches], law.mean)
        np.testing.assert_allclose(whiskers(ax), np.stack([law.lower, law.upper], 1))
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("state", "stationary probability")
        assert [to_hex(bar.get_facecolor()).upper() for bar in ax.patches] == [state_colour(k) for k in range(3)]

    def test_relaxation_times(self, ax, fitted):
        assert plots.plot_relaxation_times(fitted, ax) is ax
        times = fitted.timescales
        np.testing.assert_allclose(ax.lines[0].get_ydata(), times.mean)
        np.testing.assert_allclose(whiskers(ax), np.stack([times.lower, times.upper], 1))
        assert (ax.get_yscale(), ax.get_ylabel()) == ("log", "relaxation time (ms)")

    def test_an_interval_without_end_is_an_arrow(self, ax, fitted):
        endless = Interval(np.array([2.0, 1.0]), np.array([1.0, 0.5]), np.array([np.inf, 3.0]))
        other = replace(fitted)
        object.__setattr__(other, "timescales", endless)
        plots.plot_relaxation_times(other, ax)
        assert [line.get_marker() for line in ax.lines[1:]] == ["_", "^", "_", "_"]
        ax.figure.canvas.draw()
        assert np.isfinite(ax.get_ylim()).all()

    def test_without_intervals_there_are_no_whiskers(self, ax, fitted):
        bare = replace(fitted, rate_samples=np.empty((0, 3, 3)))
        plots.plot_stationary_law(bare, ax)
        assert len(ax.patches) == 3
        assert whiskers(ax) == []


class TestTransitionNetwork:
    def test_states_and_jumps(self, ax, fitted):
        assert plots.plot_transition_network(fitted, ax) is ax
        law = fitted.stationary_distribution.mean
        seen = [(i, j) for i, j in np.argwhere(fitted.rates > 0) if (i, j) != (0, 2)]
        assert set(words(ax)) == {f"{fitted.rates[i, j]:.3g}" for i, j in seen} | {
            f"{k}\n{law[k]:.1%}" for k in range(3)
        }
        circles = [patch for patch in ax.patches if hasattr(patch, "get_radius")]
        assert np.argsort([circle.get_radius() for circle in circles]).tolist() == np.argsort(law).tolist()
        assert ax.get_xlabel() == "rates per ms"

    def test_a_state_that_is_never_left(self, ax, fitted):
        """Nothing flows in the long run; the jumps are there all the same."""
        chain = FreeRates(3, mask=[[0, 1, 0], [0, 0, 1], [0, 0, 0]])
        parameters = fitted.parameters._replace(rates=np.log([2.0, 5.0]))
        ill = replace(fitted, model=fitted.model._replace(rate_model=chain), parameters=parameters, intervals={})
        plots.plot_transition_network(ill, ax)
        assert {"2", "5"} <= set(words(ax))

    def test_what_may_not_happen_is_dashed(self, ax, fitted):
        plots.plot_transition_network(fitted, ax, least=0.0)
        arrows = [patch for patch in ax.patches if not hasattr(patch, "get_radius")]
        unsure = fitted.intervals["rates"].lower[fitted.rates > 0] == 0
        assert [arrow.get_linestyle() == "--" for arrow in arrows] == unsure.tolist()
        assert unsure.any()

    def test_numbers_stand_at_their_own_arrow(self, ax, fitted):
        plots.plot_transition_network(fitted, ax, least=0.0)
        arrows = [patch for patch in ax.patches if not hasattr(patch, "get_radius")]
        middles = [arrow.get_path().vertices[1] for arrow in arrows]
        places = [text.get_position() for text in ax.texts[: len(arrows)]]
        for k, place in enumerate(places):
            assert np.argmin([np.hypot(*(np.array(place) - middle)) for middle in middles]) == k


class TestTraining:
    def test_the_bound_and_its_terms(self, ax):
        names = ("step", "objective", "reconstruction", "path_kl", "initial_kl")
        rows = [(10, -9.0, -6.0, 2.5, 0.5), ("20", "-7", "-5", "1.5", "0.5")]  # the second as from a table
        assert plots.plot_training([dict(zip(names, row, strict=True)) for row in rows], ax, evidence=-6.5) is ax
        assert labels(ax) == ["bound", "reconstruction", "path divergence", "exact log-likelihood"]
        np.testing.assert_array_equal(ax.lines[0].get_xdata(), [10, 20])
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), [-9, -7])
        np.testing.assert_array_equal(ax.lines[2].get_ydata(), [2.5, 1.5])
        assert len({line.get_linestyle() for line in ax.lines}) == 4  # told apart without colours
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("training step", "nats per series")

    def test_no_history(self, ax):
        with pytest.raises(InputError, match="only the neural engine has one"):
            plots.plot_training([], ax)


def test_comparison_draws_mean_and_spread(ax):
    values = {"exact": np.array([[1.0, 3.0], [10.0, 10.0]]), "msm": np.array([[2.0], [np.nan]])}
    assert plots.plot_comparison(["t1", "t2"], values, ax, label="timescale (ns)", log=True) is ax
    exact, msm = ax.containers
    np.testing.assert_array_equal(exact.lines[0].get_ydata(), [2, 10])
    np.testing.assert_allclose(np.diff(exact.lines[2][0].get_segments()[0][:, 1]), 2 * np.sqrt(2))
    np.testing.assert_array_equal(msm.lines[0].get_ydata(), [2])
    assert exact.lines[0].get_marker() != msm.lines[0].get_marker()


def test_ramachandran(ax):
    data = series(np.deg2rad([0, 90, 190, -90, 10, 20]), np.deg2rad([0, 0, 0, 45, 10, 20]))
    probability = np.array([0.5, 0.1, 0.9, 0.2, 0.3, 0.4])
    assert plots.plot_ramachandran(data, probability, ax) is ax
    (points,) = ax.collections
    np.testing.assert_allclose(points.get_array(), np.sort(probability))  # the probable ones on top
    np.testing.assert_allclose(points.get_offsets()[-1], [-170, 0], atol=1e-9)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("phi (°)", "psi (°)")
    with pytest.raises(InputError, match="shows two angles, the data have 1 values"):
        plots.plot_ramachandran(series(TIMES), probability, ax)
