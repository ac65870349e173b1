"""The Lotka-Volterra experiment: what each number is, and a miniature of the whole, from the command to the file."""

import json

import numpy as np
import pytest

from neuralmjp import NetworkMJP, TimeSeries, systems
from neuralmjp.experiments import count_methods, lotka_volterra
from neuralmjp.experiments.tables import AS_PUBLISHED, EXACT, PUBLISHED, TILTED
from neuralmjp.validation import accuracy

SHORT = {"width": 8, "batch": 4, "steps": 2, "round_steps": 2, "piece_jumps": 0.25}
NETWORKS = {"dynamics": (8,), "initial_hidden": (8,), "rates_hidden": (8,), "quadrature": 4}
MINIATURE = lotka_volterra.Size(
    *(1, 1, 1),
    n_swept=1,
    n_single=2,
    n_runs=2,
    grids=("regular",),
    paper={**SHORT, **NETWORKS},
    tilted={**SHORT, "polish": False},
)
OURS = [AS_PUBLISHED, TILTED, lotka_volterra.SWEEPS, EXACT]


@pytest.fixture
def miniature(monkeypatch):
    """One series takes the place of a grid, and one of the same shape that of the single trajectory."""
    n_given = 16

    def one(seed):
        whole = systems.lotka_volterra().simulate(1, n_given + 10, duration=1600.0, seed=seed, grid="regular")
        ahead = count_methods.looking_ahead(whole.data, n_given, lotka_volterra.STEPS)
        return count_methods.Task(ahead.given, ahead.given, ahead), whole

    monkeypatch.setitem(lotka_volterra.SIZES, "quick", MINIATURE)
    monkeypatch.setattr(lotka_volterra, "N_GIVEN", n_given)
    monkeypatch.setattr(lotka_volterra, "data_of", lambda grid, size, seed: one(3))
    monkeypatch.setattr(lotka_volterra, "single_of", one)
    monkeypatch.setattr(lotka_volterra, "alone", systems.lotka_volterra)


def by_method(row):
    return {line["method"]: {name: one["mean"] for name, one in line["numbers"].items()} for line in row["lines"]}


@pytest.mark.slow  # several large programs are compiled
def test_reproduce(run, miniature, tmp_path):
    file, folder = tmp_path / "lv.json", tmp_path / "figures"
    status, out, err = run("reproduce", "lotka-volterra", "--seeds", 2, "--json", file, "--out", folder)
    assert (status, err) == (0, "")
    assert "4.5 ±0.6" in out  # as published
    assert "mean ± sd of 2 runs" in out
    assert "regular grid, paper's method: stopped after 2 steps" in out
    assert not [line for line in out.splitlines() if line.strip().startswith("±0")]  # 80 columns are enough
    pictures = sorted(path.name for path in folder.iterdir())
    assert pictures == ["lotka-volterra-prediction.png", "lotka-volterra-single.png"]
    report = json.loads(file.read_text())
    assert report["figures"] == [name.removesuffix(".png") for name in pictures]
    main, bound, sight, bias, coverage = report["tables"]
    one = [lotka_volterra.OPPER, PUBLISHED, *OURS]
    assert [list(by_method(row)) for row in main["rows"]] == [one]
    for shown in (bound, sight):
        assert [row["name"] for row in shown["rows"]] == ["regular grid", "one trajectory"]
        assert [list(by_method(row)) for row in shown["rows"]] == [one[1:], one]
    both = [EXACT, TILTED, lotka_volterra.SWEEPS]
    assert [list(by_method(row)) for row in coverage["rows"]] == [both, [lotka_volterra.OPPER, *both]]
    for shown in report["tables"]:
        for row in shown["rows"]:
            for line in row["lines"]:
                assert set(line["numbers"]) == set(shown["columns"]) or line["method"] == lotka_volterra.OPPER
                assert all(np.isfinite(number["mean"]) for number in line["numbers"].values())
    # No factorised law is above the evidence, and a mean field is close to it.
    found = by_method(bound["rows"][0])
    losses = {method: found[method]["KL"] + found[method]["NLL"] for method in OURS}
    assert losses[lotka_volterra.SWEEPS] == pytest.approx(losses[EXACT], abs=1.0)
    for name in lotka_volterra.PARAMETERS:
        assert found[lotka_volterra.SWEEPS][name] == pytest.approx(found[EXACT][name], rel=0.5, abs=0.3)  # or near zero
    read = by_method(sight["rows"][0])
    assert read[lotka_volterra.SWEEPS]["RMSE test"] == pytest.approx(read[EXACT]["RMSE test"], rel=0.1)
    neural = [line for line in bound["rows"][0]["lines"] if line["method"] in (AS_PUBLISHED, TILTED)]
    assert all(one["sd"] is not None for line in neural for one in line["numbers"].values())
    (tilted,) = by_method(bias["rows"][0]).values()
    assert tilted[lotka_volterra.BELOW] > 0  # a bound
    shares = [value for line in by_method(coverage["rows"][0]).values() for value in line.values()]
    assert set(shares) <= {0.0, 0.5, 1.0}


def test_rows_that_nobody_knows_are_refused(run):
    status, _, err = run("reproduce", "lotka-volterra", "--only", "irregular,odd")
    assert status == 2
    told = " ".join(err.split())
    assert "no row 'odd'; there are: irregular, one trajectory, trajectories, paper's method, tilted, sweeps" in told


def test_the_bound_is_split_into_its_terms():
    """Against Bayes' rule: with the first value alone, paths are the prior's and all divergence is initial."""
    network = systems.parse_network("0 -> X @ birth = 2\nX -> 0 @ death = 0.5\nbox X 9\nduration 4")
    estimator = NetworkMJP(network, noise="gaussian")
    data = TimeSeries.from_arrays([[0.0, 1.0]], [[[3.2], [np.nan]]], value_names=("X",))
    _, readings = estimator.observed(data)
    noise = {"log_sd": np.array([0.3])}
    density = np.exp(np.asarray(readings.log_density(noise, 0, 3.2, np.arange(10))))
    law, height = density / density.sum(), np.log(density.mean())
    kl, nll = count_methods.split_bound(np.array([height]), (np.stack([law, law]),), readings, noise, data)
    assert kl == pytest.approx(0.0, abs=1e-12)
    assert nll == pytest.approx(-(law * np.log(density)).sum())


def test_rmse_is_the_papers():
    values = np.array([[3.0, 4.0], [0.0, 0.0]])
    assert count_methods.rmse(np.zeros((2, 2)), values) == pytest.approx(np.sqrt(12.5))
    steps = accuracy(np.zeros((1, 2, 2)), values[None]).at
    np.testing.assert_allclose(steps, [5.0, 0.0])


def test_looking_ahead():
    data = systems.lotka_volterra().simulate(3, 10, seed=0, grid="irregular").data
    ahead = count_methods.looking_ahead(data, 4, (1, 5))
    assert ahead.given.lengths.tolist() == [4, 4, 4]
    np.testing.assert_array_equal(ahead.times, data.times.reshape(3, 10)[:, [4, 8]])
    np.testing.assert_array_equal(ahead.values, data.values.reshape(3, 10, 2)[:, [4, 8]])


def test_starts_are_a_factor_of_two_away():
    truth = systems.lotka_volterra().parameters
    several = [lotka_volterra.start_of(seed) for seed in range(8)]
    assert {start[name] / truth[name] for start in several for name in truth} == {0.5, 2.0}
    assert len({tuple(start.values()) for start in several}) > 1
    assert several[1] == lotka_volterra.start_of(1)


def test_published_numbers_are_as_printed():
    rows = {name: [str(x) for x in line.numbers.values()] for name, line in lotka_volterra.APPENDIX.items()}
    assert rows["shared"] == ["36 ±4", "155 ±2", "5.4 ±0.6", "1.10 ±0.07", "1.00 ±0.06", "4.9 ±0.4"]
    assert rows["one trajectory"] == ["192 ±114", "13 ±24", "2.1 ±0.6", "0.67 ±0.06", "1.05 ±0.32", "9.3 ±8.1"]
    assert [str(x) for x in lotka_volterra.OPPER_CONSTANTS.numbers.values()] == ["13.5", "2.32", "1.78", "15.7"]
    assert [str(x) for x in lotka_volterra.SEEN["irregular"].numbers.values()] == [
        "1.87 ±0.04",
        "2.67 ±0.17",
        "3.1 ±0.1",
        "3.3 ±0.1",
    ]


def test_data_are_the_papers():
    task, longer = lotka_volterra.data_of("regular", lotka_volterra.SIZES["quick"], seed=0)
    assert [len(part) for part in (task.train, task.test, task.ahead.given)] == [48, 48, 16]
    assert longer.data.lengths.tolist() == [100]
    single, whole = lotka_volterra.single_of(seed=0)
    assert single.train.lengths.tolist() == [16]
    np.testing.assert_array_equal(single.ahead.values[0], whole.states[[16, 20, 25]])
