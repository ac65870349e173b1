"""Runs the commands behind docs/results.md again: `python results/again.py FOLDER`, which also holds what they yield.

Whatever is there already is not run again, and a training that was broken off goes on. Every file is compared with the
one beside this script: the same numbers, as far as the page shows them, or which differ.
"""

import argparse
import json
import runpy
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
page = runpy.run_path(str(HERE / "page.py"))


def arguments(command: str, stem: str, folder: Path, data: Path) -> list[str]:
    """The command as it is run here: data from their folder, results into that of this run."""
    words = shlex.split(command)
    if "--data" in words:
        words[words.index("--data") + 1] = str(data / words[words.index("--data") + 1])
    places = {"--json": f"{stem}.json", "--out": "figures", "--keep": f"keep/{stem}"}
    return [
        sys.executable,
        "-m",
        *words,
        *(word for name, place in places.items() for word in (name, f"{folder / place}")),
    ]


def run(stem: str, command: str, folder: Path, data: Path) -> str:
    """How it ended; what it said is in a file of its name."""
    if not (folder / f"{stem}.json").exists():
        with open(folder / f"{stem}.log", "w") as said:
            ended = subprocess.run(arguments(command, stem, folder, data), stdout=said, stderr=said)
        if ended.returncode:
            return f"{stem}: failed, see {folder / stem}.log"
    if not (HERE / f"{stem}.json").exists():
        return f"{stem}: new, {folder / stem}.json; put it beside this script, then run page.py"
    old, new = (json.loads((place / f"{stem}.json").read_text()) for place in (HERE, folder))
    return f"{stem}: {differences(old, new) or 'the same numbers'}"


def differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Every number that the page shows otherwise, or that one of them lacks."""
    before, after = numbers(old), numbers(new)
    return "; ".join(
        f"{name} {before.get(name, '-')}, now {after.get(name, '-')}"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    )


def numbers(report: dict[str, Any]) -> dict[str, str]:
    """As the page shows them, by table, row, method and column; how long it took is another matter."""
    return {
        f"{table['title']}: {row['name']}, {line['method']}, {column}": shown
        for table in report["tables"]
        for row in table["rows"]
        for line in row["lines"]
        for column, shown in page["as_shown"](line).items()
        if column != page["TOOK"]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where results, figures, checkpoints and logs go")
    parser.add_argument("--only", default="", help="files whose names begin with this; default: all")
    parser.add_argument("--missing", action="store_true", help="those that the page still lacks instead")
    parser.add_argument("--jobs", type=int, default=1, help="commands side by side; on a GPU under MPS up to eight pay")
    parser.add_argument("--data", type=Path, default=Path(), help="folder of what some commands read")
    asked = parser.parse_args()
    known = {file.stem: json.loads(file.read_text())["command"] for file in sorted(HERE.glob("*.json"))}
    known = page["missing"]() if asked.missing else known
    commands = {stem: command for stem, command in known.items() if stem.startswith(asked.only)}
    if not commands:
        sys.exit(f"no file begins with {asked.only!r}: {', '.join(known) or 'none is missing'}")
    asked.folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(asked.jobs) as pool:
        for told in pool.map(lambda one: run(*one, asked.folder, asked.data), commands.items()):
            print(told, flush=True)


if __name__ == "__main__":
    main()
