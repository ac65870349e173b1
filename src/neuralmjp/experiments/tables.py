"""What an experiment yields: the paper's tables, each row with the published numbers and ours beside them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Progress = Callable[[str, float], None]
Drawing = Callable[[], "Figure"]  # only drawn if somebody wants to see it

PUBLISHED, AS_PUBLISHED, TILTED, EXACT = "published", "paper's method", "tilted", "exact limit"


def noted(methods: Collection[str], *words: str | tuple[str, str]) -> str:
    """What the numbers of a table are, without what is said of methods (pairs: of which, what) that were not run.

    >>> noted(["exact limit"], "one run", ("paper's method", "in full"), ("exact limit", "its start is not random"))
    'one run; exact limit: its start is not random'
    """
    said = ((None, one) if isinstance(one, str) else (one[0], f"{one[0]}: {one[1]}") for one in words)
    return "; ".join(one for method, one in said if method is None or method in methods)


class Number(NamedTuple):
    """A mean, and its spread where there is one."""

    mean: float
    sd: float | None = None
    decimals: int = 3

    @classmethod
    def over(cls, values: Sequence[float] | np.ndarray, decimals: int = 3) -> "Number":
        """Of several runs; the spread of a single one is not known."""
        values = np.asarray(values, float)
        return cls(float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None, decimals)

    def __str__(self) -> str:
        spread = "" if self.sd is None else f" ±{self.sd:.{self.decimals}f}"
        return f"{self.mean:.{self.decimals}f}{spread}"


@dataclass(frozen=True)
class Line:
    """One method's numbers, by column."""

    method: str
    numbers: dict[str, Number]
    seconds: float | None = None  # of the fit; None for published numbers
    message: str = ""  # how the fit ended


@dataclass(frozen=True)
class Row:
    """One row of a table of the paper, by several methods."""

    name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class ResultTable:
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str  # what the numbers are


@dataclass(frozen=True)
class Report:
    """An experiment that was run: its tables, and what it took."""

    experiment: str
    preset: str
    seed: int
    n_runs: int
    settings: dict[str, Any]
    device: str
    seconds: float
    tables: tuple[ResultTable, ...]
    figures: dict[str, Drawing] = field(default_factory=dict)  # by the name of their file
