"""The embedding of time."""

import jax
import jax.numpy as jnp
import numpy as np

from neuralmjp.posteriors.embedding import MercerEmbedding


def test_the_papers_width():
    """10 frequencies with 20 coefficients each."""
    embedding = MercerEmbedding(key=jax.random.key(0))
    assert embedding.width == 200
    assert embedding(jnp.zeros((3, 4))).shape == (3, 4, 200)


def test_waves_by_hand():
    embedding = MercerEmbedding(key=jax.random.key(0), n_frequencies=2, n_coefficients=4)
    t, c = 0.37, np.asarray(embedding.coefficients)
    waves = [
        [c[i, 0] * np.sin(w), c[i, 1] * np.sin(2 * w), c[i, 2] * np.cos(w), c[i, 3] * np.cos(2 * w)]
        for i, w in enumerate(2 * np.pi * t / np.exp(np.asarray(embedding.log_periods)))
    ]
    np.testing.assert_allclose(embedding(jnp.asarray(t)), np.ravel(waves), rtol=1e-12)


def test_every_wave_returns_after_its_period():
    embedding = MercerEmbedding(key=jax.random.key(1))
    periods = np.exp(np.asarray(embedding.log_periods))
    times = jnp.asarray(np.stack([0.2 + 0 * periods, 0.2 + periods]))
    before, after = np.asarray(embedding(times)).reshape(2, 10, 10, 20)
    own = np.arange(10)
    np.testing.assert_allclose(after[own, own], before[own, own], atol=1e-10)
    assert np.abs(after - before).max() > 0.1


def test_everything_is_learned():
    embedding = MercerEmbedding(key=jax.random.key(0))
    slopes = jax.grad(lambda e: (e(jnp.array([0.3, 0.8])) ** 2).sum())(embedding)
    assert all((np.asarray(leaf) != 0).all() for leaf in jax.tree.leaves(slopes))
