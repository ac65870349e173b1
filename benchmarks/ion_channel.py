"""Ion channels whose hidden path is known: decoding, occupancy and exit rates for several models of the noise.

    python benchmarks/ion_channel.py

Two recordings of 10 s at 10 kHz: simulated gating played through a real amplifier and recorded again. States are
levels: 2 for one channel, 4 for three. The noise model with the best BIC is marked: it is the one the likelihood
chooses. One fit has a state more than there are levels, so that two states can share one. Exits of the known path can
be counted sample by sample, which misses those that last less than a sample, or fitted as a process that is seen at
10 kHz, which does not.
"""

import sys

import numpy as np

from harness import Benchmark, fresh, table, timed
from neuralmjp import ExactMJP, FittedMJP, TimeSeries
from neuralmjp.mjp import exit_rates, stationary_distribution

FILES = {2: "1channel_outfinaltest10.csv", 4: "3channels_outfinaltest1.csv"}
NOISES = ("gaussian", "student-t", "mixture", "ornstein-uhlenbeck")
SEEDS = 5


def recording(path: str, quick: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, current, and the number of open channels."""
    times, current, levels = np.loadtxt(path, delimiter=",")[slice(14_000, 17_000) if quick else slice(None)].T
    return times, current, levels.astype(int)


def known(path: str, n_states: int, quick: bool) -> dict:
    """Share of time in each level of the known path; exits per second, counted, and fitted as seen at 10 kHz."""
    times, _, hidden = recording(path, quick)
    spent = np.bincount(hidden[:-1], weights=np.diff(times), minlength=n_states)
    exits = np.bincount(hidden[:-1][hidden[1:] != hidden[:-1]], minlength=n_states)
    seen = ExactMJP(n_states, emission="categorical").fit(TimeSeries.from_arrays(times, hidden, time_unit="s"))
    return {
        "occupancy": (np.bincount(hidden, minlength=n_states) / len(hidden)).tolist(),
        "exit_rates_counted": (exits / spent).tolist(),
        "exit_rates": exit_rates(seen.rates).tolist(),
        "seconds": seen.seconds,
    }


def levels_of(fitted: FittedMJP, n_levels: int, current: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """The level that each state shows: its place in order, or the nearest one where states outnumber levels."""
    if fitted.n_states == n_levels:
        return np.arange(n_levels)
    means = np.array([current[hidden == level].mean() for level in range(n_levels)])
    places = fitted.emission.locations(fitted.parameters.emission)
    return np.abs(places[:, None] - means).argmin(1)


def exits_of_levels(rates: np.ndarray, level: np.ndarray) -> list[float]:
    """How often a level is left, in the long run: jumps to states of other levels over the time spent in it."""
    law, leaving = stationary_distribution(rates), (rates * (level[:, None] != level)).sum(1)
    return (np.bincount(level, weights=law * leaving) / np.bincount(level, weights=law)).tolist()


def fit_recording(path: str, n_states: int, emission: str, seed: int, quick: bool, more: int = 0) -> dict:
    """One fit in a process of its own, with `more` states than levels, and how it compares with the known path."""
    times, current, hidden = recording(path, quick)
    data = TimeSeries.from_arrays(times, current, time_unit="s", value_names=("current",))
    fitted, seconds = timed(lambda: ExactMJP(n_states + more, emission=emission, seed=seed).fit(data))
    decoded = fitted.decode(data)
    level = levels_of(fitted, n_states, current, hidden)
    shares = decoded.probabilities @ np.eye(n_states)[level]
    natural = fitted.emission.natural(fitted.parameters.emission)
    shown = {name: np.asarray(entry.value).tolist() for name, entry in natural.items()}
    return {
        "log_likelihood": fitted.log_likelihood,
        "bic": fitted.bic,
        "converged": fitted.converged,
        "accuracy_path": float((level[decoded.states] == hidden).mean()),
        "accuracy_marginal": float((shares.argmax(1) == hidden).mean()),
        "occupancy": shares.mean(0).tolist(),
        "exit_rates": exits_of_levels(fitted.rates, level),
        "emission": shown,
        "restarts": list(fitted.restarts),
        "warnings": list(fitted.warnings),
        **seconds,
    }


def numbers(values: list[float], digits: int) -> str:
    return " ".join(f"{value:.{digits}f}" for value in values)


def report(n_states: int, truth: dict, fits: dict[str, dict]) -> None:
    """One table per recording."""
    best = min((name for name in fits if name in NOISES), key=lambda name: fits[name]["bic"])
    rows = []
    for name, key in (("known path, counted", "exit_rates_counted"), ("known path, fitted", "exit_rates")):
        rows.append([name, "", "", "", numbers(truth["occupancy"], 4), numbers(truth[key], 1), "", ""])
    for name, fit in fits.items():
        row = [f"{name} *" if name == best else name, f"{fit['log_likelihood']:.1f}", f"{fit['bic']:.1f}"]
        row += [f"{fit['accuracy_path']:.5f}", numbers(fit["occupancy"], 4), numbers(fit["exit_rates"], 1)]
        rows.append([*row, fit["converged"], fit["seconds"]])
    headings = ["noise", "log L", "BIC", "accuracy", "occupancy", "exit rates per s", "converged", "seconds"]
    table(f"{n_states} levels (* chosen by likelihood)", headings, rows)


def main() -> int:
    bench = Benchmark("ion_channel", __doc__, data="ion_channel")
    for n_states, file in list(FILES.items())[: 1 if bench.quick else None]:
        common = {"path": str(bench.data / file), "n_states": n_states, "quick": bench.quick}
        runs = [("gaussian", 0, 0)] if bench.quick else [(noise, 0, 0) for noise in NOISES]
        runs += [] if bench.quick else [("gaussian", seed, 0) for seed in range(1, SEEDS)] + [("gaussian", 0, 1)]
        truth, fits = fresh("ion_channel", "known", **common), {}
        for noise, seed, more in runs:
            name = f"{noise}, one state more" if more else f"{noise}, seed {seed}" if seed else noise
            fits[name] = fresh("ion_channel", "fit_recording", emission=noise, seed=seed, more=more, **common)
        report(n_states, truth, fits)
        bench.results[file] = {"known": truth, "fits": fits}
        bench.require(f"{file}: every fit converged", all(fit["converged"] for fit in fits.values()))
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
