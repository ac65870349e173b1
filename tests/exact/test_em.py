"""The E step against integrals, and EM: it never goes down and stops where the gradient is zero."""

import jax
import numpy as np
import pytest
from scipy.linalg import expm

from emissions.cases import CASES
from exact.test_enumeration import engine, generator, holed, scattered, unscaled
from neuralmjp import Panel, TimeSeries
from neuralmjp.emissions import Categorical, Gaussian
from neuralmjp.exact.em import run_em
from neuralmjp.exact.evidence import make_evidence
from neuralmjp.exact.model import Model, Parameters, expectations
from neuralmjp.exact.transitions import halving_needed
from neuralmjp.mjp import simulate_states
from neuralmjp.priors import FreeRates

RATES = np.array([[0, 0.8], [1.7, 0]])


def e_step(model, rates, theta, params, data, panel=None):
    laid = make_evidence(data, model.emission, len(rates), unscaled(data.n_features), panel or Panel())
    parameters = Parameters(theta, params, np.zeros(len(rates)))
    halving = halving_needed(rates, laid.layout.gaps)
    return expectations(model, parameters, laid.evidence, laid.layout.aligned, halving)


def between(rates, a, b, t):
    """Expected time in each state and jumps, on the way from a to b in a time t, by quadrature.

    The integral over s of P_ai(s) P_jb(t - s), over P_ab(t): on the diagonal the time in i, off it jumps per rate.
    """
    nodes, weights = np.polynomial.legendre.leggauss(20)
    move = lambda s: expm(generator(rates) * s)  # noqa: E731
    parts = [w * np.outer(move(s)[a], move(t - s)[:, b]) for w, s in zip(weights, (nodes + 1) * t / 2, strict=True)]
    table = sum(parts) * t / 2 / move(t)[a, b]
    return table.diagonal(), rates * table


def test_time_and_jumps_between_states_seen():
    data = TimeSeries.from_arrays([0.0, 0.7, 2.0, 2.1], [0.0, 1.0, 1.0, 0.0])
    model = Model(FreeRates(2), Categorical.exact((0.0, 1.0)), "known")
    found = e_step(model, RATES, np.log([0.8, 1.7]), {"logits": np.zeros((2, 2))}, data)
    pieces = [between(RATES, a, b, t) for a, b, t in ((0, 1, 0.7), (1, 1, 1.3), (1, 0, 0.1))]
    np.testing.assert_allclose(found.time, sum(p[0] for p in pieces), rtol=1e-8)
    np.testing.assert_allclose(found.jumps, sum(p[1] for p in pieces), rtol=1e-8)
    assert float(found.time.sum()) == pytest.approx(2.1)
    np.testing.assert_array_equal(found.first, [1, 0])


def test_the_jump_into_death_counts():
    """Death at a known time t: paths end in r just before, with weight P_ar f_rD, and one jump r -> D."""
    rates = np.array([[0, 1.0, 0.4], [2.0, 0, 0.8], [0, 0, 0]])
    data = TimeSeries.from_arrays([0.0, 0.9], [0.0, 2.0])
    model = Model(FreeRates(3, mask=rates > 0), Categorical.exact((0.0, 1.0, 2.0)), "known")
    theta = np.log([1.0, 0.4, 2.0, 0.8])
    found = e_step(model, rates, theta, {"logits": np.zeros((3, 3))}, data, Panel(exact_entry=2.0))
    weights = expm(generator(rates) * 0.9)[0] * rates[:, 2]
    share = weights / weights.sum()
    pieces = [between(rates, 0, r, 0.9) for r in (0, 1)]
    jumps = sum(s * p[1] for s, p in zip(share, pieces, strict=False))
    jumps[:, 2] += share
    np.testing.assert_allclose(
        found.time, sum(s * p[0] for s, p in zip(share, pieces, strict=False)), rtol=1e-7, atol=1e-12
    )
    np.testing.assert_allclose(found.jumps, jumps, rtol=1e-7, atol=1e-12)
    assert float(found.log_likelihood) == pytest.approx(np.log(weights.sum()))


def climbed(name, rate_model, *, seed=0, iterations=12, initial="given", given=(0.4, 0.6)):
    """Log-likelihood after each iteration of EM from three random starts, on small data with holes."""
    case, rng = CASES[name], np.random.default_rng(seed)
    rows = holed(case, seed) if name != "gaussian-full" else case.draw(rng, 14)
    data = scattered(rows, seed, longest=0.4)  # short gaps, so that one program serves all rates
    values = case.emission.codes(rows) if isinstance(case.emission, Categorical) else rows
    starts = [
        Parameters(rng.normal(size=rate_model.n_parameters), case.emission.start(values, 2, rng), np.zeros(2))
        for _ in range(3)
    ]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *starts)
    model = Model(rate_model, case.emission, initial, given)
    laid = make_evidence(data, case.emission, 2, unscaled(data.n_features), Panel())
    return run_em(model, stacked, laid.evidence, laid.layout.aligned, iterations=iterations, tolerance=0.0)


@pytest.mark.parametrize(
    ("name", "rate_model"),
    [
        ("gaussian", FreeRates(2)),
        ("gaussian", FreeRates(2, mask=[[0, 1], [0, 0]])),
        ("poisson", FreeRates(2, fixed={(1, 0): 0.7})),
        ("gaussian-full", FreeRates(2)),
        ("student-t", FreeRates(2)),
        ("mixture", FreeRates(2)),
        ("categorical", FreeRates(2)),
    ],
    ids=lambda x: x if isinstance(x, str) else ",".join(x.names),
)
def test_em_never_goes_down(name, rate_model):
    result = climbed(name, rate_model)
    gains = np.diff(result.log_likelihood, axis=0)
    assert result.log_likelihood.shape == (12, 3)
    assert (gains > -1e-8).all()
    assert (gains[0] > 0.01).all()


def test_with_a_free_initial_law_the_posterior_never_goes_down():
    """Its pseudo-observation counts as part of what is climbed."""
    values = []
    for iterations in range(1, 6):
        result = climbed("gaussian", FreeRates(2), initial="free", given=None, iterations=iterations)
        logits = np.asarray(result.parameters.initial)
        law = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        values.append(np.log(law).mean(1))
    long = climbed("gaussian", FreeRates(2), initial="free", given=None, iterations=6)
    posterior = long.log_likelihood[1:] + np.array(values)  # likelihood before step k, with the law after step k - 1
    assert (np.diff(posterior, axis=0) > -1e-8).all()


@pytest.fixture(scope="module")
def two_levels():
    times = np.tile(np.arange(40) * 0.4, (4, 1))
    states = simulate_states(RATES, times, initial=[0.5, 0.5], key=jax.random.key(3))
    noise = np.random.default_rng(3).normal(size=states.shape)
    return TimeSeries.from_arrays(times, 2.0 * states + noise)


def test_em_stops_where_the_gradient_is_zero(two_levels):
    model = Model(FreeRates(2), Gaussian(), "free")
    start = Parameters(
        np.zeros((1, 2)), {"mean": np.array([[[0.0], [2.0]]]), "log_sd": np.zeros((1, 2, 1))}, np.zeros((1, 2))
    )
    laid = make_evidence(two_levels, model.emission, 2, unscaled(1), Panel())
    result = run_em(model, start, laid.evidence, laid.layout.aligned, iterations=1500, tolerance=0.0)
    top = jax.tree.map(lambda x: np.asarray(x)[0], result.parameters)
    packing, ours = engine(model, top, two_levels)
    assert np.abs(ours(packing.vector(top))[1]).max() < 1e-5


def test_a_batch_of_starts_is_many_runs(two_levels):
    model = Model(FreeRates(2), Gaussian(), "free")
    laid = make_evidence(two_levels, model.emission, 2, unscaled(1), Panel())
    starts = Parameters(
        np.array([[0.0, 0.0], [1.0, -1.0]]),
        {"mean": np.array([[[0.0], [2.0]], [[1.0], [-1.0]]]), "log_sd": np.zeros((2, 2, 1))},
        np.zeros((2, 2)),
    )
    together = run_em(model, starts, laid.evidence, laid.layout.aligned, iterations=4, tolerance=0.0)
    for k in (0, 1):
        one = jax.tree.map(lambda x, k=k: x[k : k + 1], starts)
        alone = run_em(model, one, laid.evidence, laid.layout.aligned, iterations=4, tolerance=0.0)
        np.testing.assert_allclose(alone.log_likelihood[:, 0], together.log_likelihood[:, k], rtol=1e-12)


def test_em_ends_when_nobody_gains(two_levels):
    model = Model(FreeRates(2), Gaussian(), "free")
    laid = make_evidence(two_levels, model.emission, 2, unscaled(1), Panel())
    start = Parameters(
        np.zeros((1, 2)), {"mean": np.array([[[0.0], [2.0]]]), "log_sd": np.zeros((1, 2, 1))}, np.zeros((1, 2))
    )
    result = run_em(model, start, laid.evidence, laid.layout.aligned, iterations=500)
    assert 3 <= len(result.log_likelihood) < 100
    assert result.log_likelihood[-1] - result.log_likelihood[-2] < 0.1


def test_a_state_that_is_never_entered_keeps_sensible_rates(two_levels):
    """Nothing leads to state 2: no jumps in no time must not become a rate of any size."""
    model = Model(FreeRates(3, mask=[[0, 1, 0], [1, 0, 0], [1, 1, 0]]), Gaussian(), "given", (0.5, 0.5, 0.0))
    laid = make_evidence(two_levels, model.emission, 3, unscaled(1), Panel())
    params = {"mean": np.array([[[0.0], [2.0], [9.0]]]), "log_sd": np.zeros((1, 3, 1))}
    start = Parameters(np.zeros((1, 4)), params, np.zeros((1, 3)))
    result = run_em(model, start, laid.evidence, laid.layout.aligned, iterations=3, tolerance=0.0)
    assert np.isfinite(result.log_likelihood).all()
    assert (np.asarray(result.parameters.rates) < 20).all()
