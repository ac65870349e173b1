"""TimeSeries: what it accepts and refuses, its parts."""

import copy
import dataclasses
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from neuralmjp.checks import ObservationError, require_series
from neuralmjp.errors import InputError
from neuralmjp.io import read
from neuralmjp.timeseries import TimeSeries
from ragged import hold_same_rows, ragged, rows, series_of

NAN = float("nan")


@pytest.mark.parametrize(
    ("data", "way"),
    [
        (pd.DataFrame({"time": [0.0], "value": [1.0]}), "got DataFrame: make one by TimeSeries.from_frame"),
        (np.zeros(3), "got ndarray: make one by TimeSeries.from_arrays"),
        ([1.0, 2.0], "got list: make one by TimeSeries.from_arrays"),
    ],
)
def test_what_is_no_time_series_is_told_the_way(data, way):
    with pytest.raises(InputError, match=way):
        require_series(data)
    require_series(TimeSeries.from_arrays([0.0, 1.0], [1.0, 2.0]))


def test_dates_and_complex_numbers_are_not_taken_for_numbers():
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")
    with pytest.raises(InputError, match="times are dates: say in what they count"):
        TimeSeries.from_arrays(days, [1.0, 2.0])
    assert TimeSeries.from_arrays((days - days[0]) / np.timedelta64(1, "h"), [1.0, 2.0]).times.tolist() == [0, 24]
    with pytest.raises(InputError, match="values are complex numbers"):
        TimeSeries.from_arrays([0.0, 1.0], np.array([1j, 2.0]))


class TestArrays:
    """Every accepted shape gives the same data, every other one a message."""

    def test_rectangle_with_padding(self):
        data = TimeSeries.from_arrays([[0, 1, 2], [0, 3, NAN]], [[1, 2, 3], [4, NAN, 9]])
        assert data.lengths.tolist() == [3, 2]
        assert data.times.tolist() == [0, 1, 2, 0, 3]
        assert data.mask.ravel().tolist() == [True, True, True, True, False]
        assert data.names == ("0", "1")
        assert data.value_names == ("value",)

    def test_ragged_lists_equal_padded_rectangle(self):
        padded = TimeSeries.from_arrays([[0, 1, 2], [0, 3, NAN]], [[1, 2, 3], [4, 5, 9]])
        assert TimeSeries.from_arrays([[0, 1, 2], np.array([0, 3])], [[1, 2, 3], [4, 5]]).equals(padded)

    def test_shared_times(self):
        values = np.arange(12.0).reshape(2, 3, 2)
        shared = TimeSeries.from_arrays([0, 1, 2], values)
        assert shared.equals(TimeSeries.from_arrays([[0, 1, 2]] * 2, values))
        assert shared.value_names == ("value_0", "value_1")

    def test_one_series(self):
        one = TimeSeries.from_arrays([0, 1, 2], [3, 4, 5], names=["a"], value_names=["current"], time_unit="ms")
        assert one.equals(
            TimeSeries.from_arrays([0, 1, 2], [[3], [4], [5]], names=["a"], value_names=["current"], time_unit="ms")
        )
        assert repr(one) == "TimeSeries(1 series, 3 observations, values: current, time in ms)"

    def test_arrays_are_copied(self):
        times, values = np.array([[0.0, 1.0]]), np.array([[5.0, 6.0]])
        data = TimeSeries.from_arrays(times, values)
        times[:], values[:] = 9, 9
        assert data.times.tolist() == [0, 1]
        assert data.values.ravel().tolist() == [5, 6]

    @pytest.mark.parametrize(
        ("times", "values", "message"),
        [
            ([0, 1], [[1, 2, 3]], r"times \(2,\) and values \(1, 3\) do not fit; use"),
            (np.zeros((2, 2, 2)), np.zeros((2, 2)), "do not fit"),
            ([0, 1], np.zeros((4, 3, 1)), "do not fit"),
            ([[0, 1], [0]], [[1, 2]], "2 arrays of times but 1 of values"),
            ([[0, 1], [0]], [[1, 2], [[1, 2]]], "differ in the number of values per observation"),
            (["a", "b"], [0, 1], "times are not numbers"),
            ([[0, 1]], [[1, 2], [3]], "values are not numbers, or not of one length"),
            (np.zeros((0, 2)), np.zeros((0, 2)), "there are no series"),
            ([[0, 1]], np.zeros((1, 2, 0)), "0 features need as many value names, at least one"),
        ],
    )
    def test_refused(self, times, values, message):
        with pytest.raises(InputError, match=message):
            TimeSeries.from_arrays(times, values)


class TestChecks:
    """What is wrong is said in one line with series, observation and time."""

    @pytest.mark.parametrize(
        ("times", "values", "message"),
        [
            ([0, 2, 1], [1, 1, 1], "2 (time 1): time 1.0 comes after 2.0; sort each series by time"),
            ([0, 2, 2], [1, 1, 1], "2 (time 2): time 2.0 is repeated; keep one observation per time in each series"),
            ([-1, 0, 1], [1, 1, 1], "0 (time -1): time -1.0 is negative; shift the times so that none is below 0"),
            ([0, 1, np.inf], [1, 1, 1], "2 (time inf): time inf is not finite; every observation needs a time"),
            ([0, NAN, 1], [1, 1, 1], "1 (time nan): the time is missing; every observation needs one"),
            (
                [0, 1, 2],
                [1, -np.inf, 1],
                "1 (time 1), 'value': the value is -inf; leave it empty (NaN) if it is missing",
            ),
            ([0, 1, 2], [NAN] * 3, "0 (time 0): every value of series 'b' is missing; leave the series out"),
        ],
    )
    def test_message(self, times, values, message):
        with pytest.raises(ObservationError) as caught:
            TimeSeries.from_arrays([[0, 5, 6], times], [[1, 1, 1], values], names=["a", "b"])
        assert str(caught.value) == f"series 'b', observation {message}"

    def test_empty_series(self):
        with pytest.raises(InputError, match="series '1' has no observations; leave it out"):
            TimeSeries.from_arrays([[0, 1], [NAN, NAN]], [[1, 2], [1, 2]])

    def test_place_is_kept_for_readers(self):
        with pytest.raises(ObservationError) as caught:
            TimeSeries.from_arrays([[0, 1], [0, 1]], [[[1, 2], [1, 2]], [[1, 2], [1, np.inf]]])
        assert (caught.value.observation, caught.value.column) == (3, 1)

    def test_one_observation(self):
        with pytest.raises(InputError, match="a rate needs at least two observations of a series"):
            TimeSeries.from_arrays([[0], [1]], [[1], [2]])

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"offsets": np.array([0, 4])}, "2 series need 3 offsets, not 2"),
            ({"offsets": np.array([0, 5, 4])}, "offsets must rise from 0 to the number of observations, 4"),
            ({"names": ("a", "a")}, "two series are named 'a': rename one"),
            ({"names": ("a", "b\n")}, r"the name 'b\\n' among series is not one line"),
            ({"names": ("a", "")}, "the name '' among series"),
            ({"value_names": (" x",)}, "the name ' x' among values"),
            ({"value_names": ("x", "y")}, "1 features need as many value names"),
        ],
    )
    def test_parts_must_fit(self, changes, message):
        with pytest.raises(InputError, match=message):
            dataclasses.replace(series_of(2, 2), **changes)

    def test_times_and_values_must_fit(self):
        broken = copy.copy(series_of(2, 2))
        object.__setattr__(broken, "times", np.zeros(3))  # past the type checker that tests switch on
        with pytest.raises(InputError, match=r"times \(3,\) and values \(4, 1\) must have shapes"):
            broken.__post_init__()

    def test_data_cannot_be_changed(self):
        data = series_of(4)
        with pytest.raises(ValueError, match="read-only"):
            data.values[0] = 1
        with pytest.raises(dataclasses.FrozenInstanceError):
            data.times = np.zeros(3)  # type: ignore[misc]
        for part in data.split((0.5, 0.5), by="time"):
            assert not part.times.flags.writeable


class TestParts:
    """Indexing, splitting, cutting."""

    data = series_of(3, 1, 5, 2)

    def test_sizes(self):
        assert len(self.data) == 4
        assert self.data.n_observations == 11
        assert self.data.n_features == 1
        expected = np.concatenate([np.diff(one.times) for one in self.data])
        assert np.array_equal(self.data.gaps, expected)

    @pytest.mark.parametrize(
        ("which", "names"),
        [
            (2, ["s2"]),
            (-1, ["s3"]),
            (np.int64(1), ["s1"]),
            ("s1", ["s1"]),
            (slice(1, 3), ["s1", "s2"]),
            (slice(None, None, 2), ["s0", "s2"]),
            ([3, 0], ["s3", "s0"]),
            (np.array([False, True, True, False]), ["s1", "s2"]),
        ],
    )
    def test_getitem(self, which, names):
        part = self.data[which]
        assert list(part.names) == names
        for name in names:
            i = self.data.names.index(name)
            a, b = self.data.offsets[i : i + 2]
            assert np.array_equal(part[name].times, self.data.times[a:b])
            assert np.array_equal(part[name].values, self.data.values[a:b])

    def test_getitem_refuses(self):
        with pytest.raises(InputError, match="there is no series named 'z'; the first is 's0'"):
            self.data["z"]
        with pytest.raises(IndexError):
            self.data[4]
        with pytest.raises(InputError, match="no series is selected"):
            self.data[4:]
        with pytest.raises(InputError, match="a series was selected twice"):
            self.data[[0, 0]]

    def test_contiguous_parts_are_views(self):
        assert np.shares_memory(self.data[1:3].values, self.data.values)

    @given(ragged)
    def test_concatenate_undoes_iteration(self, make):
        data = make()
        assert TimeSeries.concatenate(list(data)).equals(data)

    def test_concatenate_refuses(self):
        with pytest.raises(InputError, match="nothing to concatenate"):
            TimeSeries.concatenate([])
        with pytest.raises(InputError, match="make values and time unit the same"):
            TimeSeries.concatenate([self.data, dataclasses.replace(self.data, time_unit="s")])
        with pytest.raises(InputError, match="two series are named 's0'"):
            TimeSeries.concatenate([self.data, self.data])

    @given(ragged, st.floats(0, 20), st.floats(0, 20))
    def test_between(self, make, start, stop):
        data = make()
        kept = [one for one in data if np.any(one.mask.any(axis=1) & (one.times >= start) & (one.times < stop))]
        if not kept:
            with pytest.raises(InputError, match=r"no value lies between time .* and time"):
                data.between(start, stop)
            return
        part = data.between(start, stop)
        assert part.names == tuple(one.names[0] for one in kept)
        inside = [rows(one)[(one.times >= start) & (one.times < stop)] for one in kept]
        assert np.array_equal(rows(part), np.concatenate(inside), equal_nan=True)

    @given(st.lists(st.integers(2, 9), min_size=10, max_size=30), st.none() | st.integers(0, 99))
    def test_split_by_series_partitions(self, lengths, seed):
        data = series_of(*lengths)
        parts = data.split(seed=seed)
        assert sorted(name for part in parts for name in part.names) == sorted(data.names)
        assert hold_same_rows(np.concatenate([rows(part) for part in parts]), rows(data))
        assert [len(part) for part in parts] == [len(part) for part in data.split()]

    @given(ragged)
    def test_split_by_time_partitions_what_was_seen(self, make):
        data = make()
        data = TimeSeries.concatenate(
            [data, dataclasses.replace(series_of(10, n_features=data.n_features), names=("z",))]
        )
        parts = data.split((0.5, 0.25, 0.25), by="time")
        seen = [part.mask.any(axis=1) for part in parts]
        assert hold_same_rows(
            np.concatenate([rows(part)[kept] for part, kept in zip(parts, seen, strict=True)]),
            rows(data)[data.mask.any(axis=1)],
        )
        for earlier, later in pairwise(parts):
            for name in set(earlier.names) & set(later.names):
                assert earlier[name].times[-1] < later[name].times[0]

    def test_split_is_random_by_seed(self):
        data = series_of(*[2] * 20)
        assert data.split(seed=1)[0].names == data.split(seed=1)[0].names
        assert data.split(seed=1)[0].names != data.split(seed=2)[0].names
        assert data.split()[0].names == data.names[:16]

    def test_split_refuses(self):
        with pytest.raises(InputError, match="4 series are too few"):
            self.data.split()
        with pytest.raises(InputError, match="must be positive and sum to 1"):
            self.data.split((0.5, 0.6))
        with pytest.raises(InputError, match="a part holds no value"):
            self.data[3].split((0.1, 0.9), by="time")
        with pytest.raises(InputError, match="by='row' is not known"):
            self.data.split(by="row")

    @given(ragged, st.integers(2, 7), st.integers(1, 9))
    def test_windows_as_in_a_plain_loop(self, make, length, step):
        data = make()
        expected = []
        for one in data:
            covered = 0
            for number, start in enumerate(range(0, one.n_observations, step)):
                stop = min(start + length, one.n_observations)
                if stop > covered and stop - start >= 2 and one.mask[start:stop].any():
                    expected.append((f"{one.names[0]}/{number}", rows(one)[start:stop]))
                covered = max(covered, stop)
        if expected:
            windows = data.windows(length, step)
            assert windows.names == tuple(name for name, _ in expected)
            assert np.array_equal(rows(windows), np.concatenate([piece for _, piece in expected]), equal_nan=True)

    @given(ragged, st.integers(2, 7))
    def test_windows_cover_in_order(self, make, length):
        data = make()
        data = dataclasses.replace(data, values=np.ones_like(data.values))
        whole = data.lengths % length != 1  # a tail of one observation is dropped
        assume(whole.any())
        data = data[whole]
        assert np.array_equal(rows(data.windows(length)), rows(data))

    def test_windows_by_hand(self):
        data = series_of(7, 1, 2)
        windows = data.windows(3, 2)
        assert windows.names == ("s0/0", "s0/1", "s0/2", "s2/0")
        assert np.array_equal(windows["s0/1"].times, data.times[2:5])
        assert data.windows(4).names == ("s0/0", "s0/1", "s2/0")
        assert data.windows(4).lengths.tolist() == [4, 3, 2]
        assert data.windows(4, drop_tail=True).names == ("s0/0",)
        assert data.windows(3).names == ("s0/0", "s0/1", "s2/0")  # a tail of one is dropped

    def test_all_missing_windows_are_left_out(self):
        data = TimeSeries.from_arrays([0, 1, 2, 3, 4, 5], [1, 2, NAN, NAN, 5, 6], names=["a"])
        assert data.windows(2).names == ("a/0", "a/2")

    def test_windows_refuse(self):
        with pytest.raises(InputError, match="windows need length >= 2 and step >= 1"):
            self.data.windows(1)
        with pytest.raises(InputError, match="no series has 9 observations"):
            self.data.windows(9, drop_tail=True)


class TestStates:
    """K larger than the data can bear."""

    def test_too_few_intervals(self):
        data = series_of(5, 4)
        data.check_states(1)
        data.check_states(3)
        expected = (
            "4 states have 12 rates, but the data hold only 7 intervals between observations: use at most 3 states"
        )
        with pytest.raises(InputError, match=expected):
            data.check_states(4)

    @given(st.integers(1, 200))
    def test_suggested_number_is_the_largest_that_fits(self, n_gaps):
        data = series_of(n_gaps + 1)
        fitting = max(k for k in range(1, n_gaps + 2) if k * (k - 1) <= n_gaps)
        data.check_states(fitting)
        if fitting < n_gaps + 1:
            with pytest.raises(InputError, match=f"use at most {fitting} states"):
                data.check_states(fitting + 1)

    def test_too_few_distinct_values(self):
        values = np.tile([[1.0, NAN], [NAN, NAN], [1.0, 2.0]], (70000, 1))
        data = TimeSeries.from_arrays(np.arange(len(values)), values)
        data.check_states(2)
        with pytest.raises(InputError, match="3 states cannot be told apart by 2 distinct observed values"):
            data.check_states(3)

    def test_no_states(self):
        with pytest.raises(InputError, match="0 states make no model"):
            series_of(5).check_states(0)


class TestFrames:
    """pandas in and out."""

    @given(ragged)
    def test_round_trip(self, make):
        data = make()
        assert TimeSeries.from_frame(data.to_frame()).equals(data)
        assert read(data.to_frame()).equals(data)
        with pytest.raises(InputError, match="data frame: a table in memory has no use for --rate; leave it out"):
            read(data.to_frame(), rate=2.0)

    def test_numbers_as_names_and_integer_columns(self):
        frame = pd.DataFrame({"id": [2.0, 2.0, 1.0], 0: [0, 1, 0], "n": [1, 2, 3], "note": ["a", "b", "c"]})
        data = TimeSeries.from_frame(frame, series="id", time=0, values=["n"], time_unit="h")
        assert data.names == ("2", "1")
        assert data.time_unit == "h"
        assert data.values.dtype == np.float64

    def test_categories_keep_only_names_in_use(self):
        series = pd.Categorical(["b", "b", "a"], categories=["a", "b", "c"])
        frame = pd.DataFrame({"series": series, "time": [0, 1, 0], "x": [1.0, 2.0, 3.0]})
        assert TimeSeries.from_frame(frame).names == ("b", "a")

    @pytest.mark.parametrize(
        ("x", "message"),
        [
            ([1.0, "abc"], "data frame, row 1 (counted from 0), column 'x': 'abc' is not a number; leave"),
            ([1.0, np.inf], "data frame, row 1 (counted from 0), column 'x': the value is inf"),
            (pd.to_datetime(["2020-01-01"] * 2), "data frame, column 'x': holds timestamp"),
        ],
    )
    def test_refused(self, x, message):
        with pytest.raises(InputError) as caught:
            TimeSeries.from_frame(pd.DataFrame({"time": [0, 1], "x": x}))
        assert str(caught.value).startswith(message)

    def test_value_called_time_cannot_be_written(self):
        with pytest.raises(InputError, match="a value is called 'Time'"):
            TimeSeries.from_arrays([0, 1], [1, 2], value_names=["Time"]).to_frame()
