"""Choosing the number of states."""

import numpy as np
import pytest

from neuralmjp import InputError, TimeSeries
from neuralmjp.commands.select import numbers
from neuralmjp.systems import FlashingRatchet
from neuralmjp.validation import select
from neuralmjp.validation.folds import in_parts
from validation.worlds import channel


def levels(n_states, seed, apart=3.0, n=4000):
    """Levels so many noise widths apart, every jump with its own rate."""
    rates = np.random.default_rng((n_states, seed)).uniform(0.02, 0.1, (n_states, n_states))
    return channel((rates * (1 - np.eye(n_states)), apart * np.arange(n_states)), n=n, seed=seed)


def test_nothing_is_said_of_what_was_not_tried():
    found = select(levels(3, 0, n=1500), (2, 3), folds=2, restarts=2, emission="gaussian")
    assert found.n_states == 3
    assert "after" not in found.why
    assert "further" not in found.why


def test_three_levels():
    found = select(levels(3, 0, n=1500), (2, 3, 4), folds=2, restarts=2, emission="gaussian")
    assert found.n_states == 3
    assert found.by == {"held-out likelihood": 3, "BIC": 3, "ICL": 3}
    assert found.why.startswith("K = 3: held-out likelihood rises by")
    assert found.why.endswith("BIC and ICL agree")
    assert found.warnings == ()
    np.testing.assert_allclose(found.chosen.separation.means[:, 0], [0, 3, 6], atol=0.3)


def test_levels_that_cannot_be_told_apart():
    found = select(levels(2, 0, apart=0.5, n=1500), (2, 3), folds=2, restarts=2, emission="gaussian")
    assert any("cannot be told apart" in warning for warning in found.warnings)


def test_with_hum():
    """The hum is fitted with every number of states, and once only."""
    data = levels(2, 0, n=1200)
    wave = 1.5 * np.sin(2 * np.pi * 0.13 * data.times)
    found = select(
        TimeSeries.from_arrays(data.times, data.values[:, 0] + wave),
        (2, 3),
        folds=2,
        restarts=1,
        emission="gaussian",
        hum=0.13,
    )
    assert found.n_states == 2
    with pytest.raises(InputError, match="levels fix the number of states"):
        select(data, (2, 3), levels=(0, 0, 1))


@pytest.mark.parametrize("prior", ["lotka-volterra", FlashingRatchet()])
def test_systems_have_states_of_their_own(prior):
    with pytest.raises(InputError, match="is a system with states of its own, so that there is no number of them to"):
        select(levels(2, 0, n=100), (2, 3), prior=prior)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("n_states", [2, 3, 4])
def test_levels_three_noise_widths_apart(n_states):
    """In at least nine of ten recordings."""
    found = [select(levels(n_states, seed), range(2, 6), emission="gaussian").n_states for seed in range(10)]
    print(f"{n_states} states: {found}")
    assert sum(one == n_states for one in found) >= 9


@pytest.mark.slow
def test_heavy_noise_is_no_state():
    """Held-out likelihood and BIC take more Gaussian states than there are levels; ICL is followed, and said so."""
    noise = np.random.default_rng(0).standard_t
    rates = 0.05 * (1 - np.eye(3))
    data = channel((rates, (0, 3.0, 6.0)), n=4000, noise=lambda size: noise(4, size=size))
    found = select(data, (2, 3, 4, 5), emission="gaussian")
    assert found.n_states == 3
    assert max(found.by.values()) > 3
    assert "shape of the noise" in found.why


def test_what_cannot_be_chosen():
    data = levels(2, 0, n=200)
    with pytest.raises(InputError, match="begin with 2"):
        select(data, (1, 2))
    with pytest.raises(InputError, match="too few"):
        select(data[0].between(0, 50), (2, 3))
    labels = TimeSeries.from_arrays(data.times, (data.values[:, 0] > 1.5).astype(float))
    with pytest.raises(InputError, match="name the states"):
        select(labels, (2,), folds=2)


def test_parts():
    one = levels(2, 0, n=1000)
    blocks, fold = in_parts(one, 5, seed=0)
    assert set(blocks.lengths) == {50}
    assert np.bincount(fold).tolist() == [4] * 5
    many = TimeSeries.from_arrays(np.tile(np.arange(4.0), (30, 1)), np.zeros((30, 4)))
    series, fold = in_parts(many, 5, seed=0)
    assert series is many
    assert np.bincount(fold).tolist() == [6] * 5
    with pytest.raises(InputError, match="at least 2 folds"):
        in_parts(many, 1, seed=0)


def test_numbers():
    assert numbers("2..6") == [2, 3, 4, 5, 6]
    assert numbers("2,4") == [2, 4]
    for wrong in ("1..3", "two", "", "3..2"):
        with pytest.raises(InputError, match="--states takes"):
            numbers(wrong)
