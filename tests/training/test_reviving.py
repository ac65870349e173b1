"""A state that nobody visits begins anew where the data are explained worst, in time to be learned."""

import jax
import numpy as np
import pytest

from exact.test_information import simulated
from neuralmjp import NeuralMJP
from neuralmjp.emissions import Gaussian
from training.test_run import trained
from training.worlds import TINY

RATES = np.array([[0, 1.0, 1], [1, 0, 1], [1, 1, 0]])
DATA = simulated(RATES, 20, 20, 0.3, seed=0, levels=[0.0, 3.0, 6.0], noise=0.3)
CONFIG = TINY.changed(steps=400, round_steps=50, batch=10)


@pytest.fixture
def lost(monkeypatch):
    """Training starts with the third state so far away that nothing draws it near."""
    start = Gaussian.start

    def far(self, values, n_states, rng):
        params = dict(start(self, values, n_states, rng))
        if n_states == 3:
            params["mean"] = np.where(np.arange(3)[:, None] == 2, 1e3, params["mean"])
            params["log_sd"] = np.where(np.arange(3)[:, None] == 2, -5.0, params["log_sd"])
        return params

    monkeypatch.setattr(Gaussian, "start", far)


def levels(found) -> np.ndarray:
    mean = np.asarray(found.parameters.emission["mean"])[:, 0]
    return np.sort(mean * found.scaling.scale + found.scaling.shift)


@pytest.mark.parametrize("prior", ["explicit", "generator"])
def test_all_three_levels_are_found(lost, prior):
    found = trained(DATA, NeuralMJP(3, "gaussian").model(DATA), CONFIG.changed(prior=prior))
    np.testing.assert_allclose(levels(found), [0, 3, 6], atol=0.4)
    assert found.occupancy.min() > 0.1
    assert not any("collapsed" in word for word in found.warnings)


def test_not_unless_it_may(lost):
    found = trained(DATA, NeuralMJP(3, "gaussian").model(DATA), CONFIG.changed(reseed=0))
    assert found.occupancy.min() < 1e-3
    assert any("collapsed" in word for word in found.warnings)


def test_a_run_without_dead_states_is_left_alone():
    model = NeuralMJP(3, "gaussian").model(DATA)
    some, none = (trained(DATA, model, CONFIG.changed(steps=100, reseed=n)) for n in (3, 0))
    for a, b in zip(jax.tree.leaves(some.networks), jax.tree.leaves(none.networks), strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_interrupted_run_goes_on_the_same(lost, tmp_path):
    """What was begun anew is in the checkpoint, and counted."""
    model = NeuralMJP(3, "gaussian").model(DATA)

    class Stop(Exception):
        pass

    def stop(_, share):
        if share >= 0.25:
            raise Stop

    whole = trained(DATA, model, CONFIG.changed(steps=200, round_steps=25))
    with pytest.raises(Stop):
        trained(DATA, model, CONFIG.changed(steps=200, round_steps=25), folder=tmp_path, progress=stop)
    resumed = trained(DATA, model, CONFIG.changed(steps=200, round_steps=25), folder=tmp_path, resume=True)
    assert resumed.elbo == whole.elbo
