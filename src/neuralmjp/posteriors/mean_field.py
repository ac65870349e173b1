"""Posteriors of coupled processes: one jump process per species, tilted or free."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..encoders import MLP, Encoder, Inputs
from .backward_guess import Guess
from .coupling import Coupling
from .embedding import MercerEmbedding
from .tilted import NEVER

Potentials = Literal["polynomial", "free"]
DEGREE = 3
WIDEST = 5.0  # standard deviations of the guess, beyond which a correction stays what it is


class Pieces(NamedTuple):
    """Where in its series a piece of time lies, for networks; in normalised time."""

    middle: Float[Array, "piece series"]  # since the first observation
    ahead: Float[Array, "piece series"]  # from there to the next observation
    gap: Float[Array, "piece series time"]  # 1 at the observation before, else 0


class TiltedMeanField(eqx.Module):
    """Potentials of every species: a guess in closed form, corrected by networks that read the series both ways.

    The best potential of a species depends on where the others are, and so on the past as well as on the future.
    """

    backward: Encoder
    forward: Encoder
    head: MLP
    first: MLP
    kind: Potentials = eqx.field(static=True)

    def __init__(
        self, backward: Encoder, forward: Encoder, coupling: Coupling, *, kind: Potentials = "polynomial", key: Array
    ):
        keys = jax.random.split(key, 2)
        self.backward, self.forward, self.kind = backward, forward, kind
        width, n_species = backward.width, coupling.n_species
        n_out = n_species * (DEGREE if kind == "polynomial" else coupling.n_counts)
        hidden, choices = max(width, 64), {"activation": "silu", "start": "kaiming", "quiet": True}
        self.head = MLP((2 * width + 2 + 2 * n_species, hidden, hidden, n_out), key=keys[0], **choices)
        self.first = MLP((width + 2 * n_species, hidden, n_out), key=keys[1], **choices)

    def potentials(
        self,
        coupling: Coupling,
        inputs: Inputs,
        pieces: Pieces,
        along: Guess,
        start: Guess,
        *,
        key: Array | None,
    ) -> tuple[Float[Array, "piece series species count"], Float[Array, "series species count"]]:
        """In each piece, and just before the first observation with everything seen."""
        keys = (None, None) if key is None else tuple(jax.random.split(key))
        ahead = self.backward(inputs, key=keys[0])
        behind = self.forward(turned(inputs), key=keys[1]).before[:, ::-1]
        behind = jnp.concatenate([behind[:, 1:], jnp.zeros_like(behind[:, :1])], axis=1)
        summaries = jnp.concatenate([ahead.before, behind], axis=-1)
        # A product with zeros and ones: its derivative is another, where that of a lookup would be a scatter.
        placed = jnp.einsum("pst,sth->psh", pieces.gap, summaries @ self.head.weights[0][: summaries.shape[-1]])
        where = jnp.concatenate([pieces.middle[..., None], pieces.ahead[..., None], _described(coupling, along)], -1)
        raw = self.head.after_first(placed + where @ self.head.weights[0][summaries.shape[-1] :])
        whole = self.first(jnp.concatenate([ahead.whole, _described(coupling, start)], axis=-1))
        return self._shaped(coupling, raw, along), self._shaped(coupling, whole, start)

    def _shaped(self, coupling: Coupling, raw: Array, guess: Guess) -> Array:
        """The guess, and a correction for each count."""
        counts = jnp.arange(coupling.n_counts, dtype=raw.dtype)
        away = counts - guess.means[..., None]
        quadratic = -0.5 * guess.precisions[..., None] * away**2
        raw = raw.reshape(*raw.shape[:-1], coupling.n_species, -1)
        if self.kind == "free":
            return quadratic + raw
        least = jnp.asarray([(4 / n) ** 2 for n in coupling.box], raw.dtype)
        u = jnp.clip(away * jnp.sqrt(guess.precisions + least)[..., None], -WIDEST, WIDEST)
        return quadratic + raw[..., :1] * u + raw[..., 1:2] * u**2 / 2 + raw[..., 2:] * u**3 / 6


class FreeMeanField(eqx.Module):
    """The paper's: laws at the start and rates at all times from one summary of the series."""

    encoder: Encoder
    initial: MLP
    embedding: MercerEmbedding
    rates: MLP

    def __init__(
        self,
        encoder: Encoder,
        coupling: Coupling,
        *,
        initial_hidden: tuple[int, ...],
        rates_hidden: tuple[int, ...],
        dropout: float,
        key: Array,
    ):
        keys = jax.random.split(key, 3)
        n_laws = coupling.n_species * coupling.n_counts
        self.encoder = encoder
        sizes = (encoder.width, *initial_hidden, n_laws)
        self.initial = MLP(sizes, activation="relu", start="kaiming", dropout=dropout, key=keys[0])
        self.embedding = MercerEmbedding(key=keys[1])
        sizes = (encoder.width + self.embedding.width, *rates_hidden, len(coupling.ways) * n_laws)
        self.rates = MLP(sizes, activation="tanh", start="normal", key=keys[2])

    def process(
        self, coupling: Coupling, inputs: Inputs, pieces: Pieces, *, key: Array | None
    ) -> tuple[Float[Array, "series species count"], Float[Array, "way piece series species count"]]:
        """Logits of the law at the start, and rates per normalised time in the middle of each piece."""
        keys = (None, None) if key is None else tuple(jax.random.split(key))
        whole = self.encoder(inputs, key=keys[0]).whole
        shape = (coupling.n_species, coupling.n_counts)
        first = self.initial(whole, key=keys[1]).reshape(-1, *shape)
        raw = self.rates.after_first(self.rates.first([whole, self.embedding(pieces.middle)]))
        rates = jax.nn.softplus(raw).reshape(*raw.shape[:-1], len(coupling.ways), *shape)
        possible = coupling.own.sum(0) > 0  # (way, species, count)
        return first, jnp.moveaxis(rates, -3, 0) * jnp.asarray(possible, raw.dtype)[:, None, None]


def law_of(coupling: Coupling, logits: Float[Array, "*lead species count"]) -> Float[Array, "*lead species count"]:
    """Laws on the counts that each species can have."""
    return jax.nn.softmax(jnp.where(coupling.inside, logits, NEVER), axis=-1)


def turned(inputs: Inputs) -> Inputs:
    """The same series read from the first observation on."""
    gaps = jnp.concatenate([jnp.zeros_like(inputs.gaps[:, :1]), inputs.gaps[:, :-1]], axis=1)
    features, valid = inputs.features[:, ::-1], inputs.valid[:, ::-1]
    return Inputs(features, jnp.where(valid, gaps[:, ::-1], 0.0), jnp.zeros_like(inputs.after), valid)


def _described(coupling: Coupling, guess: Guess) -> Float[Array, "*lead feature"]:
    """A guess as a network reads it."""
    size = jnp.asarray(coupling.box, guess.means.dtype)
    return jnp.concatenate([4 * guess.means / size - 1, jnp.log(guess.precisions * size + 1)], axis=-1)
