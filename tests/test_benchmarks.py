"""Every benchmark still runs, in miniature."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "harness")
ON_SHARED_DATA = ("free_rates", "ion_channel", "msm")


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_benchmark_in_miniature(name, request):
    if name in ON_SHARED_DATA:
        request.getfixturevalue("shared_data")
    if name == "msm" and shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MPLBACKEND": "Agg"})
    assert done.returncode == 0, done.stdout + done.stderr
