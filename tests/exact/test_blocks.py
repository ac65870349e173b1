"""Data in blocks give the likelihood and the gradient of the whole."""

import numpy as np
import pytest

from neuralmjp import ExactMJP, Panel, TimeSeries
from neuralmjp.emissions import Gaussian, OrnsteinUhlenbeck
from neuralmjp.exact import blocks
from neuralmjp.exact.blocks import cut_into_blocks, cuts
from neuralmjp.exact.evidence import Scaling, make_evidence
from neuralmjp.exact.fit import objective
from neuralmjp.exact.model import Model, Parameters, value_and_gradient
from neuralmjp.exact.packing import Packing
from neuralmjp.priors import FreeRates


def signal(lengths, seed=0, holes=0.0):
    """Levels 0, 1, 2, ... with noise at scattered times."""
    rng = np.random.default_rng(seed)
    times = [np.cumsum(rng.uniform(0.1, 1.0, n)) for n in lengths]
    values = [np.cumsum(rng.random(n) < 0.1) % 3 + 0.4 * rng.normal(size=n) for n in lengths]
    for x in values:
        x[1:-1][rng.random(len(x) - 2) < holes] = np.nan
    return TimeSeries.from_arrays(times, values, time_unit="s")


def height(laid, model, seed=3):
    rng = np.random.default_rng(seed)
    n = model.rate_model.n_states
    emission = model.emission.start(rng.normal(size=(200, 1)), n, None)
    start = Parameters(rng.normal(-1.0, 0.3, n * (n - 1)), emission, rng.normal(size=n))
    packing = Packing(model, start)
    return objective(model, packing, laid, packing.vector(start))


CASES = {
    "series": (signal([40] * 50), 3, Gaussian()),
    "ragged series": (signal(np.arange(5, 60)), 3, Gaussian()),
    "one recording": (signal([2000]), 3, Gaussian()),
    "with memory and holes": (signal([2000], holes=0.1), 3, OrnsteinUhlenbeck()),
    "recordings and series": (signal([900, 20, 20, 700, 20]), 2, Gaussian()),
    "many states": (signal([900, 20, 20, 700, 20]), 9, Gaussian()),
}


@pytest.mark.parametrize("name", CASES)
def test_equal_to_the_whole(name, monkeypatch):
    monkeypatch.setattr(blocks, "MOST_AT_ONCE", 300)
    data, n_states, emission = CASES[name]
    model = Model(FreeRates(n_states), emission, "free", None, (0.5, 2.0))
    scaling = Scaling.of(emission, data.values)
    cut = cut_into_blocks(data, model, scaling, Panel())
    whole = make_evidence(data, emission, n_states, scaling, Panel())
    assert len(cut.parts) >= 5
    np.testing.assert_allclose(cut.log_scale, whole.log_scale, rtol=1e-12)
    for mine, expected in zip(height(cut, model), height(whole, model), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-9)


def test_one_program_serves_all_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "MOST_AT_ONCE", 300)
    data = signal([4000], seed=1)
    model = Model(FreeRates(2), Gaussian(), "free", None, None)
    cut = cut_into_blocks(data, model, Scaling.of(Gaussian(), data.values), Panel())
    before = value_and_gradient._cache_size()
    height(cut, model)
    assert value_and_gradient._cache_size() <= before + 1


def test_cuts_fall_between_series_where_one_ends_nearby():
    assert cuts(np.arange(0, 1001, 10), 300, inside=True) == [0, 250, 500, 750, 1000]
    assert cuts(np.array([0, 990, 1000]), 300, inside=True) == [0, 250, 500, 750, 1000]
    assert cuts(np.array([0, 990, 1000]), 300, inside=False) == [0, 990, 1000]


def test_a_fit_in_blocks(monkeypatch):
    data = signal([600, 30, 500], seed=4)
    whole = ExactMJP(3, "gaussian", restarts=2).fit(data)
    monkeypatch.setattr(blocks, "MOST_AT_ONCE", 250)
    in_blocks = ExactMJP(3, "gaussian", restarts=2).fit(data)
    np.testing.assert_allclose(in_blocks.log_likelihood, whole.log_likelihood, rtol=1e-9)
    np.testing.assert_allclose(in_blocks.rates, whole.rates, rtol=1e-3)
    np.testing.assert_allclose(in_blocks.intervals["rates"].upper, whole.intervals["rates"].upper, rtol=1e-2)
