"""Tests run in double precision, with shapes and types checked at every call, and share one compilation cache."""

import os
from pathlib import Path

# Set before JAX is imported anywhere, and inherited by the commands that tests start.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path.home() / ".cache" / "neuralmjp" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("MPLBACKEND", "Agg")

import jax
import pytest
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
install_import_hook("neuralmjp", "strict.check")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def shared_data() -> Path:
    """Real recordings made by other people; they are not part of the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the folder of real data {SHARED_DATA.name!r} is not beside this checkout")
    return SHARED_DATA
