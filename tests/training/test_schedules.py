"""What changes as training goes on, step by step."""

import jax.numpy as jnp
import numpy as np
import pytest

from neuralmjp import InputError
from neuralmjp.training import Config, preset
from neuralmjp.training.loop import PATIENCE, REDUCTIONS, Pace, batch_rows, learning_rates
from neuralmjp.training.schedules import annealed, kl_weight, n_laid_out, n_observed


def along(schedule, config, steps, *more):
    return np.array([schedule(config, jnp.asarray(step), *more) for step in steps])


class TestSchedules:
    def test_weight_of_the_divergence(self):
        np.testing.assert_allclose(along(kl_weight, Config(kl_warmup=4), range(6)), [0.25, 0.5, 0.75, 1, 1, 1])
        np.testing.assert_array_equal(along(kl_weight, Config(), range(3)), 1.0)

    def test_curriculum(self):
        """2 observations for 3 steps, then more of them until all 10 are used after 4 further steps."""
        found = along(n_observed, Config(curriculum=(2, 3, 4)), range(10), 10)
        np.testing.assert_array_equal(found, [2, 2, 2, 2, 4, 6, 8, 10, 10, 10])
        np.testing.assert_array_equal(along(n_observed, Config(), range(3), 10), 10)
        np.testing.assert_array_equal(along(n_observed, Config(curriculum=(20, 3, 4)), [0, 5, 9], 10), 10)

    @pytest.mark.parametrize("curriculum", [(0, 2, 4), (2, -1, 4), (2, 1, True)])
    def test_no_curriculum(self, curriculum):
        with pytest.raises(InputError, match="three whole numbers, the first at least 1"):
            Config(curriculum=curriculum)

    def test_programs_are_few_and_large_enough(self):
        """Also where a curriculum begins with more than there is; along the grid, every observation is a node."""
        config, few = Config(curriculum=(2, 3, 4)), Config(curriculum=(20, 3, 4))
        sizes = [n_laid_out(config, n, 67) for n in range(1, 68)]
        assert all(size >= n for n, size in enumerate(sizes, start=1))
        assert sorted(set(sizes)) == [2, 6, 18, 67]  # not 54: that is most of it
        assert n_laid_out(few, 10, 10) == n_laid_out(Config(), 4, 10) == 10
        assert n_laid_out(config.changed(posterior="paper", quadrature=0), 2, 67) == 67
        assert n_laid_out(config.changed(posterior="paper", quadrature=200, two_step=True), 2, 67) == 2

    def test_annealing_by_epochs(self):
        found = along(annealed, Config(decay=0.5, decay_epochs=2), range(0, 13, 3), 3)
        np.testing.assert_allclose(found, [1, 1, 0.5, 0.5, 0.25])
        np.testing.assert_array_equal(along(annealed, Config(decay=0.5), range(0, 100, 30), 3), 1.0)

    def test_learning_rates_by_group(self):
        half = jnp.asarray(0.5)
        found = learning_rates(Config(learning_rate=1e-2, model_learning_rate=2e-2), half)
        assert {k: float(v) for k, v in found.items()} == pytest.approx(
            {"prior": 1e-2, "model": 1e-2, "posterior": 5e-3}
        )
        network = learning_rates(Config(learning_rate=1e-2, model_learning_rate=2e-2, prior="generator"), half)
        assert float(network["prior"]) == pytest.approx(5e-3)
        constant = learning_rates(Config(prior_learning_rate=5e-4), half)
        assert constant["prior"] == 5e-4


class TestPace:
    def test_lowers_the_rate_and_stops(self):
        pace, config = Pace(), Config(decay=0.3)
        flat = np.random.default_rng(0).normal(size=50)
        ends, factors = [], []
        while not (ends and ends[-1]):
            ends.append(pace.look(flat, config))
            factors.append(pace.factor)
            assert len(ends) < 50
        assert len(ends) == 1 + PATIENCE * REDUCTIONS
        np.testing.assert_allclose(sorted(set(factors)), 0.3 ** np.arange(REDUCTIONS, -1, -1.0))

    def test_what_has_settled_stays_so(self):
        """While other restarts go on."""
        pace, flat = Pace(), np.random.default_rng(0).normal(size=50)
        while not pace.look(flat, Config()):
            pass
        factor = pace.factor
        assert all(pace.look(flat + rise, Config()) for rise in (0.0, 10.0, 0.0, 20.0))
        assert pace.factor == factor

    def test_goes_on_while_the_objective_rises(self):
        pace = Pace()
        noise = np.random.default_rng(0).normal(size=50)
        assert not any(pace.look(noise + k, Config()) for k in range(40))
        assert (pace.factor, pace.reductions) == (1.0, 0)

    def test_a_rise_within_the_noise_does_not_count(self):
        pace = Pace()
        noise = 100 * np.random.default_rng(0).normal(size=50)
        assert any(pace.look(noise + 0.01 * k, Config()) for k in range(40))

    def test_a_refused_step_does_not_hide_a_rise(self):
        """Its objective is not finite."""
        pace = Pace()
        noise = np.random.default_rng(0).normal(size=50)
        noise[7] = np.nan
        assert not any(pace.look(noise + k, Config()) for k in range(40))
        assert np.isfinite(pace.best)


class TestBatches:
    @pytest.mark.parametrize(("n_series", "batch"), [(10, 3), (8, 4), (5, 5), (7, 1)])
    def test_every_epoch_uses_a_series_at_most_once(self, n_series, batch):
        per_epoch = n_series // batch
        rows = batch_rows(0, 0, 0, 6 * per_epoch, n_series, batch).reshape(6, per_epoch * batch)
        for epoch in rows:
            assert len(set(epoch.tolist())) == per_epoch * batch
            assert set(epoch.tolist()) <= set(range(n_series))
        if n_series > 1:
            assert len({tuple(epoch) for epoch in rows.tolist()}) > 1

    def test_over_many_epochs_nothing_is_left_out(self):
        assert set(batch_rows(0, 0, 0, 60, 10, 3).ravel().tolist()) == set(range(10))

    def test_an_interrupted_run_sees_the_same(self):
        whole = batch_rows(3, 1, 0, 20, 10, 3)
        np.testing.assert_array_equal(
            np.concatenate([batch_rows(3, 1, 0, 7, 10, 3), batch_rows(3, 1, 7, 13, 10, 3)]), whole
        )

    def test_seeds_and_restarts_see_others(self):
        first = batch_rows(0, 0, 0, 20, 10, 3)
        assert (batch_rows(1, 0, 0, 20, 10, 3) != first).any()
        assert (batch_rows(0, 1, 0, 20, 10, 3) != first).any()


class TestConfig:
    @pytest.mark.parametrize(
        ("choices", "message"),
        [
            ({"width": 0}, "width must be at least 1, got 0"),
            ({"learning_rate": 0.0}, "learning_rate must be positive, got 0.0"),
            ({"learning_rate": float("nan")}, "learning_rate must be positive, got nan"),
            ({"dropout": 1.0}, "dropout lies between 0 and 1, got 1.0"),
            ({"posterior": "paper", "horizon": 0.9}, "horizon must not end before the longest series"),
            ({"posterior": "paper", "two_step": True}, "need quadrature: set it to 200"),
            ({"posterior": "paper", "solver": "dormand-prince"}, "need quadrature: set it to 200"),
            ({"posterior": "paper", "quadrature": 200}, "joint updates would learn to jump between the points"),
            ({"depth": 3}, "a training configuration has no 'depth'"),
        ],
    )
    def test_errors(self, choices, message):
        with pytest.raises(InputError, match=message):
            Config().changed(**choices)

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("posterior", "free", "posterior is one of tilted, paper; got 'free'"),
            ("encoder", "lstm", "encoder is one of ode-rnn, gru, state-space; got 'lstm'"),
            ("order", 3, "order is 2 or 4, got 3"),
            ("runge_kutta", 1, "runge_kutta is 2 or 4, got 1"),
        ],
    )
    def test_words_that_the_type_checker_of_tests_would_refuse_first(self, name, value, message):
        config = Config()
        object.__setattr__(config, name, value)
        with pytest.raises(InputError, match=message):
            config.__post_init__()

    def test_presets(self):
        paper = preset("paper", "paper")
        assert (paper.width, paper.quadrature, paper.prior, paper.two_step) == (256, 200, "generator", True)
        assert (paper.dropout, paper.steer, paper.clip, paper.reconstruction) == (0.2, 1.0, 1.0, "gumbel")
        assert preset("quick", "tilted") == Config()
        assert preset("quick", "paper").width < paper.width
