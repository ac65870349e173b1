"""Pages of the documentation: which of their blocks run, what these need, whether they print what the page shows."""

import contextlib
import doctest
import importlib.util
import io
import re
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"  # recordings made by other people; they are not part of the project
TUTORIALS = ROOT / "docs" / "tutorials"
WHOLE_PAGE = re.compile(r"\A# .*\n\n<!-- needs: (.+?) -->\n")  # below the title: for every block
BLOCK = re.compile(
    r"(?:^<!-- (needs|not run): ([^\n]+?) -->\n+)?^```(python|sh|text)\n(.*?)^```\n", re.DOTALL | re.MULTILINE
)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
CLOSE = 0.05  # share by which a number may differ from the one on the page: another processor rounds otherwise


@dataclass(frozen=True)
class Block:
    """A fenced block, and what stands in the comment before it: `needs: MODULE, data PATH` or `not run: WHY`."""

    page: Path
    line: int
    language: str
    text: str
    needs: tuple[str, ...] = ()
    not_run: str | None = None
    shown: str | None = None  # what the page says that it prints

    @property
    def data(self) -> list[Path]:
        """Real data that it needs, which are not part of the project."""
        return [SHARED_DATA / name.removeprefix("data ") for name in self.needs if name.startswith("data ")]

    @property
    def left_out(self) -> str | None:
        """Why it cannot run here; None if it can."""
        gone = [f"the real data {path.name} are not beside this checkout" for path in self.data if not path.exists()]
        modules = [name for name in self.needs if not name.startswith("data ")]
        gone += [f"{name} is not installed" for name in modules if importlib.util.find_spec(name) is None]
        return self.not_run or "; ".join(gone) or None


def blocks_of(page: Path) -> list[Block]:
    """Blocks that run, in order: Python on every page, and commands on those that tell a whole story."""
    text = page.read_text()
    every = WHOLE_PAGE.match(text)
    found: list[Block] = []
    last = -1
    for match in BLOCK.finditer(text):
        marker, named, language, content = match.groups()
        if language == "text":
            if found and not text[last : match.start()].strip():
                found[-1] = replace(found[-1], shown=content)
        elif language == "python" or page.parent == TUTORIALS:
            needs = ",".join(([every[1]] if every else []) + ([named] if marker == "needs" else []))
            found.append(
                Block(
                    page,
                    text[: match.start(4)].count("\n"),
                    language,
                    content,
                    tuple(name.strip() for name in needs.split(",") if name),
                    named if marker == "not run" else None,
                )
            )
        last = match.end()
    return found


def run_block(block: Block, namespace: dict) -> None:
    """Run it in the current folder, and compare what it prints with what the page shows."""
    for path in block.data:
        if not Path(path.name).exists():
            Path(path.name).symlink_to(path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        if block.language == "sh":
            run_commands(block)
        elif ">>> " in block.text:
            run_session(block, namespace)
        else:
            exec(compile("\n" * block.line + block.text, block.page, "exec"), namespace)
    if block.shown is not None:
        missing = not_printed(block.shown, printed.getvalue())
        assert missing is None, f"{block.page.name}, line {block.line}: {missing!r} is not in\n{printed.getvalue()}"


def run_session(block: Block, namespace: dict) -> None:
    """Lines with >>>, and what they print in between."""
    test = doctest.DocTestParser().get_doctest(block.text, namespace, block.page.name, str(block.page), block.line)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test, clear_globs=False, out=report.write).failed == 0, report.getvalue()
    namespace |= test.globs


def run_commands(block: Block) -> None:
    """Each line is a command of ours; one that is refused must be shown as refused."""
    from neuralmjp import cli  # not before the types are watched

    refused = "neuralmjp: " in (block.shown or "")
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        assert words[0] == "neuralmjp", f"{block.page.name}, line {block.line}: only neuralmjp is run, not {line!r}"
        before, sys.argv = sys.argv, words
        try:
            with pytest.raises(SystemExit) as end:
                cli.main()
        finally:
            sys.argv = before
        asked = 2 if refused else 0
        assert end.value.code == asked, f"{block.page.name}, line {block.line}: {line!r} ended {end.value.code}"


def not_printed(shown: str, printed: str) -> str | None:
    """The first line of `shown` that `printed` does not hold after the ones before; numbers may differ a little."""
    rest = iter(printed.splitlines())
    for line in shown.splitlines():
        if line.strip() in ("", "..."):
            continue
        if not any(alike(line, other) for other in rest):
            return line
    return None


def alike(line: str, other: str) -> bool:
    """The same words, and numbers that are close."""
    if re.sub(r"\s+", " ", NUMBER.sub("#", line)).strip() != re.sub(r"\s+", " ", NUMBER.sub("#", other)).strip():
        return False
    pairs = zip(map(float, NUMBER.findall(line)), map(float, NUMBER.findall(other)), strict=True)
    return all(abs(a - b) <= CLOSE * max(abs(a), abs(b)) for a, b in pairs)
