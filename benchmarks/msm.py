"""Panel data of heart-transplant patients: R `msm` and this library, both reference models, in one go.

    python benchmarks/msm.py

`seen`: states observed without error. `hidden`: states read with error, the first one truly. R fits with its default
tolerances from the starting values of its manual (`default`), again until nothing moves (`tight`), and for the hidden
model also from evenly filled rates (`flat start`) and from values near ours (`near, tight`). Ours is fitted in a
process of its own, without starting values; compilation included.
"""

import csv
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from harness import HERE, Benchmark, fresh, table, timed
from neuralmjp import ExactMJP, Panel, read

JUMPS = {"seen": "12 14 21 23 24 32 34", "hidden": "12 14 23 24 34"}
MISREAD = "12 21 23 32"
REPEATS = 3


def allowed(pairs: str) -> np.ndarray:
    mask = np.zeros((4, 4))
    for pair in pairs.split():
        mask[int(pair[0]) - 1, int(pair[1]) - 1] = 1
    return mask


def ours(path: str, model: str) -> dict:
    """One fit; rates and misreadings as [estimate, lower, upper] by name, as R names them."""
    data = read(path, series="PTNUM", time="years", values="state", time_unit="years")
    choices = {"mask": allowed(JUMPS[model]), "panel": Panel(exact_entry=4, first_known=model == "hidden")}
    if model == "hidden":
        choices |= {"emission": "categorical", "misread": allowed(MISREAD) + np.eye(4)}
    fitted, seconds = timed(lambda: ExactMJP(4, **choices).fit(data))
    found = {}
    for word, name, pairs in (("rate", "rates", JUMPS[model]), ("misread", "emission.probability", MISREAD)):
        interval = fitted.intervals.get(name)
        for a, b in pairs.split() if interval is not None and (word == "rate" or model == "hidden") else ():
            at = int(a) - 1, int(b) - 1
            parts = interval.mean, interval.lower, interval.upper
            found[f"{word} {a}-{b}"] = [float(part[at]) for part in parts]
    return {"minus2loglik": -2 * fitted.log_likelihood, **seconds, "numbers": found}


def by_r(path: Path, quick: bool) -> dict[str, dict]:
    """Every fit of msm.R: {fit: {quantity: [estimate, lower, upper]}}, and the seconds of the whole."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.csv"
        command = ["Rscript", str(HERE / "msm.R"), str(path), str(out), "1" if quick else str(REPEATS)]
        _, whole = timed(lambda: subprocess.run([*command, "quick"] if quick else command, check=True))
        fits: dict[str, dict] = {"whole": {"seconds": [whole["seconds"]]}}
        for row in csv.DictReader(out.open()):
            numbers = [float(row[k]) for k in ("estimate", "lower", "upper") if row[k] != "NA"]
            fits.setdefault(row["fit"], {})[row["quantity"]] = numbers
    return fits


def side_by_side(model: str, mine: dict, fit: dict) -> float:
    """Print every number with its interval; the largest relative difference between ends of intervals."""
    worst, rows = 0.0, []
    for name, own in mine["numbers"].items():
        theirs = fit.get(f"{name} (covariance)", fit[name])
        worst = max(worst, *(abs(a / b - 1) for a, b in zip(own[1:], theirs[1:], strict=True)))
        printed = "{:.5f} [{:.5f}, {:.5f}]"
        rows.append([name, printed.format(*own), printed.format(*theirs), printed.format(*fit[name])])
    table(f"{model}: 95 % intervals", ["", "ours", "R, from its covariance", "R, as printed"], rows)
    return worst


def main() -> int:
    bench = Benchmark("msm", __doc__, data="panel/cav.csv")
    r = {}
    if shutil.which("Rscript"):
        r = by_r(bench.data, bench.quick)
        print(f"the whole R script: {r['whole']['seconds'][0]:.1f} s")
    else:
        print("Rscript is not installed: R's part is left out (apt-get install r-cran-msm)")
    mine, rows = {}, []
    for model in ("seen",) if bench.quick else ("seen", "hidden"):
        runs = [fresh("msm", "ours", path=str(bench.data), model=model) for _ in range(1 if bench.quick else REPEATS)]
        mine[model] = runs[0] | {
            k: statistics.median(x[k] for x in runs) for k in ("seconds", "cpu_seconds", "import_seconds")
        }
        rows.append([f"{model}, ours", *(mine[model][k] for k in ("seconds", "cpu_seconds"))])
        rows[-1] += [f"{mine[model]['minus2loglik']:.6f}", f"{mine[model]['import_seconds']:.1f} s of imports apart"]
        for name in (name for name in r if name.startswith(model)):
            rows.append([f"R: {name}", r[name]["seconds"][0], r[name]["cpu_seconds"][0]])
            rows[-1] += [f"{r[name]['minus2loglik'][0]:.6f}", f"{r[name]['evaluations'][0]:.0f} evaluations"]
    table("fits", ["", "seconds", "of processor", "-2 log L", ""], rows)
    bench.results |= {"ours": mine, "r": r}
    for model in mine if r else ():
        tight = r.get(f"{model}, tight") or r[f"{model}, default"]
        worst = side_by_side(model, mine[model], tight)
        difference = mine[model]["minus2loglik"] - tight["minus2loglik"][0]
        bench.require(f"{model}: -2 log L within 1e-3 of R's best ({difference:+.6f})", abs(difference) < 1e-3)
        bench.require(f"{model}: ends of intervals within 5 % of R's ({100 * worst:.2f} %)", worst < 0.05)
        for how in ("default", "tight"):
            fit = r.get(f"{model}, {how}")
            ratio = fit["seconds"][0] / mine[model]["seconds"] if fit else 0.0
            bench.require(f"{model}: at least 5 times as fast as R, {how} ({ratio:.2f} times)", ratio >= 5)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
