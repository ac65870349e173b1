"""Ion channels whose hidden path is known: decoding, occupancy and exit rates for several models of the noise.

    python benchmarks/ion_channel.py

Two recordings of 10 s at 10 kHz: simulated gating played through a real amplifier and recorded again. States are
levels: 2 for one channel, 4 for three. The noise model with the best BIC is marked: it is the one the likelihood
chooses. Exit rates of the known path are exits over time spent, at the resolution of the recording.
"""

import sys

import numpy as np

from harness import Benchmark, fresh, table, timed
from neuralmjp import ExactMJP, TimeSeries
from neuralmjp.mjp import exit_rates

FILES = {2: "1channel_outfinaltest10.csv", 4: "3channels_outfinaltest1.csv"}
NOISES = ("gaussian", "student-t", "mixture", "ornstein-uhlenbeck")
SEEDS = 5


def known(times: np.ndarray, path: np.ndarray, n_states: int) -> tuple[np.ndarray, np.ndarray]:
    """Share of time and exits per second of each level of the known path."""
    spent = np.bincount(path[:-1], weights=np.diff(times), minlength=n_states)
    exits = np.bincount(path[:-1][path[1:] != path[:-1]], minlength=n_states)
    return np.bincount(path, minlength=n_states) / len(path), exits / spent


def fit_recording(path: str, n_states: int, emission: str, seed: int, quick: bool) -> dict:
    """One fit in a process of its own, and how it compares with the known path."""
    part = slice(14_000, 17_000) if quick else slice(None)
    times, current, levels = np.loadtxt(path, delimiter=",")[part].T
    hidden = levels.astype(int)
    data = TimeSeries.from_arrays(times, current, time_unit="s", value_names=("current",))
    fitted, seconds = timed(lambda: ExactMJP(n_states, emission=emission, seed=seed).fit(data))
    decoded = fitted.decode(data)
    occupancy, exits = known(times, hidden, n_states)
    return {
        "log_likelihood": fitted.log_likelihood,
        "bic": fitted.bic,
        "converged": fitted.converged,
        "accuracy_path": float((decoded.states == hidden).mean()),
        "accuracy_marginal": float((decoded.probabilities.argmax(1) == hidden).mean()),
        "occupancy": decoded.probabilities.mean(0).tolist(),
        "occupancy_known": occupancy.tolist(),
        "exit_rates": exit_rates(fitted.rates).tolist(),
        "exit_rates_known": exits.tolist(),
        "restarts": list(fitted.restarts),
        "warnings": list(fitted.warnings),
        **seconds,
    }


def numbers(values: list[float], digits: int) -> str:
    return " ".join(f"{value:.{digits}f}" for value in values)


def report(n_states: int, fits: dict[str, dict]) -> None:
    """One table per recording."""
    best = min((name for name in fits if "seed" not in name), key=lambda name: fits[name]["bic"])
    any_fit = fits[best]
    rows = [["known path", "", "", "", numbers(any_fit["occupancy_known"], 4)]]
    rows[0] += [numbers(any_fit["exit_rates_known"], 1), "", ""]
    for name, fit in fits.items():
        row = [f"{name} *" if name == best else name, f"{fit['log_likelihood']:.1f}", f"{fit['bic']:.1f}"]
        row += [f"{fit['accuracy_path']:.5f}", numbers(fit["occupancy"], 4), numbers(fit["exit_rates"], 1)]
        rows.append([*row, fit["converged"], fit["seconds"]])
    headings = ["noise", "log L", "BIC", "accuracy", "occupancy", "exit rates per s", "converged", "seconds"]
    table(f"{n_states} levels (* chosen by likelihood)", headings, rows)


def main() -> int:
    bench = Benchmark("ion_channel", __doc__, data="ion_channel")
    for n_states, file in list(FILES.items())[: 1 if bench.quick else None]:
        runs = [("gaussian", 0)] if bench.quick else [(noise, 0) for noise in NOISES]
        runs += [] if bench.quick else [("gaussian", seed) for seed in range(1, SEEDS)]
        fits = {}
        for noise, seed in runs:
            choices = {"n_states": n_states, "emission": noise, "seed": seed, "quick": bench.quick}
            name = f"{noise}, seed {seed}" if seed else noise
            fits[name] = fresh("ion_channel", "fit_recording", path=str(bench.data / file), **choices)
        report(n_states, fits)
        bench.results[file] = fits
        bench.require(f"{file}: every fit converged", all(fit["converged"] for fit in fits.values()))
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
