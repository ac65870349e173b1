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
    committor_backward,
    committor_forward,
    generator_from_rates,
    mfpt,
    passage,
    reactive_flux,
    simulate_path,
    stationary_distribution,
)
from neuralmjp.systems import FlashingRatchet

RATCHET = np.asarray(FlashingRatchet().rates)
FAST = settings(deadline=None, max_examples=60, derandomize=True)

rate = st.one_of(st.just(0.0), st.floats(-9, 9).map(lambda exponent: 10.0**exponent))
sparse_rates = st.integers(2, 6).flatmap(
    lambda k: arrays(float, (k, k), elements=rate).map(lambda f: f * (1 - np.eye(k)))
)


def random_rates(shape, seed=0):
    rates = np.random.default_rng(seed).exponential(size=shape)
    return rates * (1 - np.eye(shape[-1]))


def chain(up, down):
    """States in a row: up[i] from i to i + 1, down[i] back."""
    return np.diag(np.asarray(up, float), 1) + np.diag(np.asarray(down, float), -1)


def exact_passage_times(rates, target):
    """Solve sum_k F_ik tau_k = -1 outside the target in rational arithmetic."""
    others = [i for i in range(len(rates)) if i != target]
    exact = [[Fraction(x) for x in row] for row in rates]
    rows = [[sum(exact[i]) if i == j else -exact[i][j] for j in others] + [Fraction(1)] for i in others]
    for k in range(len(rows)):
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(len(rows)):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return np.insert([float(row[-1]) for row in rows], target, 0.0)


def brute_force_committor(generator, source, target):
    """Solve F q = 0 with q = 0 on the source and 1 on the target."""
    system = np.array(generator)
    ends = [*source, *target]
    system[ends] = np.eye(len(generator))[ends]
    return np.linalg.solve(system, np.isin(np.arange(len(generator)), target).astype(float))


# Passage times


@pytest.mark.parametrize(("a", "b"), [(2.0, 1.0), (1e-9, 1e9)])
def test_two_states(a, b):
    np.testing.assert_allclose(mfpt([[0.0, a], [b, 0.0]]), [[0, 1 / a], [1 / b, 0]], rtol=1e-15)


def test_three_states_in_a_row():
    a, b, c, d = 2.0, 0.5, 3.0, 0.7
    up, down = 1 / a + (1 + b / a) / c, 1 / d + (1 + c / d) / b
    expected = [[0, 1 / a, up], [1 / b + c / (b * d), 0, up - 1 / a], [down, 1 / d, 0]]
    np.testing.assert_allclose(mfpt(chain([a, c], [b, d])), expected, rtol=1e-14)


@pytest.mark.parametrize("rates", [RATCHET, random_rates((5, 5)), chain([1, 2, 3], [3, 2, 1])])
def test_equation_of_the_paper(rates):
    """1 + sum_k F_ik tau_kj = 0 for i != j."""
    balance = 1 + generator_from_rates(rates) @ mfpt(rates)
    np.testing.assert_allclose(balance[~np.eye(len(rates), dtype=bool)], 0, atol=1e-12)
    np.testing.assert_array_equal(np.diag(mfpt(rates)), 0)


def test_passage_between_sets():
    rates = random_rates((6, 6))
    target, source = [1, 4], [0, 2]
    outside = [0, 2, 3, 5]
    times = np.zeros(6)
    times[outside] = np.linalg.solve(-generator_from_rates(rates)[np.ix_(outside, outside)], np.ones(4))
    np.testing.assert_allclose(mfpt(rates, target=target), times, rtol=1e-12)
    weights = stationary_distribution(rates)[source]
    expected = weights @ times[source] / weights.sum()
    np.testing.assert_allclose(mfpt(rates, source, target), expected, rtol=1e-12)
    np.testing.assert_allclose(mfpt(rates, 3, target), times[3], rtol=1e-12)
    np.testing.assert_allclose(mfpt(rates, target=np.array([2])), mfpt(rates)[:, 2], rtol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_stiff_passage_times_against_rational_arithmetic(seed):
    rng = np.random.default_rng(seed)
    rates = 10.0 ** rng.uniform(-10, 10, (6, 6)) * (1 - np.eye(6))
    exact = np.stack([exact_passage_times(rates, target) for target in range(6)], axis=-1)
    np.testing.assert_allclose(mfpt(rates), exact, rtol=1e-12)


def test_never_reached_takes_for_ever():
    rates = chain([1.0, 2.0], [3.0, 0.0])  # state 2 absorbs
    np.testing.assert_allclose(
        mfpt(rates), [[0, 1, 1 + (1 + 3) / 2], [np.inf, 0, 4 / 2], [np.inf, np.inf, 0]], rtol=1e-14
    )


def test_perhaps_never_reached_takes_for_ever():
    fork = np.array([[0.0, 1.0, 1e-9], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(mfpt(fork, target=1), [np.inf, 0, np.inf])
    np.testing.assert_array_equal(mfpt(fork, target=[1, 2]), [1 / (1 + 1e-9), 0, 0])


def test_single_state():
    np.testing.assert_array_equal(mfpt([[0.0]]), [[0.0]])


def test_source_of_transient_states():
    rates = np.zeros((4, 4))
    rates[0, 1] = rates[1, 2] = rates[2, 3] = rates[3, 2] = 1.0
    assert mfpt(rates, 0, 3) == 3
    assert mfpt(rates, [0, 2], 3) == 1  # the stationary law puts no weight on state 0
    with pytest.raises(InputError, match="the source holds transient states alone"):
        mfpt(rates, [0, 1], 3)


def test_work_in_chunks(monkeypatch):
    rates = random_rates((4, 5, 5))
    whole = mfpt(rates)
    monkeypatch.setattr(passage, "CHUNK_ENTRIES", 60)
    np.testing.assert_array_equal(mfpt(rates), whole)


# Committors


@pytest.mark.parametrize(("source", "target"), [([0], [5]), ([1, 2], [3]), ([4], [0, 1, 2])])
@pytest.mark.parametrize("rates", [RATCHET, random_rates((6, 6))], ids=["ratchet", "random"])
def test_committors_by_brute_force(rates, source, target):
    generator = generator_from_rates(rates)
    np.testing.assert_allclose(
        committor_forward(rates, source, target), brute_force_committor(generator, source, target), atol=1e-14
    )
    p = stationary_distribution(rates)
    reversed_generator = p[None, :] * generator.T / p[:, None]
    np.testing.assert_allclose(
        committor_backward(rates, source, target),
        brute_force_committor(reversed_generator, target, source),
        atol=1e-14,
    )


def test_gamblers_ruin():
    a, b = 3.0, 2.0
    rates = chain([a] * 5, [b] * 5)
    expected = (1 - (b / a) ** np.arange(6)) / (1 - (b / a) ** 5)
    np.testing.assert_allclose(committor_forward(rates, 0, 5), expected, rtol=1e-14)
    np.testing.assert_allclose(committor_backward(rates, 0, 5), 1 - expected, rtol=1e-14)  # detailed balance


def test_states_that_reach_neither_set():
    rates = np.zeros((5, 5))
    rates[2, 0] = rates[2, 1] = rates[2, 3] = 1.0
    rates[3, 4] = rates[4, 3] = 1.0
    np.testing.assert_allclose(committor_forward(rates, 0, 1), [0, 1, 1 / 3, 0, 0])


def test_backward_committor_needs_recurrent_states():
    with pytest.raises(InputError, match="visits every state for ever; state 0 is transient: remove it"):
        committor_backward(chain([1.0, 1.0], [0.0, 1.0]), 1, 2)


WRONG_SETS = {
    "overlap": ([0, 1], [1, 2], "source and target share state 1"),
    "empty": ([], [1], r"source must name states from 0 to 5, got \[\]"),
    "too large": ([0], 6, "target must name states from 0 to 5, got 6"),
    "negative": (-1, 2, "source must name states from 0 to 5, got -1"),
    "fractions": (np.array([0.5]), 2, "source must name states"),
    "a mask": (np.eye(6, dtype=bool)[0], 2, "source must name states"),
}


@pytest.mark.parametrize(("source", "target", "message"), WRONG_SETS.values(), ids=WRONG_SETS)
@pytest.mark.parametrize("observable", [committor_forward, committor_backward, reactive_flux])
def test_wrong_sets(observable, source, target, message):
    with pytest.raises(InputError, match=message):
        observable(RATCHET, source, target)


def test_source_without_target():
    with pytest.raises(InputError, match="mfpt needs a target when it is given a source"):
        mfpt(RATCHET, source=0)


# Reactive flux


def test_flux_of_two_states():
    a, b = 2.0, 0.5
    flux = reactive_flux([[0.0, a], [b, 0.0]], 0, 1)
    np.testing.assert_allclose(flux.gross, [[0, a * b / (a + b)], [0, 0]], rtol=1e-15)
    np.testing.assert_allclose(flux.net, flux.gross)
    np.testing.assert_allclose([flux.total, flux.rate, flux.mfpt], [a * b / (a + b), a, 1 / a], rtol=1e-15)


@pytest.mark.parametrize(("source", "target"), [([0], [5]), ([1, 2], [3])])
@pytest.mark.parametrize("rates", [RATCHET, random_rates((6, 6))], ids=["ratchet", "random"])
def test_flux_is_the_same_through_every_cut(rates, source, target):
    flux = reactive_flux(rates, source, target)
    between = [i for i in range(6) if i not in (*source, *target)]
    for chosen in range(2 ** len(between)):
        side = np.zeros(6, bool)
        side[source] = True
        side[[state for bit, state in enumerate(between) if chosen >> bit & 1]] = True
        across = flux.gross[np.ix_(side, ~side)].sum() - flux.gross[np.ix_(~side, side)].sum()
        np.testing.assert_allclose(across, flux.total, rtol=1e-12)
    divergence = flux.net.sum(1) - flux.net.sum(0)
    np.testing.assert_allclose(divergence[between], 0, atol=1e-15)
    assert (flux.net >= 0).all()
    assert (flux.net * flux.net.T == 0).all()


def test_flux_of_three_states_in_a_row():
    """The middle state is crossed: rates a, then c against b; one trajectory in every b / c + 1 attempts."""
    a, b, c, d = 2.0, 0.5, 3.0, 0.7
    p = stationary_distribution(chain([a, c], [b, d]))
    flux = reactive_flux(chain([a, c], [b, d]), 0, 2)
    np.testing.assert_allclose(flux.total, p[0] * a * c / (b + c), rtol=1e-14)
    np.testing.assert_allclose(flux.rate, flux.total / (p[0] + p[1] * b / (b + c)), rtol=1e-14)


def test_rate_is_the_inverse_passage_time_from_a_single_state():
    """Every trajectory from a single source state starts there, so 1 / rate is the mean time from it to the target."""
    flux = reactive_flux(RATCHET, 0, [4, 5])
    np.testing.assert_allclose(flux.mfpt, mfpt(RATCHET, 0, [4, 5]), rtol=1e-13)


@pytest.mark.statistical
def test_reactions_of_a_long_path():
    """Fails for 2 FAILURE of all seeds."""
    source, target = [0, 1], [5]
    path = simulate_path(RATCHET, 20_000.0, initial=stationary_distribution(RATCHET), key=jax.random.key(3))
    flux = reactive_flux(RATCHET, source, target)
    side = np.where(np.isin(path.states, source), 0, np.where(np.isin(path.states, target), 1, -1))
    visits = np.flatnonzero(side >= 0)
    entered = visits[np.insert(np.diff(side[visits]) != 0, 0, False)]  # first visit to a set after the other one
    times = path.jump_times[entered - 1]
    to_target = side[entered] == 1
    law.assert_mean(np.diff(times)[to_target[1:]], flux.mfpt)
    per_stretch, _ = np.histogram(times[to_target], np.linspace(0, path.duration, 501))
    law.assert_mean(per_stretch / (path.duration / 500), flux.total)


def test_flux_needs_one_recurrent_class():
    split = np.zeros((4, 4))
    split[0, 1] = split[1, 0] = split[2, 3] = split[3, 2] = 1.0
    with pytest.raises(InputError, match=r"2 closed classes, \{0, 1\}, \{2, 3\}"):
        reactive_flux(split, 0, 3)


# Batches and properties


def flux_parts(rates, source, target):
    flux = reactive_flux(rates, source, target)
    return np.concatenate([flux.gross.ravel(), flux.net.ravel(), np.ravel(flux.total), np.ravel(flux.rate)])


@pytest.mark.parametrize(
    "observable",
    [
        mfpt,
        lambda f: mfpt(f, target=[1, 2]),
        lambda f: mfpt(f, [0, 3], [1, 2]),
        lambda f: committor_forward(f, 0, [3, 4]),
        lambda f: committor_backward(f, 0, [3, 4]),
        lambda f: reactive_flux(f, 0, 1).net,
        lambda f: reactive_flux(f, 0, 1).rate,
        lambda f: reactive_flux(f, 0, 1).mfpt,
    ],
    ids=["mfpt", "to set", "set to set", "forward", "backward", "net flux", "rate", "flux mfpt"],
)
def test_batched_equals_looped(observable):
    rates = random_rates((2, 3, 5, 5))
    looped = np.array([[observable(one) for one in row] for row in rates])
    np.testing.assert_allclose(observable(rates), looped, rtol=1e-13)


def attempt(observable, *args):
    try:
        return observable(*args)
    except InputError:
        return None


@FAST
@given(sparse_rates)
def test_never_nan(rates):
    for observable in (committor_forward, committor_backward, flux_parts, mfpt):
        value = attempt(observable, rates, [0], [1])
        assert value is None or not np.isnan(value).any()
    assert not np.isnan(mfpt(rates)).any()
    forward = committor_forward(rates, 0, 1)
    assert (forward >= 0).all()
    assert (forward <= 1 + 1e-15).all()


@FAST
@given(sparse_rates, st.randoms(use_true_random=False))
def test_relabelling_states_permutes(rates, random):
    order = random.sample(range(len(rates)), len(rates))
    new = {old: position for position, old in enumerate(order)}
    relabelled = rates[np.ix_(order, order)]
    np.testing.assert_allclose(mfpt(relabelled), mfpt(rates)[np.ix_(order, order)], rtol=1e-12)
    for committor in (committor_forward, committor_backward):
        value = attempt(committor, rates, 0, 1)
        again = attempt(committor, relabelled, new[0], new[1])
        assert (value is None) == (again is None)
        if value is not None:
            np.testing.assert_allclose(again, value[order], rtol=1e-12)
    flux, again = attempt(reactive_flux, rates, 0, 1), attempt(reactive_flux, relabelled, new[0], new[1])
    if flux is not None:
        np.testing.assert_allclose(again.gross, flux.gross[np.ix_(order, order)], rtol=1e-12)
        np.testing.assert_allclose([again.total, again.rate], [flux.total, flux.rate], rtol=1e-12)


@FAST
@given(sparse_rates, st.floats(1e-3, 1e3))
def test_rescaling_time_rescales(rates, c):
    np.testing.assert_allclose(mfpt(rates / c), mfpt(rates) * c, rtol=1e-12)
    np.testing.assert_allclose(committor_forward(rates / c, 0, 1), committor_forward(rates, 0, 1), rtol=1e-12)
    flux, again = attempt(reactive_flux, rates, 0, 1), attempt(reactive_flux, rates / c, 0, 1)
    if flux is not None:
        np.testing.assert_allclose(again.gross, flux.gross / c, rtol=1e-12)
        np.testing.assert_allclose([again.total, again.rate], [flux.total / c, flux.rate / c], rtol=1e-12)
