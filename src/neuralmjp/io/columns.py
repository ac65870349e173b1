"""Which column of a table is the series, which the time, which are values; and what else a reader was asked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NoReturn

from ..errors import InputError


@dataclass(frozen=True)
class Columns:
    """The columns that make a `TimeSeries`, by position in the table."""

    names: tuple[str, ...]
    header: bool
    series: int | None
    time: int | None  # None where a rate gives the times
    values: tuple[int, ...]
    labels: tuple[str, ...] = ()  # words that stand for 0, 1, 2, ... in all values

    @property
    def used(self) -> list[int]:
        """Positions of time, values and series, in this order; of time and series where there are such columns."""
        return [position for position in (self.time, *self.values, self.series) if position is not None]

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the values: as in the table, or "column 1" where it has none."""
        return tuple(self.names[i] if self.header else f"column {i}" for i in self.values)

    def label(self, position: int) -> str:
        """Name a column in a message."""
        return f"column {self.names[position]!r}" if self.header else f"column {position}"


@dataclass(frozen=True)
class Request:
    """What the user said about the file; see `neuralmjp.io.read`."""

    series: str | int | None = None
    time: str | int | None = None
    values: str | int | Sequence[str | int] | None = None
    header: bool = True
    rate: float | None = None  # per time unit
    channel: str | int | None = None
    topology: Path | None = None
    features: str | None = None
    labels: str | Sequence[str] | None = None

    def only(self, taken: Sequence[str], path: Path, kind: str) -> None:
        """Refuse, in one line, what was asked beyond the fields `taken`: it means nothing for this kind of file."""
        others = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
        options = ["--no-header" if name == "header" else f"--{name}" for name in others if name not in taken]
        if options:
            them = "it" if len(options) == 1 else "them"
            raise InputError(f"{path}: {kind} has no use for {', '.join(options)}; leave {them} out")

    def resolve(self, names: Sequence[str], source: str) -> Columns:
        """Find the columns in a table of these names (of this number, if there is no header)."""
        table = _Table(tuple(names), self.header, source)
        series = table.default_series() if self.series is None else table.find(self.series)
        time = self._time(table, series)
        keys = [position for position in (series, time) if position is not None]
        if self.values is None:
            values = [i for i in range(len(names)) if i not in keys and not table.is_index(i)]
        else:
            values = [table.find(column) for column in self._listed_values(names)]
        if not values:
            table.fail("no column of values is left beside series and time; add one")
        if len({*keys, *values}) < len(keys) + len(values):
            table.fail("one column is asked for twice among series, time and values; name different ones")
        return Columns(table.names, self.header, series, time, tuple(values), labels_of(self.labels))

    def _time(self, table: "_Table", series: int | None) -> int | None:
        if self.rate is None:
            return table.default_time(series) if self.time is None else table.find(self.time)
        if self.time is not None:
            table.fail("times come from a column or from the rate; leave out --time or --rate")
        if self.values is None and table.has_time():
            table.fail("has a column 'time'; leave out --rate, or name the columns of values with --values")
        return None

    def _listed_values(self, names: Sequence[str]) -> Sequence[str | int]:
        if isinstance(self.values, str):
            # A name may itself hold a comma.
            return [self.values] if self.values in names else [name.strip() for name in self.values.split(",")]
        return [self.values] if isinstance(self.values, int) else self.values or []


def labels_of(asked: str | Sequence[str] | None) -> tuple[str, ...]:
    """Words in their order, from a list or separated by commas.

    >>> labels_of("well, ill, dead")
    ('well', 'ill', 'dead')
    """
    if asked is None:
        return ()
    found = tuple(str(word).strip() for word in (asked.split(",") if isinstance(asked, str) else asked))
    if not found or "" in found or len(set(found)) < len(found):
        raise InputError(f"labels are different words, such as well,ill,dead; got {', '.join(map(repr, found))}")
    return found


@dataclass(frozen=True)
class _Table:
    """The columns that a table has."""

    names: tuple[str, ...]
    header: bool
    source: str

    def __post_init__(self):
        repeated = next((name for name in self.names if name and self.names.count(name) > 1), None)
        if self.header and repeated is not None:
            self.fail(f"two columns are called {repeated!r}; rename one")

    def find(self, column: str | int) -> int:
        """Position of a column given by name, or by number where there are no names."""
        if self.header:
            if str(column) not in self.names:
                self.fail(f"no column {str(column)!r}; {self._listing()}")
            return self.names.index(str(column))
        if not str(column).isdigit():
            self.fail(f"{column!r} is no position; without a header columns are given by position from 0")
        if int(column) >= len(self.names):
            self.fail(f"no column {column}; columns are 0 to {len(self.names) - 1}")
        return int(column)

    def default_series(self) -> int | None:
        return self._called("series") if self.header else None

    def default_time(self, series: int | None) -> int:
        if not self.header:
            return 1 if series == 0 else 0
        position = self._called("time")
        if position is None:
            self.fail(f"no column 'time'; name the column of times with --time, or give --rate; {self._listing()}")
        return position

    def has_time(self) -> bool:
        return self.header and self._called("time") is not None

    def is_index(self, position: int) -> bool:
        """Whether this is the row index that pandas writes along, never a value unless asked for."""
        return self.header and re.fullmatch(r"|__index_level_\d+__", self.names[position]) is not None

    def fail(self, what: str) -> NoReturn:
        raise InputError(f"{self.source}: {what}")

    def _called(self, name: str) -> int | None:
        if name in self.names:
            return self.names.index(name)
        return next((i for i, column in enumerate(self.names) if column.lower() == name), None)

    def _listing(self) -> str:
        shown = [repr(name) for name in self.names[:20]] + ["..."] * (len(self.names) > 20)
        listing = f"the columns are {', '.join(shown)}"
        if all(re.fullmatch(r"[-+\d.,eE]+", name) for name in self.names):
            listing += "; use --no-header if the first line holds data"
        return listing
