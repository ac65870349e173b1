"""What the documentation shows is what happens: code in README.md and docs/, and every example in a docstring."""

import doctest
import re
import runpy
import sys
from importlib import import_module

import numpy as np
import pytest
from matplotlib.image import imread

from pages import ROOT, TUTORIALS, alike, blocks_of, not_printed, run_block

PACKAGE = ROOT / "src" / "neuralmjp"

PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(TUTORIALS.glob("*.md"))]
    if blocks_of(page)
]
MARKED = [block for page in PAGES for block in blocks_of(page) if block.needs or block.not_run]
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if re.search(">>> [^#]", path.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_runs(page, tmp_path, monkeypatch):
    """Blocks of one page run in order, in one namespace, in an empty folder, and print what the page shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    namespace = {"__name__": "__main__"}
    with np.printoptions():  # a page, or a package that it imports, may change how arrays are printed
        for block in blocks_of(page):
            if block.left_out is None:
                run_block(block, namespace)


@pytest.mark.parametrize("block", MARKED, ids=lambda block: f"{block.page.name}-{block.line}")
def test_what_a_page_leaves_out_is_told(block):
    """Blocks that need what is not here show up as skipped; the others ran with their page."""
    if block.left_out is not None:
        pytest.skip(block.left_out)


def test_every_tutorial_runs():
    assert set(TUTORIALS.glob("*.md")) <= set(PAGES)


@pytest.mark.parametrize("script", sorted((ROOT / "docs" / "figures").glob("*.py")), ids=lambda path: path.name)
def test_a_figure_is_drawn_by_its_script(script, tmp_path, monkeypatch):
    assert script.with_suffix(".png").is_file()
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path / "drawn.png")])
    runpy.run_path(str(script), run_name="__main__")
    assert imread(tmp_path / "drawn.png").shape == imread(script.with_suffix(".png")).shape


def test_numbers_may_differ_a_little_and_words_may_not():
    assert alike("rate 1.00  per s", "rate 1.02 per s")
    assert not alike("rate 1.00 per s", "rate 1.20 per s")
    assert not alike("rate 1.00 per s", "rate 1.00 per ms")
    assert not_printed("a 1\n...\nb 2\n", "a 1\nx\nb 2\n") is None
    assert not_printed("b 2\na 1\n", "a 1\nb 2\n") == "a 1"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_examples_in_docstrings(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0, capsys.readouterr().out
