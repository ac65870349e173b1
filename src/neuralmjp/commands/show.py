"""Numbers on a terminal: tables with units, histograms in text, and how far a fit has come."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from rich.console import Console
from rich.table import Table
from rich.text import Text

BLOCKS = " ▏▎▍▌▋▊▉█"


def console() -> Console:
    """Where results go; text is shown as it is, with no markup, no ":b:" turned into pictures, no coloured numbers."""
    return Console(highlight=False, markup=False, emoji=False)


def number(value: float) -> str:
    """Four significant digits; whole numbers as they are; a dash for what is not known."""
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if value == round(value, 0) and abs(value) < 1e7 else f"{value:.4g}"


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A plain table, numbers to the right; text from data is never read as markup."""
    grid = Table(title=Text(title), title_justify="left", title_style="bold")
    for i, column in enumerate(columns):
        grid.add_column(Text(column), justify="left" if i == 0 else "right")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
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
        # On [0, 1], because values that differ in their last digits only leave no room for bins between them.
        halves = values / 2  # the span of huge values stays finite
        low, span = halves.min(), np.ptp(halves)
        counts, edges = np.histogram((halves - low) / span, bins=bins, range=(0, 1))
        edges = 2 * (low + span * edges)
        labels = [f"{number(low)} to {number(high)}" for low, high in pairwise(edges)]
    longest = max(len(label) for label in labels)
    lines = []
    for label, count in zip(labels, counts, strict=True):
        eighths = round(8 * width * count / counts.max())
        bar = BLOCKS[-1] * (eighths // 8) + (BLOCKS[eighths % 8] if eighths % 8 else "")
        lines.append(f"{label:>{longest}} {bar} {count}")
    return lines


@contextmanager
def progress_display() -> Iterator[Callable[[str, float], None]]:
    """A bar on a terminal, silence elsewhere."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("reading", total=1.0)

        def update(stage: str, share: float) -> None:
            bar.update(task, description=stage, completed=min(share, 1.0))

        yield update
