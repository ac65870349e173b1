"""What tests of several readers share."""

import pytest


@pytest.fixture
def without(tmp_path, monkeypatch):
    """As if a package were not installed, in the processes too that read files apart."""

    def hide(package):
        (tmp_path / "hidden").mkdir()
        (tmp_path / "hidden" / f"{package}.py").write_text("raise ImportError")
        monkeypatch.syspath_prepend(tmp_path / "hidden")

    return hide
