"""The bound of every engine: against the exact evidence, against padding, and its derivative against differences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import logsumexp
from scipy.stats import norm

import law
from exact.test_enumeration import generator
from neuralmjp import Panel
from neuralmjp.priors import rates_of
from neuralmjp.training.blocks import make_block
from neuralmjp.training.networks import evaluate, sampled
from training.worlds import PAPER, TINY, series, world

RING = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
TWO_STEP = PAPER.changed(quadrature=12, two_step=True)
CONFIGS = {
    "tilted": TINY,
    "tilted, ode-rnn": TINY.changed(encoder="ode-rnn"),
    "tilted, state-space": TINY.changed(encoder="state-space"),
    "paper, on the grid": PAPER.changed(order=4),
    "paper, quadrature": TWO_STEP.changed(embedded=True),
}
evaluated = eqx.filter_jit(evaluate)


def evidence(made):
    """Log density of the standardised values of each series, by a plain forward recursion."""
    rates = np.asarray(rates_of(made.setup.model.rate_model, np.asarray(made.networks.prior.draw(None))))
    initial = np.exp(np.asarray(made.networks.initial) - logsumexp(np.asarray(made.networks.initial)))
    mean, sd = np.asarray(made.networks.emission["mean"]), np.exp(np.asarray(made.networks.emission["log_sd"]))
    found = []
    for one in made.problem.data:
        values = (one.values - made.problem.scaling.shift) / made.problem.scaling.scale
        logs = np.nansum(norm.logpdf(values[:, None], mean, sd), axis=-1)
        forward, total = initial * np.exp(logs[0]), 0.0
        for t in range(1, len(logs)):
            forward = forward @ expm(generator(rates) * (one.times[t] - one.times[t - 1])) * np.exp(logs[t])
        found.append(np.log(forward.sum()) + total)
    return np.array(found)


class TestBound:
    @pytest.mark.parametrize("missing", [0.0, 0.4])
    @pytest.mark.parametrize("seed", range(3))
    def test_tilted(self, seed, missing):
        made = world(data=series(seed=seed, missing=missing), n_states=3, seed=seed)
        found = evaluated(made.setup, made.networks, made.block, key=None)
        gap = evidence(made) - np.asarray(found.terms.elbo)
        assert (gap > -1e-10).all()
        assert gap.max() > 1e-3
        np.testing.assert_allclose(gap[3], 0.0, atol=1e-10)  # a series of one has no path to be wrong about

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("quadrature", [0, 30])
    def test_paper(self, seed, quadrature):
        """The posterior starts at the first observation and pays until the horizon."""
        config = PAPER.changed(order=4, substeps=4, quadrature=quadrature, two_step=quadrature > 0, forbidden_rate=1e-9)
        made = world(config, data=series(seed=seed, missing=0.2), n_states=3, seed=seed)
        found = evaluated(made.setup, made.networks, made.block, key=None)
        assert (found.terms.elbo < evidence(made)).all()
        assert (found.terms.path_kl > 0).all()
        assert (found.terms.initial_kl > 0).all()

    def test_tilted_with_several_values_and_structural_zeros(self):
        made = world(data=series(n_features=2, missing=0.2), n_states=3, mask=RING)
        found = evaluated(made.setup, made.networks, made.block, key=None)
        assert (found.terms.elbo <= evidence(made) + 1e-10).all()


@pytest.mark.parametrize("name", CONFIGS)
class TestEveryEngine:
    def test_padding_changes_nothing(self, name):
        made = world(CONFIGS[name], data=series(missing=0.3))
        problem = made.problem
        longer = make_block(problem.data, problem.model, problem.scaling, problem.clock, Panel(), np.float64, length=10)
        assert longer.times.shape == (4, 10)
        short = evaluated(made.setup, made.networks, made.block, key=None)
        long = evaluated(made.setup, made.networks, longer, key=None)
        for one, two in zip(short.terms, long.terms, strict=True):
            np.testing.assert_allclose(two, one, atol=1e-11)
        valid = np.asarray(made.block.evidence.valid)
        np.testing.assert_allclose(long.marginals[:, :6][valid], short.marginals[valid], atol=1e-12)

    def test_what_stands_in_for_a_missing_value_is_never_read(self, name):
        made = world(CONFIGS[name], data=series(missing=0.3))
        seen = made.block.evidence.seen
        wild = seen._replace(values=jnp.where(seen.mask, seen.values, 77.0))
        other = made.block._replace(evidence=made.block.evidence._replace(seen=wild))
        first = evaluated(made.setup, made.networks, made.block, key=None)
        second = evaluated(made.setup, made.networks, other, key=None)
        for one, two in zip(first.terms, second.terms, strict=True):
            np.testing.assert_array_equal(two, one)

    @pytest.mark.parametrize("part", ["posterior", "model"])
    def test_the_compiled_gradient_against_differences(self, name, part):
        """Along a random direction. The encoder reads likelihoods as data: for the model's part its word is fixed."""
        made = world(CONFIGS[name], data=series((5, 4)), n_states=3)
        networks = made.networks
        # By two steps the divergence has no slope along the posterior, whatever it changes.
        weight = 0.0 if part == "posterior" and made.setup.config.two_step else 0.7
        if part == "model" and made.setup.config.posterior == "tilted":
            last = networks.posterior.head.weights[-1]
            networks = eqx.tree_at(lambda n: n.posterior.head.weights[-1], networks, 0 * last)

        @eqx.filter_jit
        @eqx.filter_value_and_grad
        def value(networks):
            return evaluate(made.setup, networks, made.block, key=None).terms.weighed(weight).sum()

        rng = np.random.default_rng(1)
        _, slopes = value(networks)
        names = ("posterior",) if part == "posterior" else ("prior", "emission", "initial")
        for one in names:
            way = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), getattr(networks, one))
            along = sum(jax.tree.leaves(jax.tree.map(lambda a, b: (a * b).sum(), getattr(slopes, one), way)))
            ends = []
            for h in (1e-6, -1e-6):
                moved = jax.tree.map(lambda x, w, h=h: x + h * w, getattr(networks, one), way)
                ends.append(value(eqx.tree_at(lambda n, one=one: getattr(n, one), networks, moved))[0])
            difference = float(ends[0] - ends[1]) / 2e-6
            assert abs(difference) > 1e-4
            assert float(along) == pytest.approx(difference, rel=1e-5)

    def test_nothing_is_random_without_a_key(self, name):
        config = CONFIGS[name].changed(dropout=0.2, steer=1.0, prior="generator", reconstruction="gumbel")
        made = world(config, data=series((4, 3)))
        first = evaluated(made.setup, made.networks, made.block, key=None)
        second = evaluated(made.setup, made.networks, made.block, key=None)
        noisy = evaluated(made.setup, made.networks, made.block, key=jax.random.key(0))
        np.testing.assert_array_equal(first.terms.elbo, second.terms.elbo)
        assert np.abs(noisy.terms.elbo - first.terms.elbo).max() > 1e-6


def slopes_of(part, made):
    def value(networks):
        return getattr(evaluate(made.setup, networks, made.block, key=jax.random.key(0)).terms, part).sum()

    slopes = eqx.filter_jit(eqx.filter_grad(value))(made.networks)
    names = ("prior", "emission", "initial", "posterior")
    return {name: any((leaf != 0).any() for leaf in jax.tree.leaves(getattr(slopes, name))) for name in names}


class TestTwoSteps:
    """Updates as the paper makes them: what each term may move."""

    @pytest.mark.parametrize("prior", ["explicit", "generator"])
    def test_the_divergence_moves_the_prior_alone(self, prior):
        made = world(TWO_STEP.changed(prior=prior, dropout=0.2))
        assert slopes_of("path_kl", made) == {"prior": True, "emission": False, "initial": False, "posterior": False}

    def test_the_reconstruction_moves_everything_but_the_prior(self):
        found = slopes_of("reconstruction", world(TWO_STEP))
        assert found == {"prior": False, "emission": True, "initial": False, "posterior": True}

    def test_in_one_step_the_divergence_moves_the_posterior_too(self):
        assert slopes_of("path_kl", world(TWO_STEP.changed(two_step=False, quadrature=0)))["posterior"]


class TestForbiddenJumps:
    def test_a_masked_posterior_never_makes_them(self):
        """From state 0 the ring leads to 1, then to 2: with a known start, 2 comes second in the gap."""
        data = series((5, 4))
        masked = world(PAPER.changed(masked=True), data=data, n_states=3, mask=RING)
        rates = masked.networks.posterior.rates_at(jnp.ones((1, 4)), jnp.array([[0.5]]))[0, 0]
        np.testing.assert_array_equal(np.asarray(rates) > 0, RING == 1)
        assert np.isfinite(evaluated(masked.setup, masked.networks, masked.block, key=None).terms.path_kl).all()

    def test_a_free_posterior_pays_a_finite_price(self):
        free = world(PAPER, data=series((5, 4)), n_states=3, mask=RING)
        cheap = world(PAPER.changed(forbidden_rate=0.5), data=series((5, 4)), n_states=3, mask=RING)
        costs = [evaluated(w.setup, w.networks, w.block, key=None).terms.path_kl for w in (free, cheap)]
        assert np.isfinite(costs[0]).all()
        assert (costs[0] > costs[1]).all()


class TestSamples:
    MARGINALS = jnp.array([[[0.7, 0.2, 0.1], [0.05, 0.05, 0.9]]])

    def drawn(self, how, n=4000):
        return jax.vmap(lambda key: sampled(self.MARGINALS, how, key))(jax.random.split(jax.random.key(0), n))

    def test_expectations_are_the_marginals(self):
        assert sampled(self.MARGINALS, "expectation", jax.random.key(0)) is self.MARGINALS
        assert sampled(self.MARGINALS, "gumbel", None) is self.MARGINALS

    @pytest.mark.statistical
    def test_straight_through_is_one_hot_with_the_right_mean(self):
        """A correct program fails in 1e-4 of all seeds."""
        drawn = np.asarray(self.drawn("straight-through"))
        np.testing.assert_allclose(np.sort(drawn, axis=-1), np.broadcast_to([0, 0, 1.0], drawn.shape), atol=1e-12)
        law.assert_counts_follow(drawn[:, 0, 0].sum(0).round(), self.MARGINALS[0, 0])
        law.assert_counts_follow(drawn[:, 0, 1].sum(0).round(), self.MARGINALS[0, 1])

    @pytest.mark.statistical
    def test_gumbel_is_soft_and_its_largest_weight_follows_the_law(self):
        """At temperature 1 the weights are spread; which one is largest is an exact draw. Fails in 1e-4 of seeds."""
        drawn = np.asarray(self.drawn("gumbel"))
        np.testing.assert_allclose(drawn.sum(-1), 1.0, rtol=1e-12)
        assert ((drawn > 0.01) & (drawn < 0.99)).any(-1).mean() > 0.5
        law.assert_counts_follow(np.bincount(drawn[:, 0, 0].argmax(-1), minlength=3), self.MARGINALS[0, 0])

    @pytest.mark.parametrize("how", ["gumbel", "straight-through"])
    def test_both_have_a_derivative(self, how):
        weights = jnp.array([1.0, 2.0, 4.0])

        def value(marginals):
            return (weights * sampled(marginals, how, jax.random.key(1))).sum()

        assert (np.asarray(jax.grad(value)(self.MARGINALS)) != 0).all()


def test_labels_without_noise():
    """The paper's reconstruction is the cross-entropy of labels, the tilted posterior meets them exactly."""
    data = series((5, 4))
    labels = data.__class__(data.times, (data.values > 0).astype(float), data.offsets, data.names, data.value_names)
    tilted = world(TINY, labels, emission="categorical")
    found = evaluated(tilted.setup, tilted.networks, tilted.block, key=None)
    np.testing.assert_allclose(found.terms.reconstruction, 0.0, atol=1e-12)
    rates = np.asarray(rates_of(tilted.setup.model.rate_model, np.asarray(tilted.networks.prior.draw(None))))
    expected = [
        sum(np.log(expm(generator(rates) * g)[a, b]) for g, a, b in zip(np.diff(s.times), z[:-1], z[1:], strict=True))
        for s in labels
        for z in [s.values[:, 0].astype(int)]
    ]
    np.testing.assert_allclose(found.terms.elbo, expected, atol=1e-10)
    paper = world(PAPER, labels, emission="categorical")
    found = evaluated(paper.setup, paper.networks, paper.block, key=None)
    q = np.asarray(found.marginals)
    for s, one in enumerate(labels):
        z = one.values[:, 0].astype(int)
        assert found.terms.reconstruction[s] == pytest.approx(np.log(q[s, np.arange(len(z)), z]).sum(), abs=1e-10)
