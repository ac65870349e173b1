"""What the benchmarks share: options, tables, results on disk, and runs in a process of their own.

Importing this switches JAX's persistent compile cache off, so that compilation is always measured.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"

HERE = Path(__file__).resolve().parent
FRESH = """
import json, sys, time
sys.path.insert(0, {here!r})
began = time.perf_counter()
import {module} as script
ready = time.perf_counter()
result = script.{function}(**json.loads(sys.stdin.read()))
print("\\n" + json.dumps({{"import_seconds": ready - began, **result}}))
"""


class Benchmark:
    """One benchmark: its options, what it found, and whether its requirements hold."""

    def __init__(
        self,
        name: str,
        about: str,
        data: str | None = None,
        more: Callable[[argparse.ArgumentParser], Any] = lambda parser: None,
    ):
        """`data` is the file or folder under the data folder that is needed, if any; `more` adds options."""
        parser = argparse.ArgumentParser(description=about)
        parser.add_argument("--quick", action="store_true", help="a miniature run: no requirement is judged")
        parser.add_argument("--out", type=Path, help="folder for the results (quick runs write only if given)")
        if data:
            default = HERE.parent.parent / "shared" / "data"
            parser.add_argument("--data", type=Path, default=default, help="the folder of data sets")
        more(parser)
        self.options = parser.parse_args()
        self.quick, self.name = self.options.quick, name
        self.out = self.options.out or (None if self.quick else HERE / "results")
        self.results: dict[str, Any] = {}
        self.failed: list[str] = []
        self.data = self.options.data / data if data else Path()
        if data and not self.data.exists():
            sys.exit(f"{name}: {self.data} is missing; give the folder that holds {data} with --data")
        self.busy = os.getloadavg()[0]
        print(f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, load {self.busy:.1f} at the start")

    def require(self, what: str, holds: bool) -> None:
        """Print whether a requirement holds; quick runs judge nothing."""
        if not self.quick:
            print(f"{'holds ' if holds else 'FAILS '} {what}")
            self.results.setdefault("requirements", {})[what] = bool(holds)
            if not holds:
                self.failed.append(what)

    def finish(self) -> int:
        """Write the results; the exit status."""
        self.write()
        return int(bool(self.failed))

    def write(self) -> None:
        """Write what was found so far."""
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            load = {"before": round(self.busy, 1), "after": round(os.getloadavg()[0], 1)}
            text = json.dumps({"quick": self.quick, "load": load, **self.results}, indent=2, default=plain)
            (self.out / f"{self.name}.json").write_text(text + "\n")


def fresh(module: str, function: str, **arguments: Any) -> dict[str, Any]:
    """What `function` of a script here returns, in a new process; with the seconds its imports took."""
    code = FRESH.format(here=str(HERE), module=module, function=function)
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(arguments), stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def timed(function: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """The result, with wall and processor seconds; processor time is what a busy machine distorts least."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


def peak_gigabytes() -> float:
    """Largest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print columns, the first to the left, numbers with five digits."""
    cells = [list(headings)] + [[f"{x:.5g}" if isinstance(x, float) else str(x) for x in row] for row in rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(headings))]
    print(f"\n{title}")
    for row in cells:
        print("  ".join(c.rjust(w) if k else c.ljust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))))


def plain(value: Any) -> Any:
    """NumPy values as JSON."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
