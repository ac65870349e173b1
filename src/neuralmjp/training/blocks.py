"""A data set as one block of padded series on the device, in normalised time and standardised values."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..encoders import Inputs
from ..errors import InputError
from ..exact.evidence import Panel, Scaling, gathered
from ..exact.model import Evidence, Model
from ..timeseries import TimeSeries
from .config import Config

SAME_TIME = 1e-6  # of the horizon


class Block(NamedTuple):
    """Series side by side, leading axes (series, time). Times are in units of the horizon; see `Clock`."""

    evidence: Evidence
    times: Float[Array, "series time"]  # since the first observation of the series; what is padded waits, or goes on
    gaps: Float[Array, "series time"]  # to the observation after; 0 after the last
    raw_gaps: Float[Array, "series time"]  # the same, in the data's unit
    span: Float[Array, ""]  # a unit of normalised time, in the data's unit

    @property
    def n_series(self) -> int:
        return len(self.times)

    @property
    def valid(self) -> Bool[Array, "series time"]:
        return self.evidence.valid

    @property
    def shared(self) -> bool:
        """Whether all series are seen at the same times, as windows of a regular recording are."""
        return bool(np.ptp(np.asarray(self.times), axis=0).max() <= SAME_TIME)

    def take(self, rows: Int[Array, "chosen"]) -> "Block":
        """Some of the series."""
        return jax.tree.map(lambda x: x if x.ndim == 0 else x[rows], self)

    def shortened(self, n: Int[Array, ""] | int) -> "Block":
        """The first `n` observations of every series; what comes after counts as padding."""
        inside = jnp.arange(self.times.shape[1]) < n
        evidence = self.evidence._replace(valid=self.evidence.valid & inside)
        more = jnp.arange(self.times.shape[1]) < n - 1
        return self._replace(
            evidence=evidence, gaps=jnp.where(more, self.gaps, 0.0), raw_gaps=jnp.where(more, self.raw_gaps, 0.0)
        )

    def cut(self, n: int) -> "Block":
        """The same, laid out for so many observations."""
        short = self.shortened(n)
        return jax.tree.map(lambda x: x if x.ndim == 0 else x[:, :n], short)


class Clock(NamedTuple):
    """Normalised time: every series begins at 0 and the longest ends at 1."""

    span: float  # of the longest series, in the data's unit

    @classmethod
    def of(cls, data: TimeSeries) -> "Clock":
        return cls(float((data.times[data.offsets[1:] - 1] - data.times[data.offsets[:-1]]).max()))


def make_block(
    data: TimeSeries,
    model: Model,
    scaling: Scaling,
    clock: Clock,
    panel: Panel,
    dtype: type,
    length: int | None = None,
    masked: bool = False,
) -> Block:
    """Lay a data set out for training; `length` pads it, and `masked` marks values that are there, as other blocks."""
    n_states = model.rate_model.n_states
    length = int(data.lengths.max()) if length is None else length
    since = data.times - np.repeat(data.times[data.offsets[:-1]], data.lengths)
    position = np.arange(length)
    valid = position < data.lengths[:, None]
    rows = data.offsets[:-1, None] + np.minimum(position, data.lengths[:, None] - 1)

    def laid(x, padding):
        table = x[rows]
        shape = valid.reshape(valid.shape + (1,) * (table.ndim - 2))
        table = np.where(shape, table, padding)
        return jnp.asarray(table if table.dtype == bool else table.astype(dtype))

    after = np.append(np.diff(data.times), 0.0)
    after[data.offsets[1:] - 1] = 0.0
    evidence, _ = gathered(data, model.emission, n_states, scaling, panel, laid, masked)
    evidence = evidence._replace(valid=jnp.asarray(valid))
    times = np.where(valid, since[rows], since[data.offsets[1:] - 1][:, None]) / clock.span
    longest = times[np.argmax(data.lengths)]
    if np.abs(np.where(valid, times - longest, 0.0)).max() <= SAME_TIME:  # a shorter series waits where others go on
        times = np.broadcast_to(longest, times.shape)
    return Block(
        evidence,
        jnp.asarray(times.astype(dtype)),
        laid(after / clock.span, 0.0),
        laid(after, 0.0),
        jnp.asarray(clock.span, dtype),
    )


def encoder_inputs(
    block: Block,
    log_emissions: Float[Array, "series time state"] | None,
    n_labels: int | None,
    horizon: float,
    masked: bool,
) -> Inputs:
    """What the encoder reads: values (labels as one-hot), time, gap, what is missing, and the states' likelihoods."""
    seen, valid = block.evidence.seen, block.evidence.valid
    dtype = block.times.dtype
    values = seen.values if n_labels is None else jax.nn.one_hot(seen.values[..., 0].astype(int), n_labels, dtype=dtype)
    columns = [values, block.times[..., None], block.gaps[..., None]]
    if seen.mask is not None:
        known = seen.mask.astype(dtype)
        columns[0] = values * known if n_labels is None else values * known[..., :1]
        columns += [known] if masked else []
    if log_emissions is not None:
        columns.append(jax.nn.softmax(log_emissions, axis=-1))
    features = jnp.where(valid[..., None], jnp.concatenate(columns, axis=-1), 0.0)
    ends = jnp.where(valid, block.times, 0.0).max(-1)
    return Inputs(features, jnp.where(valid, block.gaps, 0.0), horizon - ends, valid)


def in_windows(data: TimeSeries, longest: int) -> TimeSeries:
    """Series cut to at most `longest` observations; long recordings become many series."""
    if longest < 2:
        raise InputError(f"a window holds at least 2 observations, got {longest}")
    return data if int(data.lengths.max()) <= longest else data.windows(longest)


def as_configured(data: TimeSeries, config: Config) -> TimeSeries:
    """Cut into windows; without the last observation of each series, if so configured."""
    if config.drop_last:
        long = data[data.lengths > 2]
        keep = np.ones(long.n_observations, bool)
        keep[long.offsets[1:] - 1] = False
        offsets = long.offsets - np.arange(len(long.offsets))
        data = TimeSeries(long.times[keep], long.values[keep], offsets, long.names, long.value_names, long.time_unit)
    return in_windows(data, config.window)
