"""Text tables: the delimiter is found, blocks are read one by one, numbers keep all their digits."""

import csv
import gzip
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import BufferedIOBase, StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pa_csv

from ..errors import InputError
from ..timeseries import TimeSeries
from .cells import is_number
from .columns import Request
from .files import check_unpacked
from .tables import TableBuilder, record_batches, table_schema

pc: Any = pyarrow.compute  # its functions are made at run time, which type checkers cannot see

_BLOCK_BYTES = 1 << 19
_LONGEST_LINE = 1 << 22
_WHITESPACE = " "  # stands for any run of spaces


def read(path: Path, request: Request) -> TimeSeries:
    """Read a text table; messages count lines from 1, header included, as editors do."""
    request.only(("series", "time", "values", "header", "rate", "labels"), path, "a table")
    try:
        with _open(path) as stream:
            first = _first_line(path, stream)
            if not first:
                raise InputError(f"{path}: holds nothing but blank lines; write or copy it again")
            delimiter = _sniff(first)
            fields = _fields(first, delimiter)
            if request.rate is not None and all(map(is_number, fields)):
                request = replace(request, header=False)
            locate = partial(_locate, path, request.header)
            columns = request.resolve(fields, str(path))
            builder = TableBuilder(str(path), columns, locate)
            if not request.header:
                stream.seek(0)
            blocks = _words if delimiter == _WHITESPACE else partial(_cells, delimiter=delimiter)
            for batch in blocks(stream, columns.used, len(fields), locate):
                builder.add(batch)
                check_unpacked(path, max(stream.tell(), builder.n_bytes), "unpack it first")
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise InputError(f"{path}: is not a whole gzip file; compress or copy it again") from None
    except pa.ArrowInvalid as error:
        raise _unreadable(path, error) from None
    return builder.finish(rate=request.rate)


def write(data: TimeSeries, path: Path) -> None:
    """Write a text table, separated by commas, or by tabs if the file is not called .csv."""
    delimiter = "," if path.name.lower().endswith((".csv", ".csv.gz")) else "\t"
    schema = table_schema(data, days_alone=True)
    header = StringIO()
    # Quotes keep a semicolon in a name from being taken for the delimiter.
    quoting = csv.QUOTE_ALL if any(re.search('[;,"]', name) for name in schema.names) else csv.QUOTE_NONE
    csv.writer(header, delimiter=delimiter, quoting=quoting, lineterminator="\n").writerow(schema.names)
    options = pa_csv.WriteOptions(
        include_header=False,
        delimiter=delimiter,
        quoting_style="needed" if any(re.search('[,"]', name) for name in data.names) else "none",
    )
    with gzip.GzipFile(path, "wb", compresslevel=6) if _is_gzip(path) else open(path, "wb") as stream:
        stream.write(header.getvalue().encode())
        with pa_csv.CSVWriter(stream, schema, write_options=options) as writer:
            for batch in record_batches(data, schema):
                writer.write_batch(batch)


def _open(path: Path) -> BufferedIOBase:
    return gzip.GzipFile(path) if _is_gzip(path) else open(path, "rb")


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _first_line(path: Path, stream: BufferedIOBase) -> str:
    line = next((line for line in _each(stream) if line.strip()), b"")
    if len(line) >= _LONGEST_LINE:
        raise InputError(f"{path}: has a line of more than {_LONGEST_LINE} bytes; is it a table?")
    try:
        return line.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise _unreadable(path, error) from None


def _sniff(line: str) -> str:
    unquoted = re.sub('"[^"]*"', "", line)
    # The comma comes last: where there are others, it is the decimal mark or part of a name.
    return next((delimiter for delimiter in "\t;," if delimiter in unquoted), _WHITESPACE)


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == _WHITESPACE:
        return line.split()
    return [field.strip() for field in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))]


def _cells(
    stream: BufferedIOBase, used: list[int], n_fields: int, locate: Callable[[int], str], *, delimiter: str
) -> Iterator[pa.RecordBatch]:
    """Yield blocks of the columns used, as text."""
    start = stream.tell()
    try:
        yield from _blocks(stream, used, n_fields, delimiter=delimiter)
    except pa.ArrowInvalid:
        row = _first_ragged(stream, start, used, n_fields, delimiter)
        if row is None:
            raise
        raise _ragged(locate(row.number - 1), row.actual_columns, n_fields) from None


def _first_ragged(
    stream: BufferedIOBase, start: int, used: list[int], n_fields: int, delimiter: str
) -> pa_csv.InvalidRow | None:
    """The row with too few or too many cells, looked for where all is text: Arrow shows rows as such, or complains."""
    stream.seek(0)
    if not all(map(_is_text, _each(stream))):
        return None
    ragged = []

    def refuse(row: pa_csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    stream.seek(start)
    with suppress(pa.ArrowInvalid):
        deque(_blocks(stream, used, n_fields, delimiter=delimiter, invalid_row_handler=refuse), maxlen=0)
    return ragged[0] if ragged else None


def _words(
    stream: BufferedIOBase, used: list[int], n_fields: int, locate: Callable[[int], str]
) -> Iterator[pa.RecordBatch]:
    """Yield blocks of the columns used, as text, from lines in which runs of spaces separate."""
    n_rows = 0
    for lines in _blocks(stream, [0], 1, delimiter="\x1f", quote_char=False):  # a delimiter that no text holds
        words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(lines.column(0)))
        counts = pc.list_value_length(words).to_numpy()
        if np.any(wrong := counts != n_fields):
            row = int(np.argmax(wrong))
            raise _ragged(locate(n_rows + row), int(counts[row]), n_fields)
        cells = words.flatten()
        columns = [cells.take(pa.array(np.arange(position, len(cells), n_fields))) for position in used]
        yield pa.RecordBatch.from_arrays(columns, names=[str(position) for position in used])
        n_rows += len(counts)


def _blocks(stream: BufferedIOBase, used: list[int], n_fields: int, **parse_options: Any) -> Iterator[pa.RecordBatch]:
    start = stream.tell()
    if not stream.read(1):  # Arrow takes no empty stream
        return
    stream.seek(start)
    names = [str(position) for position in range(n_fields)]
    yield from pa_csv.open_csv(
        stream,
        # One thread, because only then are bad rows numbered; it is no slower.
        pa_csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES, column_names=names),
        pa_csv.ParseOptions(**parse_options),
        pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), include_columns=[names[position] for position in used]
        ),
    )


def _ragged(where: str, n_found: int, n_expected: int) -> InputError:
    advice = "check for missing or extra delimiters"
    return InputError(f"{where}: {n_found} column{'s' * (n_found != 1)}, but the first line has {n_expected}; {advice}")


def _unreadable(path: Path, error: Exception) -> InputError:
    for number, line in _lines(path):
        if not _is_text(line):
            return InputError(f"{path}, line {number}: not UTF-8 text; save the file as UTF-8")
    return InputError(f"{path}: not a readable table ({error}); check the quotes and delimiters")


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _locate(path: Path, header: bool, row: int) -> str:
    number, _ = next(islice(_lines(path), row + header, None))
    return f"{path}, line {number}"


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number the lines from 1 and yield those that are not empty, which are the rows of the table."""
    with _open(path) as stream:
        yield from ((number, line) for number, line in enumerate(_each(stream), 1) if line.strip(b"\r\n"))


def _each(stream: BufferedIOBase) -> Iterator[bytes]:
    """Lines, none of which fills the memory: what is longer ends there, as nothing that is a table does."""
    while line := stream.readline(_LONGEST_LINE):
        yield line
        if len(line) == _LONGEST_LINE:
            return
