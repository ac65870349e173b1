"""Parquet tables, read batch by batch; the time unit travels in the metadata of the schema."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InputError
from ..timeseries import TIME_UNIT, TimeSeries
from .columns import Columns, Request
from .files import check_unpacked
from .tables import TableBuilder, not_numbers, record_batches, table_schema

_METADATA_KEY = b"neuralmjp"
_MAGIC = b"PAR1"


def read(path: Path, request: Request) -> TimeSeries:
    """Read a Parquet table; messages count rows from 1."""
    request.only(("series", "time", "values", "rate", "header", "labels"), path, "a Parquet table")
    with opened(path) as file:
        columns = request.resolve(file.schema_arrow.names, str(path))
        builder = TableBuilder(str(path), columns, partial(locate, path))
        add_groups(file, path, columns, range(file.num_row_groups), builder)
        unit = time_unit_of(file.schema_arrow)
    return builder.finish(unit, request.rate)


@contextmanager
def opened(path: Path) -> Iterator[pq.ParquetFile]:
    """A Parquet file; what is wrong with it is said in one line."""
    with open(path, "rb") as file:
        is_parquet = file.read(len(_MAGIC)) == _MAGIC
    if not is_parquet:
        raise InputError(f"{path}: is not a Parquet file; give it the extension of what it is")
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except InputError:
        raise
    except (pa.ArrowInvalid, OSError, ValueError, AttributeError) as error:  # names and metadata may be no text
        raise InputError(f"{path}: is cut short or damaged; copy it again ({_one_line(error)})") from None


def add_groups(
    file: pq.ParquetFile, path: Path, columns: Columns, groups: Iterable[int], builder: TableBuilder
) -> None:
    """Row groups, one by one, or Arrow would hold the whole file."""
    check_types(file.schema_arrow, path, columns)
    check_unpacked(path, 8 * len(columns.used) * file.metadata.num_rows, "write it again in several files")
    names = [columns.names[position] for position in columns.used]
    for group in groups:
        for batch in file.iter_batches(columns=names, row_groups=[group]):
            builder.add(batch.select(names))


def check_types(schema: pa.Schema, path: Path, columns: Columns) -> None:
    """Raise where numbers stand for something else by an extension that nobody has loaded, such as periods."""
    for position in (columns.time, *columns.values):
        kind = b"" if position is None else (schema.field(position).metadata or {}).get(b"ARROW:extension:name", b"")
        if position is not None and kind:
            raise InputError(f"{path}, {columns.label(position)}: {not_numbers(kind.decode(errors='replace'))}")


def write(data: TimeSeries, path: Path, group_rows: int | None = None) -> None:
    """Write a Parquet table, with checksums that tell a damaged file from a good one."""
    schema = table_schema(data)
    noted = schema.with_metadata({_METADATA_KEY: json.dumps({"time_unit": data.time_unit})})
    with pq.ParquetWriter(path, noted, write_page_checksum=True) as writer:
        for batch in record_batches(data, schema):
            writer.write_batch(batch, group_rows)


def time_unit_of(schema: pa.Schema) -> str:
    """What the file says that its times count."""
    return json.loads((schema.metadata or {}).get(_METADATA_KEY, b"{}")).get("time_unit", TIME_UNIT)


def locate(path: Path, row: int) -> str:
    return f"{path}, row {row + 1} (counted from 1)"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
