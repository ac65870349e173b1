"""Switching diffusions: the bound against all paths of the modes, what EM finds, and what it is told."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from neuralmjp import InputError
from neuralmjp.baselines import fit_koehs
from neuralmjp.baselines.koehs_climb import em_round, first_all, settled, swept_all
from neuralmjp.baselines.koehs_maximise import gathered_paths
from neuralmjp.baselines.koehs_model import FASTEST, Parameters, diffused, slowed
from neuralmjp.baselines.koehs_start import start
from neuralmjp.baselines.koehs_steps import Scale, lay_out, rounded_up, scale_of
from neuralmjp.baselines.koehs_sweep import PRIOR_SPREAD
from neuralmjp.systems import IonChannel, TwoMode
from neuralmjp.timeseries import TimeSeries

# One recording, one shape: most tests share its programs.
DATA = TwoMode().simulate(1, 150, seed=3)
SETTINGS = {"substeps": 2, "restarts": 2, "rounds": 60}


def two_features():
    """Two series of two features, each of which follows modes of its own; a value is missing."""
    first, second = (TwoMode().simulate(2, 40, seed=k).data for k in (1, 2))
    values = np.column_stack([first.values, second.values])
    values[7, 0] = np.nan
    return TimeSeries.from_arrays(first.times.reshape(2, 40), values.reshape(2, 40, 2))


TWO_FEATURES = two_features()


@pytest.fixture(scope="module")
def fit():
    return fit_koehs(DATA.data, 2, **SETTINGS)


# ---- witnesses


def moved(drift, offset, dispersion, length):
    """Law of a linear diffusion after a time, by exponentials of larger matrices (Van Loan 1978)."""
    n = len(offset)
    both = np.block([[-drift, dispersion], [np.zeros((n, n)), drift.T]])
    big = expm(both * length)
    keep = big[n:, n:].T
    pushed = np.zeros((n + 1, n + 1))
    pushed[:n, :n], pushed[:n, n] = drift, offset
    return keep, expm(pushed * length)[:n, n], keep @ big[:n, n:]


def log_likelihood(theta, steps):
    """Kalman filters along all paths of the modes, added up."""
    theta = Parameters(*(np.asarray(leaf) for leaf in theta))
    n_states, n = theta.offset.shape
    generator = theta.rates - np.diag(theta.rates.sum(1))
    total = 0.0
    for kind, values, mask in zip(*(np.asarray(part) for part in (steps.kind, steps.values, steps.mask)), strict=True):
        lengths = np.asarray(steps.lengths)[kind]
        lengths = lengths[lengths > 0]
        jump = [expm(generator * h) for h in lengths]
        moves = [[moved(*(x[z] for x in theta[2:5]), h) for z in range(n_states)] for h in lengths]
        logs = []
        for path in itertools.product(range(n_states), repeat=len(lengths) + 1):
            log, mean, spread = np.log(theta.initial[path[0]]), np.zeros(n), PRIOR_SPREAD**2 * np.eye(n)
            for i, z in enumerate(path):
                if i > 0:
                    log += np.log(jump[i - 1][path[i - 1], z])
                    keep, shift, fresh = moves[i - 1][z]
                    mean, spread = keep @ mean + shift, keep @ spread @ keep.T + fresh
                see = np.eye(n)[mask[i] > 0]
                if len(see):
                    cov, away = see @ (spread + theta.noise) @ see.T, see @ (values[i] - mean)
                    log -= 0.5 * (away @ np.linalg.solve(cov, away) + np.linalg.slogdet(2 * np.pi * cov)[1])
                    gain = spread @ see.T @ np.linalg.inv(cov)
                    mean, spread = mean + gain @ away, spread - gain @ see @ spread
            logs.append(log)
        total += np.logaddexp.reduce(logs)
    return total


def small(n_states, n_features):
    """Two short series with missing values, any parameters, and no scaling."""
    rng = np.random.default_rng(n_states + 10 * n_features)
    values = rng.normal(size=(2, 4, n_features))
    values[0, 1, 0] = values[1, 2, -1] = np.nan
    data = TimeSeries.from_arrays(rng.exponential(1.0, (2, 4)).cumsum(1), values)
    square = rng.normal(size=(n_states + 1, n_features, n_features))
    square = 0.2 * (square @ square.swapaxes(1, 2) + np.eye(n_features))
    drift = 0.3 * rng.normal(size=(n_states, n_features, n_features)) - np.eye(n_features)
    rates = rng.uniform(0.1, 0.6, (n_states, n_states)) * (1 - np.eye(n_states))
    offset = rng.normal(size=(n_states, n_features))
    initial = np.full(n_states, 1 / n_states)
    theta = Parameters(*map(jnp.asarray, (rates, initial, drift, offset, square[1:], square[0])))
    return theta, lay_out(data, Scale(1.0, np.zeros(n_features), np.ones(n_features)), 1).steps


@pytest.mark.parametrize("n_features", [1, 3])
def test_one_mode_has_the_exact_likelihood(n_features):
    theta, steps = small(1, n_features)
    assert float(settled(theta, steps).bound.sum()) == pytest.approx(log_likelihood(theta, steps), abs=1e-9)


@pytest.mark.parametrize(("n_states", "n_features"), [(3, 1), (2, 2)])
def test_several_modes_stay_just_below_it(n_states, n_features):
    theta, steps = small(n_states, n_features)
    below = log_likelihood(theta, steps) - float(settled(theta, steps).bound.sum())
    assert 0.0 < below < 0.1


def test_modes_that_differ_in_nothing_have_the_exact_likelihood():
    theta, steps = small(3, 1)
    same = {name: getattr(theta, name)[:1].repeat(3, 0) for name in ("drift", "offset", "dispersion")}
    theta = theta._replace(**same)
    assert float(settled(theta, steps).bound.sum()) == pytest.approx(log_likelihood(theta, steps), abs=1e-8)


@pytest.mark.parametrize("length", [1e-6, 0.3, 40.0])
def test_a_step_of_any_length(length):
    drift, offset, dispersion = np.array([[-1.0, 0.4], [-0.6, -0.2]]), np.array([0.3, -2.0]), np.diag([0.5, 2.0])
    found = diffused(*map(jnp.asarray, (drift, offset, dispersion)), jnp.asarray(length))
    # Exponentials of larger matrices lose long steps: many short ones are as exact.
    parts = max(1, round(length))
    wanted = moved(drift, offset, dispersion, length / parts)
    keep, shift, spread = wanted
    for _ in range(parts - 1):
        shift = wanted[0] @ shift + wanted[1]
        spread = wanted[0] @ spread @ wanted[0].T + wanted[2]
        keep = wanted[0] @ keep
    for one, other in zip(found, (keep, shift, spread), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-13)


def test_a_level_that_forgets_at_once_stays_finite():
    """White noise is a diffusion without memory: EM runs that way for as long as it is let."""
    theta, steps = small(2, 1)
    fast = slowed(theta._replace(drift=1e6 * theta.drift, offset=1e6 * theta.offset, dispersion=1e6 * theta.dispersion))
    assert float(jnp.abs(fast.drift).max()) <= FASTEST * (1 + 1e-12)
    np.testing.assert_allclose(fast.offset / fast.drift[..., 0], theta.offset / theta.drift[..., 0])
    assert np.isfinite(settled(fast, steps).bound).all()


def test_sweeps_and_m_steps_only_raise_the_bound():
    scale = scale_of(TWO_FEATURES)
    steps = lay_out(TWO_FEATURES, scale, 1).steps
    theta = start(TWO_FEATURES, scale, 2, 0, 0)
    log_q, bounds = first_all(theta, steps), []
    for _ in range(15):
        swept = swept_all(theta, log_q, steps)
        theta, log_q, bound = em_round(theta, swept.log_q, steps)
        bounds += [float(swept.bound.sum()), float(bound)]
    assert np.diff(bounds).min() > -1e-9
    assert bounds[-1] > bounds[0] + 1


def test_sums_over_paths_count_all_time_and_all_steps():
    theta, steps = small(2, 2)
    paths = jax.jit(gathered_paths)(swept_all(theta, first_all(theta, steps), steps), steps)
    n_steps = np.bincount(np.asarray(steps.kind).ravel(), minlength=len(steps.lengths))
    n_steps[0] = 0
    np.testing.assert_allclose(paths.weight.sum(1), n_steps, atol=1e-12)
    np.testing.assert_allclose(paths.jumps.sum((1, 2)), n_steps, atol=1e-12)
    np.testing.assert_allclose(paths.jumps.sum(1), paths.weight, atol=1e-12)


# ---- fits


def test_what_a_fit_tells(fit):
    assert np.diff(fit.elbo).min() > -1e-8
    assert fit.levels[0, 0] < -0.5 < 0.5 < fit.levels[1, 0]
    assert (fit.states(DATA.data) == DATA.states).mean() > 0.85
    assert fit.stationary_distribution.sum() == pytest.approx(1.0)
    assert fit.timescales[0] == pytest.approx(1 / fit.rates.sum())
    assert fit.mfpt[0, 1] == pytest.approx(1 / fit.rates[0, 1])
    assert fit.seconds > 0
    posterior = fit.posterior(DATA.data)
    np.testing.assert_allclose(posterior.probabilities.sum(1), 1.0)
    assert posterior.elbo >= fit.elbo[-1] - 0.1
    assert np.abs(fit.reconstruction(DATA.data) - DATA.data.values).std() < 0.45
    assert posterior.level_sd.max() < 0.5


def test_units_of_time_and_value_change_nothing_else(fit):
    data = TimeSeries.from_arrays(60 * DATA.data.times, 10 + 5 * DATA.data.values[:, 0], time_unit="s")
    other = fit_koehs(data, 2, **SETTINGS)
    np.testing.assert_allclose(other.rates, fit.rates / 60, rtol=1e-6)
    np.testing.assert_allclose(other.drift, fit.drift / 60, rtol=1e-6)
    np.testing.assert_allclose(other.dispersion, fit.dispersion * 25 / 60, rtol=1e-6)
    np.testing.assert_allclose(other.noise, fit.noise * 25, rtol=1e-6)
    np.testing.assert_allclose(other.levels, 10 + 5 * fit.levels, rtol=1e-6)
    resting = -fit.offset[:, 0] / fit.drift[:, 0, 0]
    np.testing.assert_allclose(-other.offset[:, 0] / other.drift[:, 0, 0], 10 + 5 * resting, rtol=1e-6)
    assert other.elbo[-1] == pytest.approx(fit.elbo[-1] - 150 * np.log(5))
    assert other.time_unit == "s"


@pytest.mark.statistical
def test_the_bound_stays_below_particles_that_jump_at_any_time(fit):
    """The estimate scatters by 0.15 nats around 2.5 above the bound: fails less than once in a million times."""
    evidence = particle_log_likelihood(fit, DATA.data, 5000, np.random.default_rng(0))
    assert evidence - 5 < fit.posterior(DATA.data).elbo < evidence


def particle_log_likelihood(fit, data, n, rng):
    """Modes jump at any time, the level is Gaussian given their path: a particle filter of two modes in one feature."""
    drift, offset, dispersion = fit.drift[:, 0, 0], fit.offset[:, 0], fit.dispersion[:, 0, 0]
    modes = rng.choice(2, n, p=fit.initial)
    mean, spread = np.full(n, fit.scale.mean[0]), np.full(n, (PRIOR_SPREAD * fit.scale.spread[0]) ** 2)
    total = 0.0
    for gap, value in zip(np.diff(data.times, prepend=data.times[0]), data.values[:, 0], strict=True):
        left = np.full(n, gap)
        while (left > 0).any():
            dwell = rng.exponential(size=n) / fit.rates.sum(1)[modes]
            stay, a = np.minimum(dwell, left), drift[modes]
            mean = np.exp(a * stay) * mean + offset[modes] / a * np.expm1(a * stay)
            spread = np.exp(2 * a * stay) * spread + dispersion[modes] / (2 * a) * np.expm1(2 * a * stay)
            modes = np.where(dwell < left, 1 - modes, modes)
            left = left - stay
        variance = spread + fit.noise[0, 0]
        weight = np.exp(-0.5 * (value - mean) ** 2 / variance) / np.sqrt(2 * np.pi * variance)
        total += np.log(weight.mean())
        gain = spread / variance
        mean, spread = mean + gain * (value - mean), spread * (1 - gain)
        drawn = np.searchsorted(np.cumsum(weight) / weight.sum(), (rng.random() + np.arange(n)) / n).clip(0, n - 1)
        modes, mean, spread = modes[drawn], mean[drawn], spread[drawn]
    return total


def test_the_same_seed_finds_the_same(fit):
    np.testing.assert_array_equal(fit_koehs(DATA.data, 2, **SETTINGS).elbo, fit.elbo)


def test_what_was_not_observed_does_not_matter(fit):
    """A time at which nothing was seen may cut a gap anew, but adds no likelihood."""
    values = DATA.data.values.copy()
    values[10:140:7] = np.nan
    holed = TimeSeries.from_arrays(DATA.data.times, values)
    seen = TimeSeries.from_arrays(DATA.data.times[~np.isnan(values[:, 0])], values[~np.isnan(values[:, 0])])
    with_holes, without = (fit.posterior(data) for data in (holed, seen))
    assert with_holes.elbo == pytest.approx(without.elbo, abs=0.3)
    np.testing.assert_allclose(with_holes.level[holed.mask[:, 0]], without.level, atol=0.1)
    assert np.isfinite(with_holes.level).all()


def test_several_series_and_features():
    found = fit_koehs(TWO_FEATURES, 2, substeps=1, rounds=9, restarts=1)
    assert np.diff(found.elbo).min() > -1e-8
    assert found.drift.shape == (2, 2, 2)
    assert found.posterior(TWO_FEATURES).level.shape == (80, 2)
    assert not found.converged
    assert "still rose" in found.message


def test_progress_is_told():
    told = []
    fit_koehs(DATA.data, 2, substeps=2, rounds=6, restarts=1, progress=lambda what, part: told.append((what, part)))
    assert told[0] == ("start 1 of 1", 0.0)
    assert told[-1][0].startswith("EM, bound")
    assert all(0 <= part <= 1 for _, part in told)


def test_a_mode_without_data_is_spoken_of():
    rng = np.random.default_rng(0)
    data = TimeSeries.from_arrays(DATA.data.times, np.append(rng.normal(size=149), 30.0))
    found = fit_koehs(data, 2, **SETTINGS)
    assert any("use fewer states" in line for line in found.warnings)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"substeps": 0}, "substeps must be at least 1, got 0"),
        ({"restarts": 0}, "restarts must be at least 1, got 0"),
        ({"rounds": 2}, "rounds must be at least 3, got 2"),
        ({"n_states": 0}, "use at least 1"),
        ({"n_states": 20}, "use at most"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(changes, line):
    with pytest.raises(InputError, match=line):
        fit_koehs(DATA.data, **{"n_states": 2, **changes})


def test_data_that_do_not_fit_are_refused(fit):
    two = TimeSeries.from_arrays([[0.0, 1.0]], [[[1.0, 2.0], [2.0, 3.0]]])
    with pytest.raises(InputError, match="the fit has 1 features, the data 2"):
        fit.posterior(two)
    unseen = TimeSeries.from_arrays([np.arange(5.0)], [np.column_stack([np.arange(5.0), np.full(5, np.nan)])])
    with pytest.raises(InputError, match="no value of value_1 was observed"):
        fit_koehs(unseen, 2)


def test_few_shapes():
    assert {rounded_up(n) for n in range(300, 500)} == {512}
    assert len({rounded_up(n) for n in range(10_000, 20_000)}) == 5
    assert all(n <= rounded_up(n) <= 2 * n for n in range(8, 5000))


# ---- longer


@pytest.mark.slow
def test_finer_steps_hardly_change_the_bound(fit):
    coarse, fine = (replace(fit, substeps=n).posterior(DATA.data).elbo for n in (4, 16))
    assert coarse == pytest.approx(fine, abs=0.5)


@pytest.mark.slow
def test_a_long_recording_gives_all_parameters():
    truth = TwoMode()
    found = fit_koehs(truth.simulate(1, 5000, seed=0).data, 2)
    np.testing.assert_allclose(found.drift[:, 0, 0], -truth.relaxation, rtol=0.15)
    np.testing.assert_allclose(-found.offset[:, 0] / found.drift[:, 0, 0], [truth.low, truth.high], rtol=0.1)
    np.testing.assert_allclose(np.sqrt(found.dispersion[:, 0, 0]), truth.dispersion, rtol=0.1)
    assert np.sqrt(found.noise[0, 0]) == pytest.approx(truth.noise_sd, rel=0.1)


@pytest.mark.slow
def test_an_ion_channel():
    truth = IonChannel.paper("one-second")
    found = fit_koehs(truth.simulate(1, 5000, seed=0).data, 3)
    np.testing.assert_allclose(found.levels[:, 0], truth.levels, atol=0.3)
    np.testing.assert_allclose(found.stationary_distribution, truth.answers()["stationary_distribution"], atol=0.15)
