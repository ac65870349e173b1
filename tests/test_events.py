"""A decoded path as a list of events, by hand, by another way of counting, and on the command line."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import assert_refused
from neuralmjp import ExactMJP, Panel, TimeSeries, systems, write
from neuralmjp.events import events_of
from neuralmjp.fitted import Decoded

NAMES = ("closed", "open")


def by_hand() -> TimeSeries:
    times = [[0.0, 1, 2, 4, 5, 7], [1.0, 2, 3]]
    values = [[0.1, 0.3, 5.0, np.nan, 5.2, 0.0], [4.0, 5.0, np.nan]]
    return TimeSeries.from_arrays(times, values, names=["a", "b"], time_unit="ms", value_names=["pA"])


def test_by_hand():
    data, states = by_hand(), np.array([0, 0, 1, 1, 1, 0, 1, 1, 0])
    sure = np.where(states[:, None] == np.arange(2), 0.75, 0.25)
    sure[2] = [0.0, 1.0]
    found = events_of(data, states, sure, NAMES, quantities=True).to_frame()
    assert list(found.series) == ["a", "a", "a", "b", "b"]
    assert list(found.name) == ["closed", "open", "closed", "open", "closed"]
    np.testing.assert_array_equal(found.begin, [0, 1.5, 6, 1, 2.5])
    np.testing.assert_array_equal(found.end, [1.5, 6, 7, 2.5, 3])
    np.testing.assert_array_equal(found.duration, found.end - found.begin)
    np.testing.assert_array_equal(found.whole, [False, True, False, False, False])
    np.testing.assert_array_equal(found.observations, [2, 3, 1, 2, 1])
    np.testing.assert_allclose(found.probability, [0.75, 2.5 / 3, 0.75, 0.75, 0.75])
    np.testing.assert_allclose(found.pA_mean, [0.2, 5.1, 0.0, 4.5, np.nan])


def test_what_is_read_in_a_state():
    data, states = by_hand(), np.array([0, 0, 1, 1, 1, 0, 1, 1, 0])
    found = events_of(data, states, np.eye(2)[states], NAMES, quantities=True)
    # Two events of open: 5.1 from three observations, 4.5 from two.
    np.testing.assert_allclose(found.mean_in(1), [(3 * 5.1 + 2 * 4.5) / 5])
    np.testing.assert_allclose(found.mean_in(0), [(2 * 0.2 + 0.0) / 3])  # of the last event no value was read
    assert "pA_mean" not in events_of(data, states, np.eye(2)[states], NAMES, quantities=False).to_frame()
    assert "name" not in events_of(data, states, np.eye(2)[states], ("0", "1"), quantities=False).to_frame()


@given(
    paths=st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=12), min_size=1, max_size=4),
    seed=st.integers(0, 9),
)
def test_events_cover_every_series_once(paths, seed):
    rng = np.random.default_rng(seed)
    times = [np.cumsum(rng.uniform(0.1, 2.0, len(path))) for path in paths]
    data = TimeSeries.from_arrays(times, [np.ones(len(path)) for path in paths])
    states = np.concatenate([np.array(path) for path in paths])
    found = events_of(data, states, np.eye(3)[states], ("0", "1", "2"), quantities=True)
    assert found.n_observations.sum() == len(states)
    np.testing.assert_array_equal(np.repeat(found.states, found.n_observations), states)
    for k, each in enumerate(times):
        here = found.series == k
        np.testing.assert_allclose(found.durations[here].sum(), each[-1] - each[0])
        np.testing.assert_array_equal(found.begins[here][1:], found.ends[here][:-1])
        assert not found.whole[here][[0, -1]].any()
        assert found.whole[here][1:-1].all()
    for one, other in zip(Decoded(states, np.eye(3)[states]).dwells(data), one_by_one(paths, times), strict=True):
        np.testing.assert_allclose(one, other)


def one_by_one(paths, times) -> list[list[float]]:
    """Whole stays in each state, counted observation by observation."""
    found: list[list[float]] = [[], [], []]
    for path, at in zip(paths, times, strict=True):
        begun = None
        for i in range(1, len(path)):
            if path[i] != path[i - 1]:
                middle = (at[i] + at[i - 1]) / 2
                if begun is not None:
                    found[path[i - 1]].append(middle - begun)
                begun = middle
    return found


def test_events_of_dates_are_dates():
    data = TimeSeries.from_arrays([[0.0, 1, 2]], [[0.0, 1, 1]], time_unit="days", origin="2024-01-31")
    found = events_of(data, np.array([0, 1, 1]), np.eye(2)[[0, 1, 1]], NAMES, quantities=False).to_frame()
    assert list(found.begin) == [pd.Timestamp("2024-01-31"), pd.Timestamp("2024-01-31T12:00")]
    np.testing.assert_array_equal(found.duration, [0.5, 1.5])


def test_zones_stay():
    data = TimeSeries.from_arrays([[0.0, 1, 2]], [[0.0, 1, 1]], time_unit="days", origin="2024-01-31T00:00Z")
    found = events_of(data, np.array([0, 1, 1]), np.eye(2)[[0, 1, 1]], NAMES, quantities=False).to_frame()
    assert found.begin[1] == pd.Timestamp("2024-01-31T12:00", tz="UTC")
    assert found.begin.dtype.tz is not None


def test_the_time_of_a_death_is_known():
    """Not halfway to the visit before: neither where it begins, nor how long the stay before it lasted."""
    times, states = [[0.0, 1, 2, 2.2], [0.0, 1, 3]], [[0.0, 1, 1, 2], [0.0, 0, 2]]
    data = TimeSeries.from_arrays(times * 10, states * 10, time_unit="year")
    mask = [[0, 1, 1], [1, 0, 1], [0, 0, 0]]
    fitted = ExactMJP(3, mask=mask, panel=Panel(exact_entry=2), intervals=False).fit(data)
    found = fitted.events(data).to_frame().head(5)
    np.testing.assert_array_equal(found.begin, [0, 0.5, 2.2, 0, 3])
    np.testing.assert_array_equal(found.end, [0.5, 2.2, 2.2, 3, 3])
    np.testing.assert_allclose(fitted.decode(data).dwells(data)[1], [1.7] * 10)


@pytest.fixture(scope="module")
def channel():
    return systems.IonChannel.paper("one-second").simulate(n_series=1, length=4000, seed=0)


def test_states_that_share_a_level_are_one_event(channel):
    """A visit of the brief closed state is no event of its own: nobody sees it begin or end."""
    fitted = ExactMJP(3, levels=(0, 0, 1), intervals=False).fit(channel.data).named("long", "brief", "open")
    decoded = fitted.decode(channel.data)
    events = fitted.events(channel.data, decoded)
    assert events.state_names == ("long or brief", "open")
    path = np.array([0, 0, 1])[decoded.states]
    assert len(events) == 1 + (path[1:] != path[:-1]).sum()
    assert fitted.events(channel.data).to_frame().equals(events.to_frame())
    assert (events.probabilities > 0.5).mean() > 0.95


@pytest.fixture
def fitted(run, channel, tmp_path):
    write(channel.data, "channel.csv")
    assert run("fit", "channel.csv", "--states", 3, "--time-unit", "s", "--out", "run").status == 0
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_the_table_of_the_command(run, fitted, channel, ending):
    file = f"events.{ending}"
    told = run("decode", "run", "channel.csv", "--out", "path.csv", "--events", file)
    assert told.status == 0, told.err
    assert f"from beginning to end -> {file}" in told.out
    assert "Events of the most likely path: duration (s)" in told.out
    found = pd.read_parquet(file) if ending == "parquet" else pd.read_csv(file, sep="," if ending == "csv" else "\t")
    path = pd.read_csv("path.csv").state.to_numpy()
    np.testing.assert_array_equal(np.repeat(found.state, found.observations), path)
    (name,) = channel.data.value_names
    mean = np.average(found[f"{name}_mean"], weights=found.observations)
    np.testing.assert_allclose(mean, channel.data.values.mean(), rtol=1e-9)
    assert {"begin", "end", "duration", "whole", "probability"} < set(found)


def test_an_unknown_ending_is_told_first(run, fitted):
    told = run("decode", "run", "channel.csv", "--out", "never.csv", "--events", "events.npz")
    assert_refused(told, "events.npz: such a table is written as .csv, .tsv, .parquet")
    assert not (fitted / "never.csv").exists()


def test_one_file_for_two_tables(run, fitted):
    told = run("decode", "run", "channel.csv", "--out", "x.csv", "--events", "./x.csv")
    assert_refused(told, "--out and --events are both x.csv: give them different names")


def test_counts_have_no_events(run):
    write(systems.birth_death().simulate(4, 10, seed=0).data, "births.csv")
    assert run("fit", "births.csv", "--prior", "birth-death", "--out", "run").status == 0
    told = run("decode", "run", "births.csv", "--out", "x.csv", "--events", "e.csv")
    assert_refused(told, "--events lists stays in hidden states; a reaction network has counts: leave it out")
