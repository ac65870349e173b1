"""pandas frames with one row per observation, in and out."""

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

from ..errors import InputError
from ..timeseries import TimeSeries
from .columns import Request
from .tables import TableBuilder, record_batches, table_schema


def from_frame(
    frame: pd.DataFrame,
    *,
    series: str | int | None,
    time: str | int | None,
    values: str | int | Sequence[str | int] | None,
    time_unit: str | None,
) -> TimeSeries:
    """See `TimeSeries.from_frame`; messages count rows from 0, as `iloc` does."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(
            f"one pandas data frame is needed, got {type(frame).__name__}: of several, pandas.concat makes one, with a "
            "column of series"
        )
    columns = Request(series, time, values).resolve([str(name) for name in frame.columns], "data frame")
    builder = TableBuilder("data frame", columns, lambda row: f"data frame, row {row} (counted from 0)")
    arrays = [_array(frame.iloc[:, position]) for position in columns.used]
    builder.add(pa.RecordBatch.from_arrays(arrays, names=[str(position) for position in columns.used]))
    data = builder.finish()
    return data if time_unit is None else data.in_unit(time_unit)


def to_frame(data: TimeSeries) -> pd.DataFrame:
    """See `TimeSeries.to_frame`."""
    return pa.Table.from_batches(record_batches(data, table_schema(data))).to_pandas()


def _array(column: pd.Series) -> pa.Array:
    if column.dtype == object:  # may mix numbers with text
        column = column.map(str, na_action="ignore")
    array = pa.array(column, from_pandas=True)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
