"""Large files are read without a second copy of the data."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peak memory is taken from /proc, which Linux has")

# Peak memory of a process of its own, beyond what it holds after reading a small file.
SCRIPT = """
import json, sys
from neuralmjp.io import read

def memory(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))

read(sys.argv[1])
before = memory("VmRSS")
data = read(sys.argv[2])
peak = memory("VmHWM")
print(json.dumps({
    "n_series": len(data),
    "n_observations": data.n_observations,
    "growth": peak - before,
    "data": data.times.nbytes + data.values.nbytes + data.offsets.nbytes,
}))
"""


def write_csv(path: Path, n_bytes: int, rows_per_series: int = 20_000) -> int:
    """Write the same rows for one series after another, and return the number of series."""
    rng = np.random.default_rng(0)
    table = np.column_stack([np.cumsum(rng.random(rows_per_series)), rng.normal(size=(rows_per_series, 2))])
    block = "".join(f"SERIES,{t!r},{x!r},{y!r}\n" for t, x, y in table.tolist())
    n_series = n_bytes // len(block)
    with open(path, "w") as file:
        file.write("series,time,x,y\n")
        for i in range(n_series):
            file.write(block.replace("SERIES", f"s{i}"))
    return n_series


def check_memory(folder: Path, n_bytes: int) -> None:
    small, large = folder / "small.csv", folder / "large.csv"
    small.write_text("time,x\n0,1\n1,2\n")
    n_series = write_csv(large, n_bytes)
    done = subprocess.run([sys.executable, "-c", SCRIPT, small, large], capture_output=True, text=True, check=True)
    large.unlink()
    found = json.loads(done.stdout)
    assert (found["n_series"], found["n_observations"]) == (n_series, n_series * 20_000)
    allowance_for_blocks = 32 << 20
    assert found["growth"] < 1.5 * found["data"] + allowance_for_blocks


def test_100_megabytes(tmp_path):
    check_memory(tmp_path, 100 << 20)


@pytest.mark.slow
def test_2_gigabytes(tmp_path):
    check_memory(tmp_path, 2 << 30)
