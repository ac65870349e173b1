"""Data as training sees them: ragged series side by side, shortened, in windows."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralmjp import InputError, Panel, TimeSeries
from neuralmjp.training.blocks import encoder_inputs, in_windows, make_block
from neuralmjp.training.networks import evaluate
from neuralmjp.training.trained import evaluated_precisely
from training.worlds import PAPER, TINY, series, world

evaluated = eqx.filter_jit(evaluate)


def test_a_block_holds_the_data():
    made = world(data=series(missing=0.3))
    problem, block = made.problem, made.block
    seen, valid = block.evidence.seen, np.asarray(block.evidence.valid)
    assert valid.sum(1).tolist() == [6, 3, 5, 1]
    values = np.where(np.asarray(seen.mask), seen.values, np.nan) * problem.scaling.scale + problem.scaling.shift
    np.testing.assert_allclose(values[valid], problem.data.values, rtol=1e-12)
    longest = max(one.times[-1] - one.times[0] for one in problem.data)
    assert block.times.max() == pytest.approx(1.0)
    assert float(block.span) == pytest.approx(longest)
    for s, one in enumerate(problem.data):
        n = len(one.times)
        np.testing.assert_allclose(block.times[s, :n] * longest, one.times - one.times[0], atol=1e-12)
        np.testing.assert_allclose(block.times[s, n:] * longest, one.times[-1] - one.times[0], atol=1e-12)
        np.testing.assert_allclose(block.raw_gaps[s], np.pad(np.diff(one.times), (0, 7 - n)), atol=1e-12)
        np.testing.assert_allclose(block.gaps[s] * longest, block.raw_gaps[s], atol=1e-12)


def regular(lengths, starts=(0.0, 7.1, 3.3)) -> TimeSeries:
    """Steps of 0.1, from different starts on."""
    times = np.concatenate([start + 0.1 * np.arange(n) for n, start in zip(lengths, starts, strict=True)])
    values = np.random.default_rng(0).normal(size=(len(times), 1))
    offsets = np.append(0, np.cumsum(lengths))
    return TimeSeries(times, values, offsets, ("a", "b", "c"), ("x",))


class TestSharedTimes:
    def test_of_a_regular_recording(self):
        """Also where the last window is shorter: its padding goes on as the others do."""
        block = world(PAPER, data=regular((6, 6, 4))).block
        assert block.shared
        np.testing.assert_allclose(block.times, np.tile(np.arange(6) / 5, (3, 1)), atol=1e-9)

    def test_not_of_others(self):
        assert not world(PAPER).block.shared
        data = regular((6, 6, 4))
        moved = TimeSeries(
            data.times + 1e-3 * (np.arange(16) == 2), data.values, data.offsets, data.names, data.value_names
        )
        assert not world(PAPER, data=moved).block.shared

    @pytest.mark.parametrize("changes", [{"quadrature": 0}, {"quadrature": 9, "two_step": True, "embedded": True}])
    def test_the_bound_is_the_same(self, changes):
        """With times embedded once, or by series."""
        made = world(PAPER.changed(**changes), data=regular((6, 6, 4)))
        assert made.problem.setup().shared
        assert not world(data=regular((6, 6, 4))).problem.setup().shared  # the tilted posterior embeds no times
        once, each = (
            evaluated(made.setup._replace(shared=shared), made.networks, made.block, key=None)
            for shared in (True, False)
        )
        for one, other in zip(once.terms, each.terms, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)

    def test_other_data_are_read_at_their_own_times(self):
        """A model that was trained on a regular grid, and one that was not, say the same of irregular data."""
        made = world(PAPER, data=regular((6, 6, 4)))
        setup, problem = made.problem.setup(), made.problem
        found = [
            evaluated_precisely(one, [made.networks], series(), problem.scaling, problem.clock, Panel())[0]
            for one in (setup, setup._replace(shared=False))
        ]
        np.testing.assert_allclose(found[0].marginals, found[1].marginals, rtol=1e-12)


def test_some_series():
    block = world().block
    some = block.take(jnp.array([2, 0]))
    np.testing.assert_array_equal(some.times, np.asarray(block.times)[[2, 0]])
    np.testing.assert_array_equal(some.evidence.valid, np.asarray(block.evidence.valid)[[2, 0]])
    assert (some.n_series, block.n_series) == (2, 4)


@pytest.mark.parametrize("config", [TINY, TINY.changed(encoder="ode-rnn"), PAPER.changed(order=4, substeps=20)])
@pytest.mark.parametrize("n", [2, 4])
def test_a_shortened_batch_is_one_of_short_series(config, n):
    """As a curriculum uses it. On the grid of the paper's posterior more nodes mean a finer solution."""
    made = world(config, data=series(missing=0.2))
    problem, data = made.problem, made.problem.data
    parts = [slice(a, min(a + n, b)) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    offsets = np.append(0, np.cumsum([p.stop - p.start for p in parts]))
    times, values = (np.concatenate([x[p] for p in parts]) for x in (data.times, data.values))
    short = TimeSeries(times, values, offsets, data.names, data.value_names)
    block = make_block(short, problem.model, problem.scaling, problem.clock, Panel(), np.float64)
    if block.evidence.seen.mask is None:
        every = jnp.ones(block.evidence.seen.values.shape, bool)
        block = block._replace(evidence=block.evidence._replace(seen=block.evidence.seen._replace(mask=every)))
    expected = evaluated(made.setup, made.networks, block, key=None)
    found = evaluated(made.setup, made.networks, made.block.shortened(n), key=None)
    for one, two in zip(expected.terms, found.terms, strict=True):
        np.testing.assert_allclose(two, one, atol=1e-11 if config.posterior == "tilted" else 1e-5)


@pytest.mark.parametrize("config", [TINY.changed(encoder="ode-rnn"), PAPER.changed(quadrature=200, two_step=True)])
def test_what_is_cut_was_not_used(config):
    """A curriculum's early steps need no program for whole series. Nodes of the quadrature stay where they are."""
    made = world(config, data=series(missing=0.2))
    found = [
        evaluated(made.setup, made.networks, block.shortened(2), key=None) for block in (made.block, made.block.cut(3))
    ]
    assert [one.marginals.shape[1] for one in found] == [6, 3]
    for one, two in zip(*(one.terms for one in found), strict=True):
        np.testing.assert_allclose(two, one, atol=1e-11 if config.posterior == "tilted" else 1e-5)


class TestEncoderInputs:
    def test_columns(self):
        """Value, time, gap, what is known, and the likelihoods of the states."""
        made = world(data=series(missing=0.3))
        logs = jnp.asarray(np.random.default_rng(0).normal(size=(*made.block.times.shape, 2)))
        inputs = encoder_inputs(made.block, logs, None, 1.1, True)
        seen, valid = made.block.evidence.seen, np.asarray(made.block.evidence.valid)
        assert inputs.features.shape[-1] == made.setup.n_features == 1 + 2 + 1 + 2
        columns = np.asarray(inputs.features)[valid]
        np.testing.assert_allclose(columns[:, 0], np.where(seen.mask, seen.values, 0.0)[valid][:, 0])
        np.testing.assert_allclose(columns[:, 1], np.asarray(made.block.times)[valid])
        np.testing.assert_allclose(columns[:, 2], np.asarray(made.block.gaps)[valid])
        np.testing.assert_allclose(columns[:, 3], np.asarray(seen.mask)[valid][:, 0])
        np.testing.assert_allclose(columns[:, 4:], jax.nn.softmax(logs)[valid])
        np.testing.assert_array_equal(np.asarray(inputs.features)[~valid], 0.0)
        ends = [one.times[-1] - one.times[0] for one in made.problem.data]
        np.testing.assert_allclose(inputs.after, 1.1 - np.array(ends) / max(ends))

    def test_labels_are_one_hot(self):
        data = series((5, 4))
        labels = TimeSeries(data.times, (data.values > 0) + 5.0, data.offsets, data.names, data.value_names)
        made = world(data=labels, emission="categorical")
        features = np.asarray(encoder_inputs(made.block, None, 2, 1.1, True).features)
        np.testing.assert_array_equal(features[0, :, :2], np.eye(2)[(labels.values[:5, 0] - 5).astype(int)])


class TestWindows:
    def test_long_recordings_become_many_series(self):
        data = series((25, 4))
        cut = in_windows(data, 10)
        assert max(cut.lengths) <= 10
        assert cut.n_observations == data.n_observations

    def test_short_series_stay_as_they_are(self):
        data = series((5, 4))
        assert in_windows(data, 5) is data

    def test_a_window_of_one(self):
        with pytest.raises(InputError, match="at least 2 observations, got 1"):
            in_windows(series(), 1)
