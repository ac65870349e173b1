"""Tests run in double precision, with shapes and types checked at every call, and share one compilation cache."""

import os
import signal
import sys
from pathlib import Path

# Set before JAX is imported anywhere, and inherited by the commands that tests start.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path.home() / ".cache" / "neuralmjp" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("MPLBACKEND", "Agg")

import hypothesis
import jax
import numpy as np
import pytest
from jaxtyping import install_import_hook

from command import Ended

# A shell starts its background jobs with interrupts ignored, and programs inherit that: some tests interrupt programs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
jax.config.update("jax_enable_x64", True)
hypothesis.settings.register_profile("patient", deadline=None)  # a busy machine is no fault of the code
hypothesis.settings.load_profile("patient")
install_import_hook("neuralmjp", "strict.check")

PRINTING = np.get_printoptions()
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(autouse=True, scope="module")
def _forgotten_programs():
    """Compiled programs go with their module: thousands in one process exhaust its memory maps, and it crashes."""
    yield
    jax.clear_caches()


@pytest.fixture
def ax():
    """Where a figure is drawn."""
    from matplotlib.figure import Figure

    return Figure().subplots()


@pytest.fixture(autouse=True)
def _usual_printing():
    """Some packages change how everybody's arrays are printed as soon as they are imported."""
    with np.printoptions(**PRINTING):
        yield


@pytest.fixture
def shared_data() -> Path:
    """Real recordings made by other people; they are not part of the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the folder of real data {SHARED_DATA.name!r} is not beside this checkout")
    return SHARED_DATA


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command in this process, in a folder of its own."""
    from neuralmjp import cli  # not before the types are watched

    monkeypatch.chdir(tmp_path)

    def call(*words) -> Ended:
        monkeypatch.setattr(sys, "argv", ["neuralmjp", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return Ended(ended.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def table(tmp_path) -> Path:
    """Two series, two values, one value missing."""
    path = tmp_path / "table.csv"
    path.write_text("series,time,a,b\nx,0,1,5\nx,1,2,\nx,3,1,6\ny,0,2,5\ny,2,1,7\n")
    return path
