"""Windows, substeps and starts for the lattice: plain NumPy, checked by hand and against what they must contain."""

import numpy as np
import pytest

from neuralmjp import InputError, TimeSeries
from neuralmjp.emissions.readings import Readings
from neuralmjp.exact.lattice import JUMPS, MOST_TERMS, TAIL
from neuralmjp.exact.lattice_likelihood import Likelihood, from_time_zero, initial_law
from neuralmjp.exact.lattice_plan import BORNE, _largest_in_windows, _rounded, read_ranges
from neuralmjp.exact.lattice_start import check_readable, crude_start
from neuralmjp.mjp.uniformisation import most_jumps
from neuralmjp.systems import birth_death, immigration_death, lotka_volterra, parse_network, sir

NAN = np.nan


def test_ranges_of_a_gaussian_reading():
    readings, noise = Readings(((0,),)), {"log_sd": np.zeros(1)}
    low, high = read_ranges(np.array([[10.0], [0.2], [NAN], [70.0]]), readings, noise, (60,), nats=8.0)
    assert low[:, 0].tolist() == [6, 0, 0, 59]  # 4 standard deviations; beyond the box, from its end
    assert high[:, 0].tolist() == [14, 4, 59, 59]


def test_ranges_through_a_sum():
    """A + B is 10, A is 4: B is 6."""
    readings = Readings(((0,), (0, 1)), "none")
    low, high = read_ranges(np.array([[4.0, 10.0], [NAN, 3.0], [4.0, 2.0]]), readings, {}, (20, 20), nats=28.0)
    assert low.tolist() == [[4, 6], [0, 0], [0, 0]]
    assert high.tolist() == [[4, 6], [3, 3], [19, 19]]  # contradictory readings exclude nothing


def test_the_largest_exit_rate_in_every_window():
    exits = np.random.default_rng(0).random((9, 7))
    found = _largest_in_windows(exits, (4, 3))
    assert found.shape == (6, 5)
    for i, j in np.ndindex(6, 5):
        assert found[i, j] == exits[i : i + 4, j : j + 3].max()


def test_terms_are_enough_and_no_more():
    for mean in np.linspace(0.01, JUMPS, 50):
        terms = int(np.searchsorted(BORNE, mean))
        assert most_jumps(TAIL, mean) <= terms <= min(int(most_jumps(TAIL, mean + 0.01)), MOST_TERMS)
    assert np.searchsorted(BORNE, 0.0) == 0


def test_few_lengths():
    assert [_rounded(n) for n in (1, 16, 17, 24, 25, 33, 65, 97)] == [16, 16, 24, 24, 32, 48, 96, 128]


def plan_of(data, network, initial="flat"):
    readings, noise = network.readings()
    likelihood = Likelihood(data, network, readings, initial)
    return likelihood._current_plan(np.log(list(network.parameters.values())), noise)


def test_every_observation_is_read_once_and_all_time_passes():
    network = lotka_volterra()
    data = network.simulate(30, 10, duration=400.0, seed=0).data
    plan = plan_of(data, network)
    rows = np.concatenate([block.rows[block.rows >= 0] for block in plan.blocks])
    assert sorted(rows.tolist()) == list(range(data.n_observations))
    for block in plan.blocks:
        for k in np.flatnonzero(block.series >= 0):
            series = data[int(block.series[k])]
            time = (block.steps.jumps / block.steps.fastest)[: block.steps.n_steps, k].sum()
            assert time == pytest.approx(series.times[-1] - series.times[0])
        assert block.steps.jumps.max() <= JUMPS
        for s, n in enumerate(network.box):
            assert (block.steps.offset[:, s] >= 0).all()
            assert (block.steps.offset[:, s] + block.window[s] <= n).all()


def test_a_missing_reading_is_bridged():
    """The window of a species that is not seen for a while lies round its neighbours, not over the whole box."""
    network = lotka_volterra()
    values = np.array([[20.0, 10.0], [NAN, NAN], [21.0, 11.0]])
    plan = plan_of(TimeSeries.from_arrays([[0.0, 10.0, 20.0]], values[None]), network)
    assert max(plan.blocks[0].window) < 40
    values[2] = NAN
    values[1] = [20.0, 11.0]
    assert plan_of(TimeSeries.from_arrays([[0.0, 10.0, 20.0]], values[None]), network).blocks[0].window == (60, 60)


def test_reactions_too_fast_for_the_data():
    network = parse_network("0 -> X @ k = 1e9\nX -> 0 @ d = 1e8\nbox X 25")
    with pytest.raises(InputError, match="too fast for these data"):
        plan_of(TimeSeries.from_arrays([[0.0, 1.0]], [[3.0, 4.0]]), network)


def test_a_start_at_time_zero():
    data = TimeSeries.from_arrays([[0.0, 1.0], [0.5, 2.0]], [[1.0, 2.0], [3.0, 4.0]])
    longer, rows = from_time_zero(data)
    assert longer.times.tolist() == [0.0, 1.0, 0.0, 0.5, 2.0]
    np.testing.assert_array_equal(longer.values[:, 0], [1, 2, NAN, 3, 4])
    assert rows.tolist() == [0, 1, 3, 4]
    law = initial_law(parse_network("X -> 0 @ d = 1\nbox X 4\nstart X 2..3"), "start")
    np.testing.assert_allclose(law, [[0, 0, 0.5, 0.5, 0]])


@pytest.mark.parametrize("network", [lotka_volterra(), sir(), birth_death(), immigration_death()])
@pytest.mark.statistical
def test_moments_start_near_the_truth(network):
    """Within a factor of 3: over 25 seeds the worst was 2.1, and 3 is four standard deviations from the mean."""
    readings, _ = network.readings()
    free = Readings(readings.columns, readings.noise)
    logs, noise = crude_start(network.simulate(60, seed=3).data, network.events(), free)
    assert np.abs(logs - np.log(list(network.parameters.values()))).max() < np.log(3.0)
    assert np.abs(noise["log_sd"]).max() < np.log(3.0)


def test_moments_of_little():
    """Constants that nothing in the data shows get a modest start; missing and unseen values do no harm."""
    network = parse_network("X -> 2 X @ a = 1\nX -> 0 @ b = 1\n0 -> Y @ c = 1\nY -> 0 @ d = 1\nseen X")
    data = TimeSeries.from_arrays([[0.0, 1.0, 2.0, 4.0]], [[[5.0], [NAN], [7.0], [6.0]]])
    for noise in ("gaussian", "poisson", "binomial", "two-sided-exponential", "none"):
        logs, params = crude_start(data, network.events(), Readings(((0,),), noise))
        assert np.isfinite(logs).all()
        assert all(np.isfinite(value).all() for value in params.values())


@pytest.mark.parametrize(
    ("noise", "value", "message"),
    [
        ("none", 31.0, "X reads 31, but its box ends at 30: enlarge the box"),
        ("binomial", 31.0, "X reads 31, but its box ends at 30: enlarge the box"),
        ("poisson", 500.0, "X reads 500, but its box ends at 30: enlarge the box"),
        ("two-sided-exponential", -90.0, "X reads -90, but counts are not negative"),
    ],
)
def test_readings_that_no_count_gives(noise, value, message):
    times, values = [[0.0, 1.0, 2.0, 3.0, 4.0]], [[4.0, 5.0, 4.0, 6.0, value]]
    data = TimeSeries.from_arrays(times, values, value_names=["X"])
    with pytest.raises(InputError, match=f"series 0, time 4: {message}"):
        check_readable(data, Readings(((0,),), noise), (31,))
    check_readable(data.between(0.0, 3.5), Readings(((0,),), noise), (31,))


def test_poisson_readings_may_exceed_the_box():
    data = TimeSeries.from_arrays([[0.0, 1.0]], [[4.0, 35.0]], value_names=["X"])
    check_readable(data, Readings(((0,),), "poisson"), (31,))
