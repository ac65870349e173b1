"""The paper's data sets: sizes, splits and grids exactly as its appendices say."""

from functools import cache

import numpy as np
import pytest

from neuralmjp import InputError
from neuralmjp.systems import BrownianFolding, IonChannel, paper_dataset
from neuralmjp.systems.datasets import DATASETS

SEED = 17
GRIDS = ("irregular", "shared", "regular")
PARTS = ("train", "validation", "test", "prediction")
BIG = ("flashing-ratchet", "lotka-volterra")
DURATION = {"flashing-ratchet": 2.5, "lotka-volterra": 1500.0}

# Series x observations of each part.
SIZES = {
    "flashing-ratchet": ((4480, 50), (260, 50), (260, 50), (100, 100)),
    "lotka-volterra": ((4480, 50), (260, 50), (260, 50), (100, 100)),
    "lotka-volterra-single": ((1, 16), None, None, (1, 31)),
    "two-mode": ((1, 67), None, None, None),
    "brownian-folding": ((896, 100), (52, 100), (52, 100), (100, 200)),
    "ion-channel-one-second": ((50, 100), (10, 100), (10, 100), (1, 400)),
    "ion-channel-full": ((1626, 100), (10, 100), (10, 100), (10, 200)),
}

made = cache(lambda name, grid="irregular": paper_dataset(name, grid=grid, seed=SEED))


def test_every_data_set_is_tested():
    assert SIZES.keys() == DATASETS.keys()


@pytest.mark.parametrize("name", SIZES)
def test_sizes_and_splits(name):
    for part, size in zip(PARTS, SIZES[name], strict=True):
        simulation = getattr(made(name), part)
        if size is None:
            assert simulation is None
        else:
            assert len(simulation.data) == size[0]
            assert (simulation.data.lengths == size[1]).all()
            assert len(simulation.states) == simulation.data.n_observations


@pytest.mark.parametrize("name", SIZES)
def test_reproducible_from_the_seed(name):
    first, again, other = made(name), paper_dataset(name, seed=SEED), paper_dataset(name, seed=SEED + 1)
    for part in PARTS:
        if getattr(first, part) is not None:
            assert getattr(first, part).data.equals(getattr(again, part).data)
            np.testing.assert_array_equal(getattr(first, part).states, getattr(again, part).states)
            assert not np.array_equal(getattr(first, part).data.values, getattr(other, part).data.values)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", BIG)
class TestGrids:
    def test_training_grid(self, name, grid):
        times = made(name, grid).train.data.times.reshape(-1, 50)
        held_out = made(name, grid).test.data.times.reshape(-1, 50)
        assert 0 <= times.min() <= times.max() <= DURATION[name]
        if grid == "irregular":
            assert len(np.unique(times[:, 0])) == len(times)
        else:
            assert (times == times[0]).all()
            assert (held_out == times[0]).all()
        if grid == "regular":
            np.testing.assert_allclose(times[0], np.linspace(0, DURATION[name], 50))

    def test_prediction_grid(self, name, grid):
        window, dataset = DURATION[name], made(name, grid)
        times = dataset.prediction.data.times.reshape(100, 100)
        first, second = times[:, :50], times[:, 50:]
        assert 0 <= first.min() <= first.max() <= window < second.min()
        step = window / 49
        assert second.max() <= (2 * window + step * (1 + 1e-12) if grid == "regular" else 2 * window)
        if grid == "irregular":
            assert len(np.unique(times[:, 0])) == len(np.unique(times[:, 50])) == 100
        else:
            np.testing.assert_array_equal(first, np.tile(dataset.train.data.times[:50], (100, 1)))
            assert (second == second[0]).all()
        if grid == "regular":
            np.testing.assert_allclose(np.diff(times), step)


def test_flashing_ratchet_is_seen_without_noise():
    dataset = made("flashing-ratchet")
    for part in PARTS:
        simulation = getattr(dataset, part)
        np.testing.assert_array_equal(simulation.data.values[:, 0], simulation.states)
    assert set(np.unique(dataset.train.states)) == set(range(6))


@pytest.mark.parametrize("part", PARTS)
def test_lotka_volterra_states_align_with_noisy_counts(part):
    """Misplaced rows would add the spread of the counts (more than 3) to the noise of 1."""
    simulation = getattr(made("lotka-volterra"), part)
    noise = simulation.data.values - simulation.states
    assert noise.std() == pytest.approx(1, abs=0.03)
    assert simulation.data.value_names == ("prey", "predator")


def test_lotka_volterra_starts_and_single_series():
    regular = made("lotka-volterra", "regular").train.states.reshape(-1, 50, 2)[:, 0]
    assert (regular.min(), regular.max()) == (5, 20)
    dataset = made("lotka-volterra-single")
    np.testing.assert_allclose(dataset.train.data.times, np.arange(16) * 100.0)
    np.testing.assert_allclose(dataset.prediction.data.times, np.arange(31) * 100.0)
    np.testing.assert_array_equal(dataset.prediction.states[0], [19, 7])
    np.testing.assert_array_equal(dataset.train.data.values, dataset.prediction.data.values[:16])
    np.testing.assert_array_equal(dataset.train.states, dataset.prediction.states[:16])
    noise = dataset.prediction.data.values - dataset.prediction.states
    assert (noise == noise.round()).all()
    assert noise[:16].any()
    assert not noise[16:].any()


def test_brownian_folding_is_every_step():
    dataset = made("brownian-folding")
    np.testing.assert_allclose(dataset.prediction.data.times[:200], 0.1 * np.arange(200), atol=1e-12)
    boundary = BrownianFolding().answers()["boundary"]
    for part in PARTS:
        simulation = getattr(dataset, part)
        np.testing.assert_array_equal(simulation.states, np.linalg.norm(simulation.data.values, axis=-1) > boundary)
    assert not np.isin(dataset.prediction.data.values, dataset.train.data.values).any()


@pytest.mark.parametrize("name", ["ion-channel-one-second", "ion-channel-full"])
def test_ion_channel_windows(name):
    """Cut from one recording of 171615 samples; each begins at time 0 and keeps the frequency."""
    recording = IonChannel.paper(name.removeprefix("ion-channel-")).simulate(1, 171_615, seed=SEED)
    current = recording.data.values[:, 0]
    place = {value: row for row, value in enumerate(current)}
    used = {}
    for part in PARTS:
        simulation = getattr(made(name), part)
        shape = (len(simulation.data), -1)
        times, values = simulation.data.times.reshape(shape), simulation.data.values.reshape(shape)
        np.testing.assert_allclose(times, np.tile(np.arange(times.shape[1]) / 5000, (len(times), 1)), atol=1e-10)
        rows = np.array([[place[value] for value in window] for window in values])
        assert (np.diff(rows) == 1).all()
        np.testing.assert_array_equal(simulation.states, recording.states[rows.ravel()])
        used[part] = rows
    assert min(rows.min() for rows in used.values()) >= 5000  # the burn-in is left out
    if name == "ion-channel-one-second":
        np.testing.assert_array_equal(used["train"].ravel(), np.arange(9200, 14_200))
        np.testing.assert_array_equal(used["prediction"].ravel(), np.arange(14_100, 14_500))
        del used["prediction"]  # the paper's forecast begins inside the training window
    rows = np.concatenate([rows.ravel() for rows in used.values()])
    assert len(np.unique(rows)) == len(rows)


def test_unknown_data_set():
    with pytest.raises(InputError, match="no data set 'ratchet'; there are flashing-ratchet, lotka-volterra"):
        paper_dataset("ratchet", seed=0)
