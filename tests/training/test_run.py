"""Runs: the same again, interrupted and resumed, refused, diverged, collapsed; nothing compiled twice."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exact.test_information import TWO, simulated
from neuralmjp import InputError, NeuralMJP, Panel
from neuralmjp.emissions import CustomEmission, Gaussian
from neuralmjp.emissions.emission import reordered
from neuralmjp.training import run
from neuralmjp.training.checkpoints import FOLDER
from neuralmjp.training.loop import run_round
from neuralmjp.training.run import train
from training.test_checkpoints import filled, newest
from training.worlds import TINY

DATA = simulated(TWO, 9, 6, 0.3, seed=0, levels=[1.5, -1.0], noise=0.5)
MODEL = NeuralMJP(2, "gaussian").model(DATA)
ROUNDS = 3  # 12 steps, 4 at a time


def trained(data=DATA, model=MODEL, config=TINY, **choices):
    return train(data, model, panel=Panel(), config=config, **choices)


def numbers(found):
    """All that a run found, but for the time it took."""
    histories = [[{k: v for k, v in entry.items() if k != "seconds"} for entry in one] for one in found.histories]
    leaves = jax.tree.leaves((found.all_networks, found.evaluated))
    return [np.asarray(leaf) for leaf in leaves], histories, found.restarts, found.message


def assert_identical(one, two):
    first, second = numbers(one), numbers(two)
    for a, b in zip(first[0], second[0], strict=True):
        assert a.tobytes() == b.tobytes()
    assert first[1:] == second[1:]


@pytest.fixture(scope="module")
def undisturbed():
    return trained()


class TestOneRun:
    def test_what_is_told(self, undisturbed):
        assert undisturbed.steps == 12
        assert not undisturbed.settled
        assert undisturbed.message == "stopped after 12 steps: the limit of 12 steps"
        assert [entry["step"] for entry in undisturbed.history] == [4, 8, 12]
        entry = undisturbed.history[-1]
        assert entry["objective"] == pytest.approx(
            entry["reconstruction"] - entry["path_kl"] - entry["initial_kl"], abs=1e-4
        )
        told = "training used up all 12 steps before the bound settled: rates and intervals may be off"
        assert undisturbed.warnings == (f"{told}; resumed with more steps, it goes on",)
        assert undisturbed.occupancy.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(undisturbed.parameters.rates, undisturbed.history[-1]["theta"], rtol=1e-6)

    def test_the_same_seed_gives_the_same_bits(self, undisturbed):
        assert_identical(trained(), undisturbed)

    def test_another_seed_gives_others(self, undisturbed):
        assert trained(seed=1).elbo != undisturbed.elbo

    def test_the_bound_is_that_of_the_networks(self, undisturbed):
        np.testing.assert_allclose(
            np.asarray(undisturbed.evaluate(DATA).terms.elbo).sum() + undisturbed.log_scale,
            undisturbed.elbo,
            rtol=1e-12,
        )
        assert undisturbed.elbo == max(undisturbed.restarts)

    def test_other_data(self, undisturbed):
        """Each series by itself: fewer of them, in another order, have the same bounds."""
        whole = np.asarray(undisturbed.evaluate(DATA).terms.elbo)
        np.testing.assert_allclose(undisturbed.evaluate(DATA[[7, 2]]).terms.elbo, whole[[7, 2]], rtol=1e-10)


class TestCompilation:
    def test_nothing_is_compiled_after_the_first_round(self, monkeypatch):
        sizes = []
        config = TINY.changed(learning_rate=1e-3)
        trained(config=config, progress=lambda *_: sizes.append(run_round._cache_size()))
        assert len(sizes) == ROUNDS
        assert len(set(sizes)) == 1
        more = []
        trained(config=config, seed=3, progress=lambda *_: more.append(run_round._cache_size()))
        other = simulated(TWO, 9, 6, 0.3, seed=5, levels=[1.5, -1.0], noise=0.5)
        trained(other, config=config, progress=lambda *_: more.append(run_round._cache_size()))
        assert set(more) == set(sizes)

    def test_another_unit_of_time_is_the_same_program(self, undisturbed):
        before = run_round._cache_size()
        slower = DATA.__class__(2.0 * DATA.times, DATA.values, DATA.offsets, DATA.names, DATA.value_names)
        found = trained(slower)
        assert run_round._cache_size() == before
        np.testing.assert_allclose(found.elbo, undisturbed.elbo, rtol=1e-3)


class Stopped:
    """Progress that is interrupted after some rounds."""

    def __init__(self, rounds):
        self.left = rounds

    def __call__(self, stage, share):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def interrupted(folder, rounds, **choices):
    with pytest.raises(KeyboardInterrupt):
        trained(folder=folder, progress=Stopped(rounds), **choices)


class TestResume:
    @pytest.mark.parametrize("rounds", [1, 2, 3])
    def test_ends_as_if_never_stopped(self, tmp_path, undisturbed, rounds):
        interrupted(tmp_path, rounds)
        told = []
        again = trained(folder=tmp_path, resume=True, progress=lambda _, share: told.append(share))
        assert_identical(again, undisturbed)
        assert len(told) == ROUNDS - rounds
        assert again.seconds > again.history[-1]["seconds"] > 0

    def test_twice(self, tmp_path, undisturbed):
        interrupted(tmp_path, 1)
        interrupted(tmp_path, 1, resume=True)
        assert_identical(trained(folder=tmp_path, resume=True), undisturbed)

    def test_a_run_that_has_ended(self, tmp_path, undisturbed):
        trained(folder=tmp_path)
        told = []
        assert_identical(trained(folder=tmp_path, resume=True, progress=lambda *_: told.append(1)), undisturbed)
        assert told == []

    def test_more_steps_go_on(self, tmp_path):
        more = TINY.changed(steps=2 * TINY.steps)
        trained(folder=tmp_path)
        assert_identical(trained(config=more, folder=tmp_path, resume=True), trained(config=more))

    def test_nothing_to_resume(self, tmp_path, undisturbed):
        assert_identical(trained(folder=tmp_path / "new", resume=True), undisturbed)
        assert newest(tmp_path / "new").exists()

    def test_without_resume_a_checkpoint_is_replaced(self, tmp_path, undisturbed):
        (tmp_path / FOLDER).mkdir()
        (tmp_path / FOLDER / "000400.npz").write_bytes(b"old")
        assert_identical(trained(folder=tmp_path), undisturbed)
        assert newest(tmp_path).name == "000012.npz"

    def test_where_rates_outgrow_the_program(self, tmp_path, monkeypatch):
        """More capacity is part of the state of a run. Values that change every time ask for ever faster rates."""
        monkeypatch.setattr("neuralmjp.training.problem.HEADROOM", 1.0)
        values = np.where(np.arange(54) % 2, 1.0, -1.0)[:, None] + 0.1 * DATA.values
        data = DATA.__class__(DATA.times, values, DATA.offsets, DATA.names, DATA.value_names)
        choices = {"data": data, "config": TINY.changed(model_learning_rate=0.5)}
        whole = trained(**choices)
        assert whole.setup.capacity.jumps > 4
        interrupted(tmp_path, 2, **choices)
        assert_identical(trained(**choices, folder=tmp_path, resume=True), whole)

    @pytest.mark.parametrize(
        ("changes", "named"),
        [
            ({"config": TINY.changed(learning_rate=1e-4)}, "configuration"),
            ({"config": TINY.changed(width=5)}, "configuration"),
            ({"seed": 1}, "seed"),
            ({"data": simulated(TWO, 9, 6, 0.3, seed=1, levels=[1.5, -1.0], noise=0.5)}, "data"),
            ({"restarts": 2}, "number of restarts"),
            ({"model": NeuralMJP(2, "gaussian", initial="stationary").model(DATA)}, "model"),
            ({"model": NeuralMJP(2, "student-t").model(DATA)}, "model"),
        ],
    )
    def test_what_differs_is_named(self, checkpoint, changes, named):
        with pytest.raises(InputError, match=rf"made with another {named} \(.*: use the same, or") as error:
            trained(**changes, folder=checkpoint, resume=True)
        assert "\n" not in str(error.value)

    def test_old_and_new_values_are_told(self, checkpoint):
        changed = TINY.changed(learning_rate=1e-4, clip=3.0)
        with pytest.raises(InputError) as error:
            trained(config=changed, seed=7, folder=checkpoint, resume=True)
        assert f"learning_rate {TINY.learning_rate}, now 0.0001; clip {TINY.clip}, now 3.0" in str(error.value)
        assert "another seed (0, now 7)" in str(error.value)

    def test_a_run_says_so_in_one_line(self, tmp_path):
        filled(tmp_path, 2)
        newest(tmp_path).write_bytes(b"PK\x03\x04 nonsense")
        with pytest.raises(InputError, match="cut short") as error:
            trained(folder=tmp_path, resume=True)
        assert "\n" not in str(error.value)

    def test_what_a_checkpoint_holds_is_plain(self, checkpoint):
        with np.load(newest(checkpoint), allow_pickle=False) as stored:
            assert all(stored[name].dtype != object for name in stored.files)
            meta = json.loads(stored["meta"].tobytes())
        assert meta["identity"]["seed"] == 0
        assert meta["identity"]["configuration"]["width"] == 4


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    interrupted(folder, 1)
    return folder


BAD = 99.0


def no_slope_at_bad(p, x):
    """A normal density whose derivative does not exist where x = 99; its value does."""
    there = jnp.sqrt(jnp.where(x[0] == BAD, 0.0 * p["centre"], 1.0))
    value = jnp.where(x[0] == BAD, 0.0, x[0])
    return -0.5 * (value - p["centre"]) ** 2 + 0.0 * there


def no_value_at_bad(p, x):
    return jnp.where(x[0] == BAD, jnp.nan, -0.5 * (x[0] - p["centre"]) ** 2)


class TestBadSteps:
    @staticmethod
    def with_one_bad_value(density):
        values = DATA.values.copy()
        values[7] = BAD  # in the second of nine series
        data = DATA.__class__(DATA.times, values, DATA.offsets, DATA.names, DATA.value_names)
        return data, NeuralMJP(2, CustomEmission(density, {"centre": [-1.0, 1.0]})).model(data)

    def test_are_refused_and_counted(self):
        """Batches with that series give nothing finite, the others do: at most one of two in an epoch."""
        data, model = self.with_one_bad_value(no_slope_at_bad)
        found = trained(data, model)
        refused = [word for word in found.warnings if "were refused" in word]
        assert len(refused) == 1
        count = int(refused[0].split()[0])
        assert 0 < count <= 6
        assert f"{count} of 12 training steps were refused: their result was not finite" in refused[0]
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found.networks))
        assert np.isfinite(found.elbo)

    def test_a_bound_that_is_no_number_is_an_error(self):
        data, model = self.with_one_bad_value(no_value_at_bad)
        with pytest.raises(InputError, match="finite"):
            trained(data, model)

    def test_divergence_is_an_error(self):
        with pytest.raises(InputError, match="training diverged: of the 4 steps before step 4") as error:
            trained(config=TINY.changed(model_learning_rate=1e30))
        assert "\n" not in str(error.value)

    def test_rates_beyond_all_bounds(self):
        """They end in one line, never in a traceback; a step of 100 in a logarithm is no rate of this world."""
        with pytest.raises(InputError, match=r"diverged|finite bound"):
            trained(config=TINY.changed(model_learning_rate=100.0, round_steps=2, steps=4))


class TestCollapse:
    """Three states for two levels that lie far apart."""

    data = simulated(TWO, 20, 10, 0.3, seed=0, levels=[0.0, 10.0], noise=0.2)
    config = TINY.changed(steps=150, round_steps=150, batch=20)

    def test_a_state_that_nobody_visits_is_named(self):
        found = trained(self.data, NeuralMJP(3, "gaussian").model(self.data), self.config)
        lost = np.flatnonzero(found.occupancy < 1e-3)
        assert len(lost) == 1
        assert any(word.startswith(f"state {lost[0]} is visited in") and "collapsed" in word for word in found.warnings)

    def test_by_the_number_that_a_fitted_model_gives_it(self, monkeypatch):
        """Training numbers states as it likes: here the lost one comes first, and is the one in the middle."""
        start = Gaussian.start

        def turned(self, values, n_states, rng):
            return reordered(start(self, values, n_states, rng), np.array([1, 2, 0]))

        monkeypatch.setattr(Gaussian, "start", turned)
        found = trained(self.data, NeuralMJP(3, "gaussian").model(self.data), self.config)
        assert np.flatnonzero(found.occupancy < 1e-3).tolist() == [0]
        assert [word for word in found.warnings if word.startswith("state 1 is visited in")]


class TestSpread:
    def test_fixed_and_then_learned(self, monkeypatch):
        """Exactly constant, and the same in every state, for the first four steps."""
        seen = []

        def watched(*arguments):
            state, record = run_round(*arguments)
            seen.append(np.array(state.networks.emission["log_sd"][0]))
            return state, record

        monkeypatch.setattr(run, "run_round", watched)
        found = trained(config=TINY.changed(fixed_spread=4, curriculum=(2, 2, 4), kl_warmup=3))
        assert len(seen) == ROUNDS
        assert np.ptp(seen[0]) == 0
        start = np.float32(np.log(0.5))  # a standardised signal shared by two states
        np.testing.assert_allclose(seen[0], start, rtol=1e-6)
        assert (seen[1] != seen[0]).all()
        assert np.isfinite(found.elbo)

    def test_a_curriculum_uses_what_it_says(self, monkeypatch):
        """Of every series as many observations as its schedule asks for, laid out for no more than a round needs."""
        seen = []

        def watched(setup, state, learned, block, rows, used, *more):
            seen.append((block.valid.shape[1], used.tolist()))
            return run_round(setup, state, learned, block, rows, used, *more)

        monkeypatch.setattr(run, "run_round", watched)
        trained(config=TINY.changed(curriculum=(2, TINY.round_steps, TINY.round_steps)))
        longest = int(DATA.lengths.max())
        first, second, *others = seen
        assert first == (2, [2] * TINY.round_steps)
        assert second[1] == sorted(second[1])
        assert second[1][-1] <= second[0] <= longest
        assert all(one == (longest, [longest] * TINY.round_steps) for one in others)


class TestRestarts:
    def test_side_by_side(self, undisturbed):
        both = trained(restarts=2)
        assert len(both.restarts) == len(both.all_networks) == len(both.histories) == 2
        assert both.restarts[0] != both.restarts[1]
        assert both.elbo == max(both.restarts)
        assert any("the bounds of 2 restarts lie within" in word for word in both.warnings)
        each = [np.asarray(one.terms.elbo).sum() + both.log_scale for one in both.evaluate_each(DATA)]
        np.testing.assert_allclose(each, both.restarts, rtol=1e-10)

    def test_interrupted(self, tmp_path):
        whole = trained(restarts=2)
        interrupted(tmp_path, 2, restarts=2)
        assert_identical(trained(restarts=2, folder=tmp_path, resume=True), whole)


def test_a_paper_run_without_last_observations():
    """Two-step updates, generator, dropout, STEER, Gumbel samples: runs, repeats, and leaves out what it should."""
    config = TINY.changed(
        posterior="paper",
        encoder="ode-rnn",
        quadrature=6,
        prior="generator",
        two_step=True,
        reconstruction="gumbel",
        dropout=0.2,
        steer=1.0,
        drop_last=True,
        decay_epochs=1,
        decay=0.8,
    )
    one, two = trained(config=config), trained(config=config)
    assert_identical(one, two)
    assert not any("used up" in word for word in one.warnings)  # it never ends otherwise
    assert one.evaluated.marginals.shape == (9, 5, 2)
    assert np.isfinite(one.elbo)
