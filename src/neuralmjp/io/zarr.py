"""Zarr groups: `times` and `values` laid end to end with `offsets`, or padded as in .npz; read chunk by chunk."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from ..errors import InputError
from ..npz_files import is_trap
from ..store import GROUP_ROWS, MOST_ROWS, Store, usable_pieces
from ..timeseries import TIME_UNIT, TimeSeries, join_ranges
from .arrays import default_value_names, from_arrays
from .columns import Request
from .extras import needed

# All others are refused: among those that exist, one unpickles.
CODECS = {"bytes", "transpose", "blosc", "zstd", "gzip", "zlib", "lz4", "crc32c", "sharding_indexed", "vlen-utf8"}
_ADVICE = "times (n,), values (n, D) and offsets (N + 1,); or times (N, L) and values (N, L, D)"


class ZarrStore(Store):
    """A Zarr group.

    Its arrays are `times` (n,), `values` (n,) or (n, D) and `offsets` (N + 1,), of which series i holds the rows
    offsets[i] to offsets[i + 1] - 1, one series without them; or `times` (N, L) and `values` (N, L) or (N, L, D), where
    NaN at the end of a row is padding. `names` (N,) may be there; time_unit, time_origin and value_names are
    attributes.
    """

    def __init__(self, path: Path, request: Request, time_unit: str | None):
        request.only((), path, "a Zarr group")
        zarr = needed("zarr", "zarr", f"{path}: a Zarr group")
        self.path = path
        try:
            group = zarr.open_group(str(path), mode="r")
            self._arrays = {name: group[name] for name in ("times", "values", "offsets", "names") if name in group}
            known = dict(group.attrs)
        except Exception as error:  # whatever its many parts raise for files that are damaged
            raise self._damaged(error) from None
        for name in ("times", "values"):
            if name not in self._arrays:
                raise InputError(f"{path}: has no array {name!r}; it takes {_ADVICE}")
        for name, array in self._arrays.items():
            self._check(name, array)
        times, values = self._arrays["times"], self._arrays["values"]
        self._padded = times.ndim == 2
        if times.shape != values.shape[: times.ndim] or not times.ndim <= values.ndim <= times.ndim + 1 <= 3:
            raise InputError(f"{path}: times {times.shape} and values {values.shape} do not fit; it takes {_ADVICE}")
        self._n, self.n_rows = int(times.shape[0]), int(np.prod(times.shape))
        self._offsets = self._read_offsets()
        self._names = self._read("names", slice(None)).tolist() if "names" in self._arrays else None
        if self._names is not None and len(self._names) != self._n_series:
            raise InputError(f"{path}: {len(self._names)} names for {self._n_series} series; write it again")
        n_features = values.shape[-1] if values.ndim > times.ndim else 1
        named = known.get("value_names")
        self.value_names = tuple(map(str, named if isinstance(named, list) else default_value_names(n_features)))
        self._counted = str(known.get("time_unit", TIME_UNIT))
        self._origin = None if known.get("time_origin") is None else str(known["time_origin"])
        self.time_unit = self._counted if time_unit is None else time_unit
        step = max(int(values.chunks[0]), 1)
        held = step * (times.shape[1] if self._padded else 1)
        if held > MOST_ROWS:
            raise InputError(f"{path}: a chunk of values has {held} rows, and is held as a whole; write smaller chunks")
        self._step = step * max(GROUP_ROWS // max(held, 1), 1)  # smaller chunks are read several at a time

    @property
    def _n_series(self) -> int:
        return self._n if self._padded else len(self._offsets) - 1

    def __len__(self) -> int:
        return -(-self._n // self._step)

    def chunk(self, number: int) -> TimeSeries | None:
        rows = slice(number * self._step, min((number + 1) * self._step, self._n))
        times, values = self._read("times", rows), self._read("values", rows)
        if self._padded:
            series = np.arange(rows.start, rows.stop)
            ended = np.isnan(times)
            lengths = np.where(ended.any(1), ended.argmax(1), times.shape[1])
            if (~ended & (np.arange(times.shape[1]) >= lengths[:, None])).any():
                raise InputError(f"{self.path}: a time is missing before the end of a series; every one needs a time")
            times, values, filled = times[~ended], values[~ended], lengths > 0
            series, offsets = series[filled], np.concatenate([[0], np.cumsum(lengths[filled])])
        else:
            first = int(np.searchsorted(self._offsets, rows.start, side="right")) - 1
            last = int(np.searchsorted(self._offsets, rows.stop, side="left"))
            offsets = np.clip(self._offsets[first : last + 1], rows.start, rows.stop) - rows.start
            series = np.arange(first, last)
            filled = np.diff(offsets) > 0
            series, offsets = series[filled], np.append(offsets[:-1][filled], len(times))
        return self._pieces(times, values.reshape(len(times), -1), offsets, series)

    def _pieces(
        self, times: np.ndarray, values: np.ndarray, offsets: np.ndarray, series: np.ndarray
    ) -> TimeSeries | None:
        keep = usable_pieces(values, offsets) if len(series) else np.empty(0, int)
        if len(keep) == 0:
            return None
        rows = join_ranges(offsets[keep], offsets[keep + 1])
        offsets = np.concatenate([[0], np.cumsum(np.diff(offsets)[keep])])
        names = tuple(str(k) if self._names is None else str(self._names[k]) for k in series[keep].tolist())
        kept = (times[rows], values[rows], offsets, names, self.value_names, self._counted, self._origin)
        return self._checked(lambda: TimeSeries(*kept))

    def whole(self) -> TimeSeries:
        names = None if self._names is None else [str(name) for name in self._names]
        times, values = self._read("times", slice(None)), self._read("values", slice(None))
        choices: Any = {"time_unit": self._counted, "value_names": self.value_names, "origin": self._origin}
        if self._padded:
            return self._checked(lambda: from_arrays(times, values, names=names, **choices))
        values, known = values.reshape(len(times), -1), tuple(names or map(str, range(self._n_series)))
        return self._checked(lambda: TimeSeries(times, values, self._offsets, known, **choices))

    def _checked(self, make: Any) -> TimeSeries:
        try:
            return make().in_unit(self.time_unit)
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from None

    def _read(self, name: str, rows: slice) -> np.ndarray:
        try:
            found = np.asarray(self._arrays[name][rows])
        except Exception as error:
            raise self._damaged(error) from None
        return found if name == "names" else found.astype(np.int64 if name == "offsets" else np.float64)

    def _read_offsets(self) -> Int64[np.ndarray, "boundary"]:
        if "offsets" not in self._arrays or self._padded:
            return np.array([0, self._n])
        offsets = self._read("offsets", slice(None))
        if offsets.ndim != 1 or len(offsets) < 2 or offsets[0] != 0 or (np.diff(offsets) < 0).any():
            raise InputError(f"{self.path}: offsets do not rise from 0; write it again")
        if offsets[-1] != self._n:
            raise InputError(f"{self.path}: offsets end at {offsets[-1]}, times at {self._n}")
        return offsets

    def _check(self, name: str, array: Any) -> None:
        """Numbers (names: or text), packed by codecs that only unpack, of a size that is really there."""
        kinds = "iufUT" if name == "names" else "iuf"
        if not hasattr(array, "chunks") or np.dtype(array.dtype).kind not in kinds:
            raise InputError(f"{self.path}: {name} is no array of numbers; write it as one")
        unknown = sorted(set(codecs_of(array.metadata.to_dict())) - CODECS)
        if unknown:
            raise InputError(f"{self.path}: {name} is packed by {unknown[0]!r}; use zstd, blosc, gzip or nothing")
        there = sum(file.stat().st_size for file in (self.path / name).rglob("*") if file.is_file())
        n_bytes = int(np.prod([float(n) for n in array.shape])) * np.dtype(array.dtype).itemsize
        if is_trap(there, n_bytes):
            raise InputError(
                f"{self.path}: {name} would unpack from {there} bytes to {n_bytes} or more; write it again"
            )

    def _damaged(self, error: Exception) -> InputError:
        words = " ".join(str(error).split())[:200]
        return InputError(f"{self.path}: is no Zarr group, or damaged; copy it again ({words})")


def codecs_of(metadata: dict[str, Any]) -> list[str]:
    """Names of all that pack an array, inside shards too."""
    found = []
    for one in [*(metadata.get("codecs") or ()), *(metadata.get("filters") or ()), metadata.get("compressor")]:
        if one is None:
            continue
        one = one if isinstance(one, dict) else one.get_config() if hasattr(one, "get_config") else one.to_dict()
        found.append(str(one.get("name", one.get("id"))))
        found += codecs_of(one.get("configuration") or {}) if found[-1] == "sharding_indexed" else []
    return found


def write(data: TimeSeries, path: Path) -> None:
    """Write all that `data` holds, series end to end."""
    zarr = needed("zarr", "zarr", "a Zarr group")
    group = zarr.open_group(str(path), mode="w")
    rows = min(GROUP_ROWS, data.n_observations)
    group.create_array("times", data=np.array(data.times), chunks=(rows,))
    group.create_array("values", data=np.array(data.values), chunks=(rows, data.n_features))
    group.create_array("offsets", data=np.array(data.offsets))
    group.create_array("names", data=np.array(data.names, dtype=np.dtypes.StringDType()))
    group.attrs.update({"time_unit": data.time_unit, "value_names": list(data.value_names)})
    if data.origin is not None:
        group.attrs["time_origin"] = data.origin
