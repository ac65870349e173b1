"""The page of results says what the files of results say."""

import json
import runpy
from pathlib import Path

import pytest

from neuralmjp import InputError
from neuralmjp.experiments import named

ROOT = Path(__file__).resolve().parents[1]
made = runpy.run_path(str(ROOT / "results" / "page.py"))
again = runpy.run_path(str(ROOT / "results" / "again.py"))


def test_the_page_is_what_the_files_say():
    written = (ROOT / "docs" / "results.md").read_text()
    assert written == made["page"](made["reports"]()), "run: python results/page.py"


def test_every_file_is_shown():
    written = (ROOT / "docs" / "results.md").read_text()
    for report in made["reports"]():
        assert report["command"] in written
        for table in report["tables"]:
            assert table["title"] in written
            assert table["rows"], f"{report['command']}: nothing in {table['title']!r}"
            assert all(line["method"] in written for row in table["rows"] for line in row["lines"])


def test_the_readme_says_the_same():
    page = (ROOT / "docs" / "results.md").read_text().splitlines()
    readme = (ROOT / "README.md").read_text().splitlines()
    start = readme.index("| --- | --- | --- | --- | --- |") + 1
    shown = readme[start : readme.index("", start)]
    assert len(shown) > 3
    assert all(line in page for line in shown), "copy the lines from docs/results.md"


def test_every_figure_is_there_and_small():
    named = {name for report in made["reports"]() for name in report["figures"]}
    files = {file.stem: file for file in made["FIGURES"].glob("*.png")}
    assert named == files.keys()
    assert all(file.stat().st_size < 250_000 for file in files.values())


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (None, "-"),
        ({"mean": None, "sd": None}, "-"),
        ({"mean": 0.727, "sd": None}, "0.727"),
        ({"mean": 0.0169, "sd": 0.001}, "0.0169 ±0.0010"),
        ({"mean": 0.00312, "sd": None}, "0.00312"),
        ({"mean": 0.000031, "sd": 0.00002}, "0.000031 ±0.000020"),
        ({"mean": 13.727, "sd": 4.0}, "13.73 ±4.00"),
        ({"mean": 1234.4, "sd": None}, "1234"),
        ({"mean": 0.0, "sd": None}, "0"),
    ],
)
def test_numbers(number, words):
    assert made["shown"](number) == words


def test_a_line_that_another_command_runs_too_is_shown_in_both_tables():
    def report(title, row, *methods):
        lines = [{"method": one, "numbers": {"KL": {"mean": float(k), "sd": None}}} for k, one in enumerate(methods)]
        return {"tables": [{"title": title, "columns": ["KL"], "rows": [{"name": row, "lines": lines}], "note": "n"}]}

    whole = report(*made["LENT_FROM"], "published", "paper's method", "tilted")
    own = report(*made["LENT_TO"], "explicit prior")
    shown = made["joined"](made["lent"]([whole, own])[1]["tables"][0]["rows"])[0]["lines"]
    assert {one["method"]: one["numbers"]["KL"]["mean"] for one in shown} == {
        "as published": 1.0,
        "tilted posterior": 2.0,
        "explicit prior": 0.0,
    }
    assert made["lent"]([whole]) == [whole]
    assert made["lent"]([own]) == [own]
    once_more = report(*made["LENT_TO"], "as published", "tilted posterior")  # run after all: its own numbers
    assert made["lent"]([whole, once_more]) == [whole, once_more]


def test_rows_of_several_files_come_together():
    def report(row):
        line = {"method": "exact", "numbers": {"x": {"mean": 1.0, "sd": None}}}
        shown = {"title": "T", "columns": ["x"], "rows": [{"name": row, "lines": [line]}], "note": "n"}
        return {
            "experiment": "dfr",
            "tables": [shown],
            "figures": [],
            "command": row,
            "n_runs": 1,
            "seed": 0,
            "seconds": 1,
            "device": "d",
        }

    text = made["page"]([report("a"), report("b")])
    assert text.count("**T**") == 1
    assert "| a | exact | 1 |\n| b | exact | 1 |" in text


def test_sums_of_several_files_are_one():
    def rows(name, seconds):
        line = {"method": "exact", "numbers": {"seconds": {"mean": seconds, "sd": None}}}
        return [{"name": name, "lines": [line]}, {"name": "all together", "lines": [line]}]

    found = made["joined"]([*rows("a", 1.0), *rows("b", 2.0)])
    assert [one["name"] for one in found] == ["a", "b", "all together"]
    assert found[-1]["lines"][0]["numbers"]["seconds"]["mean"] == 3.0


def test_a_glance_shows_the_largest_error():
    def row(name, **lines):
        numbers = {
            method: {"x": {"mean": x, "sd": None}, "y": {"mean": 1.0, "sd": None}} for method, x in lines.items()
        }
        return {"name": name, "lines": [{"method": method, "numbers": both} for method, both in numbers.items()]}

    rows = [row("a grid", tilted=1.1, exact=2.0), row("b grid", tilted=0.8), row("c", tilted=9.0)]
    known = made["Glance"]("x", "T", {"x": 1.0, "y": 1.0}, rows="grid")
    assert made["off"](known, rows, "tilted") == "20.0 %"
    assert made["off"](known, rows, "exact") == "100.0 % (1 of 2)"
    assert made["off"](known, rows, "published") == "-"
    told = made["Glance"]("x", "T", "tilted", ("x",), rows="a grid")
    assert made["off"](told, rows, "exact") == "81.8 %"


def test_methods_of_one_row_come_together():
    def row(*methods):
        return {"name": "a", "lines": [{"method": method, "numbers": {}} for method in methods]}

    (found,) = made["joined"]([row("truth", "tilted"), row("truth", "exact")])
    assert [line["method"] for line in found["lines"]] == ["truth", "tilted", "exact"]


def test_two_answers_of_one_method_are_none():
    def row(mean):
        return {"name": "a", "lines": [{"method": "exact", "numbers": {"x": {"mean": mean, "sd": None}}}]}

    with pytest.raises(ValueError, match="a, exact: two files, and they differ"):
        made["joined"]([row(1.0), row(2.0)])


def test_a_command_is_run_again_as_it_stands():
    command = "neuralmjp reproduce adp --data a.npz --only 'six states,paper'\"'\"'s method'"
    found = again["arguments"](command, "adp", Path("new"), Path("there"))
    assert found[1:8] == ["-m", "neuralmjp", "reproduce", "adp", "--data", "there/a.npz", "--only"]
    assert found[8:10] == ["six states,paper's method", "--json"]
    assert found[-4:] == ["--out", "new/figures", "--keep", "new/keep/adp"]


def test_what_is_wanted_is_what_the_files_hold():
    """A file under such a name holds the answer to its command; the page lists the others, as they are to be typed."""
    written = (ROOT / "docs" / "results.md").read_text()
    for stem, asked in made["WANTED"].items():
        file, command = ROOT / "results" / f"{stem}.json", made["command_of"](*asked)
        if file.exists():
            assert json.loads(file.read_text())["command"] == command
        else:
            assert f"- `{command}`" in written


@pytest.mark.parametrize("asked", made["WANTED"].values(), ids=list(made["WANTED"]))
def test_what_is_wanted_can_be_asked_for(asked):
    """Its rows are known to the experiment, which says so before it begins."""
    experiment, data, only = asked
    begun = []

    class Begun(Exception):
        pass

    def stop(stage, share):
        begun.append(stage)
        raise Begun

    more = {"data": ROOT / "nowhere" / data} if data else {}
    with pytest.raises((Begun, InputError)) as ended:
        named(experiment)("paper", 1, 0, stop, list(only), **more)
    assert begun or "no such file" in str(ended.value), ended.value
    with pytest.raises(InputError, match="no row 'tiltde'"):
        named(experiment)("paper", 1, 0, stop, ["tiltde"], **more)


def test_what_differs_from_the_page_is_told():
    report = next(one for one in made["reports"]() if one["experiment"] == "dfr")
    assert again["differences"](report, report) == ""
    other = json.loads(json.dumps(report))
    line = other["tables"][0]["rows"][0]["lines"][1]
    line["seconds"], line["numbers"]["V"]["mean"] = 1e6, 7.0
    told = again["differences"](report, other)
    assert told.startswith("Table 1: parameters of the flashing ratchet")
    assert told.count(", now ") == 1
    assert ", now 7.0" in told
