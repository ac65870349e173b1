"""How commands are run in tests, and what is asked of one that was refused."""

import os
import subprocess
import sys
from typing import NamedTuple

# Of what is simulated.
SMALL = ("--series", 3, "--length", 20)


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


def run_outside(*words, **environment) -> Ended:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "neuralmjp", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def assert_refused(ended: Ended, *words: str, status: int = 2) -> None:
    assert ended.status == status
    assert ended.err.startswith("neuralmjp: ")
    assert ended.err.count("\n") == 1
    assert ended.err.endswith("\n")
    assert "Traceback" not in ended.out + ended.err
    for word in words:
        assert word in ended.err
