"""VAMPnets of wells whose jumps are known, and of real molecular dynamics."""

import sys

import jax
import numpy as np
import pytest

from neuralmjp import TimeSeries, io, mjp
from neuralmjp.baselines.lagged import held_out, lagged_pairs
from neuralmjp.baselines.vampnet import VampNet
from neuralmjp.errors import InputError
from neuralmjp.systems import BrownianFolding

RATES = np.array([[0.0, 0.02], [0.05, 0.0]])
QUICK = {"starts": 2, "passes": 8, "first_passes": 2, "batch": 1000, "width": 16, "learning_rate": 1e-2}


def wells(n_series=4, length=3000, seed=0):
    """Two wells in the plane that only the second value tells apart; the first one is louder, and forgets at once."""
    times = np.tile(np.arange(float(length)), (n_series, 1))
    initial = mjp.stationary_distribution(RATES)
    states = np.asarray(mjp.simulate_states(RATES, times, initial=initial, key=jax.random.key(seed)))
    rng = np.random.default_rng(seed)
    values = np.stack([rng.normal(0, 5.0, states.shape), rng.normal(2.0 * states, 0.4)], axis=-1)
    return TimeSeries.from_arrays(times, values, time_unit="ms"), states.reshape(-1)


@pytest.mark.statistical
def test_two_wells():
    """About 170 jumps each way, so that rates scatter by 8 %. A correct program fails for about 1 in 100 seeds."""
    data, states = wells()
    chain = VampNet(2, lag=5.0, **QUICK).fit(data)
    assert (chain.states(data) == states).mean() > 0.97
    np.testing.assert_allclose(chain.stationary_distribution, [5 / 7, 2 / 7], atol=0.08)
    np.testing.assert_allclose(chain.timescales, 1 / 0.07, rtol=0.25)
    np.testing.assert_allclose(chain.rates, RATES, rtol=0.3)
    np.testing.assert_allclose(chain.probabilities(data).sum(1), 1.0)
    new, states = wells(1, seed=1)
    assert (chain.states(new) == states).mean() > 0.97
    assert chain.score(new) > 1.3


def test_one_seed_one_model():
    data, _ = wells(1, 1000)
    first, second = (VampNet(2, lag=5.0, starts=1, passes=3, first_passes=1).fit(data) for _ in range(2))
    np.testing.assert_array_equal(first.transition, second.transition)


def test_training_ends_early():
    """Nothing moves, so nothing gets better, and the network stays as it was."""
    data, _ = wells(1, 1000)
    still = VampNet(2, lag=5.0, starts=1, passes=10**6, patience=2, learning_rate=0.0).fit(data)
    assert still.n_states == 2


def test_stretches_are_held_out_whole():
    data, _ = wells(1, 1000)
    pairs = lagged_pairs(data, 5.0)
    held = held_out(data, pairs, 0.2, np.random.default_rng(0))
    assert held.mean() == pytest.approx(0.2, abs=0.01)
    assert np.abs(np.diff(held.astype(int))).sum() <= 20
    assert len(pairs.some(held).first) == held.sum()


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"pip install 'neuralmjp\[compare\]'"):
        VampNet(2).fit(wells(1, 100)[0])


@pytest.mark.slow
def test_alanine_dipeptide(shared_data):
    """The slowest time scale as a Markov state model sees it, and the rare states with phi > 0."""
    data = io.read(shared_data / "adp" / "alanine-dipeptide-backbone-dihedrals.npz", time_unit="ps")
    chain = VampNet(6, angles=True).fit(data)
    assert chain.lag == 20.0
    np.testing.assert_allclose(chain.timescales[:3], [1439.0, 68.3, 41.0], rtol=0.2)
    inside = chain.probabilities(data)[(data.values[:, 0] > 0.5) & (data.values[:, 0] < 2.0)].mean(0)
    assert inside[np.argsort(inside)[-2:]].sum() > 0.9


@pytest.mark.slow
@pytest.mark.statistical
def test_brownian_folding():
    """Mean of three data sets, whose own scatter is 0.012 each. A correct program fails for about 1 in 50 seeds."""
    fits = [VampNet(2).fit(BrownianFolding().simulate(1000, seed=k).data) for k in range(3)]
    assert np.mean([chain.stationary_distribution[0] for chain in fits]) == pytest.approx(0.727, abs=0.03)
