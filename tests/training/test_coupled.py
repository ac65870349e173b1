"""Mean fields that are trained: never above the evidence, the same for padded and for resumed runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from neuralmjp import TimeSeries
from neuralmjp.emissions.readings import Readings
from neuralmjp.posteriors.coupling import Coupling
from neuralmjp.systems import parse_network
from neuralmjp.training.config import Config
from neuralmjp.training.coupled import pieces_of, train_coupled
from neuralmjp.training.coupled_blocks import Sizes, make_count_block
from neuralmjp.training.coupled_networks import CoupledSetup, evaluate_counts, law_of_sum, make_coupled_networks
from posteriors.test_coupling import CASCADE, small_network, whole_generator

TINY = Config(
    width=6, batch=8, steps=6, round_steps=2, piece_jumps=0.1, dynamics=(6,), initial_hidden=(6,), rates_hidden=(6,)
)
PAPER = TINY.changed(
    posterior="paper", encoder="ode-rnn", prior="generator", two_step=True, reconstruction="gumbel", quadrature=2
)
EACH = Readings(((0,), (1,)))
SUM = Readings(((0, 1), (1,)), "two-sided-exponential")


def some_noise(readings):
    return readings.start(np.full(len(readings.columns), 0.7))


def counts(network, readings, n=6, length=5, seed=0, duration=4.0) -> TimeSeries:
    """Ragged readings, some of them missing."""
    simulation = network.simulate(n, length, duration=duration, seed=seed)
    rng = np.random.default_rng(seed)
    noise = some_noise(readings)
    values = readings.sample(noise, simulation.states, rng)
    values[rng.random(values.shape) < 0.1] = np.nan
    keep = np.ones(len(values), bool)
    keep[length - 2 : length] = False  # the first series is shorter
    offsets = np.append(0, np.cumsum([length - 2] + [length] * (n - 1)))
    return TimeSeries(simulation.data.times[keep], values[keep], offsets, simulation.data.names, ("a", "b"))


def evidence(network, readings, noise, data, theta) -> np.ndarray:
    """Log-likelihood of each series under the network with its floor, by matrix exponentials on the whole box."""
    generator, found = whole_generator(network, theta), []
    cells = np.moveaxis(np.indices(network.box), 0, -1).reshape(-1, len(network.box))
    totals = readings.totals(cells)
    for one in data:
        law, height = np.full(len(cells), 1 / len(cells)), 0.0
        for i, values in enumerate(one.values):
            if i:
                law = law @ expm(generator * (one.times[i] - one.times[i - 1]))
            for column, value in enumerate(values):
                if not np.isnan(value):
                    law = law * np.exp(readings.log_density(noise, column, value, jnp.asarray(totals[:, column])))
            height, law = height + np.log(law.sum()), law / law.sum()
        found.append(height)
    return np.array(found)


CASES = [(small_network(), EACH, TINY), (parse_network(CASCADE), SUM, TINY), (small_network(), EACH, PAPER)]


@pytest.mark.parametrize(("network", "readings", "config"), CASES, ids=["tilted", "sums", "paper"])
def test_bounds_stay_below_the_evidence(network, readings, config):
    data = counts(network, readings)
    theta = np.log(list(network.parameters.values()))
    run = train_coupled(data, network, readings, [(theta, some_noise(readings))], config=config)
    above = evidence(network, readings, run.noise, data, run.theta(0))
    bound = np.asarray(run.terms[0].elbo)
    assert (bound < above + 1e-6).all()
    assert np.isfinite(bound).all()
    if readings is EACH and config is TINY:  # the guess in closed form is close before any training
        assert (above - bound).mean() < 1.0


def pieces_at(network, readings, data, config):
    return pieces_of(data, network, readings, np.log(list(network.parameters.values())), config)


def world(network, readings, data, config=TINY):
    with jax.enable_x64(True):
        pieces = pieces_at(network, readings, data, config)
        block = make_count_block(data, Sizes.of(data), pieces, 1.1, np.float64)
        box = tuple((0, n - 1) for n in network.box)
        setup = CoupledSetup(Coupling.of(network.events()), readings, config, block.features.shape[-1], box)
        theta = np.log(list(network.parameters.values()))
        networks = make_coupled_networks(setup, theta, some_noise(readings), key=jax.random.key(1))
        quiet = jax.random.key(2)
        # Networks begin by saying nothing: let them speak.
        networks = jax.tree.map(lambda x: x + 0.1 * jax.random.normal(quiet, x.shape, x.dtype), networks)
    return setup, networks, block


@pytest.mark.parametrize(
    "config", [TINY, TINY.changed(potentials="free", sweeps=0), PAPER], ids=["polynomial", "free", "paper"]
)
def test_neighbours_and_padding_change_nothing(config):
    network = small_network()
    data = counts(network, EACH)
    setup, networks, block = world(network, EACH, data, config)
    together = evaluate_counts(setup, networks, block, key=None)
    padded = jax.tree.map(lambda x: x if x.ndim == 0 else jnp.concatenate([x, x[:1]]), block)
    more = evaluate_counts(setup, networks, padded, key=None)
    for a, b in zip(more.terms, together.terms, strict=True):
        np.testing.assert_allclose(a[:-1], b, rtol=1e-9)
        np.testing.assert_allclose(a[-1], b[0], rtol=1e-9)


@pytest.mark.parametrize("config", [TINY, PAPER], ids=["tilted", "paper"])
def test_what_is_cut_was_not_used(config):
    network = small_network()
    setup, networks, block = world(network, EACH, counts(network, EACH, n=3), config)
    cut = block.cut(3)
    assert cut.valid.shape[1] == 3
    assert cut.durations.shape[1] <= block.durations.shape[1]
    once, again = (evaluate_counts(setup, networks, one.shortened(2), key=None).terms for one in (block, cut))
    for a, b in zip(once, again, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9)


def test_shortened_series_are_as_if_never_longer():
    network = small_network()
    data = counts(network, EACH, n=3)
    setup, networks, block = world(network, EACH, data)
    short = evaluate_counts(setup, networks, block.shortened(3), key=None).terms
    cut = TimeSeries(
        *(
            np.concatenate([part[:3] for part in parts])
            for parts in zip(*((o.times, o.values) for o in data), strict=True)
        ),
        np.array([0, 3, 6, 9]),
        data.names,
        data.value_names,
    )
    kept = np.concatenate([start + np.arange(3) for start in data.offsets[:-1]])
    with jax.enable_x64(True):
        again = make_count_block(cut, Sizes.of(data), pieces_at(network, EACH, data, TINY)[kept], 1.1, np.float64)
    there = evaluate_counts(setup, networks, again, key=None).terms
    for a, b in zip(short, there, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_resumed_run_ends_the_same(tmp_path):
    network = small_network()
    data, start = counts(network, EACH), [(np.log([0.3, 0.2, 0.1, 0.4]), {"log_sd": np.zeros(2)})]
    whole = train_coupled(data, network, EACH, start, config=TINY, folder=tmp_path / "a")

    class Killed(Exception):
        pass

    def kill(stage, share):
        if share > 0.5:
            raise Killed

    with pytest.raises(Killed):
        train_coupled(data, network, EACH, start, config=TINY, folder=tmp_path / "b", progress=kill)
    again = train_coupled(data, network, EACH, start, config=TINY, folder=tmp_path / "b", resume=True)
    for a, b in zip(jax.tree.leaves(whole.all_networks), jax.tree.leaves(again.all_networks), strict=True):
        assert (np.asarray(a) == np.asarray(b)).all()
    assert whole.restarts == again.restarts


def test_the_law_of_a_sum_is_a_convolution():
    a, b = np.random.default_rng(0).dirichlet(np.ones(4), 2)
    np.testing.assert_allclose(law_of_sum([jnp.asarray(a), jnp.asarray(b)]), np.convolve(a, b), atol=1e-12)


@pytest.mark.slow
def test_lotka_volterra_is_found_from_far_away():
    from neuralmjp.systems import lotka_volterra
    from neuralmjp.training.coupled import coupled_preset

    truth = np.array([5e-4, 1e-4, 1e-4, 5e-4])
    data = lotka_volterra().simulate(256, seed=3).data
    start = [(np.log(truth) + np.log(2) * np.array([1, -1, 1, -1]), {"log_sd": np.log([2.0, 2.0])})]
    run = train_coupled(
        data, lotka_volterra(), EACH, start, config=coupled_preset("quick", "tilted").changed(steps=400)
    )
    assert (np.abs(np.exp(run.theta(0)) / truth - 1) < 0.2).all()  # standard errors are 6, 2.5, 2.5 and 3 %
    np.testing.assert_allclose(np.exp(run.noise["log_sd"]), 1.0, atol=0.05)
