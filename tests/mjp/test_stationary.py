from fractions import Fraction

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import law
from neuralmjp.errors import InputError
from neuralmjp.mjp import (
    eigenvalues,
    entropy_production,
    mfpt,
    simulate_path,
    simulate_states,
    sojourn_times,
    stationary_distribution,
    stationary_distributions,
    timescales,
)
from neuralmjp.systems import FlashingRatchet

RATCHET = np.asarray(FlashingRatchet().rates)
FAST = settings(deadline=None, max_examples=60, derandomize=True)

rate = st.one_of(st.just(0.0), st.floats(-9, 9).map(lambda exponent: 10.0**exponent))
sparse_rates = st.integers(1, 6).flatmap(
    lambda k: arrays(float, (k, k), elements=rate).map(lambda f: f * (1 - np.eye(k)))
)


def two_states(a, b):
    return np.array([[0.0, a], [b, 0.0]])


def ring(forward, backward):
    return np.array([[0.0, forward, backward], [backward, 0.0, forward], [forward, backward, 0.0]])


def blocks(*parts):
    """Processes side by side that never meet."""
    whole = np.zeros((sum(map(len, parts)),) * 2)
    start = 0
    for part in parts:
        whole[start : start + len(part), start : start + len(part)] = part
        start += len(part)
    return whole


def random_rates(shape, seed=0):
    rates = np.random.default_rng(seed).exponential(size=shape)
    return rates * (1 - np.eye(shape[-1]))


def exact_stationary(rates):
    """Solve p F = 0 in rational arithmetic; the last equation is replaced by sum p = 1."""
    n = len(rates)
    exact = [[Fraction(x) for x in row] for row in rates]
    rows = [[exact[j][i] if j != i else -sum(exact[i]) for j in range(n)] + [Fraction(0)] for i in range(n)]
    rows[-1] = [Fraction(1)] * (n + 1)
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return np.array([float(row[-1]) for row in rows])


# Hand-solved chains


@pytest.mark.parametrize(("a", "b"), [(2.0, 1.0), (1e-9, 1e9), (3.0, 0.0)])
def test_two_states(a, b):
    rates = two_states(a, b)
    np.testing.assert_allclose(stationary_distribution(rates), np.array([b, a]) / (a + b), rtol=1e-15)
    np.testing.assert_allclose(eigenvalues(rates), [0, -(a + b)], rtol=1e-14)
    np.testing.assert_allclose(timescales(rates), [1 / (a + b)], rtol=1e-14)
    np.testing.assert_allclose(sojourn_times(rates), [1 / a, 1 / b if b else np.inf], rtol=1e-15)
    assert entropy_production(rates) == pytest.approx(0, abs=1e-20 * (a + b))


def test_three_states_by_spanning_trees():
    f = random_rates((3, 3))
    weights = [
        f[1, 0] * f[2, 0] + f[1, 2] * f[2, 0] + f[2, 1] * f[1, 0],
        f[0, 1] * f[2, 1] + f[0, 2] * f[2, 1] + f[2, 0] * f[0, 1],
        f[0, 2] * f[1, 2] + f[0, 1] * f[1, 2] + f[1, 0] * f[0, 2],
    ]
    p = np.array(weights) / sum(weights)
    np.testing.assert_allclose(stationary_distribution(f), p, rtol=1e-14)
    # One ring: the same current through every pair, and the log of the ratio of products around it.
    current = p[0] * f[0, 1] - p[1] * f[1, 0]
    affinity = np.log(f[0, 1] * f[1, 2] * f[2, 0] / (f[1, 0] * f[2, 1] * f[0, 2]))
    np.testing.assert_allclose(entropy_production(f), current * affinity, rtol=1e-12)


@pytest.mark.parametrize(("forward", "backward"), [(2.0, 1.0), (5.0, 0.1), (1.0, 1.0)])
def test_ring(forward, backward):
    rates = ring(forward, backward)
    np.testing.assert_allclose(stationary_distribution(rates), 1 / 3, rtol=1e-15)
    real = -1.5 * (forward + backward)
    imaginary = np.sqrt(3) / 2 * abs(forward - backward)
    values = eigenvalues(rates)
    np.testing.assert_allclose(values.real, [0, real, real], rtol=1e-7)  # a double root when both are equal
    np.testing.assert_allclose(np.sort(values.imag), [-imaginary, 0, imaginary], atol=1e-7)
    expected = (forward - backward) * np.log(forward / backward)
    np.testing.assert_allclose(entropy_production(rates), expected, atol=1e-14)


def test_flashing_ratchet():
    np.testing.assert_allclose(
        stationary_distribution(RATCHET), [0.3012, 0.1365, 0.0623, 0.2003, 0.1591, 0.1406], atol=5e-5
    )
    np.testing.assert_allclose(timescales(RATCHET), [0.500, 0.350, 0.281, 0.205, 0.159], atol=5e-4)
    np.testing.assert_allclose(timescales(RATCHET, 2), [0.500, 0.350], atol=5e-4)
    assert entropy_production(RATCHET) == pytest.approx(0.1792, abs=5e-5)


def test_detailed_balance_produces_no_entropy():
    symmetric = random_rates((6, 6))
    symmetric = symmetric + symmetric.T
    weights = np.exp(np.random.default_rng(1).normal(size=6))
    rates = symmetric / weights[:, None]
    np.testing.assert_allclose(stationary_distribution(rates), weights / weights.sum(), rtol=1e-13)
    assert entropy_production(rates) < 1e-25


# Long simulation


@pytest.fixture(scope="module")
def long_path():
    """A stationary path of the ratchet, in 500 stretches of 80 slowest timescales each: nearly independent."""
    path = simulate_path(RATCHET, 20_000.0, initial=stationary_distribution(RATCHET), key=jax.random.key(1))
    return path, np.linspace(0, path.duration, 501)


@pytest.mark.statistical
def test_time_in_each_state_of_a_long_path(long_path):
    """Fails for FAILURE of all seeds."""
    path, edges = long_path
    knots = np.concatenate([[0.0], path.jump_times, [path.duration]])
    spent = np.cumsum(path.dwell_times[:, None] * (path.states[:, None] == np.arange(6)), axis=0)
    spent = np.concatenate([np.zeros((1, 6)), spent])
    at_edges = np.stack([np.interp(edges, knots, spent[:, state]) for state in range(6)], axis=-1)
    law.assert_mean(np.diff(at_edges, axis=0) / np.diff(edges)[:, None], stationary_distribution(RATCHET))


@pytest.mark.statistical
def test_entropy_produced_along_a_long_path(long_path):
    """Fails for FAILURE of all seeds."""
    path, edges = long_path
    before, after = path.states[:-1], path.states[1:]
    gain = np.log(RATCHET[before, after] / RATCHET[after, before])
    per_stretch, _ = np.histogram(path.jump_times, edges, weights=gain)
    law.assert_mean(per_stretch / np.diff(edges), entropy_production(RATCHET))


@pytest.mark.statistical
def test_mean_dwell_times_of_a_long_path(long_path):
    """Fails for 6 FAILURE of all seeds."""
    path, _ = long_path
    for state in range(6):
        dwells = path.dwell_times[:-1][path.states[:-1] == state]
        law.assert_mean(dwells, sojourn_times(RATCHET)[state])


@pytest.mark.statistical
def test_law_after_a_long_time():
    """Fails for FAILURE of all seeds."""
    times = [0.0, 1.0, 5.0, 20.0]
    states = simulate_states(RATCHET, times, initial=np.eye(6)[2], key=jax.random.key(2), n_series=20_000)
    law.assert_counts_follow(np.bincount(states[:, -1], minlength=6), stationary_distribution(RATCHET))


# Batches


@pytest.mark.parametrize(
    "observable", [stationary_distribution, eigenvalues, timescales, sojourn_times, entropy_production]
)
def test_batched_equals_looped(observable):
    rates = random_rates((3, 4, 5, 5)) * (np.random.default_rng(1).random((3, 4, 5, 5)) < 0.8)
    batched = observable(rates)
    looped = np.array([[observable(one) for one in row] for row in rates])
    np.testing.assert_allclose(batched, looped, rtol=1e-12)


# Structural zeros


def test_transient_states_have_probability_zero():
    rates = np.zeros((4, 4))
    rates[0, 1] = rates[1, 0] = rates[1, 2] = 1.0  # 0 and 1 leak into 2 and 3
    rates[2, 3], rates[3, 2] = 3.0, 1.0
    np.testing.assert_array_equal(stationary_distribution(rates), [0, 0, 0.25, 0.75])
    assert entropy_production(rates) == pytest.approx(0, abs=1e-20)


def test_absorbing_state():
    rates = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(stationary_distribution(rates), [0, 0, 1])
    np.testing.assert_array_equal(sojourn_times(rates), [0.5, 0.5, np.inf])
    np.testing.assert_allclose(timescales(rates), 1 / (2 - np.array([1, -1]) * np.sqrt(2)), rtol=1e-14)


def test_two_closed_classes():
    rates = blocks(two_states(2.0, 1.0), ring(1.0, 4.0))
    np.testing.assert_allclose(
        stationary_distributions(rates), [[1 / 3, 2 / 3, 0, 0, 0], [0, 0, 1 / 3, 1 / 3, 1 / 3]], rtol=1e-15
    )
    np.testing.assert_array_equal(eigenvalues(rates)[:2], 0)
    np.testing.assert_allclose(timescales(rates), [np.inf, 1 / 3, 1 / 7.5, 1 / 7.5], rtol=1e-14)
    for observable in (stationary_distribution, entropy_production):
        with pytest.raises(InputError, match=r"2 closed classes, \{0, 1\}, \{2, 3, 4\}") as caught:
            observable(rates)
        assert "\n" not in str(caught.value)


def test_one_law_per_class_leaves_transient_states_out():
    rates = np.zeros((4, 4))
    rates[1, 0] = rates[1, 3] = 1.0
    rates[3, 2], rates[2, 3] = 1.0, 3.0
    np.testing.assert_allclose(stationary_distributions(rates), [[1, 0, 0, 0], [0, 0, 0.25, 0.75]])
    np.testing.assert_allclose(stationary_distributions(RATCHET), [stationary_distribution(RATCHET)])
    with pytest.raises(InputError, match="one rate matrix"):
        stationary_distributions(np.stack([rates, rates]))


def test_a_jump_without_return_produces_infinite_entropy():
    assert entropy_production(ring(1.0, 0.0)) == np.inf
    np.testing.assert_array_equal(entropy_production(np.stack([ring(1.0, 0.0), ring(1.0, 1.0)])), [np.inf, 0.0])


def test_single_state():
    alone = np.zeros((1, 1))
    np.testing.assert_array_equal(stationary_distribution(alone), [1.0])
    np.testing.assert_array_equal(stationary_distributions(alone), [[1.0]])
    np.testing.assert_array_equal(eigenvalues(alone), [0])
    assert timescales(alone).shape == (0,)
    np.testing.assert_array_equal(sojourn_times(alone), [np.inf])
    assert entropy_production(alone) == 0


def test_no_jumps_at_all():
    np.testing.assert_array_equal(timescales(np.zeros((3, 3))), [np.inf, np.inf])
    np.testing.assert_array_equal(stationary_distributions(np.zeros((3, 3))), np.eye(3))


# Stiffness


@pytest.mark.parametrize("seed", range(10))
def test_stationary_law_against_rational_arithmetic(seed):
    rng = np.random.default_rng(seed)
    rates = 10.0 ** rng.uniform(-10, 10, (6, 6)) * (1 - np.eye(6))
    np.testing.assert_allclose(stationary_distribution(rates), exact_stationary(rates), rtol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_stiff_relaxation_by_sign_changes(seed):
    """The characteristic polynomial of a birth-death chain, in rational arithmetic, changes sign at each eigenvalue."""
    rng = np.random.default_rng(seed)
    up, down = 10.0 ** rng.uniform(-10, 10, (2, 5))
    values = eigenvalues(np.diag(up, 1) + np.diag(down, -1))
    np.testing.assert_array_equal(values.imag, 0)

    def polynomial(x):
        births, deaths = [*map(Fraction, up), Fraction(0)], [Fraction(0), *map(Fraction, down)]
        before, now = Fraction(0), Fraction(1)
        for k in range(6):
            product = births[k - 1] * deaths[k] if k else Fraction(0)
            before, now = now, (-births[k] - deaths[k] - Fraction(x)) * now - product * before
        return now

    for value in values.real[1:]:
        assert polynomial(value * (1 - 1e-8)) * polynomial(value * (1 + 1e-8)) < 0


@pytest.mark.parametrize("seed", range(5))
def test_relaxation_times_add_up_to_passage_times(seed):
    """Kemeny: from any state, passage times weighted by the stationary law sum to -sum 1 / eigenvalue."""
    rng = np.random.default_rng(seed)
    rates = 10.0 ** rng.uniform(-9, 9, (50, 5, 5)) * (1 - np.eye(5))
    expected = (mfpt(rates) * stationary_distribution(rates)[:, None, :]).sum(-1)
    total = -(1 / eigenvalues(rates)[:, 1:]).sum(-1)
    np.testing.assert_allclose(np.broadcast_to(total.real[:, None], expected.shape), expected, rtol=1e-9)


def test_metastable_transient_states():
    """Two states exchange a billion times a second and leave once in 1e21 seconds."""
    rates = np.array([[0.0, 1e9, 0.0], [1e9, 0.0, 2e-21], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(timescales(rates), [1e21, 5e-10], rtol=1e-12)


def test_defective_generator():
    """Equal stages in a row: one eigenvalue four times over, which rounding may only smear a little."""
    np.testing.assert_allclose(timescales(np.diag(np.full(4, 3.0), 1)), np.full(4, 1 / 3), rtol=1e-3)


# Properties

OBSERVABLES = {
    stationary_distribution: 0,
    sojourn_times: 1,
    timescales: 1,
    entropy_production: -1,
}


def attempt(observable, rates):
    try:
        return observable(rates)
    except InputError:
        return np.array(-1.0)


def assert_same(observable, value, expected, rates):
    """Rounding smears eigenvalues that coincide, and entropy production is a difference of flows."""
    relative = 2e-2 if observable is timescales else 1e-12
    absolute = 1e-10 * rates.max() if observable is entropy_production else 0.0
    np.testing.assert_allclose(value, expected, rtol=relative, atol=absolute)


@FAST
@given(sparse_rates)
def test_never_nan(rates):
    for observable in (*OBSERVABLES, stationary_distributions, eigenvalues):
        assert not np.isnan(attempt(observable, rates)).any()


@FAST
@given(sparse_rates)
def test_laws_are_laws(rates):
    laws = stationary_distributions(rates)
    assert (laws >= 0).all()
    np.testing.assert_allclose(laws.sum(-1), 1, rtol=1e-14)
    flow = laws[:, :, None] * rates
    np.testing.assert_allclose(flow.sum(1), flow.sum(2), rtol=1e-12)


@FAST
@given(sparse_rates, st.randoms(use_true_random=False))
def test_relabelling_states_permutes(rates, random):
    order = random.sample(range(len(rates)), len(rates))
    relabelled = rates[np.ix_(order, order)]
    for observable in OBSERVABLES:
        value = attempt(observable, rates)
        if observable in (stationary_distribution, sojourn_times) and value.ndim:
            value = value[order]
        assert_same(observable, attempt(observable, relabelled), value, rates)


@FAST
@given(sparse_rates, st.floats(1e-3, 1e3))
def test_rescaling_time_rescales(rates, c):
    for observable, power in OBSERVABLES.items():
        value = attempt(observable, rates)
        if (value == -1.0).all():
            assert (attempt(observable, rates / c) == -1.0).all()
        else:
            assert_same(observable, attempt(observable, rates / c), value * c**power, rates / c)
