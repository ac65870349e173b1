"""Long tables, one row per observation: batch by batch into a `TimeSeries`, and back."""

import re
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from jaxtyping import Float64, Int64

from ..checks import ObservationError
from ..dates import DAY, MISSING, SECOND, moment
from ..errors import InputError
from ..store import usable_pieces
from ..timeseries import TIME_UNIT, TimeSeries, join_ranges
from .cells import as_dates, kind_of, numbers, places
from .clock import BadCell, Clock
from .columns import Columns

_ROWS_PER_BATCH = 1 << 17
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*$")


class TableBuilder:
    """Collects batches of a table in buffers that grow in place, so that no second copy of the data is held.

    Of the series column only the runs of equal names are kept.
    """

    def __init__(self, source: str, columns: Columns, locate: Callable[[int], str], clock: Clock | None = None):
        """`source` names the table in messages; `locate` names one of its rows, given by number from 0.

        A `clock` that has seen all parts of a table lets each count from the same date.
        """
        self._clock = clock or Clock()
        self._source = source
        self._columns = columns
        self._locate = locate
        self._n_rows = 0
        self._times = np.empty(0)
        self._values = np.empty((0, len(columns.values)))
        self._codes: dict[str, int] = {}
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []

    @property
    def n_bytes(self) -> int:
        """That the numbers take so far."""
        return self._times.nbytes + self._values.nbytes

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows; the columns of the batch are those of `Columns.used`, in that order."""
        rows = slice(self._n_rows, self._n_rows + batch.num_rows)
        if rows.stop > len(self._times):
            self._resize(max(rows.stop, len(self._times) * 9 // 8))
        columns = iter(batch.columns)
        if self._columns.time is not None:
            self._add_times(rows, next(columns), self._columns.time)
        for feature, position in enumerate(self._columns.values):
            self._values[rows, feature] = self._numbers(next(columns), position)
        if self._columns.series is not None and batch.num_rows:
            self._add_runs(next(columns))
        self._n_rows = rows.stop

    def finish(self, time_unit: str = TIME_UNIT, rate: float | None = None) -> TimeSeries:
        """Group the rows by series, in order of first appearance, and check them; without times, at this rate."""
        if self._n_rows == 0:
            raise InputError(f"{self._source}: the table has no rows of data; write or copy it again")
        self._resize(self._n_rows)
        offsets, order = self._group()
        return self._checked(offsets, order, tuple(self._codes) or ("0",), time_unit, rate)

    def pieces(self, time_unit: str) -> TimeSeries | None:
        """The same of a part of a table, without series of which it holds one observation or no value."""
        if self._n_rows == 0:  # though its file promised some
            return None
        self._resize(self._n_rows)
        offsets, order = self._group()
        names, values = tuple(self._codes) or ("0",), self._values if order is None else self._values[order]
        keep = usable_pieces(values, offsets)
        if len(keep) == 0:
            return None
        if len(keep) < len(names):
            kept = join_ranges(offsets[keep], offsets[keep + 1])
            order = kept if order is None else order[kept]
            offsets = np.concatenate([[0], np.cumsum(np.diff(offsets)[keep])])
        return self._checked(offsets, order, tuple(names[k] for k in keep), time_unit)

    def _checked(
        self,
        offsets: Int64[np.ndarray, " boundary"],
        order: Int64[np.ndarray, " row"] | None,
        names: tuple[str, ...],
        time_unit: str,
        rate: float | None = None,
    ) -> TimeSeries:
        if order is not None:
            self._times = self._times[order]
            self._values = self._values[order]
        if rate is not None:
            self._times = (np.arange(self._n_rows) - np.repeat(offsets[:-1], np.diff(offsets))) / rate
        unit = self._clock.unit(time_unit)
        times, value_names = self._clock.times(self._times, unit), self._columns.value_names
        try:
            return TimeSeries(times, self._values, offsets, names, value_names, unit, self._clock.origin)
        except ObservationError as error:
            raise InputError(self._translate(error, order)) from None
        except InputError as error:
            raise InputError(f"{self._source}: {error}") from None

    def _resize(self, n_rows: int) -> None:
        # In place: for large blocks the operating system moves pages, not bytes. Nobody else holds a reference.
        self._times.resize(n_rows, refcheck=False)
        self._values.resize((n_rows, self._values.shape[1]), refcheck=False)

    def _add_times(self, rows: slice, column: pa.Array, position: int) -> None:
        try:
            read = self._clock.read(column)
        except BadCell as error:
            raise self._bad(column, error.row, position, error.what) from None
        except pa.ArrowNotImplementedError:
            raise self._no_numbers(column, position) from None
        if read.dtype != self._times.dtype:  # the first dates
            self._times = np.full(len(self._times), MISSING)
        self._times[rows] = read

    def _numbers(self, column: pa.Array, position: int) -> Float64[np.ndarray, " row"]:
        try:
            return self._places(column, position) if self._columns.labels else numbers(column)
        except pa.ArrowInvalid:
            kinds = ((row, kind_of(column[row : row + 1])) for row in range(len(column)))
            row, kind = next((row, kind) for row, kind in kinds if kind not in ("number", "nothing"))
            said = "not a number; leave the cell empty if the value is missing, or" if kind is None else "a date;"
            words = "" if kind or not re.fullmatch(r"[^\W\d]+", text_at(column, row)) else ", or words with --labels"
            what = f"is {said} choose other columns with --values{words}"
            raise self._bad(column, row, position, what) from None
        except pa.ArrowNotImplementedError:
            raise self._no_numbers(column, position) from None

    def _places(self, column: pa.Array, position: int) -> Float64[np.ndarray, " row"]:
        found, strange = places(column, self._columns.labels)
        if strange is None:
            return found
        advice = "add it to them, leave the cell empty if it is missing, or choose other columns with --values"
        known = ", ".join(self._columns.labels)
        raise self._at(column, strange, position, f"is none of the labels {known}; {advice}")

    def _no_numbers(self, column: pa.Array, position: int) -> InputError:
        where = f"{self._source}, {self._columns.label(position)}"
        return InputError(f"{where}: {not_numbers(column.type)}")

    def _bad(self, column: pa.Array, row: int, position: int, what: str) -> InputError:
        text = text_at(column, row)
        if row + self._n_rows == 0 and not self._columns.header:
            what = "is not a number; leave out --no-header if the first line names the columns"
        if _DECIMAL_COMMA.match(text):
            what = f"has a comma; write numbers with a decimal point, such as {text.strip().replace(',', '.')}"
        return self._at(column, row, position, what)

    def _at(self, column: pa.Array, row: int, position: int, what: str) -> InputError:
        text = text_at(column, row)
        shown = text if len(text) <= 40 else text[:40] + "..."
        return InputError(f"{self._locate(row + self._n_rows)}, {self._columns.label(position)}: {shown!r} {what}")

    def _add_runs(self, column: pa.Array) -> None:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()  # its dictionary may hold names that no row has
        encoded = column.dictionary_encode()
        names = [_series_name(name) for name in encoded.dictionary.to_pylist()]
        if column.null_count or "" in names:
            row = next(row for row, name in enumerate(column.to_pylist()) if _series_name(name) == "")
            where = f"{self._locate(self._n_rows + row)}, {self._columns.label(self._columns.series or 0)}"
            raise InputError(f"{where}: the series is not named; fill in the cell")
        codes = np.array([self._codes.setdefault(name, len(self._codes)) for name in names], np.int64)
        codes = codes[encoded.indices.to_numpy()]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
        self._runs.append((starts + self._n_rows, codes[starts]))

    def _group(self) -> tuple[Int64[np.ndarray, " boundary"], Int64[np.ndarray, " row"] | None]:
        """Offsets of the series, and the order of rows that brings each together, or None if each is together."""
        if self._columns.series is None:
            return np.array([0, self._n_rows]), None
        starts, codes = (np.concatenate(parts) for parts in zip(*self._runs, strict=True))
        new = np.concatenate([[True], codes[1:] != codes[:-1]])  # a run may go on in the next batch
        starts, codes = starts[new], codes[new]
        stops = np.append(starts[1:], self._n_rows)
        if len(codes) == len(self._codes):
            return np.append(starts, self._n_rows), None
        by_series = np.argsort(codes, kind="stable")
        starts, stops, codes = starts[by_series], stops[by_series], codes[by_series]
        first_runs = np.flatnonzero(np.diff(codes, prepend=-1))
        lengths = np.add.reduceat(stops - starts, first_runs)
        return np.concatenate([[0], np.cumsum(lengths)]), join_ranges(starts, stops)

    def _translate(self, error: ObservationError, order: Int64[np.ndarray, " row"] | None) -> str:
        """Say what is wrong in terms of the table."""
        if error.observation is None:
            return f"{self._source}: {error.what}"
        where = self._locate(int(error.observation if order is None else order[error.observation]))
        if error.column is not None:
            position = self._columns.time if error.column == "time" else self._columns.values[error.column]
            where += "" if position is None else f", {self._columns.label(position)}"
        unnamed = self._columns.series is None
        way = "name the column of series with --series" if unnamed else "give another series another name"
        hint = f", or {way}" if error.order else ""
        return f"{where}: {error.what}{hint}"


def text_at(column: pa.Array, row: int) -> str:
    """A cell as it was written."""
    return column[row : row + 1].cast(pa.string())[0].as_py()


def table_schema(data: TimeSeries, *, days_alone: bool = False) -> pa.Schema:
    """Columns of the table that `record_batches` yields.

    Args:
        days_alone: dates that are all midnights are days without a time, as people write them.
    """
    clash = next((name for name in data.value_names if name.lower() in ("series", "time")), None)
    if clash is not None:
        raise InputError(f"a value is called {clash!r}, as a column of the table is; rename it by dataclasses.replace")
    return pa.schema(
        [
            ("series", pa.string()),
            ("time", _time_type(data, days_alone)),
            *((name, pa.float64()) for name in data.value_names),
        ]
    )


def _time_type(data: TimeSeries, days_alone: bool) -> pa.DataType:
    """Numbers, or dates no finer than they must be."""
    dates = data.dates
    if data.origin is None or dates is None:
        return pa.float64()
    zone, when = "UTC" if moment(data.origin)[1] else None, dates.astype(np.int64)
    if days_alone and zone is None and not (when % DAY).any():
        return pa.date32()
    unit = next((unit for unit, size in (("s", SECOND), ("ms", SECOND // 1000)) if not (when % size).any()), "us")
    return pa.timestamp(unit, zone)


def record_batches(data: TimeSeries, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the data as tables of series, time and values, with nulls for missing values."""
    names, dates = pa.array(data.names), data.dates
    for start in range(0, data.n_observations, _ROWS_PER_BATCH):
        rows = slice(start, min(start + _ROWS_PER_BATCH, data.n_observations))
        series = np.searchsorted(data.offsets, np.arange(rows.start, rows.stop), side="right") - 1
        columns = [pa.array(column, from_pandas=True) for column in (data.times[rows], *data.values[rows].T)]
        if dates is not None:
            columns[0] = as_dates(dates[rows].astype(np.int64), schema.field("time").type)
        columns = [names.take(pa.array(series)), *columns]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def not_numbers(type_: object) -> str:
    """Of a column of which Arrow makes no numbers."""
    if "period" in str(type_):
        return "holds periods; give the date on which each begins, such as column.dt.to_timestamp() in pandas"
    return f"holds {type_}, not numbers; convert it to numbers"


def _series_name(name: object) -> str:
    """Name as text: "3" for 3 and for 3.0, "" for a missing one."""
    if name is None or name != name:
        return ""
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name).strip()
