"""pandas frames with one row per observation, in and out."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa

from ..errors import InputError
from ..timeseries import TimeSeries
from .columns import Request
from .files import replacing
from .tables import TableBuilder, record_batches, table_schema

TABLES = (".csv", ".tsv", ".parquet")  # that hold text beside numbers


def from_frame(
    frame: pd.DataFrame,
    *,
    series: str | int | None,
    time: str | int | None,
    values: str | int | Sequence[str | int] | None,
    time_unit: str | None,
    labels: str | Sequence[str] | None = None,
) -> TimeSeries:
    """See `TimeSeries.from_frame`; messages count rows from 0, as `iloc` does."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(
            f"one pandas data frame is needed, got {type(frame).__name__}: of several, pandas.concat makes one, with a "
            "column of series"
        )
    columns = Request(series, time, values, labels=labels).resolve([str(name) for name in frame.columns], "data frame")
    builder = TableBuilder("data frame", columns, lambda row: f"data frame, row {row} (counted from 0)")
    arrays = [_array(frame.iloc[:, position]) for position in columns.used]
    builder.add(pa.RecordBatch.from_arrays(arrays, names=[str(position) for position in columns.used]))
    data = builder.finish()
    return data if time_unit is None else data.in_unit(time_unit)


def to_frame(data: TimeSeries) -> pd.DataFrame:
    """See `TimeSeries.to_frame`."""
    return pa.Table.from_batches(record_batches(data, table_schema(data))).to_pandas()


def require_table(path: Path) -> None:
    """Raise unless a file of this name holds a table of any columns; before the work, not after it."""
    if not path.name.lower().endswith(TABLES):
        raise InputError(f"{path}: such a table is written as {', '.join(TABLES)}; choose one of these endings")


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a table of any columns, in the format that the ending names; it appears whole or not at all."""
    require_table(path)
    with replacing(path) as temporary:
        if path.suffix.lower() == ".parquet":
            frame.to_parquet(temporary, index=False)
        else:
            frame.to_csv(temporary, index=False, sep="\t" if path.suffix.lower() == ".tsv" else ",")


def _array(column: pd.Series) -> pa.Array:
    if column.dtype == object:  # may mix numbers with text
        column = column.map(str, na_action="ignore")
    array = pa.array(column, from_pandas=True)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
