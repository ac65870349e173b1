"""Where the prior's parameters come from: numbers, or a network fed with noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import law
from neuralmjp.priors.generator import N_NOISE, ExplicitParameters, GeneratorParameters

AROUND = jnp.array([0.5, -1.0, 2.0])
KEY = jax.random.key(0)


def made(noise_sd, dropout=0.0):
    return GeneratorParameters(AROUND, noise_sd=noise_sd, dropout=dropout, key=jax.random.key(1))


def test_numbers_are_never_drawn():
    numbers = ExplicitParameters(AROUND)
    assert numbers.draw(None) is numbers.draw(KEY)
    slopes = jax.grad(lambda n: n.draw(KEY).sum())(numbers)
    np.testing.assert_array_equal(slopes.theta, 1.0)


class TestGenerator:
    def test_the_papers_sizes(self):
        assert [w.shape for w in made(0.1).network.weights] == [(64, 64), (64, 3)]
        assert made(0.1).network.gains == []  # normalised layers would undo the size of the noise
        assert N_NOISE == 64

    def test_without_a_key_the_image_of_no_noise(self):
        generator = made(0.1, dropout=0.2)
        np.testing.assert_array_equal(generator.draw(None), generator.draw(None))
        np.testing.assert_allclose(generator.draw(None), AROUND, atol=1e-12)  # biases start at zero

    def test_one_key_one_draw(self):
        generator = made(0.1)
        np.testing.assert_array_equal(generator.draw(KEY), generator.draw(KEY))
        assert (generator.draw(KEY) != generator.draw(jax.random.key(5))).all()

    @pytest.mark.parametrize("factor", [0.1, 10.0])
    def test_the_spread_follows_the_noise(self, factor):
        """Without biases the network is homogeneous: twice the noise, twice the spread, to rounding."""
        one, other = (made(sd).sample(500, KEY) - AROUND for sd in (0.1, 0.1 * factor))
        np.testing.assert_allclose(other, factor * one, rtol=1e-10)
        assert np.std(one) > 0.05

    @pytest.mark.statistical
    def test_samples_follow_the_draws(self):
        """A correct program fails in 1e-4 of all seeds."""
        generator = made(0.1)
        drawn = jax.vmap(generator.draw)(jax.random.split(KEY, 2000))
        sampled = generator.sample(2000, jax.random.key(7))
        law.assert_mean(np.asarray(drawn) - np.asarray(sampled), 0.0)
        np.testing.assert_allclose(np.std(drawn, axis=0), np.std(sampled, axis=0), rtol=0.15)

    def test_dropout_in_draws_and_not_in_samples(self):
        np.testing.assert_array_equal(made(0.1, dropout=0.5).sample(5, KEY), made(0.1).sample(5, KEY))
        assert (made(0.1, dropout=0.5).draw(KEY) != made(0.1).draw(KEY)).any()

    def test_the_network_is_learned_and_its_place_is_not(self):
        slopes = jax.grad(lambda g: g.draw(KEY).sum())(made(0.1))
        np.testing.assert_array_equal(slopes.around, 0.0)
        assert all((np.asarray(leaf) != 0).any() for leaf in jax.tree.leaves(slopes.network))
