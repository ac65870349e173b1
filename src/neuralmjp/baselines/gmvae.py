"""Gaussian-mixture variational autoencoders: clusters in a latent space, then a Markov model between them.

Varolgunes, Bereau & Rudzinski 2020, https://doi.org/10.1088/2632-2153/ab80b7. With a cluster y and a latent point z:

    p(x, z, y) = w_y  N(z; m_y, s_y)  N(x; f(z))        q(z, y | x) = q(y | x) N(z; g(x, y))

and every sum over y is taken exactly. The weights w are learned: equal ones, as published, cut the state that is
visited most to give parts of it to the others. The networks here are its own; nothing of the neural engine is used.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key
from scipy.cluster.vq import kmeans2

from ..errors import InputError
from ..exact.metastable import inner_simplex
from ..timeseries import TimeSeries
from .chain import MarkovChain, make_chain, timescales_of
from .features import Features
from .lagged import chosen_lag, lagged_pairs, propagator, vamp2

SMALLEST_SD = 0.05  # of the decoder, in standardised units: no point is worth more than its neighbourhood
GUIDED = 0.3  # share of the training during which first labels still count
ROWS_AT_ONCE = 100_000
MOST_ROWS = 50_000  # for first labels


@dataclass(frozen=True)
class GaussianMixtureVAE:
    """Clusters of a mixture in latent space as states.

    The mixture looks at values alone, never at time. So it is trained from several first guesses of the clusters
    (k-means, shells around the centre, k-means again, ...), and time decides: those with the highest VAMP-2 score at
    the lag are kept.

    Args:
        n_states: K.
        lag: of the Markov model in the data's time unit; by default 20 median gaps (20 ps where frames are saved every
            picosecond), at most a tenth of a typical series.
        clusters: of the mixture, K if left out; where there are more, those that hold together make a state (PCCA+, at
            a tenth of the lag), and `timescales` are those of the clusters.
        angles: values are angles in radians.
        latent: dimension of the latent space.
        width: units of each of two hidden layers.
        steps: of Adam, for every start.
        batch: observations per step.
        learning_rate: at its highest; it falls to zero.
        starts: first guesses.
        seed: of all that is random.
    """

    n_states: int
    lag: float | None = None
    clusters: int | None = None
    angles: bool = False
    latent: int = 2
    width: int = 32
    steps: int = 1500
    batch: int = 500
    learning_rate: float = 3e-3
    starts: int = 4
    seed: int = 0

    def fit(self, data: TimeSeries) -> MarkovChain:
        """Train from every start, choose, and count between clusters."""
        n_clusters = self.clusters or self.n_states
        if not 2 <= self.n_states <= n_clusters or self.starts < 1:
            asked = f"{self.n_states}, {n_clusters} and {self.starts}"
            raise InputError(f"give at least 2 states, as many clusters and 1 start, got {asked}")
        features = Features.of(data, self.angles)
        pairs = lagged_pairs(data, chosen_lag(data, self.lag))
        rows = features(data).astype(np.float32)
        found = []
        for number, key in enumerate(jax.random.split(jax.random.key(self.seed), self.starts)):
            labels = first_labels(rows, n_clusters, number, self.seed)
            mixture = self._trained(rows, labels, key)
            found.append((vamp2(clusters(mixture, rows), pairs), mixture))
        best = max(found, key=lambda scored: scored[0])[1]
        fine = clusters(best, rows)
        closer = lagged_pairs(data, max(pairs.lag / 10, float(np.median(data.gaps))))
        sets = joined(fine, propagator(fine, closer, reversible=True), self.n_states)

        def memberships(some: TimeSeries) -> Float[np.ndarray, "row state"]:
            return inside(clusters(best, features(some).astype(np.float32)) @ sets)

        def scored(some: TimeSeries) -> float:
            return vamp2(memberships(some), lagged_pairs(some, pairs.lag))

        member = inside(fine @ sets)
        return make_chain(
            "GMVAE",
            propagator(member, pairs, reversible=True),
            pairs.lag,
            data,
            memberships,
            scored,
            "VAMP-2",
            law=(member[pairs.first] + member[pairs.second]).mean(0) / 2,
            timescales=timescales_of(propagator(fine, pairs, reversible=True), pairs.lag),
        )

    def _trained(
        self, rows: Float[np.ndarray, "row feature"], labels: Int[np.ndarray, "row"], key: Key[Array, ""]
    ) -> "Mixture":
        born, key = jax.random.split(key)
        mixture = Mixture(rows.shape[1], self.clusters or self.n_states, self.latent, self.width, born)
        schedule = optax.warmup_cosine_decay_schedule(0.0, self.learning_rate, self.steps // 20, self.steps)
        optimiser = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(schedule))
        return _train(mixture, jnp.asarray(rows), jnp.asarray(labels), key, optimiser, self.steps, self.batch)


class Mixture(eqx.Module):
    """The networks, and the clusters in latent space."""

    classify: eqx.nn.MLP  # x -> logits of q(y | x)
    encode: eqx.nn.MLP  # x, y -> mean and log sd of q(z | x, y)
    decode: eqx.nn.MLP  # z -> mean and log sd of p(x | z)
    means: Float[Array, "state latent"]  # of p(z | y)
    log_sds: Float[Array, "state latent"]
    logits: Float[Array, "state"]  # of the weights

    def __init__(self, n_features: int, n_states: int, latent: int, width: int, key: Key[Array, ""]):
        keys = jax.random.split(key, 4)

        def network(n_in: int, n_out: int, key: Key[Array, ""]) -> eqx.nn.MLP:
            return eqx.nn.MLP(n_in, n_out, width, 2, jax.nn.elu, dtype=jnp.float32, key=key)

        self.classify = network(n_features, n_states, keys[0])
        self.encode = network(n_features + n_states, 2 * latent, keys[1])
        self.decode = network(latent, 2 * n_features, keys[2])
        self.means = 2 * jax.random.normal(keys[3], (n_states, latent), dtype=jnp.float32)
        self.log_sds = jnp.zeros((n_states, latent), dtype=jnp.float32)
        self.logits = jnp.zeros(n_states, dtype=jnp.float32)

    def bound(self, x: Float[Array, "feature"], key: Key[Array, ""]) -> Float[Array, ""]:
        """Evidence lower bound of one observation, by one latent point for every cluster."""
        n_states, latent = self.means.shape
        log_q = jax.nn.log_softmax(self.classify(x))
        inputs = jnp.concatenate([jnp.tile(x, (n_states, 1)), jnp.eye(n_states, dtype=x.dtype)], axis=1)
        mean, log_sd = jnp.split(jax.vmap(self.encode)(inputs), 2, axis=1)
        z = mean + jnp.exp(log_sd) * jax.random.normal(key, (n_states, latent), dtype=x.dtype)
        centre, spread = jnp.split(jax.vmap(self.decode)(z), 2, axis=1)
        spread = jnp.logaddexp(spread, jnp.log(SMALLEST_SD).astype(x.dtype))
        terms = _log_normal(x, centre, spread) + _log_normal(z, self.means, self.log_sds)
        return jnp.exp(log_q) @ (terms - _log_normal(z, mean, log_sd) + jax.nn.log_softmax(self.logits) - log_q)


def first_labels(
    rows: Float[np.ndarray, "row feature"], n_states: int, number: int, seed: int
) -> Int[np.ndarray, "row"]:
    """A guess of the clusters: the second by distance from the centre in equal shares, all others by k-means."""
    if number == 1:
        far = np.linalg.norm(rows - rows.mean(0), axis=1)
        return np.searchsorted(np.quantile(far, np.arange(1, n_states) / n_states), far)
    rng = np.random.default_rng([seed, number])
    some = rows[rng.permutation(len(rows))[:MOST_ROWS]].astype(float)
    centres = kmeans2(some, n_states, minit="++", rng=rng, iter=50)[0]
    return ((rows[:, None] - centres) ** 2).sum(-1).argmin(1)


def joined(
    fine: Float[np.ndarray, "row cluster"], matrix: Float[np.ndarray, "cluster cluster"], n_states: int
) -> Float[np.ndarray, "cluster state"]:
    """What turns memberships in clusters into those in states: rows fill the simplex of the slow eigenfunctions.

    Where there are as many states as clusters, each is its own.
    """
    if n_states == len(matrix):
        return np.eye(n_states)
    values, vectors = np.linalg.eig(matrix)
    slow = np.real(vectors[:, np.argsort(-np.real(values))[:n_states]])
    return slow @ np.linalg.inv(fine[inner_simplex(fine @ slow)] @ slow)


def inside(memberships: Float[np.ndarray, "row state"]) -> Float[np.ndarray, "row state"]:
    """Without what is below zero; rows sum to 1."""
    positive = np.maximum(memberships, 0.0)
    return positive / positive.sum(1, keepdims=True)


def clusters(mixture: Mixture, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row state"]:
    """q(y | x) of every row."""
    parts = [
        np.asarray(_classified(mixture, jnp.asarray(rows[begin : begin + ROWS_AT_ONCE])), dtype=float)
        for begin in range(0, len(rows), ROWS_AT_ONCE)
    ]
    return inside(np.concatenate(parts))


@eqx.filter_jit
def _classified(mixture: Mixture, rows: Array) -> Array:
    return jax.nn.softmax(jax.vmap(mixture.classify)(rows))


@eqx.filter_jit
def _train(
    mixture: Mixture,
    rows: Array,
    labels: Array,
    key: Array,
    optimiser: optax.GradientTransformation,
    steps: int,
    batch: int,
) -> Mixture:
    """Adam on random batches; at first labels guide the clusters, less and less."""

    params, fixed = eqx.partition(mixture, eqx.is_inexact_array)

    def loss(params: Mixture, x: Array, label: Array, guided: Array, key: Array) -> Array:
        mixture = eqx.combine(params, fixed)
        bounds = jax.vmap(mixture.bound)(x, jax.random.split(key, len(x)))
        logits = jax.vmap(mixture.classify)(x)
        wrong = optax.softmax_cross_entropy_with_integer_labels(logits, label)
        return jnp.mean(guided * wrong - bounds)

    def advance(state, number):
        params, memory = state
        chosen, noise = jax.random.split(jax.random.fold_in(key, number))
        which = jax.random.randint(chosen, (batch,), 0, len(rows))
        guided = 10 * jnp.maximum(1 - number / (GUIDED * steps), 0.0).astype(rows.dtype)
        slope = jax.grad(loss)(params, rows[which], labels[which], guided, noise)
        change, memory = optimiser.update(slope, memory)
        return (eqx.apply_updates(params, change), memory), None

    params, _ = jax.lax.scan(advance, (params, optimiser.init(params)), jnp.arange(steps))[0]
    return eqx.combine(params, fixed)


def _log_normal(x: Array, mean: Array, log_sd: Array) -> Array:
    return -0.5 * (((x - mean) / jnp.exp(log_sd)) ** 2 + 2 * log_sd + jnp.log(2 * jnp.pi).astype(x.dtype)).sum(-1)
