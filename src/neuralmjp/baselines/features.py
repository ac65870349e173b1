"""What a baseline looks at: the values, or the circles that angles lie on."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..errors import InputError
from ..timeseries import TimeSeries


@dataclass(frozen=True, eq=False)
class Features:
    """Standardised values; or sine and cosine of each angle (radians), where -pi and pi are neighbours."""

    angles: bool
    centre: Float[np.ndarray, "value"]
    scale: Float[np.ndarray, "value"]
    value_names: tuple[str, ...]

    @classmethod
    def of(cls, data: TimeSeries, angles: bool) -> "Features":
        """Centre and scale from these data."""
        values, names = whole(data), data.value_names
        if angles:
            return cls(True, np.zeros(len(names)), np.ones(len(names)), names)
        spread = values.std(0)
        if not (spread > 0).all():
            raise InputError(f"value {names[int(np.argmin(spread))]!r} never changes: leave it out")
        return cls(False, values.mean(0), spread, names)

    def __call__(self, data: TimeSeries) -> Float[np.ndarray, "row feature"]:
        """One row per observation."""
        if data.value_names != self.value_names:
            raise InputError(f"the model was fitted to values {self.value_names}, these data have {data.value_names}")
        return self.of_values(whole(data))

    def of_values(self, values: Float[np.ndarray, "row value"]) -> Float[np.ndarray, "row feature"]:
        """The same for values that are in no series."""
        if not self.angles:
            return (values - self.centre) / self.scale
        return np.concatenate([np.sin(values), np.cos(values)], axis=1)


def whole(data: TimeSeries) -> Float[np.ndarray, "row value"]:
    """The values, none of which may be missing."""
    holes = np.isnan(data.values)
    if holes.any():
        row, column = np.argwhere(holes)[0]
        name = data.names[int(np.searchsorted(data.offsets, row, side="right")) - 1]
        raise InputError(
            f"series {name!r}, time {data.times[row]:g}: {data.value_names[column]!r} is missing; "
            "this method needs every value, so leave such observations out or use ExactMJP"
        )
    return data.values
