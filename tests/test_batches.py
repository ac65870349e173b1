"""Batches of series: everything once, in few shapes, nothing mixed."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuralmjp.errors import InputError
from ragged import ragged, series_of


class TestBatches:
    """Padding, masks, few shapes."""

    @given(ragged, st.integers(1, 5), st.none() | st.integers(0, 99))
    def test_every_series_once_and_unchanged(self, make, size, seed):
        data = make()
        seen = []
        for batch in data.batches(size, seed=seed):
            assert len(batch.series) == size
            for b, i in enumerate(batch.series):
                if i < 0:
                    assert not batch.valid[b].any()
                    continue
                seen.append(i)
                one, valid = data[i], batch.valid[b]
                assert np.array_equal(batch.times[b][valid], one.times)
                assert np.array_equal(batch.mask[b][valid], one.mask)
                assert np.array_equal(batch.values[b][batch.mask[b]], one.values[one.mask])
                assert np.all(batch.times[b][~valid] == one.times[-1])
            assert not batch.values[~batch.mask].any()
            assert not batch.mask[~batch.valid].any()
        assert sorted(seen) == list(range(len(data)))

    @given(ragged, st.integers(1, 5), st.data())
    def test_no_series_leaks_into_another(self, make, size, draw):
        data = make()
        kept = draw.draw(st.integers(0, len(data) - 1))
        belongs = np.repeat(np.arange(len(data)) == kept, data.lengths)
        changed = dataclasses.replace(
            data,
            times=np.where(belongs, data.times, data.times + 1),
            values=np.where(belongs[:, None], data.values, 7.0),
        )
        for a, b in zip(data.batches(size), changed.batches(size), strict=True):
            row = a.series == kept
            for field in dataclasses.fields(a):
                assert np.array_equal(getattr(a, field.name)[row], getattr(b, field.name)[row])

    @given(ragged, st.integers(1, 5))
    def test_few_shapes(self, make, size):
        data = make()
        shapes = {batch.values.shape for batch in data.batches(size)}
        assert len(shapes) == len(np.unique(data.padded_lengths()))
        assert all(length & (length - 1) == 0 for _, length, _ in shapes)
        assert {b.times.shape for b in data.batches(size, lengths=[25, 5])} <= {(size, 5), (size, 25)}

    def test_padding_is_never_twofold(self):
        data = series_of(*range(1, 200))
        assert np.all(data.padded_lengths() < 2 * data.lengths)
        assert np.all(data.padded_lengths() >= data.lengths)

    def test_shuffling_by_seed(self):
        data = series_of(*[3] * 50)
        first, again, other = ([b.series.tolist() for b in data.batches(5, seed=seed)] for seed in (1, 1, 2))
        assert first == again
        assert first != other

    def test_drop_last(self):
        data = series_of(*[3] * 7)
        assert [batch.series.tolist() for batch in data.batches(3, drop_last=True)] == [[0, 1, 2], [3, 4, 5]]

    def test_pad(self):
        batch = series_of(3, 5, 1).pad()
        assert batch.times.shape == (3, 5)
        assert batch.valid.sum(axis=1).tolist() == [3, 5, 1]
        assert batch.series.tolist() == [0, 1, 2]

    def test_refuses(self):
        with pytest.raises(InputError, match="a batch needs at least one series"):
            series_of(3).batches(0)
        with pytest.raises(InputError, match="the longest series has 3 observations: add a padded length"):
            series_of(3).batches(1, lengths=[2])
