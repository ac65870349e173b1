"""Data that no method likes: finite answers with intervals in order, or one line; by both engines and the command."""

import json

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

from command import assert_refused
from faults.holding import outcome
from faults.hostile_data import DATA
from neuralmjp import ExactMJP, NeuralMJP, TimeSeries, write
from neuralmjp.emissions.clipped import rails_of

TINY = {"width": 4, "batch": 4, "steps": 8, "round_steps": 4}
REFUSED = {
    "constant": "2 states cannot be told apart by 1 distinct observed values",
    "zeros": "2 states cannot be told apart by 1 distinct observed values",
    "tiny": "choose a unit in which values",
    "huge": "choose a unit in which values",
    "one_observation": "a rate needs at least two observations of a series",
    "one_each": "a rate needs at least two observations of a series",
    "all_missing": "every value of series '0' is missing",
    "one_series_missing": "every value of series '1' is missing",
}
SOON = ("duplicated", "outliers", "gaps", "single_jump", "never_left", "two_values")  # the others are slow tests


def judged(found: str, name: str) -> None:
    if name in REFUSED:
        assert found.startswith("refused: ")
        assert REFUSED[name] in found
    else:
        assert found.startswith("fitted")


@pytest.mark.parametrize("name", DATA)
def test_exact(name):
    judged(outcome(ExactMJP(2, "gaussian", restarts=1), DATA[name]), name)


@pytest.mark.parametrize("name", [*REFUSED, *SOON])
def test_neural(name):
    judged(outcome(NeuralMJP(2, "gaussian", changes=TINY), DATA[name]), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in DATA if name not in (*REFUSED, *SOON)])
@pytest.mark.parametrize("posterior", ["tilted", "paper"])
def test_neural_at_leisure(name, posterior):
    judged(outcome(NeuralMJP(2, "gaussian", posterior=posterior, changes=TINY), DATA[name]), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("emission", ["student-t", "mixture", "auto"])
def test_other_emissions(name, emission):
    outcome(ExactMJP(2, emission, restarts=1), DATA[name])


@pytest.mark.parametrize("name", ["duplicated", "mostly_missing"])
def test_too_many_states(name):
    """More than the data can tell: numbers all the same, and warnings that say so."""
    found = outcome(ExactMJP(5, "gaussian", restarts=1), DATA[name])
    assert found.startswith("fitted")
    assert int(found.split()[1]) > 5


def test_far_too_many_states():
    assert "use at most" in outcome(ExactMJP(30, "gaussian", restarts=1), DATA["single_jump"])


def test_single_and_double_precision():
    """Values that come in single precision are the same data; training in double precision gives the same answer."""
    data = DATA["duplicated"]()
    rounded = TimeSeries.from_arrays(data.times.reshape(3, -1).astype(np.float32), data.values.reshape(3, -1))
    assert rounded.equals(data)
    fits = [NeuralMJP(2, "gaussian", changes={**TINY, "precision": one}).fit(data) for one in ("single", "double")]
    np.testing.assert_allclose(fits[0].rates, fits[1].rates, rtol=1e-3)
    np.testing.assert_allclose(fits[0].log_likelihood, fits[1].log_likelihood, rtol=1e-3)


@pytest.mark.parametrize("name", ["outliers", "gaps", "never_left", "tiny", "constant"])
def test_the_command(run, tmp_path, name):
    path, result = tmp_path / "data.npz", tmp_path / "result.json"
    write(DATA[name](), path)
    ended = run("fit", path, "--states", 2, "--emission", "gaussian", "--restarts", 1, "--json", result)
    if name in REFUSED:
        assert_refused(ended, REFUSED[name])
        return
    assert (ended.status, ended.err) == (0, "")
    assert "nan" not in ended.out.lower().replace("dominant", "")
    found = json.loads(result.read_text(), parse_constant=pytest.fail)
    assert np.isfinite(np.array(found["rates"]["mean"], float)).all()


def test_the_largest_of_few_values_is_no_rail():
    """Of 150 values one is 0.7 %: more than the share that tells a clipped recording."""
    values = np.random.default_rng(0).normal(size=(150, 1))
    assert rails_of(values) is None
    assert rails_of(np.clip(values, -np.inf, 1.5)) == ((-np.inf,), (1.5,))


# ---- generated

EXTREME = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e12, -1e12, 1e-12, 1e-300, 0.5, np.nan])
ORDINARY = st.floats(-3, 3, width=32)
# A few patterns, because each may be a program of its own, and thousands of those exhaust a process.
GAPS = [np.ones(8), np.full(8, 1e-9), np.full(8, 1e9), np.array([1.0, 1e-9, 1e-9, 1e-3, 1.0, 1e3, 1e6, 1e9])]


@st.composite
def data_sets(draw):
    """Two series of eight observations each, so that few programs are compiled; anything may stand in them."""
    shape = (2, 8)
    values = np.array(draw(st.lists(st.one_of(ORDINARY, ORDINARY, EXTREME), min_size=16, max_size=16))).reshape(shape)
    times = np.tile(np.cumsum(GAPS[draw(st.integers(0, 3))]), (2, 1))
    return lambda: TimeSeries.from_arrays(times, values)


SEEN = {"fitted": 0, "refused": 0}


def counted(found: str) -> None:
    SEEN[found.split(":")[0]] += 1
    if sum(SEEN.values()) % 25 == 0:
        jax.clear_caches()


@hypothesis.settings(max_examples=12, derandomize=True, database=None)
@hypothesis.given(data_sets())
def test_generated(make):
    counted(outcome(ExactMJP(2, "gaussian", restarts=1), make))


def test_generated_data_were_fitted():
    print(f"\n{SEEN} of generated data sets")
    assert SEEN["fitted"] > 0


@pytest.mark.slow
@hypothesis.settings(max_examples=200, derandomize=True, database=None)
@hypothesis.given(data_sets(), st.integers(1, 3), st.sampled_from(["gaussian", "student-t", "auto"]))
def test_generated_at_leisure(make, n_states, emission):
    counted(outcome(ExactMJP(n_states, emission, restarts=1), make))


@pytest.mark.slow
@hypothesis.settings(max_examples=20, derandomize=True, database=None)
@hypothesis.given(data_sets())
def test_generated_for_networks(make):
    counted(outcome(NeuralMJP(2, "gaussian", changes=TINY), make))
