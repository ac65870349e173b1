"""What counts were at the observations, and what they and their readings will be at later times."""

from dataclasses import dataclass
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit
from scipy.stats import norm

from ..emissions.emission import Params
from ..emissions.readings import DARK, Readings
from ..errors import InputError
from ..mjp.simulate import gaps_from_times, observe_many
from ..systems import ReactionNetwork
from ..systems.system import randomness
from ..timeseries import TimeSeries
from .lattice_likelihood import Likelihood

DECODED, PREDICTED = (0.025, 0.5, 0.975), (0.05, 0.5, 0.95)
FINE = 40  # places per count at which a law of real readings is looked up
FAR = 8.0  # standard deviations beyond which a reading is not expected


@dataclass(frozen=True)
class DecodedCounts:
    """Hidden counts at each observation, in the order of data.times."""

    species: tuple[str, ...]
    mean: Float[np.ndarray, "row species"]
    lower: Int[np.ndarray, "row species"]  # 2.5 % quantile
    median: Int[np.ndarray, "row species"]
    upper: Int[np.ndarray, "row species"]  # 97.5 % quantile
    most_probable: Int[np.ndarray, "row species"]
    probabilities: tuple[Float[np.ndarray, "row _"], ...]  # of every count, one table per species


@dataclass(frozen=True)
class Quantiles:
    """A law at each of several times, in short: mean and 5, 50, 95 % quantiles."""

    mean: Float[np.ndarray, "row column"]
    lower: Float[np.ndarray, "row column"]
    median: Float[np.ndarray, "row column"]
    upper: Float[np.ndarray, "row column"]


@dataclass(frozen=True)
class Forecast:
    """What is expected at later times, series after series."""

    series: Int[np.ndarray, "row"]  # position of the series of each row
    times: Float[np.ndarray, "row"]
    counts: Quantiles  # one column per species
    readings: Quantiles  # one column per value, with its noise
    samples: Float[np.ndarray, "sample row column"]  # joint draws of the readings; none unless asked for


def decoded(likelihood: Likelihood, log_constants: Float[np.ndarray, "constant"], noise: Params) -> DecodedCounts:
    """Posterior of the counts of each species at each observation."""
    species = likelihood.events.species
    laws = likelihood.marginals(log_constants, noise)
    tables = tuple(laws[(s,)] for s in range(len(species)))
    lower, median, upper = (np.stack([_count_quantile(table, q) for table in tables], axis=1) for q in DECODED)
    best = np.stack([table.argmax(1) for table in tables], axis=1)
    return DecodedCounts(species, _means(tables), lower, median, upper, best, tables)


def forecast(
    likelihood: Likelihood,
    network: ReactionNetwork,
    log_constants: Float[np.ndarray, "constant"],
    noise: Params,
    times,
    *,
    samples: int,
    seed: int,
) -> Forecast:
    """Laws at later times: the filter goes on where nothing is read."""
    data, readings = likelihood.data, likelihood.readings
    later = later_times(data, times)
    longer, rows = _extended(data, later)
    ahead = Likelihood(longer, network, readings, likelihood.initial)
    laws = {total: table[rows] for total, table in ahead.marginals(log_constants, noise).items()}
    tables = [laws[(s,)] for s in range(len(network.species))]
    counts = [np.stack([_count_quantile(table, q) for table in tables], axis=1).astype(float) for q in PREDICTED]
    read = [reading_law(readings, noise, k, laws[shown]) for k, shown in enumerate(readings.columns)]
    mean, *ends = (np.stack(each, axis=1) for each in zip(*read, strict=True))
    series = np.repeat(np.arange(len(data)), [len(each) for each in later])
    drawn = np.empty((0, len(rows), len(readings.columns)))
    if samples > 0:
        drawn = _sampled(likelihood, network, log_constants, noise, later, samples, seed)
    return Forecast(series, np.concatenate(later), Quantiles(_means(tables), *counts), Quantiles(mean, *ends), drawn)


def reading_law(
    readings: Readings, noise: Params, column: int, law: Float[np.ndarray, "row total"]
) -> list[Float[np.ndarray, "row"]]:
    """Mean and 5, 50, 95 % quantiles of a reading of a total that has this law."""
    totals = np.arange(law.shape[1])
    if readings.noise == "gaussian":
        sd = float(np.exp(noise["log_sd"][column]))
        places = np.arange(-FAR * sd, totals[-1] + FAR * sd, min(sd, 1.0) / FINE)
        below = norm.cdf((places[:, None] - totals) / sd)
        cumulative = law @ below.T
        ends = [np.array([np.interp(q, each, places) for each in cumulative]) for q in PREDICTED]
        return [law @ totals, *ends]
    most, least = totals[-1], 0
    if readings.noise == "two-sided-exponential":
        beyond = int(np.ceil(40 * np.exp(noise["log_scale"][column])))
        least, most = -beyond, totals[-1] + beyond
    elif readings.noise == "poisson":
        most = int(totals[-1] + 10 * np.sqrt(totals[-1]) + 20)
    places = np.arange(least, most + 1)
    density = np.exp(np.asarray(readings.log_density(noise, column, places[:, None], jnp.asarray(totals))))
    cumulative = np.cumsum(law @ density.T, axis=1)
    expected = totals.astype(float)
    if readings.noise == "poisson":
        expected = np.maximum(expected, DARK)
    elif readings.noise == "binomial":
        expected = expected * expit(noise["logit_detection"][column])
    return [law @ expected, *(places[_first_above(cumulative, q)].astype(float) for q in PREDICTED)]


def _means(tables) -> Float[np.ndarray, "row species"]:
    return np.stack([table @ np.arange(table.shape[1]) for table in tables], axis=1)


def _count_quantile(table: Float[np.ndarray, "row count"], q: float) -> Int[np.ndarray, "row"]:
    return _first_above(np.cumsum(table, axis=1), q)


def _first_above(cumulative: Float[np.ndarray, "row place"], q: float) -> Int[np.ndarray, "row"]:
    """The first place at which this much probability is reached, rounding aside."""
    return (cumulative >= q - 1e-9).argmax(1)


def later_times(data: TimeSeries, times) -> list[Float[np.ndarray, "_"]]:
    """The times of each series, checked."""
    if not hasattr(times, "__len__"):
        raise InputError(f"later times are a list, shared by all series, or one list for each; got {times!r}")
    shared = len(times) > 0 and np.ndim(times[0]) == 0
    each = [times] * len(data) if shared else list(times)
    if len(each) != len(data):
        raise InputError(f"{len(data)} series need as many lists of later times, got {len(each)}")
    result = [np.asarray(one, dtype=float) for one in each]
    for name, last, one in zip(data.names, data.times[data.offsets[1:] - 1], result, strict=True):
        if not (one.size and np.isfinite(one).all() and one[0] > last and (np.diff(one) > 0).all()):
            raise InputError(f"series {name!r}: later times must increase and begin after its last, {last:g}")
    return result


def _extended(data: TimeSeries, later: list[Float[np.ndarray, "_"]]) -> tuple[TimeSeries, Int[np.ndarray, "row"]]:
    """The data with observations at later times that show nothing, and where these are."""
    times, values, rows, place = [], [], [], 0
    for (begin, stop), new in zip(pairwise(data.offsets), later, strict=True):
        times += [data.times[begin:stop], new]
        values += [data.values[begin:stop], np.full((len(new), data.n_features), np.nan)]
        place += stop - begin + len(new)
        rows.append(np.arange(place - len(new), place))
    offsets = np.concatenate([[0], np.cumsum(data.lengths + [len(new) for new in later])])
    longer = TimeSeries(
        np.concatenate(times), np.concatenate(values), offsets, data.names, data.value_names, data.time_unit
    )
    return longer, np.concatenate(rows)


def _sampled(
    likelihood: Likelihood,
    network: ReactionNetwork,
    log_constants: Float[np.ndarray, "constant"],
    noise: Params,
    later: list[Float[np.ndarray, "_"]],
    n: int,
    seed: int,
) -> Float[np.ndarray, "sample row column"]:
    """Joint draws: counts at the last observation, simulated onwards and read."""
    (rng, key), data = randomness(seed), likelihood.data
    counts = likelihood.last_counts(log_constants, noise, n, rng)
    longest = max(len(one) for one in later)
    last = data.times[data.offsets[1:] - 1]
    padded = np.array([np.concatenate([[0.0], one - t, np.full(longest - len(one), one[-1] - t)])
                       for one, t in zip(later, last, strict=True)])  # fmt: skip
    times = np.repeat(padded, n, axis=0)
    process = network.process(dict(zip(network.parameters, jnp.exp(jnp.asarray(log_constants)), strict=True)))
    start = jnp.asarray(counts.reshape(-1, counts.shape[-1]))
    paths = np.asarray(observe_many(process, start, gaps_from_times(times), key))
    hidden = paths[:, 1:].reshape(len(data), n, longest, -1)
    kept = np.concatenate([np.moveaxis(hidden[i, :, : len(one)], 1, 0) for i, one in enumerate(later)])
    params = {name: np.asarray(value) for name, value in noise.items()}
    read = likelihood.readings.sample(params, kept.reshape(-1, kept.shape[-1]), rng)
    return np.moveaxis(read.reshape(len(kept), n, -1), 1, 0)
