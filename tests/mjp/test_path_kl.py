import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import law
from neuralmjp.errors import InputError
from neuralmjp.mjp import kl_rate, path_kl, propagate, simulate_path, stationary_distribution, transition_matrix
from neuralmjp.systems import FlashingRatchet

POSTERIOR = np.array([[0.0, 2.0], [0.5, 0.0]])
PRIOR = np.array([[0.0, 1.0], [3.0, 0.0]])
START = np.array([0.9, 0.1])
TWO_JUMPS = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])


def gathered(g, f):
    """sum over jumps of f - g + g log(g / f), for positive rates."""
    g, f = g[~np.eye(len(g), dtype=bool)], f[~np.eye(len(f), dtype=bool)]
    return (f - g + g * np.log(g / f)).reshape(-1, round(np.sqrt(len(g) + 0.25) - 0.5)).sum(1)


def swinging(t):
    """Posterior rates that swing while their sum is constant."""
    return jnp.array([[0.0, 1 + 0.9 * jnp.sin(3 * t)], [1 - 0.9 * jnp.sin(3 * t), 0.0]])


def rising(t):
    return jnp.array([[0.0, 1.0], [2.0, 0.0]]) * (1 + t)


def swinging_exactly(t):
    """Probability of state 1 under `swinging`, from state 0 at time 0."""
    decay = np.exp(-2 * t)
    return (1 - decay) / 2 + 0.9 * (2 * np.sin(3 * t) - 3 * np.cos(3 * t) + 3 * decay) / 13


def divergence_by_quadrature(duration):
    def integrand(t):
        p = swinging_exactly(t)
        return np.array([1 - p, p]) @ gathered(np.asarray(swinging(t)), np.asarray(rising(t)))

    return quad(integrand, 0, duration, epsabs=1e-12)[0]


def test_rate_of_divergence_by_hand():
    f, g = jnp.array([[0.0, 1.0], [3.0, 0.0]]), jnp.array([[0.0, 2.0], [0.0, 0.0]])
    np.testing.assert_allclose(kl_rate(g, f), [1 - 2 + 2 * np.log(2), 3.0], rtol=1e-15)
    np.testing.assert_array_equal(kl_rate(f, g), [2 - 1 + np.log(0.5), np.inf])
    np.testing.assert_allclose(kl_rate(jnp.stack([f, g]), jnp.stack([f, f])), [[0, 0], kl_rate(g, f)])


def test_a_rate_of_nearly_nothing():
    """In single precision its share of a fast rate is zero, and a divergence of minus infinity would be the best."""
    g, f = (jnp.array([[0.0, x], [1.0, 0.0]], jnp.float32) for x in (1e-37, 1e4))
    np.testing.assert_allclose(kl_rate(g, f), [1e4, 0.0])
    slopes = jax.jacobian(lambda g: kl_rate(g, f).sum())(g)
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize("rates", [POSTERIOR, TWO_JUMPS, np.asarray(FlashingRatchet().rates)])
def test_a_process_does_not_diverge_from_itself(rates):
    start = np.eye(len(rates))[0]
    assert path_kl(rates, rates, start, [0.0, 5.0]) == 0


def test_functions_that_agree_do_not_diverge():
    assert path_kl(swinging, swinging, START, [0.0, 1.0, 5.0]) == 0


@pytest.mark.parametrize("duration", [1e-3, 1.0, 40.0])
def test_constant_rates_by_quadrature(duration):
    def integrand(t):
        return propagate(POSTERIOR, START, [t])[0] @ gathered(POSTERIOR, PRIOR)

    expected = quad(integrand, 0, duration, epsabs=0, epsrel=1e-12, limit=200)[0]
    np.testing.assert_allclose(path_kl(POSTERIOR, PRIOR, START, [0.0, duration]), expected, rtol=1e-12)


@pytest.mark.parametrize("duration", [1e3, 1e6, 1e8])
def test_long_times(duration):
    """In the stationary state divergence grows linearly."""
    law_ = stationary_distribution(POSTERIOR)
    expected = duration * law_ @ gathered(POSTERIOR, PRIOR)
    np.testing.assert_allclose(path_kl(POSTERIOR, PRIOR, law_, [0.0, duration]), expected, rtol=1e-12)


def test_limit_of_ever_finer_observation():
    """Between states seen every h, divergence is smaller, and tends to that of the paths linearly in h."""

    def seen(n_steps):
        g, f = (transition_matrix(rates, 2.0 / n_steps) for rates in (POSTERIOR, PRIOR))
        visited = propagate(POSTERIOR, START, np.linspace(0, 2.0, n_steps, endpoint=False)).sum(0)
        return visited @ (g * np.log(g / f)).sum(1)

    coarse, fine, finest = seen(500), seen(1000), seen(2000)
    whole = float(path_kl(POSTERIOR, PRIOR, START, [0.0, 2.0]))
    assert coarse < fine < finest < whole
    np.testing.assert_allclose(2 * finest - fine, whole, rtol=1e-6)


@pytest.mark.statistical
def test_mean_likelihood_ratio_of_paths():
    """Fails for FAILURE of all seeds."""
    g, f = (np.asarray(FlashingRatchet(V=v, r=r).rates) for v, r in ((1.0, 1.0), (0.2, 2.0)))
    start = stationary_distribution(g)
    path = simulate_path(g, 20_000.0, initial=start, key=jax.random.key(5))
    # Stretches of length 2, 8 apart (16 slowest timescales): nearly independent, and stationary at their start.
    edges = np.sort(np.concatenate([np.arange(0, 20_000, 10), np.arange(2, 20_000, 10)])).astype(float)
    before, after = path.states[:-1], path.states[1:]
    at_jumps, _ = np.histogram(path.jump_times, edges, weights=np.log(g[before, after] / f[before, after]))
    knots = np.concatenate([[0.0], path.jump_times, [path.duration]])
    spent = np.cumsum(path.dwell_times * (f.sum(1) - g.sum(1))[path.states])
    between = np.diff(np.interp(edges, knots, np.insert(spent, 0, 0.0)))
    law.assert_mean((at_jumps + between)[::2], float(path_kl(g, f, start, [0.0, 2.0])))


def test_changing_rates_by_quadrature():
    found = path_kl(swinging, rising, [1.0, 0.0], np.linspace(0, 2, 9), substeps=16)
    np.testing.assert_allclose(found, divergence_by_quadrature(2.0), rtol=1e-8)


def test_order_of_convergence():
    steps = np.array([1 / 8, 1 / 32])
    found = [path_kl(swinging, rising, [1.0, 0.0], [0.0, 2.0], substeps=round(2 / h)) for h in steps]
    errors = np.abs(np.array(found) - divergence_by_quadrature(2.0))
    assert abs(np.diff(np.log(errors)) / np.diff(np.log(steps)) - 4) < 0.2


def test_constant_rates_may_stand_for_functions():
    mixed = path_kl(lambda t: jnp.asarray(POSTERIOR), PRIOR, START, [0.0, 1.0])
    np.testing.assert_allclose(mixed, path_kl(POSTERIOR, PRIOR, START, [0.0, 1.0]), rtol=1e-13)


def test_divergence_adds_up_over_intervals():
    middle = propagate(POSTERIOR, START, [0.7])[0]
    parts = path_kl(POSTERIOR, PRIOR, START, [0.0, 0.7]) + path_kl(POSTERIOR, PRIOR, middle, [0.7, 3.0])
    np.testing.assert_allclose(path_kl(POSTERIOR, PRIOR, START, [0.0, 3.0]), parts, rtol=1e-13)


def test_a_forbidden_jump_is_infinitely_surprising():
    no_second = TWO_JUMPS * (np.arange(3) < 2)
    assert path_kl(TWO_JUMPS, no_second, [1.0, 0, 0], [0.0, 1e-3]) == np.inf


def test_a_forbidden_jump_from_an_unreachable_state_does_not_matter():
    first_only = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [5.0, 0.0, 0.0]])
    prior = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    in_first = (1 - np.exp(-2.0)) / 2  # mean time in state 0 up to time 1
    expected = in_first * (1 - 2 + 2 * np.log(2))
    np.testing.assert_allclose(path_kl(first_only, prior, [1.0, 0, 0], [0.0, 1.0]), expected, rtol=1e-14)
    assert path_kl(first_only, prior, [1.0, 0, 1e-300], [0.0, 1.0]) == np.inf


def test_a_jump_forbidden_later_is_infinite_even_on_coarse_steps():
    """Nearly all mass leaves before the jump is forbidden, within one step: the little that stays must count."""
    leaving = jnp.array([[0.0, 300.0], [0.0, 0.0]])
    assert path_kl(lambda t: leaving, lambda t: leaving * (t < 0.5), [1.0, 0.0], [0.0, 1.0], substeps=1) == np.inf


def test_gradient_against_finite_differences():
    """By rates that are not zero; by structural zeros it is finite."""

    def divergence(*rates):
        return path_kl(*rates, [0.8, 0.2, 0.0], [0.0, 2.0])

    rates = [jnp.asarray(TWO_JUMPS), 3 * jnp.asarray(TWO_JUMPS)]
    gradients = jax.jit(jax.grad(divergence, (0, 1)))(*rates)
    assert np.isfinite(gradients).all()
    for which in (0, 1):
        for i, j in ((0, 1), (1, 2)):
            up, down = [*rates], [*rates]
            up[which], down[which] = up[which].at[i, j].add(1e-5), down[which].at[i, j].add(-1e-5)
            expected = (divergence(*up) - divergence(*down)) / 2e-5
            np.testing.assert_allclose(gradients[which][i, j], expected, rtol=1e-6)


def test_gradient_of_a_constant_prior_beside_changing_rates():
    gradient = jax.grad(lambda f: path_kl(swinging, f, [1.0, 0.0], [0.0, 1.0], substeps=16))(jnp.asarray(PRIOR))
    in_second = quad(swinging_exactly, 0, 1)[0]
    jumps = quad(lambda t: (1 - swinging_exactly(t)) * (1 + 0.9 * np.sin(3 * t)), 0, 1)[0]
    np.testing.assert_allclose(gradient[0, 1], (1 - in_second) - jumps / PRIOR[0, 1], rtol=1e-6)


@pytest.mark.parametrize("times", [[1.0, 0.0], [0.0], [0.0, np.inf]])
@pytest.mark.parametrize("posterior", [POSTERIOR, swinging], ids=["constant", "changing"])
def test_wrong_times(posterior, times):
    with pytest.raises(InputError, match="times must be a list of at least two increasing numbers"):
        path_kl(posterior, PRIOR, START, times)
