"""Two hundred fits in one process: memory settles."""

import subprocess
import sys

import pytest

FITS, FIRST, MOST = 200, 20, 1.05
SCRIPT = f"""
import gc, resource, sys
from pathlib import Path
from neuralmjp import ExactMJP, NeuralMJP, systems

def memory():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

tiny = {{"width": 4, "batch": 4, "steps": 4, "round_steps": 2}}
for k in range({FITS}):
    data = systems.TwoMode().simulate(6, 30, seed=k).data
    if k % 10:
        ExactMJP(2, "gaussian", restarts=1, seed=k).fit(data)
    else:
        NeuralMJP(2, "gaussian", changes=tiny, seed=k).fit(data)
    if k + 1 in ({FIRST}, {FITS}) or k % 20 == 19:
        print(k + 1, memory() // 2**20, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is taken from /proc, which Linux has")
def test_memory_settles():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    memory = dict(map(int, line.split()) for line in done.stdout.splitlines())
    print(f"\nMiB after so many fits: {memory}")
    assert memory[FITS] < MOST * memory[FIRST]
