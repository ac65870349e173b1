"""Perceptrons: inside and outside a scan, what dropout keeps, how they start."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import law
from neuralmjp.encoders import MLP
from neuralmjp.encoders.taped import Tape

KEY = jax.random.key(0)
X = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)))


def made(sizes=(3, 8, 8, 2), *, seed=0, **choices):
    """With gains and biases that are not those of the start."""
    choices = {"activation": "tanh", "start": "kaiming", **choices}
    network = MLP(sizes, key=jax.random.key(seed), **choices)
    leaves, structure = jax.tree.flatten(network)
    rng = np.random.default_rng(seed)
    return jax.tree.unflatten(structure, [x + 0.1 * rng.normal(size=x.shape) for x in leaves])


def by_hand(network, x):
    for k in range(len(network.weights) - 1):
        x = x @ np.asarray(network.weights[k])
        if network.gains:
            x = (
                (x - x.mean(-1, keepdims=True))
                / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
                * np.asarray(network.gains[k])
            )
        x = np.tanh(x + np.asarray(network.biases[k]))
    return x @ np.asarray(network.weights[-1]) + np.asarray(network.biases[-1])


@pytest.mark.parametrize("normalised", [True, False])
class TestOneNetwork:
    def test_by_hand(self, normalised):
        network = made(normalised=normalised)
        np.testing.assert_allclose(network(X), by_hand(network, np.asarray(X)), rtol=1e-12)

    def test_inside_a_scan_as_outside(self, normalised):
        network = made(normalised=normalised)
        np.testing.assert_allclose(network.taped(Tape(network.layers), X), network(X), rtol=1e-10)

    def test_gradients_inside_a_scan_as_outside(self, normalised):
        """Centring the weights beforehand is part of the network."""
        network = made(normalised=normalised)
        plain = jax.grad(lambda n: (n(X) ** 2).sum())(network)
        taped = jax.grad(lambda n: (n.taped(Tape(n.layers), X) ** 2).sum())(network)
        for one, two in zip(jax.tree.leaves(plain), jax.tree.leaves(taped), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-10)

    def test_an_input_in_parts(self, normalised):
        network = made(normalised=normalised)
        joined = network.after_first(network.first([X[:, None, :1], X[None, :, 1:]]))
        pair = jnp.concatenate([X[2, :1], X[4, 1:]])
        assert joined.shape == (5, 5, 2)
        np.testing.assert_allclose(joined[2, 4], network(pair), rtol=1e-10)


class TestDropout:
    def test_none_without_a_key_or_a_share(self):
        network, plain = made(dropout=0.5), made(dropout=0.0)
        np.testing.assert_array_equal(network(X), plain(X))
        np.testing.assert_array_equal(plain(X, key=KEY), plain(X))
        assert np.abs(network(X, key=KEY) - network(X)).max() > 0

    @pytest.mark.statistical
    def test_keeps_the_mean(self):
        """Of what follows a linear layer; a correct program fails in 1e-4 of all seeds."""
        network = made((3, 8, 2), dropout=0.2)
        drawn = jax.vmap(lambda key: network(X[0], key=key))(jax.random.split(KEY, 4000))
        law.assert_mean(drawn, np.asarray(network(X[0])))

    def test_each_layer_and_each_row_by_itself(self):
        network = made((3, 64, 64, 64), dropout=0.5)
        same = jnp.broadcast_to(X[:1], (2, 3))
        one, two = network(same, key=KEY)
        assert (one != two).any()


class TestStart:
    def test_normal(self):
        network = MLP((200, 300, 100), activation="tanh", start="normal", key=KEY)
        for weight in network.weights:
            assert np.std(weight) == pytest.approx(0.1, rel=0.05)
        assert all((bias == 0).all() for bias in network.biases)
        assert all((gain == 1).all() for gain in network.gains)

    def test_kaiming(self):
        network = MLP((200, 300, 100), activation="relu", start="kaiming", key=KEY)
        for weight, fan_in in zip(network.weights, (200, 300), strict=True):
            assert np.std(weight) == pytest.approx((2 / fan_in) ** 0.5, rel=0.05)
        assert all((bias == 0).all() for bias in network.biases)

    def test_quiet(self):
        network = MLP((3, 8, 2), activation="relu", start="kaiming", key=KEY, quiet=True)
        np.testing.assert_array_equal(network(X), 0.0)
        slopes = jax.grad(lambda n: n(X).sum())(network)
        assert (np.asarray(slopes.weights[-1]) != 0).any()

    def test_layers_differ(self):
        network = MLP((8, 8, 8), activation="relu", start="kaiming", key=KEY)
        assert (network.weights[0] != network.weights[1]).any()
