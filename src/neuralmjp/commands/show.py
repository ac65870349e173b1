"""Numbers on a terminal: tables with units, and histograms in text."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from rich.console import Console
from rich.markup import escape
from rich.table import Table

BLOCKS = " ▏▎▍▌▋▊▉█"


def console() -> Console:
    """Where results go; highlighting off, so that numbers are not coloured at random."""
    return Console(highlight=False)


def number(value: float) -> str:
    """Four significant digits; whole numbers as they are."""
    return f"{value:.0f}" if value == round(value, 0) and abs(value) < 1e7 else f"{value:.4g}"


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A plain table, numbers to the right; text from data is never read as markup."""
    grid = Table(title=escape(title), title_justify="left", title_style="bold")
    for i, column in enumerate(columns):
        grid.add_column(escape(column), justify="left" if i == 0 else "right")
    for row in rows:
        grid.add_row(*(escape(cell) for cell in row))
    return grid


def histogram(values: Float[np.ndarray, "value"], *, bins: int = 10, width: int = 40) -> list[str]:
    """Lines of a text histogram; a bar per value where there are few, else per interval of equal width.

    >>> print("\\n".join(histogram(np.array([0.0, 0.0, 1.0]), width=4)))
    0 ████ 2
    1 ██ 1
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= bins:
        labels = [number(value) for value in distinct]
    else:
        counts, edges = np.histogram(values, bins=bins)
        labels = [f"{number(low)} to {number(high)}" for low, high in pairwise(edges)]
    longest = max(len(label) for label in labels)
    lines = []
    for label, count in zip(labels, counts, strict=True):
        eighths = round(8 * width * count / counts.max())
        bar = BLOCKS[-1] * (eighths // 8) + (BLOCKS[eighths % 8] if eighths % 8 else "")
        lines.append(f"{label:>{longest}} {bar} {count}")
    return lines
