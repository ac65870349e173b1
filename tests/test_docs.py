"""What the documentation shows is what happens: code in README.md and docs/, and every example in a docstring."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "neuralmjp"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)

PAGES = sorted(path for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")] if BLOCK.search(path.read_text()))
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if re.search(">>> [^#]", path.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_python_on_a_page_runs(page, tmp_path, monkeypatch, capsys):
    """Blocks of one page run in order, in one namespace, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    namespace = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line = text[: block.start()].count("\n") + 1
        if ">>> " in block[1]:
            test = doctest.DocTestParser().get_doctest(block[1], namespace, page.name, str(page), line)
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
            assert runner.run(test, clear_globs=False).failed == 0, capsys.readouterr().out
            namespace |= test.globs
        else:
            exec(compile("\n" * line + block[1], page, "exec"), namespace)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_examples_in_docstrings(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0, capsys.readouterr().out
