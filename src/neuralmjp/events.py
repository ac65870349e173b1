"""A decoded path as a list of events: each stay in a state, when it began and ended, and what was read in it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from .dates import moment, moments_of
from .timeseries import TimeSeries

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Events:
    """Stays of the most likely path, in the order of the data.

    Nobody saw the moment of a jump: it is put halfway between the two observations around it, unless the time of an
    entry is known exactly.
    """

    data: TimeSeries
    state_names: tuple[str, ...]  # of the levels, where states share these
    series: Int[np.ndarray, "event"]  # position in data.names
    states: Int[np.ndarray, "event"]  # or levels
    begins: Float[np.ndarray, "event"]
    ends: Float[np.ndarray, "event"]
    whole: Bool[np.ndarray, "event"]  # not cut short by the beginning or the end of its series
    n_observations: Int[np.ndarray, "event"]
    probabilities: Float[np.ndarray, "event"]  # of the state, mean over the observations
    means: Float[np.ndarray, "event feature"] | None  # of the values read; None where these are no quantities

    def __len__(self) -> int:
        return len(self.states)

    @property
    def durations(self) -> Float[np.ndarray, "event"]:
        return self.ends - self.begins

    def dwells(self) -> tuple[Float[np.ndarray, "_"], ...]:
        """How long the whole stays in each state lasted."""
        return tuple(self.durations[self.whole & (self.states == k)] for k in range(len(self.state_names)))

    def mean_in(self, state: int) -> Float[np.ndarray, "feature"]:
        """Of the values read in a state, over all its events; every event counts by its observations."""
        assert self.means is not None
        here = self.states == state
        weights = np.where(np.isnan(self.means[here]), 0, self.n_observations[here, None])
        total = weights.sum(0)
        return np.where(total > 0, (np.nan_to_num(self.means[here]) * weights).sum(0) / np.maximum(total, 1), np.nan)

    def summary(self) -> list[tuple[Any, ...]]:
        """Of each state: its name, the number of whole events, their mean and median duration, the mean readings."""
        rows = []
        for k, (name, dwells) in enumerate(zip(self.state_names, self.dwells(), strict=True)):
            lasted = (float(np.mean(dwells)), float(np.median(dwells))) if len(dwells) else (np.nan, np.nan)
            rows.append((name, len(dwells), *lasted, *([] if self.means is None else self.mean_in(k).tolist())))
        return rows

    def to_frame(self) -> "pd.DataFrame":
        """A row per event; begin and end are dates where the data's times are, durations are in their unit of time."""
        import pandas as pd

        data = self.data
        columns = {
            "series": np.array(data.names, object)[self.series],
            "begin": self._moments(self.begins),
            "end": self._moments(self.ends),
            "duration": self.durations,
            "state": self.states,
            "name": np.array(self.state_names, object)[self.states],
            "observations": self.n_observations,
            "probability": self.probabilities,
            "whole": self.whole,
        }
        if self.state_names == tuple(map(str, range(len(self.state_names)))):
            del columns["name"]
        if self.means is not None:
            columns |= {f"{name}_mean": self.means[:, d] for d, name in enumerate(data.value_names)}
        return pd.DataFrame(columns)

    def _moments(self, times: Float[np.ndarray, "event"]) -> "np.ndarray | pd.Series":
        import pandas as pd

        if self.data.origin is None:
            return times
        when = pd.Series(moments_of(times, self.data.origin, self.data.time_unit).astype("datetime64[us]"))
        return when.dt.tz_localize("UTC") if moment(self.data.origin)[1] else when


def events_of(
    data: TimeSeries,
    states: Int[np.ndarray, "row"],
    probabilities: Float[np.ndarray, "row state"],
    state_names: tuple[str, ...],
    *,
    quantities: bool,
    exact: Bool[np.ndarray, "row"] | None = None,
) -> Events:
    """Every stay of a path, all at once.

    Args:
        states: of the path, at each observation.
        quantities: whether a mean of values says something: labels and angles have none.
        exact: observations at whose very time their state was entered.
    """
    n, opens = len(states), np.zeros(len(states) + 1, bool)
    opens[data.offsets] = True  # of series, and where the last one is over
    changes = opens.copy()
    changes[1:n] |= states[1:] != states[:-1]
    edges = np.flatnonzero(changes)
    first, last = edges[:-1], edges[1:] - 1
    begun, cut = opens[first], opens[last + 1]
    entered = (data.times + np.roll(data.times, 1)) / 2  # between each observation and the one before
    entered = entered if exact is None else np.where(exact, data.times, entered)
    stayed = np.take_along_axis(probabilities, states[:, None], axis=1)[:, 0]
    counts = last + 1 - first
    return Events(
        data=data,
        state_names=state_names,
        series=np.searchsorted(data.offsets, first, side="right") - 1,
        states=states[first],
        begins=np.where(begun, data.times[first], entered[first]),
        ends=np.where(cut, data.times[last], entered[(last + 1) % n]),
        whole=~begun & ~cut,
        n_observations=counts,
        probabilities=np.add.reduceat(stayed, first) / counts,
        means=_means(data.values, first) if quantities else None,
    )


def _means(values: Float[np.ndarray, "row feature"], first: Int[np.ndarray, "event"]) -> Float[np.ndarray, "_ feature"]:
    """Of the values that are not missing, from each of these rows to the next."""
    seen = np.isfinite(values)
    sums, counts = (np.add.reduceat(x, first, axis=0) for x in (np.where(seen, values, 0.0), seen.astype(float)))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
