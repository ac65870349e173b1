"""The filter on the lattice against SciPy's matrix exponential, its slopes against differences."""

from dataclasses import replace

import numpy as np
import pytest

from lattice_witness import brute_force
from neuralmjp import InputError, TimeSeries
from neuralmjp.emissions.readings import Readings
from neuralmjp.exact import lattice_plan
from neuralmjp.exact.lattice_likelihood import Likelihood
from neuralmjp.systems import Reaction, ReactionNetwork, lotka_volterra, parse_network

ONE = "0 -> X @ k = 2\nX -> 0 @ d = 0.3\nbox X 25\nstart X 3..8\nduration 6"
TWO = "X -> 2 X @ a = 0.5\nX + Y -> 2 Y @ b = 0.06\nY -> 0 @ c = 0.4\nbox X 17\nbox Y 15\nstart X 4..9\nstart Y 3..7"
THREE = "A -> B @ a = 0.5\n2 B -> C @ b = 0.2\nC -> A + B @ c = 0.4\n0 -> 3 A @ d = 0.1\nbox A 9\nbox B 8\nbox C 7"
TELEGRAPH = "off -> on @ up = 0.3\non -> off @ down = 0.5\non -> on + mrna @ make = 4\nmrna -> 0 @ decay = 0.5"
GATED = TELEGRAPH + "\nbox off 1\nbox on 1\nbox mrna 30\nstart on 0\nseen mrna"
CASES = {
    "one species": (ONE, "gaussian 1.0"),
    "poisson": (ONE, "poisson"),
    "binomial": (ONE, "binomial 0.7"),
    "two-sided": (ONE, "two-sided-exponential 0.8"),
    "exact counts": (ONE, "none"),
    "two species": (TWO + "\nduration 6", "gaussian 0.7"),
    "two exact": (TWO + "\nduration 6", "none"),
    "one unseen": (TWO + "\nseen X\nduration 6", "gaussian 0.7"),
    "a sum": (TWO + "\nseen X + Y, Y\nduration 6", "two-sided-exponential 1.0"),
    "three species": (THREE + "\nduration 4", "gaussian 0.8"),
    "a sum of three": (THREE + "\nseen A + B, C + B\nduration 4", "poisson"),
    "a hidden gate": (GATED + "\nduration 8", "gaussian 1.0"),
}


def some_data(network: ReactionNetwork, seed: int = 0) -> TimeSeries:
    """Series of different lengths; some readings are missing."""
    rng = np.random.default_rng(seed)
    whole = network.simulate(3, 7, seed=seed).data.values
    lengths, rows = (7, 3, 6), np.split(whole, 3)
    times = [np.sort(rng.uniform(0, network.duration, n)) for n in lengths]
    values = [each[:n].copy() for each, n in zip(rows, lengths, strict=True)]
    values[0][2, 0] = values[2][1, -1] = np.nan
    values[2][3] = np.nan
    return TimeSeries.from_arrays(times, values, value_names=network.value_names)


@pytest.mark.parametrize("name", CASES)
def test_likelihood_and_posterior_by_brute_force(name):
    text, noise_words = CASES[name]
    network = parse_network(f"{text}\nnoise {noise_words}")
    readings, noise = network.readings()
    data = some_data(network)
    for initial in ("flat", "start"):
        likelihood = Likelihood(data, network, readings, initial)
        place = np.log(list(network.parameters.values())), noise
        found = likelihood.settled(*place)
        expected, posterior = brute_force(network, readings, noise, data, initial)
        np.testing.assert_allclose(found.log_likelihoods, expected, atol=1e-8)
        for total, table in likelihood.marginals(*place).items():
            np.testing.assert_allclose(table, posterior[total], atol=1e-8)


def learned(network: ReactionNetwork, scale: float):
    """The network's readings with a noise that is learned."""
    known, _ = network.readings()
    readings = Readings(known.columns, known.noise)
    return readings, readings.start(np.full(len(known.columns), scale))


@pytest.mark.parametrize("name", ["binomial", "two species", "a sum"])
def test_slopes_by_differences(name):
    text, noise_words = CASES[name]
    network = parse_network(f"{text}\nnoise {noise_words}")
    readings, noise = learned(network, 0.9)
    likelihood = Likelihood(some_data(network), network, readings)
    logs, step = np.log(list(network.parameters.values())) + 0.1, 1e-4
    here = likelihood.settled(logs, noise)

    def height(logs, noise):
        return likelihood.evaluate(logs, noise).total

    for k, each in enumerate(step * np.eye(len(logs))):
        slope = (height(logs + each, noise) - height(logs - each, noise)) / (2 * step)
        assert here.constants[k] == pytest.approx(slope, rel=1e-6, abs=1e-6)
    for column, each in enumerate(step * np.eye(len(readings.columns))):
        parameter = readings.parameter
        ends = [height(logs, {parameter: noise[parameter] + sign * each}) for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * step)
        assert here.noise[parameter][column] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_windows_follow_the_readings():
    """Far apart in a large box: windows are much smaller than it, move, and lose nothing that counts."""
    network = lotka_volterra()
    readings, noise = network.readings()
    data = network.simulate(6, 12, duration=300.0, seed=3).data
    place = np.log(list(network.parameters.values())), noise
    narrow, whole = Likelihood(data, network, readings), Likelihood(data, network, readings)
    whole.width = np.inf
    found, expected = narrow.settled(*place), whole.evaluate(*place)
    assert narrow.work(*place) < 0.25 * whole.work(*place)
    assert any(np.diff(block.steps.offset, axis=0).any() for block in narrow._plan.blocks)
    np.testing.assert_allclose(found.log_likelihoods, expected.log_likelihoods, atol=1e-8)
    np.testing.assert_allclose(found.constants, expected.constants, atol=1e-6)
    assert (np.abs(expected.log_likelihoods - found.log_likelihoods) <= found.lost + 1e-10).all()


def test_lost_probability_widens_the_windows():
    """Exact counts that do not change over a long gap, but could: windows of a single cell would be wrong."""
    network = parse_network(ONE + "\nnoise none")
    readings, noise = network.readings()
    data = TimeSeries.from_arrays([[0.0, 30.0]], [[[7.0], [7.0]]])
    place = np.log(list(network.parameters.values())), noise
    likelihood = Likelihood(data, network, readings)
    likelihood.width = 0.5
    assert likelihood.evaluate(*place).lost.max() > 1e-4
    found = likelihood.settled(*place)
    expected, _ = brute_force(network, readings, noise, data)
    np.testing.assert_allclose(found.log_likelihoods, expected, atol=1e-8)
    assert found.lost.max() < 1e-6


def test_forecasts_are_readings_that_are_missing():
    network = parse_network(TWO + "\nnoise gaussian 0.7")
    readings, noise = network.readings()
    values = np.array([[5.2, 4.0], [7.1, 3.2], [np.nan] * 2, [np.nan] * 2])
    data = TimeSeries.from_arrays([[0.0, 1.0, 1.5, 4.0]], values[None])
    likelihood = Likelihood(data, network, readings)
    tables = likelihood.marginals(np.log(list(network.parameters.values())), noise)
    for total, there in brute_force(network, readings, noise, data)[1].items():
        np.testing.assert_allclose(tables[total], there, atol=1e-8)


def test_a_propensity_of_all_counts_and_a_series_of_one_observation():
    network = ReactionNetwork(
        species=("P", "Q"),
        reactions=(
            Reaction({}, {"P": 1}, "make", propensity=lambda n: 4.0 / (1.0 + n["P"] + 0.5 * n["Q"])),
            Reaction({}, {"Q": 1}, "more", propensity={"P": lambda p: p / (2.0 + p)}),
            Reaction({"P": 1}, {}, "lose"),
            Reaction({"Q": 1}, {}, "lose"),
        ),
        constants={"make": 2.0, "more": 1.0, "lose": 0.5},
        largest=(9, 8),
        start=((2, 2), (1, 1)),
        noise_scale=0.6,
        duration=4.0,
    )
    readings, noise = network.readings()
    values = [[[3.0, 1.2], [2.1, 2.0], [4.4, 0.7]], [[1.3, 2.2]]]
    data = TimeSeries.from_arrays([[0.0, 1.0, 2.5], [0.5]], values)
    found = Likelihood(data, network, readings).settled(np.log([2.0, 1.0, 0.5]), noise)
    np.testing.assert_allclose(found.log_likelihoods, brute_force(network, readings, noise, data)[0], atol=1e-8)


def test_an_observation_that_cannot_happen_is_named():
    network = parse_network("X -> 0 @ d = 0.3\nbox X 25\nnoise none")
    readings, noise = network.readings()
    data = TimeSeries.from_arrays([[0.0, 1.0, 2.0]], [[[7.0], [5.0], [6.0]]], names=["b"])
    with pytest.raises(InputError, match="series 'b', time 2: this observation cannot happen"):
        Likelihood(data, network, readings).possible(np.log([0.3]), noise)
    with pytest.raises(InputError, match="initial must be flat or start"):
        Likelihood(data, network, readings, "even")


def test_blocks_and_padding_change_nothing(monkeypatch):
    network = replace(lotka_volterra(), largest=(30, 30))
    readings, noise = network.readings()
    data = network.simulate(9, 6, duration=200.0, seed=1).data
    place = np.log(list(network.parameters.values())), noise
    monkeypatch.setattr(lattice_plan, "CELLS_AT_ONCE", 20_000)
    together = Likelihood(data, network, readings)
    found = together.evaluate(*place)
    monkeypatch.setattr(lattice_plan, "CELLS_AT_ONCE", 2000)
    apart = Likelihood(data, network, readings)
    expected = apart.evaluate(*place)
    assert [len(each._plan.blocks) for each in (together, apart)] == [1, 2]
    np.testing.assert_allclose(found.log_likelihoods, expected.log_likelihoods, atol=1e-12)
    np.testing.assert_allclose(found.constants, expected.constants, atol=1e-9)
    np.testing.assert_allclose(found.lost, expected.lost, atol=1e-14)
