"""Folders of Parquet files: one long table in many parts, whose row groups are read one at a time."""

import os
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..store import GROUP_ROWS, MOST_ROWS, Store
from ..timeseries import TimeSeries
from . import parquet
from .clock import Clock, may_hold_dates
from .columns import Columns, Request
from .files import check_readable, in_unit, replacing
from .tables import TableBuilder

SUFFIXES = (".parquet", ".pq")


def part_files(folder: Path) -> list[Path]:
    """The parts of a table in their order: part-2 comes before part-10. Hidden and underscored files are no parts."""
    found = [path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and not _aside(path, folder)]
    return sorted(found, key=lambda path: [int(x) if x.isdigit() else x for x in re.split(r"(\d+)", str(path))])


def write_parts(parts: Iterable[TimeSeries], folder: str | os.PathLike[str]) -> None:
    """Write data that come part by part as a folder of Parquet files, to be fitted without being held."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if part_files(folder):
        raise InputError(f"{folder}: holds .parquet files already; choose another folder")
    for k, part in enumerate(parts):
        with replacing(folder / f"part-{k:05d}.parquet") as temporary:
            parquet.write(part, temporary, GROUP_ROWS)


class ParquetFolder(Store):
    """A folder of Parquet files with the same columns; without a column of series each file is a series."""

    def __init__(self, path: Path, request: Request, time_unit: str | None):
        request.only(("series", "time", "values", "header", "labels"), path, "a folder of Parquet files")
        self.path, self._request, self.n_rows = path, request, 0
        self._files = part_files(path)
        self._groups: list[tuple[Path, int, int]] = []  # file, row group, its first row in the file
        self._first_rows: list[int] = []  # of each file, in the folder
        for file in self._files:
            self._add(file)
        if not self._groups:
            raise InputError(f"{path}: holds no .parquet files with rows of data; name a file, or a folder of such")
        with parquet.opened(self._files[0]) as first:
            self._columns = request.resolve(first.schema_arrow.names, str(self._files[0]))
            unit = parquet.time_unit_of(first.schema_arrow)
        self._clock = Clock()
        if any(self._may_hold_dates(file) for file in self._files):
            self._look_for_dates()
        self._counted = self._clock.unit(unit)
        self.time_unit = self._counted if time_unit is None else time_unit
        self.value_names = self._columns.value_names

    def _may_hold_dates(self, file: Path) -> bool:
        with parquet.opened(file) as table:
            time = self._request.resolve(table.schema_arrow.names, str(file)).time
            return time is not None and may_hold_dates(table.schema_arrow.field(time).type)

    def _look_for_dates(self) -> None:
        """All parts count from the earliest date, which may be in any of them."""
        for number, (file, group, _) in enumerate(self._groups):
            with parquet.opened(file) as table:
                columns = replace(self._request.resolve(table.schema_arrow.names, str(file)), series=None, values=())
                parquet.add_groups(table, file, columns, [group], self._builder(number, columns))

    def _add(self, file: Path) -> None:
        check_readable(file)
        self._first_rows.append(self.n_rows)
        with parquet.opened(file) as table:
            for group in range(table.num_row_groups):
                n = table.metadata.row_group(group).num_rows
                if n > MOST_ROWS:
                    raise InputError(
                        f"{file}: row group {group} has {n} rows, and is held as a whole; write it again with row "
                        f"groups of {GROUP_ROWS}"
                    )
                if n:
                    self._groups.append((file, group, self.n_rows - self._first_rows[-1]))
                self.n_rows += n

    def __len__(self) -> int:
        return len(self._groups)

    def chunk(self, number: int) -> TimeSeries | None:
        file, group, _ = self._groups[number]
        builder = self._builder(number, self._columns)
        self._read(file, builder, group)
        return self._named(builder.pieces(self._counted), file)

    def _builder(self, number: int, columns: Columns) -> TableBuilder:
        file, _, first = self._groups[number]
        return TableBuilder(str(file), columns, lambda row: parquet.locate(file, first + row), self._clock)

    def whole(self) -> TimeSeries:
        """All of it, held in memory."""
        if self._columns.series is None:
            each = [self._alone(file) for file in self._files]
            return TimeSeries.concatenate(one for one in each if one is not None)
        builder = TableBuilder(str(self.path), self._columns, self._locate, self._clock)
        for file in self._files:
            self._read(file, builder)
        return in_unit(builder.finish(self._counted), self.time_unit, self.path)

    def _alone(self, file: Path) -> TimeSeries | None:
        """A file that is one series."""
        with parquet.opened(file) as table:
            self._check_unit(table, file)
        return self._named(parquet.read(file, self._request), file)

    def _check_unit(self, table: Any, file: Path) -> None:
        if not self._clock.dated and (unit := parquet.time_unit_of(table.schema_arrow)) != self._counted:
            raise InputError(
                f"{file}: counts time in {unit!r}, but {self._files[0].name} in {self._counted!r}; write all "
                "parts in one unit"
            )

    def _read(self, file: Path, builder: TableBuilder, group: int | None = None) -> None:
        with parquet.opened(file) as table:
            columns = self._request.resolve(table.schema_arrow.names, str(file))
            if (columns.value_names, columns.series is None) != (self.value_names, self._columns.series is None):
                raise InputError(
                    f"{file}: has the columns {', '.join(columns.names)}, other than {self._files[0].name}; name those "
                    "to read with --series and --values"
                )
            self._check_unit(table, file)
            groups = range(table.num_row_groups) if group is None else [group]
            parquet.add_groups(table, file, columns, groups, builder)

    def _named(self, found: TimeSeries | None, file: Path) -> TimeSeries | None:
        """In the unit of the store; a table without a column of series is one, named after its file."""
        if found is None:
            return None
        found = in_unit(found, self.time_unit, file)
        if self._columns.series is not None:
            return found
        return replace(found, names=(file.relative_to(self.path).with_suffix("").as_posix(),))

    def _locate(self, row: int) -> str:
        k = bisect_right(self._first_rows, row) - 1
        return parquet.locate(self._files[k], row - self._first_rows[k])


def _aside(path: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
