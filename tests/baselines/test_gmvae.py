"""Gaussian-mixture autoencoders of clusters that are known, and of real molecular dynamics."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralmjp import TimeSeries, io, mjp
from neuralmjp.baselines.gmvae import GaussianMixtureVAE, Mixture, first_labels, joined
from neuralmjp.errors import InputError
from neuralmjp.systems import BrownianFolding

RATES = np.array([[0.0, 0.02, 0.01], [0.05, 0.0, 0.02], [0.05, 0.04, 0.0]])
CENTRES = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
QUICK = {"starts": 1, "steps": 600, "batch": 200, "width": 16}


def wells(n_series=4, length=3000, seed=0):
    times = np.tile(np.arange(float(length)), (n_series, 1))
    initial = mjp.stationary_distribution(RATES)
    states = np.asarray(mjp.simulate_states(RATES, times, initial=initial, key=jax.random.key(seed)))
    values = CENTRES[states] + np.random.default_rng(seed).normal(0, 0.5, (*states.shape, 2))
    return TimeSeries.from_arrays(times, values, time_unit="ms"), states.reshape(-1)


@pytest.mark.statistical
def test_three_wells():
    """Some 100 jumps of each kind, so that rates scatter by 10 %. A correct program fails for about 1 in 50 seeds."""
    data, states = wells()
    chain = GaussianMixtureVAE(3, lag=5.0, **QUICK).fit(data)
    assert (chain.states(data) == states).mean() > 0.97
    np.testing.assert_allclose(chain.stationary_distribution, mjp.stationary_distribution(RATES), atol=0.08)
    np.testing.assert_allclose(chain.timescales, mjp.timescales(RATES), rtol=0.3)
    assert chain.time_unit == "ms"
    new, states = wells(1, 500, seed=1)
    assert (chain.states(new) == states).mean() > 0.95
    assert chain.score(new) > 1.3


def test_the_bound_is_below_the_evidence():
    """With a decoder that is one Gaussian whatever the latent point, the evidence is that Gaussian's density."""
    mixture = Mixture(2, 3, 2, 8, jax.random.key(0))
    last = mixture.decode.layers[-1]
    mixture = eqx.tree_at(
        lambda m: (m.decode.layers[-1].weight, m.decode.layers[-1].bias),
        mixture,
        (jnp.zeros_like(last.weight), jnp.zeros_like(last.bias)),
    )
    x = jnp.asarray([0.3, -1.0], dtype=jnp.float32)
    keys = jax.random.split(jax.random.key(1), 4000)
    bound = float(jax.vmap(mixture.bound, (None, 0))(x, keys).mean())
    spread = 1 + 0.05  # the smallest one is added
    evidence = -0.5 * float((x**2).sum()) / spread**2 - 2 * np.log(spread) - np.log(2 * np.pi)
    assert bound < evidence


def test_clusters_that_hold_together_make_a_state():
    inside, between = np.full((2, 2), 0.48), np.full((2, 2), 0.02)
    sets = joined(np.eye(4), np.block([[inside, between], [between, inside]]), 2)
    np.testing.assert_allclose(sets[0], sets[1], atol=1e-6)
    np.testing.assert_allclose(sets[2], sets[3], atol=1e-6)
    np.testing.assert_allclose(np.sort(sets[[0, 2]].ravel()), [0, 0, 1, 1], atol=1e-6)
    np.testing.assert_array_equal(joined(np.eye(3), np.eye(3), 3), np.eye(3))


def test_first_labels():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 3)).astype(np.float32)
    shells = first_labels(rows, 4, 1, seed=0)
    np.testing.assert_allclose(np.bincount(shells) / 2000, 0.25, atol=0.01)
    assert np.linalg.norm(rows[shells == 0], axis=1).max() < np.linalg.norm(rows[shells == 3], axis=1).min() + 0.2
    assert set(first_labels(rows, 4, 0, seed=0)) == {0, 1, 2, 3}


def test_one_seed_one_model():
    data, _ = wells(1, 500)
    first, second = (GaussianMixtureVAE(2, clusters=3, starts=1, steps=5, batch=50, seed=3).fit(data) for _ in range(2))
    np.testing.assert_array_equal(first.transition, second.transition)


def test_one_state_is_no_model():
    with pytest.raises(InputError, match="at least 2 states"):
        GaussianMixtureVAE(1).fit(wells(1, 100)[0])
    with pytest.raises(InputError, match="as many clusters"):
        GaussianMixtureVAE(4, clusters=3).fit(wells(1, 100)[0])


@pytest.mark.slow
def test_alanine_dipeptide(shared_data):
    """The slowest time scale as a Markov state model sees it."""
    data = io.read(shared_data / "adp" / "alanine-dipeptide-backbone-dihedrals.npz", time_unit="ps")
    chain = GaussianMixtureVAE(6, angles=True).fit(data)
    assert chain.lag == 20.0
    assert chain.timescales[0] == pytest.approx(1439.0, rel=0.2)


@pytest.mark.slow
@pytest.mark.statistical
def test_brownian_folding():
    """Mean of three data sets, whose own scatter is 0.012 each. A correct program fails for about 1 in 50 seeds."""
    fits = [
        GaussianMixtureVAE(2, clusters=6, starts=2).fit(BrownianFolding().simulate(1000, seed=k).data) for k in range(3)
    ]
    assert np.mean([chain.stationary_distribution[0] for chain in fits]) == pytest.approx(0.727, abs=0.03)
