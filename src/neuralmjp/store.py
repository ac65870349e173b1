"""Data that stay on disk, chunk by chunk: what training needs to know of them, whatever the format."""

from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int64

from .timeseries import TimeSeries

MOST_ROWS = 1 << 23  # of a chunk, which is held as a whole
GROUP_ROWS = 1 << 16  # of a chunk as written here: few enough that training mixes many


class Store(ABC):
    """Observations in chunks, each small enough to be held. A series may go on in the next chunk, and nowhere else."""

    path: Path
    value_names: tuple[str, ...]
    time_unit: str
    n_rows: int

    @abstractmethod
    def __len__(self) -> int:
        """Number of chunks."""

    @abstractmethod
    def chunk(self, number: int) -> TimeSeries | None:
        """Read one; without pieces of series that hold a single observation or no value, None if there are no others.

        A piece has the name of its series.
        """

    @abstractmethod
    def whole(self) -> TimeSeries:
        """All of it, held in memory."""

    def __repr__(self) -> str:
        what = f"{self.n_rows} observations in {len(self)} chunks, values: {', '.join(self.value_names)}"
        return f"{type(self).__name__}({what}, time in {self.time_unit})"


def usable_pieces(
    values: Float64[np.ndarray, "row feature"], offsets: Int64[np.ndarray, "boundary"]
) -> Int64[np.ndarray, "piece"]:
    """Which pieces hold two observations or more, and some value."""
    seen = np.logical_or.reduceat(~np.isnan(values).all(axis=1), offsets[:-1])
    return np.flatnonzero(seen & (np.diff(offsets) > 1))
