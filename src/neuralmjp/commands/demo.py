"""`neuralmjp demo`: a channel simulated, looked at, and understood: in the simplest way, and properly."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from ..estimators import ExactMJP, NeuralMJP
from ..io import write
from ..mjp import Interval, JumpPath, rates_from_paths
from ..mjp.paths import joined
from ..report import Finding, Source, Table, write_report
from ..systems import IonChannel, Simulation
from ..units import per
from .show import console, number, progress_display, table
from .simulate import hidden

SECONDS = 20.0
DRAWN = 0.25  # seconds of the trace that the figure shows
LEARNED, STEPS = 5.0, 400  # seconds that the neural engine sees, and its training steps


def run(out: Path, *, seed: int) -> None:
    out.mkdir(parents=True, exist_ok=True)
    channel = IonChannel.paper("one-second")
    recording = channel.simulate(1, duration=SECONDS, seed=seed)
    write(recording.data, out / "channel.csv")
    write(hidden(recording), out / "channel-truth.csv")
    levels, rates = np.array(channel.levels), np.array(channel.rates)
    estimates = {
        "hidden path": rates_from_paths(sampled_path(recording.states, channel.frequency), len(levels)),
        "nearest level": rates_from_paths(
            sampled_path(nearest_level(recording.data.values[:, 0], levels), channel.frequency), len(levels)
        ),
    }
    with progress_display() as progress:
        fitted = ExactMJP(len(levels), emission="gaussian", seed=seed).fit(recording.data, progress)
        # A part of it, and few steps: enough to see that both engines agree, in a minute on a laptop.
        part = recording.data.between(0, LEARNED)
        neural = NeuralMJP(len(levels), emission="gaussian", seed=seed, changes={"steps": STEPS}).fit(part, progress)
    fitted.save(out / "model")
    estimates["exact fit"] = fitted.intervals["rates"]
    found = {"exact": estimates["exact fit"], f"neural, first {LEARNED:g} s": neural.intervals["rates"]}
    source = source_of(rates, found, channel.time_unit)
    write_report(fitted, out / "report.html", data=recording.data, source=source)
    accuracy = float((fitted.decode(recording.data).states == recording.states).mean())
    draw(recording, levels, rates, estimates, out / "demo.png")
    show(channel, recording, rates, estimates, accuracy, source.findings, out)


def source_of(rates: np.ndarray, found: dict[str, Interval], unit: str) -> Source:
    """The truth beside what both engines found, and whether their intervals hold it."""
    jumps = [(int(i), int(j)) for i, j in np.argwhere(rates > 0)]
    headings, rows, findings = ["jump", "truth"], [[f"{i} → {j}", float(rates[i, j])] for i, j in jumps], []
    for name, interval in found.items():
        headings += [name, "from", "to"]
        held = 0
        for row, (i, j) in zip(rows, jumps, strict=True):
            mean, lower, upper = (float(part[i, j]) for part in (interval.mean, interval.lower, interval.upper))
            row += [mean, lower, upper]
            held += lower <= rates[i, j] <= upper
        missed = [row[0] for row in rows if not row[-2] <= row[1] <= row[-1]]
        words = f"{name}: {held} of {len(jumps)} true rates are inside their 95 % intervals"
        findings.append(
            Finding(True if not missed else None, f"{words}{'; not ' + ', '.join(missed) if missed else ''}.")
        )
    title = f"Truth beside what was found ({per(unit)})"
    table = Table("truth", title, tuple(headings), tuple(tuple(row) for row in rows))
    return Source(data="a simulated channel", command="neuralmjp demo", findings=findings, tables=[table])


def nearest_level(current: Float[np.ndarray, "time"], levels: Float[np.ndarray, "state"]) -> Int[np.ndarray, "time"]:
    """The state whose level is closest to each sample: what one would do by eye."""
    return np.abs(current[:, None] - levels).argmin(-1)


def sampled_path(states: np.ndarray, frequency: float) -> JumpPath:
    """A path known at every sample, as if nothing happened in between."""
    return joined(np.arange(1, len(states)) / frequency, states, len(states) / frequency)


def draw(
    recording: Simulation, levels: np.ndarray, rates: np.ndarray, estimates: dict[str, Interval], file: Path
) -> None:
    from matplotlib.figure import Figure

    from ..plots import plot_rates, plot_trace

    figure = Figure(figsize=(10, 6.5), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(1, 1.1))
    shown = recording.data.between(0, DRAWN)
    plot_trace(shown, above, states=recording.states[: shown.n_observations], levels=levels)
    above.set_title("A noisy channel and the hidden path behind it", loc="left")
    above.set_ylabel("current (pA)")
    plot_rates(estimates, below, time_unit=recording.data.time_unit, truth=rates)
    below.set_title("Its jump rates: truth, two simple readings, and the exact fit to the noisy samples", loc="left")
    for ax in (above, below):
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=130)


def show(
    channel: IonChannel,
    recording: Simulation,
    rates: np.ndarray,
    estimates: dict[str, Interval],
    accuracy: float,
    findings: Sequence[Finding],
    out: Path,
) -> None:
    screen = console()
    screen.print(
        f"A channel with {len(rates)} levels, {recording.data.n_observations} samples at "
        f"{channel.frequency:g} Hz, noise {channel.noise_sd:g} pA."
    )
    rows = []
    for i, j in np.argwhere(rates > 0):
        cells = [
            f"{number(float(e.mean[i, j]))}  [{number(float(e.lower[i, j]))}, {number(float(e.upper[i, j]))}]"
            for e in estimates.values()
        ]
        rows.append([f"{i} → {j}", number(float(rates[i, j])), *cells])
    screen.print(table(f"Jump rates ({per(channel.time_unit)}), 95 % intervals", ["jump", "truth", *estimates], rows))
    screen.print(
        "Read off the hidden path, the rates are as good as this recording allows.\n"
        "Rounding each noisy sample to the nearest level invents jumps.\n"
        "The exact fit models the noise: it needs neither the path nor the levels, and says how sure it is.\n"
        f"Its most likely path is right at {100 * accuracy:.2f} % of the samples."
    )
    for one in findings:
        screen.print(one.words, soft_wrap=True)
    screen.print(f"figure: {out / 'demo.png'}   data: {out / 'channel.csv'}   model: {out / 'model'}", soft_wrap=True)
    screen.print(f"report: {out / 'report.html'}", soft_wrap=True)
