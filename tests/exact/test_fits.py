"""Every emission fitted whole to data of its own kind, with parts missing."""

import jax
import numpy as np
import pytest

from emissions.cases import CASES
from neuralmjp import ExactMJP, TimeSeries
from neuralmjp.emissions import Categorical
from neuralmjp.exact.model import Model
from neuralmjp.mjp import simulate_states
from neuralmjp.priors import FreeRates
from test_fitted import of_emission

RATES = np.array([[0, 0.8], [1.7, 0]])
N_SERIES, LENGTH, GAP = 10, 60, 0.3
QUICK = ("gaussian-full", "gaussian-shared", "ornstein-uhlenbeck")


def data_of(name, seed=0):
    """Series drawn from the emission's own law, a tenth of all values missing."""
    case, rng = CASES[name], np.random.default_rng(seed)
    times = np.arange(LENGTH) * GAP
    states = simulate_states(RATES, times, initial=[0.68, 0.32], n_series=N_SERIES, key=jax.random.key(seed))
    gaps = np.full(LENGTH, GAP)
    if name == "custom":
        values = [rng.logistic(case.params["centre"][z], np.exp(case.params["log_width"])[z])[:, None] for z in states]
    else:
        values = [case.emission.sample(case.params, z, gaps, rng) for z in states]
    values = np.where(rng.random(np.shape(values)) < 0.1, np.nan, values)
    return TimeSeries.from_arrays(np.tile(times, (N_SERIES, 1)), values), states.ravel()


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_fit(name):
    data, states = data_of(name)
    emission = CASES[name].emission
    fitted = ExactMJP(2, emission).fit(data)
    assert fitted.converged, fitted.message
    # The pseudo-observation of a free initial law may cost a little.
    assert fitted.log_likelihood > max(fitted.restarts, default=-np.inf) - 0.01
    assert fitted.score(data) == pytest.approx(fitted.log_likelihood, abs=1e-6)
    for interval in fitted.intervals.values():
        assert not any(np.isnan(part).any() for part in (interval.mean, interval.lower, interval.upper))
        assert (interval.lower <= interval.mean).all()
        assert (interval.mean <= interval.upper).all()
    found = fitted.decode(data).states
    chance = max(np.mean(states), 1 - np.mean(states))
    assert max((found == states).mean(), (found != states).mean()) > chance
    if isinstance(emission, Categorical) or name == "custom":
        assert (found == states).mean() > chance  # their states have names
    assert fitted.log_likelihood >= truth(name, data)


def truth(name, data):
    """The likelihood of the parameters that made the data, which a maximum must not fall below."""
    model = Model(FreeRates(2), CASES[name].emission, "given", (0.68, 0.32))
    return of_emission(name, model=model).score(data) - np.log(2)  # a pseudo-observation may cost a free law as much
