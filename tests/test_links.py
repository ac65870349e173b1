"""Links of the documentation lead somewhere: to files and headings that exist; other addresses are https, and whole."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "docs", ROOT / "docs" / "tutorials")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(page for folder in FOLDERS for page in folder.glob("*.md"))]

FENCE = re.compile(r"^(```+)(.*?)\n(.*?)^\1\s*$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?:(?: {4}|\t)[^\n]*\n+)+")
LINK = re.compile(r"\[[^\]\n]*\]\(\s*<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)")
BARE = re.compile(r"(?<![\w(<\"'])[a-z]+://[^\s)>\]`\"']+")
HEADING = re.compile(r"^(#{1,3})\s+(.+?)\s*#*$", re.MULTILINE)  # docs/conf.py: anchors for three levels


def prose(text: str) -> str:
    """The text without blocks of code and words of code."""
    return re.sub(r"`[^`\n]+`", "", INDENTED.sub("\n", FENCE.sub("", text)))


def links_of(text: str) -> list[str]:
    """What a page points to: links and images, addresses that stand by themselves, files of directives."""
    found = LINK.findall(prose(text)) + [address.rstrip(".,;:") for address in BARE.findall(prose(text))]
    for _, kind, content in FENCE.findall(text):
        name, _, argument = kind.partition(" ")
        if name in ("{image}", "{figure}", "{literalinclude}", "{include}"):
            found.append(argument.strip())
        elif name == "{toctree}":
            found += [f"{line.strip()}.md" for line in content.splitlines() if line.strip() and line[0] != ":"]
    return found


def anchors_of(text: str) -> set[str]:
    """Names of headings, as GitHub and MyST make them; the second of a kind ends in -1."""
    found: dict[str, int] = {}
    for _, title in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
        if found[slug]:
            found[f"{slug}-{found[slug]}"] = 0
    return set(found)


def fault(page: Path, link: str) -> str | None:
    """Why a link leads nowhere; None if it leads somewhere."""
    if "://" in link:
        parts = urlsplit(link)
        whole = parts.scheme == "https" and re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc)
        return None if whole else "is not a whole https address"
    file, _, anchor = link.partition("#")
    target = (page.parent / file).resolve() if file else page
    if not target.is_relative_to(ROOT):
        return "leads out of the project"
    if not target.exists():
        return "leads to no file"
    if anchor and (target.suffix != ".md" or anchor not in anchors_of(target.read_text())):
        return "leads to no heading"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    faults = [f"{link} {why}" for link in links_of(page.read_text()) if (why := fault(page, link))]
    assert faults == []


def test_every_page_is_reached_from_the_index():
    entries = links_of((ROOT / "docs" / "index.md").read_text())
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert pages - {"index.md"} <= set(entries)


class TestChecker:
    """The checker itself."""

    PAGE = ROOT / "docs" / "index.md"

    def test_what_counts_as_a_link(self):
        text = "# A\n\nSee [b](b.md#c), ![d](d.png) and https://x.org/y. `[no](no.md)`\n\n    [code](code.md)\n\n"
        text += "```python\nx[0](gone)\n```\n\n```{toctree}\n:maxdepth: 2\n\ne/f\n```\n\n```{image} g.png\n```\n"
        assert links_of(text) == ["b.md#c", "d.png", "https://x.org/y", "e/f.md", "g.png"]

    def test_anchors(self):
        assert anchors_of("# A `b` (c)\n## Köhs, Alt & Koeppl\n## Twice\n## Twice\n#### Deep\n```\n# no\n```\n") == {
            "a-b-c",
            "köhs-alt--koeppl",
            "twice",
            "twice-1",
        }

    @pytest.mark.parametrize("link", ["exact.md", "exact.md#how-sure", "../README.md", "https://example.org/a?b=c"])
    def test_good(self, link):
        assert fault(self.PAGE, link) is None

    @pytest.mark.parametrize(
        ("link", "why"),
        [
            ("gone.md", "no file"),
            ("exact.md#gone", "no heading"),
            ("demo.png#x", "no heading"),
            ("#gone", "no heading"),
            ("../../elsewhere.md", "out of the project"),
            ("http://example.org", "https"),
            ("https://example", "https"),
        ],
    )
    def test_bad(self, link, why):
        assert why in (fault(self.PAGE, link) or "")
