"""Units of time: what is known of them, and times told in another."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuralmjp import InputError, TimeSeries
from neuralmjp.units import TIME_UNIT, converted, frequency, length, ratio, sampling

WORDS = ("ps", "ns", "us", "ms", "s", "min", "h", "days", "weeks", "months", "years")


@pytest.mark.parametrize(
    "words",
    [
        ("year", "years", "yr", "Years", "YEARS"),
        ("month", "months", "mo"),
        ("week", "weeks", "wk"),
        ("day", "days", "d", "Day"),
        ("hour", "hours", "hr", "hrs", "h"),
        ("minute", "minutes", "min", "mins"),
        ("second", "seconds", "sec", "s"),
        ("us", "µs", "μs", "microseconds"),
    ],
)
def test_spellings_mean_the_same(words):
    assert {length(word) for word in words} == {length(words[0])}
    assert length(words[0]) is not None


def test_words_that_mean_something_else():
    """Short ones are taken as they are written: M is no minute, and Ms no millisecond."""
    assert [length(word) for word in ("M", "m", "Ms", "S", "frame", "generations", "")] == [None] * 7


@pytest.mark.parametrize(
    ("unit", "other", "expected"),
    [
        ("years", "days", (1461, 4)),
        ("years", "months", (12, 1)),
        ("week", "h", (168, 1)),
        ("ns", "ps", (1000, 1)),
        ("s", "min", (1, 60)),
        ("day", "days", (1, 1)),
        ("frames", "frames", (1, 1)),
        ("frames", TIME_UNIT, (1, 1)),
        (TIME_UNIT, "days", (1, 1)),
    ],
)
def test_ratio(unit, other, expected):
    assert ratio(unit, other) == expected


@pytest.mark.parametrize("words", [("frames", "days"), ("days", "frames"), ("frames", "generations")])
def test_units_that_are_not_known_are_no_other(words):
    with pytest.raises(InputError, match=f"times in '{words[0]}' cannot be told in '{words[1]}'"):
        ratio(*words)


@given(st.sampled_from(WORDS), st.sampled_from(WORDS), st.lists(st.integers(0, 10**6), min_size=1))
def test_there_and_back(unit, other, numbers):
    times = np.array(numbers, dtype=float)
    np.testing.assert_allclose(converted(converted(times, unit, other), other, unit), times, rtol=1e-15)


def test_whole_numbers_stay_whole():
    np.testing.assert_array_equal(converted(np.arange(1000.0) * 3600, "s", "h"), np.arange(1000.0))
    np.testing.assert_array_equal(converted(np.arange(1000.0), "s", "ns"), np.arange(1000.0) * 1e9)


class TestSeries:
    """`TimeSeries.in_unit`."""

    data = TimeSeries.from_arrays([[0.0, 365.25, 730.5], [0.0, 7.0]], [[1, 2, 3], [4, 5]], time_unit="days")

    def test_times_and_name_change_and_nothing_else(self):
        years = self.data.in_unit("years")
        assert years.times.tolist() == [0, 1, 2, 0, 7 / 365.25]
        assert years.time_unit == "years"
        assert np.array_equal(years.values, self.data.values)
        assert years.names == self.data.names
        assert self.data.time_unit == "days"

    def test_another_word_for_the_same(self):
        assert self.data.in_unit("d").times.tolist() == self.data.times.tolist()
        assert self.data.in_unit("d").time_unit == "d"

    def test_no_named_unit(self):
        bare = TimeSeries.from_arrays([0.0, 1.0], [1.0, 2.0])
        assert bare.in_unit("years").times.tolist() == [0, 1]
        assert bare.in_unit("years").time_unit == "years"
        assert self.data.in_unit(TIME_UNIT).time_unit == "days"

    def test_too_large(self):
        with pytest.raises(InputError, match="time inf is not finite"):
            TimeSeries.from_arrays([0.0, 1e308], [1.0, 2.0], time_unit="years").in_unit("ns")

    def test_unknown(self):
        with pytest.raises(InputError, match="'days' cannot be told in 'visits'"):
            self.data.in_unit("visits")


@pytest.mark.parametrize("unit", ["years", "days", "frames", TIME_UNIT])
def test_a_frequency_is_told_in_units_up_to_an_hour(unit):
    assert frequency("2Hz", "h") == 7200
    assert frequency("2Hz", "hours") == 7200
    with pytest.raises(InputError, match=f"the data's unit of time is '{unit}'"):
        frequency("2Hz", unit)
    with pytest.raises(InputError, match="the rate is given in Hz"):
        sampling("2Hz", unit, TIME_UNIT)
