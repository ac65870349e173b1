"""Series of counts on the device, their time cut into pieces that end at observations."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..encoders import Inputs
from ..posteriors.backward_guess import Seen
from ..posteriors.mean_field import Pieces
from ..timeseries import TimeSeries
from .blocks import Clock

PIECES_ROUNDED_TO = 32  # so that similar data sets share a compiled program


class CountBlock(NamedTuple):
    """Series side by side; the first axis counts series. Padded pieces last no time."""

    features: Float[Array, "series time feature"]  # what encoders read; time and gap come last
    gaps: Float[Array, "series time"]  # normalised, to the observation after
    after: Float[Array, "series"]
    valid: Bool[Array, "series time"]
    durations: Float[Array, "series piece"]  # in the data's unit
    middle: Float[Array, "series piece"]  # normalised, since the first observation
    ahead: Float[Array, "series piece"]  # normalised, from the middle to the next observation
    gap_of: Int[Array, "series piece"]  # which observation came before
    at_ends: Seen  # readings where a piece ends at an observation
    at_start: Seen
    nodes: Int[Array, "series time"]  # where the observations are among the ends of pieces
    span: Float[Array, ""]  # a unit of normalised time, in the data's unit

    @property
    def n_series(self) -> int:
        return len(self.valid)

    def take(self, rows: Int[Array, "chosen"]) -> "CountBlock":
        """Some of the series."""
        return jax.tree.map(lambda x: x if x.ndim == 0 else x[rows], self)

    def shortened(self, n: Int[Array, ""] | int) -> "CountBlock":
        """The first `n` observations of every series; what comes after counts as padding."""
        position = jnp.arange(self.valid.shape[1])
        valid, before_last = self.valid & (position < n), self.gap_of < n - 1
        gaps = jnp.where(position < n - 1, self.gaps, 0.0)
        features = jnp.concatenate([self.features[..., :-1], gaps[..., None]], axis=-1)
        times = self.features[..., -2]
        ends = [jnp.where(there, times, 0.0).max(-1) for there in (self.valid, valid)]
        return self._replace(
            features=jnp.where(valid[..., None], features, 0.0),
            gaps=gaps,
            after=self.after + ends[0] - ends[1],
            valid=valid,
            durations=jnp.where(before_last, self.durations, 0.0),
            at_ends=self.at_ends._replace(known=self.at_ends.known & before_last[..., None]),
        )

    def cut(self, n: int) -> "CountBlock":
        """The same, laid out for so many observations, and for the pieces between them."""
        short = self.shortened(n)
        n_pieces = rounded_up(int(np.asarray(self.nodes)[:, n - 1].max()))

        def pieces(x):
            return jax.tree.map(lambda each: each[:, :n_pieces], x)

        return short._replace(
            features=short.features[:, :n],
            gaps=short.gaps[:, :n],
            valid=short.valid[:, :n],
            durations=pieces(short.durations),
            middle=pieces(short.middle),
            ahead=pieces(short.ahead),
            gap_of=pieces(short.gap_of),
            at_ends=pieces(short.at_ends),
            nodes=short.nodes[:, :n],
        )

    @property
    def inputs(self) -> Inputs:
        return Inputs(self.features, self.gaps, self.after, self.valid)

    @property
    def pieces(self) -> Pieces:
        """For networks, time in front."""
        gap = jax.nn.one_hot(self.gap_of, self.valid.shape[1], dtype=self.middle.dtype)
        return Pieces(self.middle.T, self.ahead.T, jnp.moveaxis(gap, 1, 0))

    @property
    def seen_at_ends(self) -> Seen:
        """Time in front."""
        return jax.tree.map(lambda x: jnp.moveaxis(x, 1, 0), self.at_ends)


class Sizes(NamedTuple):
    """What standardises readings for networks, and the unit of normalised time."""

    shift: Float[np.ndarray, "column"]
    scale: Float[np.ndarray, "column"]
    span: float

    @classmethod
    def of(cls, data: TimeSeries) -> "Sizes":
        shift, scale = np.nanmean(data.values, axis=0), np.nanstd(data.values, axis=0)
        return cls(shift, np.where(scale > 0, scale, 1.0), Clock.of(data).span)


def make_count_block(
    data: TimeSeries, sizes: Sizes, pieces: Float[np.ndarray, "observation"], horizon: float, dtype: type
) -> CountBlock:
    """Lay a data set out for training; `pieces` is how many the time after each observation should be cut into."""
    length, n_columns = int(data.lengths.max()), data.n_features
    position = np.arange(length)
    valid = position < data.lengths[:, None]
    rows = data.offsets[:-1, None] + np.minimum(position, data.lengths[:, None] - 1)
    since = data.times[rows] - data.times[data.offsets[:-1], None]
    after = np.where(valid[:, 1:], np.diff(since, axis=1), 0.0)
    # Pieces of each gap; observations at one time need one of no length between them.
    n_pieces = np.where(valid[:, 1:], np.maximum(np.ceil(pieces[rows[:, :-1]]), 1), 0).astype(int)
    ends = np.cumsum(n_pieces, axis=1)
    n = rounded_up(int(ends[:, -1].max(initial=1)))
    index = np.arange(n)
    gap_of = np.stack([np.searchsorted(row, index, side="right") for row in ends])
    lasting = index < ends[:, -1:]
    gap_of = np.where(lasting, gap_of, 0)
    duration = np.where(lasting, _at(after / np.maximum(n_pieces, 1), gap_of), 0.0)
    before = index - _at(np.concatenate([np.zeros_like(ends[:, :1]), ends[:, :-1]], axis=1), gap_of)
    middle = _at(since[:, :-1], gap_of) + (before + 0.5) * duration
    ahead = _at(since[:, 1:], gap_of) - middle
    closes = lasting & (before == _at(n_pieces, gap_of) - 1)
    values, known = data.values[rows], ~np.isnan(data.values[rows]) & valid[..., None]
    filled = np.where(known, values, 0.0)
    ending = gap_of + 1
    end_values = np.take_along_axis(filled, ending[..., None].repeat(n_columns, -1), axis=1)
    end_known = np.take_along_axis(known, ending[..., None].repeat(n_columns, -1), axis=1) & closes[..., None]
    standard = np.where(known, (filled - sizes.shift) / sizes.scale, 0.0)
    gaps = np.concatenate([after, np.zeros((len(after), 1))], axis=1) / sizes.span
    times = since / sizes.span
    features = np.concatenate([standard, known, times[..., None], gaps[..., None]], axis=-1) * valid[..., None]
    last = np.where(valid, since, 0.0).max(1) / sizes.span

    def real(x):
        return jnp.asarray(np.asarray(x, dtype))

    return CountBlock(
        features=real(features),
        gaps=real(gaps * valid),
        after=real(horizon - last),
        valid=jnp.asarray(valid),
        durations=real(duration),
        middle=real(middle / sizes.span * lasting),
        ahead=real(ahead / sizes.span * lasting),
        gap_of=jnp.asarray(gap_of, jnp.int32),
        at_ends=Seen(real(end_values), jnp.asarray(end_known)),
        at_start=Seen(real(filled[:, 0]), jnp.asarray(known[:, 0])),
        nodes=jnp.asarray(np.concatenate([np.zeros_like(ends[:, :1]), ends], axis=1), jnp.int32),
        span=real(sizes.span),
    )


def rounded_up(n_pieces: int) -> int:
    return -(-n_pieces // PIECES_ROUNDED_TO) * PIECES_ROUNDED_TO


def _at(table: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.take_along_axis(table, index, axis=1)
