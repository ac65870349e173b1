"""Sweeps of coordinate ascent: exact for one species, upwards for several, below the evidence always."""

import equinox as eqx
import jax
import numpy as np
import pytest

from neuralmjp.emissions.readings import Readings
from neuralmjp.systems import parse_network
from neuralmjp.training.coupled_networks import evaluate_counts
from neuralmjp.training.polish import GOAL, polished
from posteriors.test_coupling import small_network
from training.test_coupled import EACH, TINY, counts, evidence, world

LADDER = "0 -> X @ make = 1.5\nX -> 0 @ lose = 0.4\nX -> 3 X @ burst = 0.1\nbox X 9\nstart X 1..5"
ONE = Readings(((0,),))


def single_species():
    network = parse_network(LADDER)
    return network, network.simulate(4, 6, duration=5.0, seed=1).data


def test_one_species_is_solved():
    """Its field is its prior: a forward and a backward pass give the evidence itself."""
    network, data = single_species()
    setup, networks, block = world(network, ONE, data, TINY.changed(piece_jumps=0.3))
    found = evaluate_counts(setup, networks, block, key=None).terms
    above = evidence(network, ONE, networks.emission, data, np.asarray(networks.prior.theta))
    np.testing.assert_allclose(found.elbo, above, atol=2e-5)


@pytest.fixture(scope="module")
def predators():
    """A world with untrained networks that say something, and its bound after one, two and five sweeps."""
    network = small_network()
    data = counts(network, EACH, n=3)
    bounds = {}
    for sweeps in (1, 2, 5):
        setup, networks, block = world(network, EACH, data, TINY.changed(sweeps=sweeps))
        bounds[sweeps] = np.asarray(evaluate_counts(setup, networks, block, key=None).terms.elbo)
    above = evidence(network, EACH, networks.emission, data, np.asarray(networks.prior.theta))
    return bounds, above


def test_sweeps_lead_upwards_and_stay_below(predators):
    bounds, above = predators
    assert bounds[2].sum() > bounds[1].sum()
    assert (bounds[5] > bounds[2] - 1e-3).all()
    assert (bounds[5] < above).all()
    assert (above - bounds[5]).mean() < 0.5


def test_slopes_and_the_top():
    """The slope by the parameters is that of the bound with the posterior held; at the top there is none."""
    network, data = single_species()
    setup, networks, block = world(network, ONE, data, TINY)
    top, terms, information, at_top = polished(setup, networks, block, 4)

    def slope(networks):
        def bound(theta):
            moved = eqx.tree_at(lambda n: n.prior.theta, networks, theta)
            return evaluate_counts(setup, moved, block, key=None).terms.elbo.sum()

        return np.asarray(jax.grad(bound)(networks.prior.theta))

    assert (np.abs(slope(networks)) > 0.1).any()
    error = 1 / np.sqrt(np.diag(information)[: len(top.prior.theta)])
    assert at_top
    assert (np.abs(slope(top)) * error < GOAL).all()
    np.testing.assert_allclose(terms.elbo, evaluate_counts(setup, top, block, key=None).terms.elbo, rtol=1e-9)
    before, after = (evidence(network, ONE, n.emission, data, np.asarray(n.prior.theta)) for n in (networks, top))
    assert after.sum() > before.sum()
    assert (np.diag(information) > 0).all()
