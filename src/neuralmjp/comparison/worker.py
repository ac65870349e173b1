"""One fit in a process of its own: `python -m neuralmjp.comparison.worker TASK.json`.

A process of its own measures its memory, uses the machine beside others, and takes nobody with it when it fails.
It ends when its standard input does: whoever asked is gone.
"""

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..io import read
from ..io.files import replacing
from ..timeseries import TimeSeries
from .methods import Question, answer


def split(data: TimeSeries, held_out: float) -> tuple[TimeSeries, TimeSeries | None]:
    """What is fitted, and the last of the series, or of a single one the last of its time, which is not."""
    if held_out == 0:
        return data, None
    by = "series" if round(held_out * len(data)) > 0 else "time"
    train, test = data.split((1 - held_out, held_out), by=by)
    return train, test


def worked(task: dict[str, Any]) -> dict[str, Any]:
    """An answer, or in words why there is none."""
    try:
        data = read(Path(task["file"]))
        train, test = split(data, task["held_out"])
        found = answer(task["method"], Question(train, test, data, **task["asked"]))
    except InputError as error:
        return {"failed": str(error)}
    except Exception as error:
        return {"failed": " ".join(f"{type(error).__name__}: {error}".split())}
    return found.to_json()


def end_with_whoever_asked() -> None:
    os.read(0, 1)
    os._exit(1)


def main(file: str) -> None:
    threading.Thread(target=end_with_whoever_asked, daemon=True).start()
    task = json.loads(Path(file).read_text())
    with replacing(Path(task["result"])) as partial:
        partial.write_text(json.dumps(worked(task), allow_nan=False))


if __name__ == "__main__":
    main(sys.argv[1])
