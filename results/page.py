"""Writes docs/results.md from the JSON files beside it: `python results/page.py`.

Each file is what `neuralmjp reproduce ... --json FILE` wrote; several of one experiment are put together.
"""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "results.md"
FIGURES = PAGE.parent / "figures" / "results"  # what `reproduce ... --out` drew
ORDER = (
    "dfr",
    "ion-channel",
    "lotka-volterra",
    "adp",
    "brownian-folding",
    "two-mode",
    "ablations",
    "timing",
)
NAMES = {
    "dfr": "Discrete flashing ratchet",
    "ion-channel": "Ion channel",
    "lotka-volterra": "Lotka-Volterra",
    "adp": "Alanine dipeptide",
    "brownian-folding": "Brownian folding",
    "two-mode": "Two-mode switching system",
    "ablations": "Ablations",
    "timing": "Training times",
}
CAPTIONS = {
    "dfr-trajectory": "A ratchet's path: the first half given, the second forecast",
    "ion-channel-forecast": "Reconstruction and forecast of a current",
    "ion-channel-forecast-errors": "Errors of forecasts against how far ahead they look",
    "lotka-volterra-prediction": "Predators and prey: given, reconstructed, forecast",
    "lotka-volterra-single": "One trajectory of 16 observations: exact and by a mean field",
    "adp-6-states": "Six states of alanine dipeptide on the torus",
    "adp-3-states": "Three states of alanine dipeptide",
    "adp-2-states": "Two states of alanine dipeptide",
    "two-mode-reconstruction": "True modes, posterior of the upper one, and observations",
    "ablation-prior": "How alpha moves under an implicit and an explicit prior",
}


@dataclass(frozen=True)
class Glance:
    """How far methods are off, at most, over the columns and rows of a table.

    Attributes:
        truth: by column, or the method whose line tells it.
        rows: what the names of rows end in.
    """

    what: str
    table: str
    truth: dict[str, float] | str
    columns: tuple[str, ...] = ()
    rows: str = ""
    without: tuple[str, ...] = ()  # methods that are not shown: of another truth, or not as they should be


RATCHET = "Appendix: several runs, and the test set"
PREDATORS = "Appendix: several runs, and the test set; parameters x 1e-4"
FOLDING = "Brownian folding: stationary law, and rates per time unit"
TIMES = "Relaxation times (ns)"
MSM = "MSM (as here)"
TIMING = "Training times, one run each"
GLANCES = (
    Glance("Ratchet: V, r, b, three grids", RATCHET, {"V": 1.0, "r": 1.0, "b": 1.0}, rows="grid"),
    Glance(
        "Lotka-Volterra: four constants, three grids",
        PREDATORS,
        {"alpha": 5.0, "beta": 1.0, "delta": 1.0, "gamma": 5.0},
        rows="grid",
    ),
    Glance("Brownian folding: share of the folded state", FOLDING, "truth", ("folded",)),
    Glance("Brownian folding: two rates", FOLDING, "truth", ("unfolding", "folding")),
    Glance(
        "Ion channel, whole recording: relaxation times",
        "Ordered relaxation times (s)",
        "truth",
        ("first", "second"),
        rows="full",
        without=("published",),
    ),
    Glance("Alanine dipeptide: slowest timescale", TIMES, MSM, ("first",), rows="six states"),
    Glance("Alanine dipeptide: second timescale", TIMES, MSM, ("second",), rows="six states"),
    Glance("Alanine dipeptide: third timescale", TIMES, MSM, ("third",), rows="six states"),
)
# Lines of one table that another command runs too, to the letter: method there, by method here.
ABLATION = "The paper's method without one of its parts: flashing ratchet, irregular grid (truth: 1, 1, 1)"
LENT_FROM, LENT_TO = (RATCHET, "irregular grid"), (ABLATION, "flashing ratchet")
LENT = {"as published": "paper's method", "tilted posterior": "tilted"}
LENT_NOTE = "as published, tilted posterior: the same runs as above, on the irregular grid"
COMPARED = ("published", "paper's method", "tilted", "exact limit")
GLANCE_NOTE = """How far each is off, at most, over all that is named; means over all runs. For the truth of alanine
dipeptide stands a Markov state model of the same frames, "MSM (as here)" below (with other clusters or a third
trajectory its third timescale is 0.034 to 0.045 ns); the published numbers are of another trajectory. "-": not
measured, or not of this truth.
"""
TOOK = "seconds"  # of all runs of a line together
SUM = "all together"  # a row that adds up the others
HEAD = """# Results

This page is generated from the files in `results/` by `python results/page.py`; a test fails where they disagree.
Every run counts, none was picked. "published" is what the paper prints; "paper's method" is the same model and
training as implemented here, with the paper's learning rates and its two schedules against index collapse where
emissions are Gaussian; "tilted" is the default of the neural engine; "exact limit" is maximum likelihood: no method
finds parameters that explain the same data better. Seconds are those of all fits behind a line, side by side where they
are runs on the same data. Repeat any of it with the command below its tables, or all of it by
`python results/again.py FOLDER`, which says what differs. What ran on an H200 shared it with others (CUDA MPS): three
take about twice the seconds of one alone, eight three times.

For how long the paper trains it does not say, only for how many hours. Here it is 12,000 steps, after which the
parameters of ratchet and Lotka-Volterra are where the paper's are. Mean and covariance of its Gaussians are outputs
of a network that reads relaxed samples of the state; on one second of the ion channel relaxation then comes out two
to three times too slow. Against index collapse its schedules were not needed: without them none of ten runs on the
two-mode system and on one second collapsed. Lines with a curriculum on the two-mode system were run before programs
for few observations came: the same training, other random draws, more seconds. Seconds of the paper's method on one
second are those of cores that others shared.
"""
PUBLISHED_METHOD = "paper's method"
# What the page shall hold, by the file of its results; a file that is there is no longer asked for.
WANTED = {
    "brownian-folding-paper": ("brownian-folding", "", (PUBLISHED_METHOD,)),
    "ion-channel-full-paper": ("ion-channel", "", ("full", PUBLISHED_METHOD)),
    "ion-channel-amplifiers-neural": ("ion-channel", "ion_channel", (PUBLISHED_METHOD, "tilted")),
    **{
        f"adp-{number}-paper": (
            "adp",
            "alanine-dipeptide-backbone-dihedrals.npz",
            (f"{number} states", PUBLISHED_METHOD),
        )
        for number in ("six", "three", "two")
    },
    "ablations-ratchet-joint-updates": ("ablations", "", ("flashing ratchet", "joint updates")),
    **{
        f"ablations-one-second-{schedule.replace(' ', '-')}": (
            "ablations",
            "",
            ("index collapse", "ion-channel-one-second", schedule),
        )
        for schedule in ("no schedule", "fixed spread", "curriculum", "both")
    },
}
LACKING = """## Still to be measured

Lines of the paper's method, and one of the default, that are not on this page yet. Each trains networks of the
published size for 6,000 to 12,000 steps, five or ten runs side by side: minutes on a card, hours on a few cores.
`python results/again.py FOLDER --missing` runs them; a file of the same name in `results/` puts it on the page.
"""


def reports() -> list[dict[str, Any]]:
    """All files, by experiment."""
    found = [json.loads(path.read_text()) for path in sorted(HERE.glob("*.json"))]
    return sorted(found, key=lambda one: ORDER.index(one["experiment"]))


def page(found: list[dict[str, Any]]) -> str:
    """The whole page, as Markdown."""
    found = lent(found)
    parts = [HEAD, glance(found)]
    for experiment in ORDER:
        own = [one for one in found if one["experiment"] == experiment]
        if own:
            parts.append(f"## {NAMES[experiment]}\n")
            parts += [table(each) for each in by_title(own).values()]
            parts += [figure(name) for name in dict.fromkeys(name for one in own for name in one["figures"])]
            parts += [made_by(one) for one in own]
    asked = missing()
    if asked:
        parts.append("\n".join([LACKING, *(f"- `{command}`" for command in asked.values()), ""]))
    return "\n".join(parts)


def missing() -> dict[str, str]:
    """Commands whose results are not here yet, by the name of their file."""
    return {stem: command_of(*asked) for stem, asked in WANTED.items() if not (HERE / f"{stem}.json").exists()}


def command_of(experiment: str, data: str, only: tuple[str, ...]) -> str:
    """As `reproduce` notes it."""
    given = ["--data", data] if data else []
    return shlex.join(["neuralmjp", "reproduce", experiment, "--preset", "paper", *given, "--only", ",".join(only)])


def lent(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the lines that another table has, where they belong to this one as well and nobody ran them twice."""
    tables = [one for report in found for one in report["tables"]]
    known = {
        line["method"]: line
        for one in tables
        if one["title"] == LENT_FROM[0]
        for each in one["rows"]
        if each["name"] == LENT_FROM[1]
        for line in each["lines"]
    }
    own = [one for one in tables if one["title"] == LENT_TO[0]]
    run = {line["method"] for one in own for each in one["rows"] for line in each["lines"]}
    lines = [{**known[there], "method": here} for here, there in LENT.items() if there in known and here not in run]
    if not own or not lines:
        return found
    first = {**own[0], "rows": [{"name": LENT_TO[1], "lines": lines}, *own[0]["rows"]]}
    first["note"] = f"{own[0]['note']}; {LENT_NOTE}"

    def with_first(one: dict[str, Any]) -> dict[str, Any]:
        return first if one is own[0] else one

    return [{**report, "tables": [with_first(one) for one in report["tables"]]} for report in found]


def glance(found: list[dict[str, Any]]) -> str:
    """The page in one table; nothing where nothing is known."""
    by = by_title(found)
    known = [one for one in GLANCES if one.table in by]
    if not known:
        return ""
    lines = [row(["", *COMPARED]), row(["---"] * (len(COMPARED) + 1))]
    for one in known:
        rows = joined([each for part in by[one.table] for each in part["rows"]])
        lines.append(row([one.what, *(off(one, rows, method) for method in COMPARED)]))
    if TIMING in by:
        total = joined([each for part in by[TIMING] for each in part["rows"]])[-1]
        sums = {line["method"]: line["numbers"] for line in total["lines"]}
        hours = f"{sums['published']['hours']['mean']:.0f} h"
        ours = [f"{sums[method]['seconds']['mean']:.0f} s" for method in COMPARED[2:]]
        lines.append(row(["All 14 trainings, one after the other", hours, "-", *ours]))
    return "\n".join(["## At a glance\n", *lines, "", GLANCE_NOTE])


def off(one: Glance, rows: list[dict[str, Any]], method: str) -> str:
    """The largest relative error of a method, with the number of rows where some are missing."""
    errors, chosen = [], [each for each in rows if each["name"].endswith(one.rows)]
    for each in chosen:
        by = {line["method"]: line["numbers"] for line in each["lines"]}
        told = one.truth  # by column, or by a line
        truth = {name: by[told][name]["mean"] for name in one.columns} if isinstance(told, str) else told
        if method in by and method not in one.without:
            errors.append(max(abs(by[method][name]["mean"] / value - 1) for name, value in truth.items()))
    some = f" ({len(errors)} of {len(chosen)})" if len(errors) < len(chosen) else ""
    return f"{100 * max(errors):.1f} %{some}" if errors else "-"


def by_title(own: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Tables that belong together, from whichever files."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for report in own:
        for one in report["tables"]:
            tables.setdefault(one["title"], []).append(one)
    return tables


def table(parts: list[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(name for one in parts for name in one["columns"]))
    rows = joined([each for one in parts for each in one["rows"]])
    took = [TOOK] if any(line.get("seconds") for each in rows for line in each["lines"]) and TOOK not in columns else []
    lines = [f"**{parts[0]['title']}**\n", row(["", "", *columns, *took])]
    lines.append(row(["---"] * (2 + len(columns) + len(took))))
    for each in rows:
        for k, line in enumerate(each["lines"]):
            cells = [shown(line["numbers"].get(name)) for name in columns]
            cells += [seconds_of(line) for _ in took]
            lines.append(row([each["name"] if k == 0 else "", line["method"], *cells]))
    said = dict.fromkeys(words for one in parts for words in one["note"].split("; "))  # each thing once
    return "\n".join([*lines, "", "; ".join(said) + ".\n"])


def seconds_of(line: dict[str, Any]) -> str:
    seconds = line.get("seconds")
    return "" if seconds is None else f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}"


def joined(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of several files: methods of one row stand together, and what each file adds up is one sum, at the end."""
    by_name: dict[str, dict[str, dict[str, Any]]] = {}
    for one in sorted(rows, key=lambda one: one["name"] == SUM):
        lines = by_name.setdefault(one["name"], {})
        for line in one["lines"]:
            known = lines.setdefault(line["method"], line)
            if one["name"] == SUM and known is not line:
                lines[line["method"]] = added(known, line)
            elif as_shown(known) != as_shown(line):
                raise ValueError(f"{one['name']}, {line['method']}: two files, and they differ")
    return [{"name": name, "lines": list(lines.values())} for name, lines in by_name.items()]


def as_shown(line: dict[str, Any]) -> dict[str, str]:
    return {name: shown(number) for name, number in line["numbers"].items()}


def added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    numbers = {
        name: {"mean": number["mean"] + other["numbers"][name]["mean"], "sd": None}
        for name, number in one["numbers"].items()
    }
    return {**one, "numbers": numbers}


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def shown(number: dict[str, Any] | None) -> str:
    if number is None or number["mean"] is None:
        return "-"
    mean, sd = number["mean"], number["sd"]
    if sd is None and mean == round(mean):
        return f"{mean:.0f}"
    size = max(abs(mean), 0 if sd is None else sd)
    digits = next((k for k, least in enumerate((1000, 100, 10, 0.1, 0.01, 0.001)) if size >= least), 6)
    return f"{mean:.{digits}f}" + ("" if sd is None else f" ±{sd:.{digits}f}")


def figure(name: str) -> str:
    return f"![{CAPTIONS[name]}](figures/results/{name}.png)\n\n*{CAPTIONS[name]}.*\n"


def made_by(report: dict[str, Any]) -> str:
    """How to repeat it, and what it took."""
    runs = f"{report['n_runs']} run{'s' if report['n_runs'] > 1 else ''} per row, first seed {report['seed']}"
    return f"`{report['command']}`: {runs}, {report['seconds']:.0f} s on {report['device']}.\n"


if __name__ == "__main__":
    PAGE.write_text(page(reports()))
    print(f"{PAGE.relative_to(HERE.parent)} from {len(reports())} files")
