"""The paper's posterior: its fast solver against an adaptive one, its divergence against the library's, its zeros."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralmjp import mjp
from neuralmjp.encoders import GRUEncoder
from neuralmjp.posteriors import FreePosterior

HORIZON, WIDTH = 1.1, 4
OFF = ~np.eye(3, dtype=bool)
RING = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], bool)
PRIOR = jnp.array([[0.0, 1.0, 0.5], [2.0, 0.0, 1.0], [0.3, 0.7, 0.0]])
CHOICES = {
    "horizon": HORIZON,
    "substeps": 1,
    "order": 2,
    "n_quadrature": 0,
    "solver": "linear",
    "tolerance": 1e-3,
    "fixed": False,
}


def make(allowed=OFF, seed=0, embedded=True):
    """A posterior whose rates change by more than they do at the start of training, in waves that steps can resolve."""
    key = jax.random.key(seed)
    encoder = GRUEncoder(3, WIDTH, key=key)
    made = FreePosterior(encoder, allowed, initial_hidden=(6,), rates_hidden=(8,), embedded=embedded, key=key)
    made = eqx.tree_at(lambda p: p.rates.weights[-1], made, 10 * made.rates.weights[-1])
    if not embedded:
        return made
    return eqx.tree_at(lambda p: p.embedding.log_periods, made, made.embedding.log_periods + np.log(100))


POSTERIOR = make()
rng = np.random.default_rng(0)
WHOLE = jnp.asarray(rng.normal(size=(2, WIDTH)))
TIMES = jnp.asarray(np.sort(rng.uniform(0, 1, (2, 6)), axis=1).clip(0.02)).at[:, 0].set(0.0)
INITIAL = jnp.asarray(rng.dirichlet(np.ones(3), 2))


@eqx.filter_jit
def solve(posterior, prior, whole, initial, times, choices):
    return posterior.solve(whole, initial, times, prior, **choices)


def solved(posterior=POSTERIOR, prior=PRIOR, times=TIMES, **changes):
    return solve(posterior, prior, WHOLE, INITIAL, times, {**CHOICES, **changes})


@pytest.fixture(scope="module")
def adaptive():
    return solved(solver="dormand-prince", tolerance=1e-8, n_quadrature=40)


def by_library(posterior, prior=PRIOR, times=TIMES):
    """Marginals and divergences by the functions of `neuralmjp.mjp`, one series at a time."""
    marginals, divergence = [], []
    for s in range(len(WHOLE)):

        def rates(t, s=s):
            return posterior.rates_at(WHOLE[s : s + 1], jnp.reshape(t, (1, 1)))[0, 0]

        grid = np.append(np.asarray(times[s]), HORIZON)
        marginals.append(mjp.solve_adaptively(rates, INITIAL[s], grid, tolerance=1e-10)[:-1])
        divergence.append(mjp.path_kl(rates, prior, INITIAL[s], grid, substeps=32))
    return np.array(marginals), np.array(divergence)


@pytest.fixture(scope="module")
def witness():
    return by_library(POSTERIOR)


class TestSolver:
    def test_the_problem_is_not_trivial(self, witness):
        rates = POSTERIOR.rates_at(WHOLE, TIMES)
        assert rates.max() > 3 * rates[..., OFF].min()
        assert np.ptp(witness[0], axis=1).max() > 0.1

    @pytest.mark.parametrize("n_quadrature", [0, 40])
    def test_linear_steps_agree_with_dormand_prince(self, adaptive, n_quadrature):
        found = solved(order=4, substeps=16 if n_quadrature == 0 else 4, n_quadrature=n_quadrature)
        np.testing.assert_allclose(found.marginals, adaptive.marginals, atol=1e-6)

    def test_both_agree_with_the_library(self, adaptive, witness):
        np.testing.assert_allclose(adaptive.marginals, witness[0], atol=1e-6)
        np.testing.assert_allclose(adaptive.path_kl, witness[1], rtol=1e-5)

    @pytest.mark.parametrize("order", [2, 4])
    def test_order_of_convergence(self, witness, order):
        errors = [np.abs(solved(order=order, substeps=n).marginals - witness[0]).max() for n in (8, 16)]
        assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.5)

    def test_marginals_are_laws(self):
        for found in (solved(), solved(order=4), solved(n_quadrature=7)):
            np.testing.assert_allclose(found.marginals.sum(-1), 1.0, rtol=1e-12)
            assert (found.marginals >= 0).all()
            np.testing.assert_allclose(found.marginals[:, 0], INITIAL, rtol=1e-12)

    def test_repeated_times_change_nothing(self, witness):
        """As padding does: more copies of the last time."""
        padded = jnp.concatenate([TIMES, jnp.repeat(TIMES[:, -1:], 3, axis=1)], axis=1)
        short, long = solved(), solved(times=padded)
        np.testing.assert_allclose(long.marginals[:, :6], short.marginals, rtol=1e-12)
        np.testing.assert_allclose(long.marginals[:, 6:], np.repeat(short.marginals[:, -1:], 3, axis=1), rtol=1e-12)
        np.testing.assert_allclose(long.path_kl, short.path_kl, rtol=1e-12)

    @pytest.mark.parametrize(
        "choices", [{}, {"n_quadrature": 7, "order": 4}, {"solver": "dormand-prince", "n_quadrature": 5}]
    )
    def test_times_that_all_share_are_one_row(self, choices):
        """Embedded once, to the same numbers."""
        each, once = solved(times=jnp.repeat(TIMES[:1], 2, axis=0), **choices), solved(times=TIMES[:1], **choices)
        np.testing.assert_allclose(once.marginals, each.marginals, rtol=1e-12)
        np.testing.assert_allclose(once.path_kl, each.path_kl, rtol=1e-12)
        assert np.abs(once.marginals[0] - once.marginals[1]).max() > 1e-3

    def test_on_the_grid_only_linear_steps(self):
        with pytest.raises(ValueError, match="linear steps"):
            solved(solver="dormand-prince")
        with pytest.raises(ValueError, match="derivative by everything"):
            solved(fixed=True)


class TestDivergence:
    def test_quadrature_and_grid_agree_with_the_library(self, witness):
        np.testing.assert_allclose(solved(n_quadrature=60, order=4, substeps=2).path_kl, witness[1], rtol=1e-6)
        np.testing.assert_allclose(solved(order=4, substeps=16).path_kl, witness[1], rtol=1e-6)

    def test_zero_where_posterior_is_prior(self):
        """Constant rates: the last layer says the same at all times."""
        wanted = jnp.log(jnp.expm1(PRIOR[OFF]))
        same = eqx.tree_at(
            lambda p: (p.rates.weights[-1], p.rates.biases[-1]),
            POSTERIOR,
            (jnp.zeros_like(POSTERIOR.rates.weights[-1]), wanted),
        )
        for choices in ({}, {"n_quadrature": 20}, {"order": 4}):
            np.testing.assert_allclose(solved(same, **choices).path_kl, 0.0, atol=1e-12)

    def test_positive_elsewhere_and_growing_with_the_horizon(self):
        near, far = solved(horizon=1.0).path_kl, solved(horizon=1.3).path_kl
        assert (near > 0.01).all()
        assert (far > near).all()

    def test_fixed_it_moves_the_prior_alone(self):
        def total(posterior, prior, fixed):
            return solved(posterior, prior, n_quadrature=20, fixed=fixed).path_kl.sum()

        slopes = {
            fixed: eqx.filter_grad(lambda both, f=fixed: total(*both, f))((POSTERIOR, PRIOR)) for fixed in (True, False)
        }
        posterior, prior = slopes[True]
        assert all((leaf == 0).all() for leaf in jax.tree.leaves(posterior))
        assert any((leaf != 0).any() for leaf in jax.tree.leaves(slopes[False][0]))
        np.testing.assert_allclose(prior, slopes[False][1], rtol=1e-10)
        assert (prior[OFF] != 0).all()


class TestRates:
    def test_masked_rates_keep_their_zeros(self):
        ring = make(RING)
        rates = ring.rates_at(WHOLE, TIMES)
        assert (rates[..., RING] > 0).all()
        assert (rates[..., ~RING] == 0).all()
        prior = jnp.where(RING, PRIOR, 0.0)
        found = solved(ring, prior, order=4, substeps=8)
        assert np.isfinite(found.path_kl).all()
        np.testing.assert_allclose(found.path_kl, by_library(ring, prior)[1], rtol=1e-4)

    def test_a_jump_that_the_prior_forbids_costs_everything(self):
        assert np.isinf(solved(prior=jnp.where(RING, PRIOR, 0.0), n_quadrature=5).path_kl).all()

    def test_times_in_any_shape(self):
        flat = POSTERIOR.rates_at(WHOLE, TIMES)
        folded = POSTERIOR.rates_at(WHOLE, TIMES.reshape(2, 3, 2))
        np.testing.assert_array_equal(folded.reshape(flat.shape), flat)

    def test_without_an_embedding_time_enters_as_it_is(self):
        plain = make(embedded=False)
        assert plain.rates.weights[0].shape == (WIDTH + 1, 8)
        x = jnp.concatenate([WHOLE[0], TIMES[0, 2:3]])
        np.testing.assert_allclose(plain.rates_at(WHOLE, TIMES)[0, 2][OFF], jax.nn.softplus(plain.rates(x)), rtol=1e-12)

    def test_the_papers_sizes(self):
        made = FreePosterior(GRUEncoder(2, 5, key=jax.random.key(0)), OFF, key=jax.random.key(0))
        assert [w.shape[1] for w in made.rates.weights] == [256, 256, 128, 6]
        assert [w.shape[1] for w in made.initial.weights] == [128, 128, 3]
        assert made.rates.weights[0].shape[0] == 5 + 200
        assert (made.initial.dropout, made.rates.dropout) == (0.2, 0.0)  # none inside the dynamics

    def test_the_law_at_the_start(self):
        law = POSTERIOR.initial_law(WHOLE, key=None)
        np.testing.assert_allclose(law.sum(-1), 1.0, rtol=1e-12)
        assert np.abs(law - POSTERIOR.initial_law(WHOLE, key=jax.random.key(0))).max() > 0  # dropout
