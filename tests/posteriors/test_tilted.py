"""The tilted posterior against the sum over all hidden sequences: a bound always, the evidence with the right words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.special import logsumexp

from exact.test_enumeration import generator, sequences
from neuralmjp import mjp
from neuralmjp.posteriors import Capacity, tilted_terms, transition_matrices

terms_of = jax.jit(tilted_terms)


class Problem:
    """Random emissions, gaps, rates and initial law for some series of one length; the witnesses are NumPy's."""

    def __init__(self, n_states=3, length=5, seed=0, n_series=2, spread=2.0, exact=False, speed=1.0):
        rng = np.random.default_rng(seed)
        self.n_states, self.length = n_states, length
        self.rates = speed * rng.exponential(size=(n_states, n_states)) * (1 - np.eye(n_states))
        self.gaps = rng.exponential(size=(n_series, length - 1))
        self.transitions = np.array([[expm(generator(self.rates) * gap) for gap in row] for row in self.gaps])
        self.law = rng.dirichlet(np.ones(n_states))
        self.log_b = spread * rng.normal(size=(n_series, length, n_states))
        if exact:
            self.log_b = np.where(np.eye(n_states)[rng.integers(n_states, size=(n_series, length))] > 0, 0.0, -np.inf)
        self.corrections = rng.normal(size=self.log_b.shape)

    def joint(self, s):
        """Every sequence of one series and the log of its probability together with the observations."""
        states = sequences(self.n_states, self.length)
        with np.errstate(divide="ignore"):
            total = np.log(self.law)[states[:, 0]] + self.log_b[s, np.arange(self.length), states].sum(1)
            for t in range(self.length - 1):
                total += np.log(self.transitions[s, t])[states[:, t], states[:, t + 1]]
        return states, total

    def evidence(self):
        return np.array([logsumexp(self.joint(s)[1]) for s in range(len(self.log_b))])

    def smoothed(self):
        found = []
        for s in range(len(self.log_b)):
            states, total = self.joint(s)
            weights = np.exp(total - logsumexp(total))
            found.append((weights[:, None, None] * np.eye(self.n_states)[states]).sum(0))
        return np.array(found)

    def right_corrections(self):
        """What the true log psi just after each observation adds to the first guess, up to a constant per time."""
        found = np.zeros_like(self.log_b)
        for s in range(len(self.log_b)):
            psi = np.ones(self.n_states)
            for t in range(self.length - 2, -1, -1):
                next_alone = np.exp(self.log_b[s, t + 1])
                guess, psi = self.transitions[s, t] @ next_alone, self.transitions[s, t] @ (next_alone * psi)
                found[s, t] = np.log(psi) - np.log(guess)
        return found

    def tilted(self, corrections=None, **changes):
        arrays = {
            "log_emissions": self.log_b,
            "transitions": self.transitions,
            "log_initial": np.log(self.law),
            "corrections": self.corrections if corrections is None else corrections,
            "valid": np.ones(self.log_b.shape[:2], bool),
        }
        return terms_of(**{name: jnp.asarray(x) for name, x in {**arrays, **changes}.items()})


SIZES = [(2, 6), (3, 4), (3, 5)]


class TestBound:
    @settings(max_examples=40, deadline=None)
    @given(
        size=st.sampled_from(SIZES),
        seed=st.integers(0, 2**32),
        spread=st.sampled_from([0.1, 2.0, 30.0]),
        boldness=st.sampled_from([0.0, 1.0, 30.0]),
        speed=st.sampled_from([1e-3, 1.0, 1e3]),
    )
    def test_never_above_the_evidence(self, size, seed, spread, boldness, speed):
        problem = Problem(*size, seed=seed, spread=spread, speed=speed)
        found = problem.tilted(boldness * problem.corrections)
        assert (found.terms.elbo <= problem.evidence() + 1e-9 * (1 + abs(problem.log_b).sum())).all()
        assert (found.terms.path_kl >= -1e-9).all()
        assert (found.terms.initial_kl >= -1e-9).all()
        np.testing.assert_allclose(found.marginals.sum(-1), 1.0, rtol=1e-10)

    def test_wrong_corrections_cost_something(self):
        problem = Problem()
        assert (problem.tilted().terms.elbo < problem.evidence() - 0.01).all()

    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("speed", [1e-3, 1.0, 100.0])
    def test_the_right_corrections_give_the_evidence(self, size, speed):
        problem = Problem(*size, speed=speed, n_series=4)
        found = problem.tilted(problem.right_corrections())
        np.testing.assert_allclose(found.terms.elbo, problem.evidence(), atol=1e-10)
        np.testing.assert_allclose(found.marginals, problem.smoothed(), atol=1e-10)

    def test_a_constant_added_to_the_corrections_changes_nothing(self):
        problem = Problem()
        shift = np.random.default_rng(1).normal(size=(2, 5, 1))
        np.testing.assert_allclose(
            problem.tilted(problem.corrections + 10 * shift).terms.elbo, problem.tilted().terms.elbo, atol=1e-10
        )

    @pytest.mark.parametrize("size", SIZES)
    def test_states_seen_without_noise_give_the_evidence_whatever_the_corrections(self, size):
        problem = Problem(*size, exact=True, n_series=4)
        found = problem.tilted(5 * problem.corrections)
        np.testing.assert_allclose(found.terms.elbo, problem.evidence(), atol=1e-10)
        np.testing.assert_allclose(found.marginals, problem.log_b == 0, atol=1e-12)
        np.testing.assert_array_equal(found.terms.reconstruction, 0.0)

    def test_an_outlier_where_the_way_back_is_closed(self):
        """State 1 is never left, and the last value looks like state 0 by far: in single precision too."""
        rates = np.array([[0.0, 1.0], [0.0, 0.0]])
        log_b = np.array([[[-300.0, 0.0], [-300.0, 0.0], [0.0, -200.0]]])
        problem = Problem(2, 3, n_series=1)
        problem.law, problem.log_b = np.array([0.5, 0.5]), log_b
        problem.transitions = np.broadcast_to(expm(generator(rates)), (1, 2, 2, 2))
        zeros = np.zeros((1, 3, 2))
        for dtype in (np.float32, np.float64):
            found = terms_of(
                *(jnp.asarray(x, dtype) for x in (log_b, problem.transitions, np.log(problem.law), zeros)),
                jnp.ones((1, 3), bool),
            )
            assert found.terms.elbo[0] <= problem.evidence()[0] + 1e-3
            np.testing.assert_allclose(found.marginals.sum(-1), 1.0, rtol=1e-5)


class TestTerms:
    def test_against_every_sequence(self):
        """The posterior's law of sequences is written out; each term is an expectation under it."""
        problem = Problem(3, 4, n_series=1)
        found = problem.tilted()
        states, total = problem.joint(0)
        b, moves = problem.log_b[0], problem.transitions[0]
        later = np.log(np.einsum("tzy,ty->tz", moves, np.exp(b[1:]))) + problem.corrections[0, :-1]
        phi = b + np.vstack([later, np.zeros(3)])
        log_q = np.log(problem.law) + phi[0]
        log_q = (log_q - logsumexp(log_q))[states[:, 0]]
        log_moves = np.log(moves) + phi[1:, None]
        log_moves -= logsumexp(log_moves, axis=-1, keepdims=True)
        path = np.zeros(len(states))
        for t in range(3):
            step = log_moves[t][states[:, t], states[:, t + 1]]
            path += step - np.log(moves[t])[states[:, t], states[:, t + 1]]
            log_q = log_q + step
        q = np.exp(log_q)
        first = np.array([q[states[:, 0] == z].sum() for z in range(3)])
        assert q.sum() == pytest.approx(1.0, abs=1e-12)
        assert found.terms.reconstruction[0] == pytest.approx(q @ b[np.arange(4), states].sum(1), abs=1e-10)
        assert found.terms.path_kl[0] == pytest.approx(q @ path, abs=1e-10)
        assert found.terms.initial_kl[0] == pytest.approx(first @ np.log(first / problem.law), abs=1e-10)
        assert found.terms.elbo[0] == pytest.approx(q @ (total - log_q), abs=1e-10)
        weighed = found.terms.weighed(0.25)[0]
        assert weighed == pytest.approx(
            q @ b[np.arange(4), states].sum(1) - 0.25 * float(found.terms.path_kl[0] + found.terms.initial_kl[0]),
            abs=1e-10,
        )

    def test_nothing_seen_nothing_learned(self):
        """With even emissions and no corrections the posterior is the prior."""
        problem = Problem()
        found = problem.tilted(0 * problem.corrections, log_emissions=0 * problem.log_b - 1.5)
        np.testing.assert_allclose(found.terms.path_kl, 0.0, atol=1e-12)
        np.testing.assert_allclose(found.terms.initial_kl, 0.0, atol=1e-12)
        np.testing.assert_allclose(found.terms.elbo, -1.5 * 5, rtol=1e-12)
        law = problem.law
        for t in range(4):
            law = law @ problem.transitions[0, t]
        np.testing.assert_allclose(found.marginals[0, -1], law, rtol=1e-12)

    @pytest.mark.parametrize("seed", [0, 1])
    def test_divergence_of_the_process_in_between(self, seed):
        """Over a gap it is that of the rates f psi(z', t) / psi(z, t), psi(t) = exp(F (T - t)) psi(T)."""
        problem = Problem(3, 2, n_series=1, seed=seed)
        found = problem.tilted()
        gap, end = problem.gaps[0, 0], jnp.asarray(np.exp(problem.log_b[0, 1]))
        prior, whole = jnp.asarray(problem.rates), jnp.asarray(generator(problem.rates))

        def bent(t):
            psi = jax.scipy.linalg.expm(whole * (gap - t)) @ end
            return prior * psi[None] / psi[:, None]

        times = np.linspace(0.0, gap, 33)
        expected = mjp.path_kl(bent, problem.rates, found.marginals[0, 0], times, substeps=16)
        assert found.terms.path_kl[0] == pytest.approx(float(expected), abs=1e-6)
        solved = mjp.solve_master_equation(bent, found.marginals[0, 0], times, substeps=8)
        np.testing.assert_allclose(found.marginals[0, 1], solved.marginals[-1], atol=1e-7)


class TestPadding:
    def test_a_padded_tail_changes_nothing(self):
        """Whatever the corrections say there."""
        problem = Problem(3, 5)
        wide = np.zeros((2, 3, 3))
        longer = problem.tilted(
            np.concatenate([problem.corrections, 7 + wide], axis=1),
            log_emissions=np.concatenate([problem.log_b, wide], axis=1),
            transitions=np.concatenate([problem.transitions, np.tile(np.eye(3), (2, 3, 1, 1))], axis=1),
            valid=np.tile(np.arange(8) < 5, (2, 1)),
        )
        found = problem.tilted()
        for name, value in found.terms._asdict().items():
            np.testing.assert_allclose(getattr(longer.terms, name), value, atol=1e-12)
        np.testing.assert_allclose(longer.marginals[:, :5], found.marginals, atol=1e-12)

    def test_a_series_of_one(self):
        problem = Problem(3, 2)
        found = problem.tilted(
            log_emissions=problem.log_b * [[[1], [0]]],
            transitions=np.tile(np.eye(3), (2, 1, 1, 1)),
            valid=np.tile([True, False], (2, 1)),
        )
        np.testing.assert_allclose(found.terms.elbo, logsumexp(problem.log_b[:, 0] + np.log(problem.law), axis=1))

    def test_an_observation_without_content_changes_nothing(self):
        """A value that is missing says the same in every state; a bridge over it costs nothing."""
        problem, told = Problem(3, 5), Problem(3, 6)
        told.law, told.log_b = problem.law, np.insert(problem.log_b, 2, 0.0, axis=1)
        cut = [[expm(generator(problem.rates) * gap * part) for part in (0.3, 0.7)] for gap in problem.gaps[:, 1]]
        told.transitions = np.concatenate(
            [problem.transitions[:, :1], np.array(cut), problem.transitions[:, 2:]], axis=1
        )
        found = told.tilted(told.right_corrections())
        np.testing.assert_allclose(found.terms.elbo, problem.evidence(), atol=1e-10)
        np.testing.assert_allclose(np.delete(found.marginals, 2, axis=1), problem.smoothed(), atol=1e-10)


def elbo(log_rates, log_b, corrections, log_law, gaps, capacity):
    rates = jnp.exp(log_rates) * (1 - jnp.eye(len(log_rates), dtype=log_rates.dtype))
    moves = transition_matrices(mjp.generator_from_rates(rates), gaps, capacity)
    return tilted_terms(log_b, moves, log_law, corrections, jnp.ones(log_b.shape[:2], bool)).terms.elbo.sum()


value_and_slopes = jax.jit(jax.value_and_grad(elbo, argnums=(0, 1, 2, 3)), static_argnames="capacity")


class TestGradients:
    @pytest.mark.parametrize("speed", [1e-6, 1e-3, 1.0, 1e3, 1e6])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("exact", [False, True])
    def test_finite_for_slow_and_fast_rates(self, speed, dtype, exact):
        problem = Problem(3, 5, exact=exact)
        arrays = (np.full((3, 3), np.log(speed)), problem.log_b, problem.corrections, np.log(problem.law), problem.gaps)
        capacity = Capacity.of(4 * speed * problem.gaps.max())
        value, slopes = value_and_slopes(*(jnp.asarray(x, dtype) for x in arrays), capacity=capacity)
        assert np.isfinite(value)
        assert all(np.isfinite(slope).all() for slope in slopes)

    def test_rates_of_every_magnitude_at_once(self):
        problem = Problem(3, 5)
        logs = np.log([[1, 1e6, 1e-6], [1.0, 1, 1e6], [1e-6, 1e3, 1]])
        arrays = (logs, problem.log_b, problem.corrections, np.log(problem.law), problem.gaps)
        capacity = Capacity.of(4e6 * problem.gaps.max())
        _, slopes = value_and_slopes(*map(jnp.asarray, arrays), capacity=capacity)
        assert all(np.isfinite(slope).all() for slope in slopes)

    def test_against_differences(self):
        problem = Problem(3, 4)
        arrays = (np.log(problem.rates + np.eye(3)), problem.log_b, problem.corrections, np.log(problem.law))

        def both(*some):
            return value_and_slopes(*map(jnp.asarray, some), jnp.asarray(problem.gaps), capacity=Capacity.of(60.0))

        _, slopes = both(*arrays)
        rng = np.random.default_rng(0)
        for k, slope in enumerate(slopes):
            way = rng.normal(size=arrays[k].shape)
            ends = [both(*(x + h * way if k == i else x for i, x in enumerate(arrays)))[0] for h in (1e-5, -1e-5)]
            assert float((slope * way).sum()) == pytest.approx(float(ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-8)
