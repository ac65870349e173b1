"""`neuralmjp fetch`: a public data set, downloaded and checked."""

from pathlib import Path

from ..fetch import fetch
from .show import console, progress_display


def run(name: str, out: Path) -> None:
    with progress_display() as progress:
        sha256 = fetch(name, out, progress=progress)
    screen = console()
    screen.print(f"{name} -> {out}", soft_wrap=True)
    screen.print(f"size, checksum and shapes are those of its catalogue; SHA-256 {sha256}", soft_wrap=True)
