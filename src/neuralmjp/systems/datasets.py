"""The paper's data sets, in its sizes and splits, by one call each and reproducible from a seed."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float

from ..errors import InputError
from ..timeseries import TimeSeries
from .brownian_folding import BrownianFolding
from .flashing_ratchet import FlashingRatchet
from .ion_channel import IonChannel
from .predator_prey import lotka_volterra
from .system import Grid, Simulation, observation_times, randomness
from .two_mode import TwoMode

N_SERIES, LENGTH, N_TRAIN = 5000, 50, 70 * 64
N_PREDICTION = 100
RECORDING, BURN_IN, WINDOW = 171_615, 5000, 100  # samples of the ion-channel recording


@dataclass(frozen=True)
class Dataset:
    """Training data, what is held out of it, and longer series whose second half is to be forecast.

    A part that the paper does not have is None.
    """

    train: Simulation
    validation: Simulation | None
    test: Simulation | None
    prediction: Simulation | None


def paper_dataset(name: str, *, grid: Grid = "irregular", seed: int) -> Dataset:
    """One of the paper's simulated data sets.

    Args:
        name: flashing-ratchet, lotka-volterra, lotka-volterra-single, two-mode, brownian-folding,
            ion-channel-one-second or ion-channel-full.
        grid: for the first two, which of the three observation grids; the others have one.
        seed: the same seed gives the same data.

    >>> len(paper_dataset("two-mode", seed=0).train.data.times)
    67
    """
    if name not in DATASETS:
        raise InputError(f"no data set {name!r}; there are {', '.join(DATASETS)}")
    return DATASETS[name](grid, seed)


def _flashing_ratchet(grid: Grid, seed: int) -> Dataset:
    system = FlashingRatchet()
    rng, key = randomness(seed)
    key, prediction_key = jax.random.split(key)
    times, longer = _times(grid, system.default_duration, rng)
    return _split(system.observed(times, key), N_TRAIN, system.observed(longer, prediction_key))


def _lotka_volterra(grid: Grid, seed: int) -> Dataset:
    system = lotka_volterra()
    rng, key = randomness(seed)
    key, prediction_key = jax.random.split(key)
    times, longer = _times(grid, system.duration, rng)
    return _split(system.observed(times, rng, key), N_TRAIN, system.observed(longer, rng, prediction_key))


def _lotka_volterra_single(grid: Grid, seed: int) -> Dataset:
    """16 noisy observations of one series in [0, 1500], then 15 without noise in [1600, 3000]."""
    system = lotka_volterra(start=((19, 19), (7, 7)), noise="two-sided-exponential")
    rng, key = randomness(seed)
    times = np.concatenate([np.linspace(0, 1500, 16), np.linspace(1600, 3000, 15)])[None]
    seen = system.observed(times, rng, key)
    values = np.where(np.arange(31)[:, None] < 16, seen.data.values, seen.states)
    whole = TimeSeries.from_arrays(times, values[None], time_unit=system.time_unit, value_names=system.species)
    train = Simulation(whole.between(0, 1550), seen.states[:16], seen.state_names)
    return Dataset(train, None, None, Simulation(whole, seen.states, seen.state_names))


def _two_mode(grid: Grid, seed: int) -> Dataset:
    return Dataset(TwoMode().simulate(1, seed=seed), None, None, None)


def _brownian_folding(grid: Grid, seed: int) -> Dataset:
    system = BrownianFolding()
    longer = system.simulate(N_PREDICTION, 200, seed=seed + 1_000_000)
    return _split(system.simulate(1000, 100, seed=seed), 28 * 32, longer)


def ion_channel_dataset(name: str, recording: TimeSeries) -> Dataset:
    """A measured recording (the paper's own, where somebody has it) in the paper's splits; its states are unknown.

    Args:
        name: ion-channel-one-second or ion-channel-full.
    """
    if name not in ION_CHANNEL:
        raise InputError(f"no split {name!r}; there are {', '.join(ION_CHANNEL)}")
    if len(recording) != 1 or recording.n_observations < RECORDING:
        raise InputError(
            f"the paper's splits need one recording of at least {RECORDING} samples, got {len(recording)} series and "
            f"{recording.n_observations} samples"
        )
    return ION_CHANNEL[name](Simulation(recording, np.full(recording.n_observations, -1)))


def _ion_channel_one_second(grid: Grid, seed: int) -> Dataset:
    return _one_second_of(IonChannel.paper("one-second").simulate(1, RECORDING, seed=seed))


def _ion_channel_full(grid: Grid, seed: int) -> Dataset:
    return _all_of(IonChannel.paper("full").simulate(1, RECORDING, seed=seed))


def _one_second_of(whole: Simulation) -> Dataset:
    """Samples 9200 to 14200 in 50 windows; the held-out windows lie before them, the forecast begins at 14100."""
    before = range(BURN_IN, 9200, WINDOW)
    return Dataset(
        _windows(whole, range(9200, 14_200, WINDOW), WINDOW),
        _windows(whole, before[:10], WINDOW),
        _windows(whole, before[10:20], WINDOW),
        _windows(whole, range(14_100, 14_101), 400),
    )


def _all_of(whole: Simulation) -> Dataset:
    """Everything after the burn-in: 10 windows of 200 to forecast, 10 and 10 of 100 held out, 1626 to train on.

    The paper speaks of 100 windows to forecast, but beside its 1626 + 20 windows the recording holds 10.
    """
    longer = range(BURN_IN, BURN_IN + 10 * 2 * WINDOW, 2 * WINDOW)
    windows = range(longer.stop, longer.stop + 1646 * WINDOW, WINDOW)
    return Dataset(
        _windows(whole, windows[20:], WINDOW),
        _windows(whole, windows[:10], WINDOW),
        _windows(whole, windows[10:20], WINDOW),
        _windows(whole, longer, 2 * WINDOW),
    )


ION_CHANNEL = {"ion-channel-one-second": _one_second_of, "ion-channel-full": _all_of}
DATASETS: dict[str, Callable[[Grid, int], Dataset]] = {
    "flashing-ratchet": _flashing_ratchet,
    "lotka-volterra": _lotka_volterra,
    "lotka-volterra-single": _lotka_volterra_single,
    "two-mode": _two_mode,
    "brownian-folding": _brownian_folding,
    "ion-channel-one-second": _ion_channel_one_second,
    "ion-channel-full": _ion_channel_full,
}


def _times(
    grid: Grid, duration: float, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "series time"], Float[np.ndarray, "longer twice"]]:
    """Times for training, and for prediction: the same kind of grid in [0, T], and again in [T, 2 T]."""
    times = observation_times(grid, N_SERIES, LENGTH, duration, rng)
    if grid == "regular":
        step = duration / (LENGTH - 1)
        first, second = times[:N_PREDICTION], times[:N_PREDICTION] + duration + step
    else:
        fresh = observation_times(grid, N_PREDICTION, LENGTH, duration, rng)
        first = times[:N_PREDICTION] if grid == "shared" else fresh
        second = duration + observation_times(grid, N_PREDICTION, LENGTH, duration, rng)
    return times, np.concatenate([first, second], axis=1)


def _split(whole: Simulation, n_train: int, prediction: Simulation) -> Dataset:
    """The first series train, the rest are halved into validation and test."""
    half = n_train + (len(whole.data) - n_train) // 2
    return Dataset(whole.part(0, n_train), whole.part(n_train, half), whole.part(half, len(whole.data)), prediction)


def _windows(whole: Simulation, starts: range, length: int) -> Simulation:
    """Windows of one regular recording, each with its own clock that begins at 0."""
    rows = np.array(starts)[:, None] + np.arange(length)
    times = whole.data.times[rows]
    data = TimeSeries.from_arrays(
        times - times[:, :1],
        whole.data.values[rows],
        time_unit=whole.data.time_unit,
        value_names=whole.data.value_names,
    )
    return Simulation(data, whole.states[rows].reshape(-1))
