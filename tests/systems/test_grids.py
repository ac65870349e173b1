"""What every system does alike: observation grids, seeds, hidden states, precision; one list for all of them."""

import subprocess
import sys

import jax
import numpy as np
import pytest
from scipy.stats import kstest

from law import FAILURE
from neuralmjp import InputError
from neuralmjp.systems import SYSTEMS, named
from neuralmjp.systems.system import observation_times, randomness

SERIES, LENGTH, SEED = 3, 20, 2**33 + 5  # a seed of more than 32 bits
DURATIONS = {"flashing-ratchet": 1.0, "lotka-volterra": 900.0, "two-mode": 9.0, "brownian-folding": 4.0}
EVERY = pytest.mark.parametrize("name", SYSTEMS)
GRIDS = pytest.mark.parametrize("grid", ["irregular", "shared", "regular"])


def simulate(name, grid="irregular", seed=SEED, length=LENGTH, **arguments):
    return named(name).simulate(SERIES, length, grid=grid, seed=seed, **arguments)


@EVERY
@GRIDS
def test_shapes(name, grid):
    simulation = simulate(name, grid)
    data = simulation.data
    assert len(data) == SERIES
    assert (data.lengths == LENGTH).all()
    assert data.mask.all()
    assert simulation.states.shape[0] == data.n_observations
    assert data.time_unit == named(name).time_unit


@EVERY
@GRIDS
def test_kinds_of_grid(name, grid):
    times = simulate(name, grid).data.times.reshape(SERIES, LENGTH)
    gaps = np.diff(times)
    assert (times == times[0]).all() == (grid != "irregular")
    assert np.allclose(gaps, gaps[0, 0], rtol=1e-6) == (grid == "regular")


@EVERY
@GRIDS
def test_times_stay_within_the_duration(name, grid):
    length = None if name == "ion-channel" else LENGTH
    duration = DURATIONS.get(name, LENGTH / 5000)
    data = simulate(name, grid, length=length, duration=duration).data
    assert data.times.min() >= 0
    assert 0.4 * duration < data.times.max() <= duration
    assert data.n_observations == SERIES * LENGTH
    gaps = data.gaps
    assert np.allclose(gaps, gaps[0], rtol=1e-6) == (grid == "regular")


@EVERY
def test_one_seed_one_data_set(name):
    first, again, other = (simulate(name, seed=seed) for seed in (SEED, SEED, SEED + 1))
    assert first.data.equals(again.data)
    np.testing.assert_array_equal(first.states, again.states)
    assert not np.array_equal(first.data.times, other.data.times)
    assert not np.array_equal(first.data.values, other.data.values)


def test_all_bits_of_a_seed_matter():
    """Also where the caller works in single precision: JAX would then read the low 32 bits alone."""
    with jax.enable_x64(False):
        keys = [jax.random.key_data(randomness(seed)[1]).tolist() for seed in (5, 2**32 + 5, 2**62 + 5)]
    assert len({tuple(key) for key in keys}) == 3


@EVERY
def test_precision_of_the_caller_does_not_matter(name):
    double = simulate(name)
    with jax.enable_x64(False):
        single = simulate(name)
    assert double.data.equals(single.data)
    np.testing.assert_array_equal(double.states, single.states)
    assert jax.config.jax_enable_x64


@EVERY
def test_part_keeps_states_beside_their_data(name):
    whole = simulate(name)
    part = whole.part(1, 3)
    assert part.data.names == ("1", "2")
    np.testing.assert_array_equal(part.data.values, whole.data.values[LENGTH:])
    np.testing.assert_array_equal(part.states, whole.states[LENGTH:])


@pytest.mark.statistical
@pytest.mark.parametrize(("grid", "shape"), [("irregular", (100, 20)), ("shared", (1, 2000))])
def test_random_times_are_uniform(grid, shape):
    """A correct program fails in 1e-4 of all seeds."""
    times = observation_times(grid, *shape, 2.5, np.random.default_rng(6))
    assert kstest(times.ravel(), "uniform", args=(0, 2.5)).pvalue > FAILURE
    assert (np.diff(times) > 0).all()


def test_regular_times_cover_the_window():
    times = observation_times("regular", 2, 6, 2.5, np.random.default_rng(0))
    np.testing.assert_allclose(times, [[0, 0.5, 1, 1.5, 2, 2.5]] * 2)


@EVERY
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_series": 0}, "number of series must be at least 1, got 0"),
        ({"length": 0}, "at least 2 observations, got 0"),
        ({"length": 1}, "at least 2 observations, got 1"),
        ({"duration": 0.0}, "duration must be positive and finite, got 0"),
        ({"duration": float("nan")}, "duration must be positive and finite, got nan"),
        ({"duration": float("inf")}, "duration must be positive and finite, got inf"),
        ({"seed": -1}, "seed must not be negative"),
        ({"seed": 2**63}, "seed must not be negative and must be below 2\\^63"),
    ],
)
def test_bad_requests(name, arguments, message):
    with pytest.raises(InputError, match=message):
        named(name).simulate(**{"n_series": 2, "length": None, "seed": 0, **arguments})


WRONG_WORDS = """
from neuralmjp import InputError
from neuralmjp.systems import SYSTEMS, IonChannel, TwoMode, lotka_volterra, named
calls = [lambda name=name: named(name).simulate(1, 5, grid="Regular", seed=0) for name in SYSTEMS]
calls += [lambda: lotka_volterra(noise="pink"), lambda: TwoMode(reading="mean"), lambda: IonChannel.paper("all")]
for call in calls:
    try:
        call()
    except InputError as error:
        print(error)
"""


def test_words_that_are_no_choice():
    """In a process of its own, because here the type checker would refuse them first."""
    done = subprocess.run([sys.executable, "-c", WRONG_WORDS], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    words = ["grid must be irregular, shared or regular, got 'Regular'"] * len(SYSTEMS)
    words += ["noise must be one of none, gaussian, poisson, binomial, two-sided-exponential, got 'pink'"]
    words += ["reading must be gap or intensity, got 'mean'"]
    words += ["the recording must be one of one-second, full, got 'all'"]
    assert len(lines) == len(words)
    for line, end in zip(lines, words, strict=True):
        assert line.endswith(end)
