"""One fit in a process of its own, watched: it may crash, hang or eat memory without harm to others."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..ensembles.places import sharing
from ..io import write
from ..timeseries import TimeSeries

LOOK = 0.1  # seconds between looks at the process
LAST_WORDS = 200  # characters of what a process said before it died


@dataclass(frozen=True)
class Apart:
    """What all fits share.

    Attributes:
        limit: seconds after which a fit is given up.
        threads: of each process; None where its surroundings decide.
        stop: set where nobody waits for answers any more; None where whoever asked is another process.
    """

    data: TimeSeries
    limit: float | None
    threads: int | None = None
    stop: threading.Event | None = None

    def over(self, began: float) -> str | None:
        """Why a fit that began then must end, if it must."""
        if self.stop is not None and self.stop.is_set():
            return "broken off"
        if self.limit is not None and time.monotonic() - began > self.limit:
            return f"given up after {self.limit:g} s"
        return None


def fitted_apart(shared: Apart, question: dict[str, Any]) -> dict[str, Any]:
    """An answer as JSON, or in words why there is none."""
    with tempfile.TemporaryDirectory() as scratch:
        data, task, result, words = (Path(scratch) / name for name in ("data.npz", "task.json", "result.json", "words"))
        write(shared.data, data)
        task.write_text(json.dumps(question | {"file": str(data), "result": str(result)}))
        failed = _run(shared, task, words)
        if failed is not None:
            return {"failed": failed}
        return json.loads(result.read_text())


def _run(shared: Apart, task: Path, words: Path) -> str | None:
    """Run the process to its end; in words what went wrong, or None."""
    command = [sys.executable, "-W", "ignore", "-m", "neuralmjp.comparison.worker", str(task)]
    environment = os.environ if shared.threads is None else {**os.environ, **sharing(shared.threads)}
    with (
        open(words, "wb") as said,
        # The child ends when this pipe does, so that it never outlives whoever asked.
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=said, env=environment) as process,
    ):
        began = time.monotonic()
        while process.poll() is None:
            over = shared.over(began)
            if over is not None:
                process.kill()
                return over
            try:
                process.wait(LOOK)
            except subprocess.TimeoutExpired:
                continue
    if task.with_name("result.json").exists():  # whole or not there, however the process ended after it
        return None
    last = " ".join(words.read_text(errors="replace").split())[-LAST_WORDS:]
    return f"its process ended with status {process.returncode}: {last or 'it said nothing'}"
