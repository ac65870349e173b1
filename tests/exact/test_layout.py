"""Lanes: every observation sits in exactly one place, behind the one before it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralmjp import TimeSeries
from neuralmjp.exact.layout import MOST_INDEPENDENT_LANES, distinct_gaps, lay_out


def ragged(lengths, seed=0):
    rng = np.random.default_rng(seed)
    total = sum(lengths)
    times = np.concatenate([np.cumsum(rng.uniform(0.1, 1.0, n)) for n in lengths])
    offsets = np.append(0, np.cumsum(lengths))
    return TimeSeries(times, rng.normal(size=(total, 2)), offsets, tuple(map(str, range(len(lengths)))), ("a", "b"))


def assert_sound(data, layout):
    rows, starts = layout.rows, layout.starts
    real = rows >= 0
    np.testing.assert_array_equal(np.sort(rows[real]), np.arange(data.n_observations))
    np.testing.assert_array_equal(np.sort(rows[starts]), data.offsets[:-1])
    assert (np.diff(real.astype(int), axis=0) <= 0).all(), "padding comes last in a lane"
    # Behind each observation sits its predecessor: in the same lane, or at the end of the lane before.
    end_to_end = rows.T[real.T]
    if not layout.aligned:
        np.testing.assert_array_equal(end_to_end, np.arange(data.n_observations))
    else:
        assert starts[0].all()
        inner = real[1:] & ~starts[1:]
        np.testing.assert_array_equal(rows[1:][inner], rows[:-1][inner] + 1)
    gaps = np.where(np.isin(np.arange(data.n_observations), data.offsets[:-1]), 0.0, np.diff(data.times, prepend=0.0))
    np.testing.assert_allclose(layout.gaps[layout.gap_index][real], gaps[rows[real]], rtol=1e-9)
    assert (layout.gap_index[~real] == 0).all()
    assert layout.gaps[0] == 0


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=160), st.sampled_from([2, 9]))
def test_every_observation_has_one_place(lengths, n_states):
    if max(lengths) == 1:
        lengths[0] = 2  # a rate needs a gap
    data = ragged(lengths)
    layout = lay_out(data, n_states)
    assert_sound(data, layout)
    laid = layout.gather(data.values, np.nan)
    np.testing.assert_array_equal(layout.scatter(laid), data.values)
    assert np.isnan(laid[layout.rows < 0]).all()


@pytest.mark.parametrize(
    ("lengths", "n_states", "aligned"),
    [
        ([100_000], 3, False),  # one recording is cut
        ([100_000], 9, True),  # unless that costs too much
        ([50] * 4480, 6, True),  # many series run side by side
        ([3, 2], 2, True),
        ([2] * (MOST_INDEPENDENT_LANES + 1), 2, True),
    ],
)
def test_choice_of_lanes(lengths, n_states, aligned):
    data = ragged(lengths)
    layout = lay_out(data, n_states)
    assert layout.aligned == aligned
    assert_sound(data, layout)


@pytest.mark.parametrize(
    "lengths",
    [[10_000], [7] * 5000, [5000] + [10] * 300, np.random.default_rng(1).integers(1, 80, 700).tolist()],
    ids=["one", "equal", "one-long", "ragged"],
)
@pytest.mark.parametrize("n_states", [2, 9])
def test_little_is_wasted(lengths, n_states):
    """A place per observation, with at most a third more for padding."""
    layout = lay_out(ragged(lengths), n_states)
    assert layout.rows.size < 1.34 * sum(lengths) + 64


class TestGaps:
    def test_rounding_errors_of_a_regular_grid_are_one_gap(self):
        times = np.arange(100_000) / 10_000.0
        gaps, index = distinct_gaps(np.diff(times, prepend=0.0))
        assert gaps.tolist() == [0.0, 1e-4]
        assert index.tolist() == [0, *[1] * 99_999]

    def test_different_gaps_stay_apart(self):
        gaps, index = distinct_gaps(np.array([0.0, 1.0, 1.0 + 1e-8, 1e-12, 2e12]))
        np.testing.assert_allclose(gaps, [0.0, 1e-12, 1.0, 1.0 + 1e-8, 2e12], rtol=1e-12)
        assert index.tolist() == [0, 2, 3, 1, 4]

    @given(st.lists(st.floats(1e-15, 1e15), min_size=1, max_size=50))
    def test_nothing_is_lost(self, gaps):
        gaps = np.array(gaps)
        distinct, index = distinct_gaps(gaps)
        np.testing.assert_allclose(distinct[index], gaps, rtol=1e-9)
        assert (np.diff(distinct) > 0).all()
        assert distinct[0] == 0
