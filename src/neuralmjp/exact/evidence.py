"""From a data set to what the likelihood needs: observations in lanes, with what is known for certain."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from ..emissions import Categorical, Emission, Observations
from ..errors import InputError
from ..timeseries import TimeSeries
from .chain import Chain
from .layout import Layout, first_rows, lay_out
from .model import Evidence


@dataclass(frozen=True)
class Panel:
    """What is special about panel data (patients seen now and then). States are named by their labels in the data.

    Args:
        exact_entry: absorbing state whose time of entry is known exactly (death).
        first_known: the first observation of every series is read truly.
        censored: label -> states it may stand for: {99: (1, 2)}.
    """

    exact_entry: float | None = None
    first_known: bool = False
    censored: Mapping[float, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self):
        if not isinstance(self.exact_entry, Real | None):
            raise InputError(f"exact_entry is a label, a number as in the data; got {self.exact_entry!r}")
        told = self.censored.items() if isinstance(self.censored, Mapping) else [(None, ())]
        if not all(isinstance(states, Collection) and _labels(label, *states) for label, states in told):
            raise InputError(
                "censored says which states each label may stand for, all of them numbers as in the data, such as "
                f"{{99: (1, 2)}}; got {self.censored!r}"
            )

    def __bool__(self) -> bool:
        return self.exact_entry is not None or self.first_known or bool(self.censored)


def _labels(*given: object) -> bool:
    """Whether all are numbers, at least two: a label, and what it may stand for."""
    return len(given) > 1 and all(isinstance(one, Real) for one in given)


@dataclass(frozen=True)
class Laid:
    """Evidence, and the way back from lanes to observations."""

    evidence: Evidence
    layout: Layout
    log_scale: float  # what standardising the values took from the log density


SMALLEST, LARGEST = 1e-100, 1e100  # of real values


@dataclass(frozen=True)
class Scaling:
    """Values are shifted and scaled for the fit, so that nobody has to care about units."""

    shift: Float[np.ndarray, "feature"]
    scale: Float[np.ndarray, "feature"]

    @classmethod
    def of(cls, emission: Emission, values: Float[np.ndarray, "row feature"]) -> "Scaling":
        if not emission.real_valued:
            return cls(np.zeros(values.shape[1]), np.ones(values.shape[1]))
        # By extremes, not by spread: the mean of equal numbers may differ from them by rounding.
        seen = ~np.isnan(values)
        low, high = np.min(values, 0, initial=np.inf, where=seen), np.max(values, 0, initial=-np.inf, where=seen)
        changes = (high > low) | ~emission.signals(values.shape[1])
        if not changes.all():
            constant = int(np.argmin(changes))
            raise InputError(f"value {constant} never changes: nothing can be learned from a constant; leave it out")
        largest, span = np.maximum(np.abs(low), np.abs(high)), high / 2 - low / 2  # which cannot overflow
        extreme = (largest > LARGEST) | ((span > 0) & (span < SMALLEST))
        if extreme.any():
            worst = int(np.argmax(extreme))
            raise InputError(
                f"value {worst} runs from {low[worst]:g} to {high[worst]:g}, beyond what can be squared: choose a unit "
                f"in which values are below {LARGEST:g} and differ by more than {SMALLEST:g}"
            )
        return cls(*emission.scaled(np.nanmean(values, axis=0), np.nanstd(values, axis=0)))

    def log_taken(self, emission: Emission, seen: Bool[np.ndarray, "row feature"]) -> float:
        """What standardising took from the log density of what was seen."""
        return -float((emission.counted(seen) * np.log(self.scale)).sum())


def emission_values(emission: Emission, values: Float[np.ndarray, "row feature"], panel: Panel) -> np.ndarray:
    """Values as the emission reads them: labels become codes, censored ones count as missing."""
    if not isinstance(emission, Categorical):
        if panel:
            raise InputError("exact entry, first-known and censored states are for categorical observations")
        return values
    if values.shape[1] != 1:
        raise InputError(f"categorical observations are one column of labels, got {values.shape[1]}")
    hidden = np.isin(values, [float(code) for code in panel.censored])
    return emission.codes(np.where(hidden, np.nan, values))


def make_evidence(
    data: TimeSeries,
    emission: Emission,
    n_states: int,
    scaling: Scaling,
    panel: Panel,
    layout: Layout | None = None,
) -> Laid:
    """Lay a data set out for a model with `n_states` states: on the device, or on the host if a layout is given."""
    place: Any = jnp.asarray if layout is None else np.asarray
    layout = layout or lay_out(data, n_states, whole=emission.hidden_level)
    evidence, mask = gathered(
        data, emission, n_states, scaling, panel, lambda rows, padding: place(layout.gather(rows, padding))
    )
    evidence = evidence._replace(
        valid=place(layout.rows >= 0),
        chain=Chain(place(layout.starts), place(layout.gap_index)),
        gaps=place(layout.gaps),
    )
    placed = mask[layout.rows[layout.rows >= 0]]
    return Laid(evidence, layout, scaling.log_taken(emission, placed))


def gathered(
    data: TimeSeries,
    emission: Emission,
    n_states: int,
    scaling: Scaling,
    panel: Panel,
    gather: Callable[[np.ndarray, Any], Any],
    masked: bool = False,
) -> tuple[Evidence, Bool[np.ndarray, "row feature"]]:
    """What was seen, in the places that `gather(rows, padding)` gives it, and what was not missing.

    Where something is valid, and how the places hang together, is for the caller to fill in. Values are marked as
    there or not if one is missing, or if they are to be `masked` in any case.
    """
    values = (emission_values(emission, data.values, panel) - scaling.shift) / scaling.scale
    mask = ~np.isnan(values)
    first = first_rows(data)
    filled = np.where(mask, values, 0.0)
    override = panel_override(data, emission, n_states, panel, first)
    entered, absorbing = absorbing_entries(data, emission, panel)
    seen = Observations(
        values=gather(filled, filled[0]),  # padding repeats a real value: zero may lie outside a density's range
        mask=None if mask.all() and not masked else gather(mask, False),
        previous=gather(np.roll(filled, 1, axis=0), 0.0),
        has_previous=gather(np.roll(mask, 1, axis=0) & ~first[:, None], False),
        gap=gather(np.where(first, 0.0, np.diff(data.times, prepend=0.0)), 0.0),
        time=gather(data.times, 0.0) if emission.timed else None,
    )
    evidence = Evidence(
        seen=seen,
        valid=None,  # type: ignore[arg-type]
        override=None if override is None else gather(override, np.nan),
        entered=None if entered is None else gather(entered, False),
        absorbing=absorbing,
        chain=None,  # type: ignore[arg-type]
        gaps=None,  # type: ignore[arg-type]
    )
    return evidence, mask


def absorbing_entries(
    data: TimeSeries, emission: Emission, panel: Panel
) -> tuple[Bool[np.ndarray, "row"], Int[np.ndarray, ""]] | tuple[None, None]:
    """Where the absorbing state was entered at exactly the time given, and which state that is."""
    if panel.exact_entry is None:
        return None, None
    entered = data.values[:, 0] == panel.exact_entry
    entered[data.offsets[:-1]] = False
    _check_last(data, entered)
    return entered, np.asarray(state_of(emission, panel.exact_entry))


def panel_override(
    data: TimeSeries, emission: Emission, n_states: int, panel: Panel, first: np.ndarray
) -> Float[np.ndarray, "row state"] | None:
    """Log density (0 or -inf) where the state is known to be one of a set; NaN elsewhere."""
    if not panel.first_known and not panel.censored and panel.exact_entry is None:
        return None
    override = np.full((len(data.values), n_states), np.nan)
    labels = data.values[:, 0]
    if panel.first_known:
        codes = _first_states(data, emission)
        override[first] = np.where(np.eye(n_states)[codes] > 0, 0.0, -np.inf)
    if panel.exact_entry is not None:
        dead = labels == panel.exact_entry
        override[dead] = np.where(np.arange(n_states) == state_of(emission, panel.exact_entry), 0.0, -np.inf)
    for label, states in panel.censored.items():
        possible = np.isin(np.arange(n_states), [state_of(emission, state) for state in states])
        override[labels == float(label)] = np.where(possible, 0.0, -np.inf)
    return override


def _first_states(data: TimeSeries, emission: Emission) -> Int[np.ndarray, "series"]:
    assert isinstance(emission, Categorical)
    labels = data.values[data.offsets[:-1], 0]
    unread = np.flatnonzero(~np.isin(labels, emission.labels))
    if unread.size:
        raise InputError(
            f"series {data.names[unread[0]]!r} begins with {labels[unread[0]]:g}, which is no state: first states are "
            "not all known"
        )
    return emission.codes(labels[:, None])[:, 0].astype(int)


def state_of(emission: Emission, label: float | None) -> int:
    assert isinstance(emission, Categorical)
    if label not in emission.labels:
        raise InputError(f"no state has the label {label:g}; labels are {', '.join(f'{x:g}' for x in emission.labels)}")
    return emission.labels.index(float(label))


def _check_last(data: TimeSeries, entered: np.ndarray) -> None:
    last = np.zeros(len(entered), dtype=bool)
    last[data.offsets[1:] - 1] = True
    early = np.flatnonzero(entered & ~last)
    if early.size:
        series = int(np.searchsorted(data.offsets, early[0], side="right")) - 1
        raise InputError(
            f"series {data.names[series]!r} goes on after time {data.times[early[0]]:g}, when it entered the absorbing "
            "state: remove what follows, or do not declare the state absorbing"
        )
