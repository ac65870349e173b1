"""The networks of the library against what is known of them in closed form."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest
from scipy.sparse.linalg import expm_multiply
from scipy.special import gammaln, hyp1f1
from scipy.stats import nbinom, poisson

from neuralmjp import mjp, systems
from neuralmjp.systems import ReactionNetwork, sparse_generator

NAMES = ["birth_death", "immigration_death", "sir", "sis", "schloegl", "telegraph"]


def law_after(network: ReactionNetwork, start: tuple[int, ...], time: float) -> np.ndarray:
    mass = np.zeros(network.box)
    mass[start] = 1.0
    return expm_multiply(sparse_generator(network).T * time, mass.ravel()).reshape(network.box)


def in_the_long_run(network: ReactionNetwork) -> np.ndarray:
    generator = sparse_generator(network).toarray()
    law = mjp.stationary_distribution(generator - np.diag(np.diag(generator)))
    return np.asarray(law).reshape(network.box)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_network_that_stays_in_its_box(name):
    """Data at the default settings do not crowd at the edge, so that the box is no part of the story."""
    network = getattr(systems, name)()
    assert systems.named(network.name) == network
    counts = network.simulate(20, 20, seed=0).states
    assert (counts >= 0).all()
    upper = np.array(network.largest)
    whole = np.isin(network.species, ["S", "I", "on"])  # of a population, or of one gene: these do reach the edge
    assert (counts.max(0) < upper)[~whole].all()


def test_birth_and_death_from_one_individual():
    """Zero with Kendall's probability, else geometric."""
    birth, death, time = 0.7, 1.1, 1.5
    law = law_after(replace(systems.birth_death(birth, death), start=((1, 1),)), (1,), time)
    e = np.exp((birth - death) * time)
    gone, ratio = death * (e - 1) / (birth * e - death), birth * (e - 1) / (birth * e - death)
    n = np.arange(1, 12)
    np.testing.assert_allclose(law[0], gone, rtol=1e-10)
    np.testing.assert_allclose(law[n], (1 - gone) * (1 - ratio) * ratio ** (n - 1), rtol=1e-8)


def test_birth_without_death_is_negative_binomial():
    law = law_after(systems.birth_death(0.3, 0.0), (20,), 1.0)
    np.testing.assert_allclose(law[20:60], nbinom.pmf(np.arange(40), 20, np.exp(-0.3)), atol=1e-12)


def test_immigration_and_death_is_poisson_at_any_time():
    network = systems.immigration_death(1.5, 0.2)
    law = law_after(network, (0,), 3.0)
    np.testing.assert_allclose(law, poisson.pmf(np.arange(61), 1.5 / 0.2 * (1 - np.exp(-0.6))), atol=1e-12)
    np.testing.assert_allclose(in_the_long_run(network), poisson.pmf(np.arange(61), 7.5), atol=1e-12)


def test_final_size_of_an_epidemic():
    """Those ever infected, by Ball's triangular equations for exponential infectious periods (1986)."""
    infection, removal, n, m = 0.15, 0.8, 7, 2
    network = systems.sir(infection, removal, population=n + m, infected=m)
    law = law_after(network, (n, m), 300.0)
    escapes = removal / (removal + infection * (n - np.arange(n + 1)))
    sizes = np.zeros(n + 1)
    for last in range(n + 1):
        known = sum(comb(n - k, last - k) * sizes[k] / escapes[last] ** (k + m) for k in range(last))
        sizes[last] = (comb(n, last) - known) * escapes[last] ** (last + m)
    np.testing.assert_allclose(law[: n + 1, 0][::-1], sizes, atol=1e-9)


def test_time_to_extinction_of_an_infection():
    """From one infected: the sum for birth-death chains."""
    infection, recovery, n = 0.1, 0.7, 8
    network = systems.sis(infection, recovery, population=n, infected=1)
    cells = np.ravel_multi_index((n - np.arange(1, n + 1), np.arange(1, n + 1)), network.box)
    inside = sparse_generator(network).toarray()[np.ix_(cells, cells)]
    found = np.linalg.solve(-inside, np.ones(n))[0]
    i = np.arange(1, n + 1)
    up, down = infection * i * (n - i), recovery * i
    products = np.cumprod(np.concatenate([[1.0], up[:-1] / down[:-1]]))
    np.testing.assert_allclose(found, (products / down).sum(), rtol=1e-10)


def test_schloegl_has_two_levels():
    """Detailed balance gives the law; its peaks are Gillespie's."""
    network = systems.schloegl()
    n = np.arange(901.0)
    up = 0.03 * n * (n - 1) / 2 + 200
    down = 1e-4 * n * (n - 1) * (n - 2) / 6 + 3.5 * n
    logs = np.concatenate([[0.0], np.cumsum(np.log(up[:-1]) - np.log(down[1:]))])
    law = np.exp(logs - logs.max())
    found = in_the_long_run(network)
    np.testing.assert_allclose(found, law / law.sum(), rtol=1e-8)
    peaks = np.flatnonzero((found[1:-1] > found[:-2]) & (found[1:-1] > found[2:])) + 1
    assert peaks.tolist() == [82, 563]
    assert found[-1] < 1e-10


def test_telegraph_is_a_beta_mixture_of_poissons():
    on, off, made, decay = 0.4, 0.6, 6.0, 1.0
    law = in_the_long_run(systems.telegraph(on, off, made, decay))
    n, a, b, mean = np.arange(46), on / decay, off / decay, made / decay
    logs = n * np.log(mean) - gammaln(n + 1) + gammaln(a + n) - gammaln(a) + gammaln(a + b) - gammaln(a + b + n)
    np.testing.assert_allclose(law.sum(0), np.exp(logs) * hyp1f1(a + n, a + b + n, -mean), atol=1e-11)
    np.testing.assert_allclose(law[1].sum(), on / (on + off), rtol=1e-10)
