"""Training from disk: every window once per epoch, in an order that a seed gives, and what a survey sees."""

from dataclasses import replace

import numpy as np
import pytest

from neuralmjp import NeuralMJP, systems
from neuralmjp.errors import InputError
from neuralmjp.io import open_store
from neuralmjp.io.folders import write_parts
from neuralmjp.timeseries import TimeSeries
from neuralmjp.training import Config
from neuralmjp.training import stream as module
from neuralmjp.training.stream import ReadAhead, Stream

CONFIG = Config(window=20, batch=8)
CHANGES = {"steps": 40, "round_steps": 20, "window": 50, "batch": 16, "width": 8}


@pytest.fixture
def numbered(tmp_path, monkeypatch):
    """Series whose values number the observations: 13 files of a few series, some longer than a window."""
    monkeypatch.setattr("neuralmjp.io.folders.GROUP_ROWS", 50)
    monkeypatch.setattr(module, "MIXED", 400)
    rng, parts, n = np.random.default_rng(0), [], 0
    for k in range(13):
        lengths = rng.integers(5, 60, 4)
        values = [np.arange(n + a, n + b, dtype=float) for a, b in zip(*_edges(lengths), strict=True)]
        n += lengths.sum()
        names = [f"{k}-{i}" for i in range(4)]
        parts.append(TimeSeries.from_arrays([np.arange(len(v)) / 3 for v in values], values, names=names))
    write_parts(parts, tmp_path / "parts")
    return open_store(tmp_path / "parts")


def _edges(lengths):
    stops = np.cumsum(lengths)
    return stops - lengths, stops


class TestSurvey:
    def test_what_it_sees(self, numbered):
        stream = Stream.of(numbered, CONFIG)
        chunks = [numbered.chunk(k) for k in range(len(numbered))]
        windows = [module.windows_of(chunk, CONFIG) for chunk in chunks if chunk is not None]
        assert stream.n_windows[stream.n_windows > 0].tolist() == [len(one) for one in windows]
        assert stream.longest == 20
        assert np.isclose(stream.span, 19 / 3)
        assert np.isclose(stream.longest_gap, 1 / 3)
        assert not stream.missing
        assert stream.sample.n_observations == stream.n_observations == sum(one.n_observations for one in windows)

    def test_the_sample_is_a_share_of_every_part(self, numbered, monkeypatch):
        monkeypatch.setattr(module, "SAMPLE", numbered.n_rows // 4)
        stream = Stream.of(numbered, CONFIG)
        share = stream.sample.n_observations / stream.n_observations
        assert 0.15 < share < 0.35
        assert np.ptp(stream.sample.values) > 0.9 * numbered.n_rows

    def test_the_fingerprint_is_that_of_the_data(self, numbered, tmp_path):
        write_parts([numbered.whole()], tmp_path / "again")
        again, other = open_store(tmp_path / "again"), replace(numbered.whole(), values=-numbered.whole().values)
        write_parts([other], tmp_path / "other")
        known = {Stream.of(store, CONFIG).digest for store in (numbered, numbered)}
        assert len(known) == 1
        assert Stream.of(open_store(tmp_path / "other"), CONFIG).digest not in known
        assert again.whole().equals(numbered.whole())

    def test_rows_of_a_series_that_stand_apart(self, numbered, tmp_path):
        whole = numbered.whole()
        first, later = whole[:1].split((0.5, 0.5), by="time")
        write_parts([first, whole[1:4], later], tmp_path / "apart")
        with pytest.raises(InputError, match="sort the table by series"):
            Stream.of(open_store(tmp_path / "apart"), CONFIG)

    def test_times_that_fall_from_part_to_part(self, tmp_path):
        late, early = (TimeSeries.from_arrays([np.arange(5.0) + t], [np.arange(5.0)], names="u") for t in (9, 2))
        write_parts([late, early], tmp_path / "falling")
        with pytest.raises(InputError, match="'u': time 2 comes after 13 in the part before"):
            Stream.of(open_store(tmp_path / "falling"), CONFIG)

    def test_nothing_to_learn_from(self, tmp_path):
        single = TimeSeries.from_arrays([[0.0, 1.0], [0.0]], [[1.0, 2.0], [3.0]])
        write_parts([single], tmp_path / "short")
        with pytest.raises(InputError, match="no series has two observations"):
            Stream.of(open_store(tmp_path / "short"), CONFIG.changed(drop_last=True))


class TestOrder:
    def test_every_window_once_per_epoch(self, numbered):
        stream = Stream.of(numbered, CONFIG)
        per_epoch = stream.n_series // 8
        firsts = []
        for epoch in range(3):
            served = stream.served(0, 8, epoch * per_epoch, per_epoch)
            assert len(served) == per_epoch * 8
            firsts.append(served.values[served.offsets[:-1], 0])
            assert len(np.unique(firsts[-1])) == per_epoch * 8
        assert (firsts[0] != firsts[1]).any()
        left_out = stream.n_series - per_epoch * 8
        assert len(np.unique(np.concatenate(firsts))) >= stream.n_series - left_out

    def test_rounds_of_any_length_see_the_same(self, numbered):
        stream = Stream.of(numbered, CONFIG)
        whole = stream.served(0, 8, 0, 30)
        parts = [stream.served(0, 8, a, b - a) for a, b in ((0, 7), (7, 8), (8, 30))]
        assert np.array_equal(whole.values, np.concatenate([part.values for part in parts]))
        assert not np.array_equal(whole.values[:50], stream.served(1, 8, 0, 30).values[:50])

    def test_parts_are_mixed(self, numbered):
        """A batch holds windows of several parts, an epoch's first batches of many."""
        stream = Stream.of(numbered, CONFIG)
        batch = stream.served(0, 8, 0, 1)
        part = np.searchsorted(np.cumsum(stream.n_windows * 20), batch.values[batch.offsets[:-1], 0])
        assert len(np.unique(part)) > 2

    def test_no_more_than_a_shelf_is_held(self, numbered):
        stream = Stream.of(numbered, CONFIG)
        for step in range(40):
            stream.served(0, 8, step, 1)
            assert sum(one.n_observations for one in stream._shelf.values()) <= 400 + 50


class TestReadAhead:
    def test_the_next_round_is_made_meanwhile(self):
        asked = []
        ahead = ReadAhead(lambda first, n: asked.append((first, n)) or first)
        assert [ahead.get(0, 5), ahead.get(5, 5), ahead.get(10, 3)] == [0, 5, 10]
        ahead.close()
        assert {(0, 5), (5, 5), (10, 5), (10, 3)} <= set(asked)

    def test_what_goes_wrong_is_told(self):
        def fail(first, n):
            raise InputError("gone")

        ahead = ReadAhead(fail)
        with pytest.raises(InputError, match="gone"):
            ahead.get(0, 1)
        ahead.close()


class TestFit:
    @pytest.fixture
    def channel(self, tmp_path):
        data = systems.IonChannel.paper("full").simulate(4, 1000, seed=0).data
        holes = np.array(data.values)
        holes[1500:1510] = np.nan
        data = replace(data, values=holes)
        write_parts([data[:2], data[2:]], tmp_path / "parts")
        return data, open_store(tmp_path / "parts")

    def test_a_run_that_goes_on_ends_the_same(self, channel, tmp_path):
        _, store = channel
        whole = NeuralMJP(3, emission="gaussian", changes=CHANGES).train(store)
        half = NeuralMJP(3, emission="gaussian", changes=CHANGES)

        def stop(stage, share):
            if stage.startswith("training") and share >= 0.5:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            half.train(store, stop, folder=tmp_path / "run")
        on = half.train(store, folder=tmp_path / "run", resume=True)
        assert on.restarts == whole.restarts
        assert on.histories[0][-1]["theta"] == whole.histories[0][-1]["theta"]

    def test_another_store_is_not_gone_on_with(self, channel, tmp_path):
        data, store = channel
        estimator = NeuralMJP(3, emission="gaussian", changes=CHANGES)
        estimator.train(store, folder=tmp_path / "run")
        write_parts([replace(data, values=data.values + 1)], tmp_path / "other")
        with pytest.raises(InputError, match="another data"):
            estimator.train(open_store(tmp_path / "other"), folder=tmp_path / "run", resume=True)

    def test_small_data_lose_nothing(self, channel):
        """All windows are in the sample: the bound and the likelihood are those of the data cut in this way."""
        data, store = channel
        estimator = NeuralMJP(3, emission="gaussian", changes=CHANGES, restarts=2)
        fitted = estimator.fit(store)
        assert fitted.n_observations == data.n_observations
        assert fitted.elbo <= fitted.log_likelihood + 0.1
        assert not any("drawn from them at random" in word for word in fitted.warnings)

    def test_a_part_is_judged_and_that_is_told(self, channel, monkeypatch):
        monkeypatch.setattr(module, "SAMPLE", 1000)
        _, store = channel
        fitted = NeuralMJP(3, emission="gaussian", changes=CHANGES).fit(store)
        assert fitted.n_observations < 2000
        (word,) = (word for word in fitted.warnings if "drawn from them at random" in word)
        assert word.startswith("trained on 4000 observations; likelihood, bound and intervals are of ")

    def test_missing_values_may_differ_from_those_of_training(self, channel):
        """The encoder reads which values are missing only where some were in training."""
        data, store = channel
        full, holed = data[[0, 2, 3]], data
        with_holes = NeuralMJP(3, emission="gaussian", changes=CHANGES).train(store)
        without = NeuralMJP(3, emission="gaussian", changes=CHANGES).train(full)
        for trained in (with_holes, without):
            for seen in (full, holed):
                assert np.isfinite(np.asarray(trained.evaluate(seen).terms.elbo)).all()
