"""The likelihood of labels on the host equals the compiled one, whatever is special about the data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralmjp import ExactMJP, Panel, TimeSeries
from neuralmjp.exact import labels
from neuralmjp.exact.evidence import Scaling, make_evidence
from neuralmjp.exact.fit import objective
from neuralmjp.exact.labels import lay_out_labels
from neuralmjp.exact.model import Parameters
from neuralmjp.exact.packing import Packing
from neuralmjp.exact.transitions import HostTable, halving_needed, transition_table
from neuralmjp.priors import FreeRates, system_rates
from neuralmjp.systems import FlashingRatchet

MASK = np.array([[0, 1, 1], [1, 0, 1], [0, 0, 0]])
MISREAD = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])


def visits(seed=0, n=60, regular=False):
    """Visits of people in states 1, 2 until 3 ends it; some never come back."""
    rng = np.random.default_rng(seed)
    times, values = [], []
    for _ in range(n):
        length = rng.integers(1, 9)
        gaps = np.ones(length) if regular else rng.exponential(2.0, length)
        labels = rng.integers(1, 3, length).astype(float)
        if length > 2 and rng.random() < 0.4:
            labels[-1] = 3.0
        times.append(np.cumsum(gaps))
        values.append(labels)
    return TimeSeries.from_arrays(times, values, time_unit="years")


def changed(data, row, label):
    values = data.values.copy()
    values[row] = label
    return TimeSeries(data.times, values, data.offsets, data.names, data.value_names, data.time_unit)


def missing(data):
    """One inner visit without a label, and one that stands for either state."""
    inner = np.setdiff1d(np.arange(data.n_observations), np.append(data.offsets[:-1], data.offsets[1:] - 1))
    return changed(changed(data, inner[3], np.nan), inner[11], 9.0)


CASES = {
    "seen": (ExactMJP(3, "categorical", mask=MASK), visits()),
    "seen, regular": (ExactMJP(3, "categorical", mask=MASK), visits(regular=True)),
    "seen, with a prior": (ExactMJP(3, "categorical", mask=MASK, rate_prior=(0.5, 1.0)), visits()),
    "death": (ExactMJP(3, "categorical", mask=MASK, panel=Panel(exact_entry=3)), visits()),
    "censored": (ExactMJP(3, "categorical", mask=MASK, panel=Panel(censored={9: (1, 2)})), missing(visits())),
    "misread": (ExactMJP(3, mask=MASK, misread=MISREAD, panel=Panel(first_known=True)), visits()),
    "misread, regular": (ExactMJP(3, mask=MASK, misread=MISREAD, panel=Panel(first_known=True)), visits(regular=True)),
    "misread, death, censored": (
        ExactMJP(3, mask=MASK, misread=MISREAD, panel=Panel(exact_entry=3, first_known=True, censored={9: (1, 2)})),
        missing(visits(seed=2)),
    ),
}


def both(estimator, data):
    """The two evaluations at one place that is nobody's optimum."""
    model = estimator.model(data)
    rng = np.random.default_rng(5)
    emission = {"logits": np.where(MISREAD > 0, rng.normal(size=(3, 3)), 0.0)}
    start = Parameters(rng.normal(-1.0, 0.5, model.rate_model.n_parameters), emission, np.zeros(3))
    packing = Packing(model, start)
    here = lay_out_labels(data, model, estimator.panel)
    assert here is not None
    there = make_evidence(data, model.emission, 3, Scaling(np.zeros(1), np.ones(1)), estimator.panel)
    return here, [objective(model, packing, laid, packing.vector(start)) for laid in (here, there)]


@pytest.mark.parametrize("name", CASES)
def test_equals_the_compiled_likelihood(name):
    _, (host, compiled) = both(*CASES[name])
    assert np.isfinite(compiled.value)
    for mine, theirs in zip(host, compiled, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)


def test_blocks_change_nothing(monkeypatch):
    monkeypatch.setattr(labels, "ENTRIES_AT_ONCE", 9 * 7)
    laid, (host, compiled) = both(*CASES["death"])
    assert len(laid.blocks) > 10
    np.testing.assert_allclose(host.value, compiled.value, rtol=1e-12)
    np.testing.assert_allclose(host.gradient, compiled.gradient, rtol=1e-9)


def test_equal_pieces_are_counted_together():
    laid, _ = both(*CASES["seen, regular"])
    (block,) = laid.blocks
    assert len(block.begin) <= 2 * 3
    data = CASES["seen, regular"][1]
    assert block.often.sum() == data.n_observations - len(data)


def test_left_to_the_compiled_likelihood():
    data = visits()
    hidden = ExactMJP(3, mask=MASK, misread=MISREAD)  # first states unknown
    assert lay_out_labels(data, hidden.model(data), Panel()) is None
    long = TimeSeries.from_arrays([np.arange(500.0)], [np.resize([1.0, 2.0], 500)], time_unit="s")
    misread = ExactMJP(2, misread=np.ones((2, 2)), panel=Panel(first_known=True))
    assert lay_out_labels(long, misread.model(long), misread.panel) is None


@pytest.mark.parametrize("longest", [0.5, 40.0])
def test_table_and_its_derivative(longest):
    """With and without gaps that have to be halved."""
    rng = np.random.default_rng(1)
    rates = rng.gamma(1.0, 1.0, (4, 4)) * (1 - np.eye(4))
    generator, gaps = rates - np.diag(rates.sum(1)), np.append(0.0, np.sort(rng.uniform(0, longest, 30)))
    halving = halving_needed(rates, gaps)
    assert (halving.times > 0) == (longest > 1)
    weight = rng.normal(size=(31, 4, 4))
    table = HostTable(generator, gaps)
    compiled, pull = jax.vjp(lambda g: transition_table(g, jnp.asarray(gaps), halving), jnp.asarray(generator))
    np.testing.assert_allclose(table.matrices, compiled, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(table.pull(weight), pull(jnp.asarray(weight))[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "model", [FreeRates(3, fixed={(0, 1): 2.0}, equal=[[(0, 2), (1, 2)]]), system_rates(FlashingRatchet())]
)
def test_slopes_of_rates(model):
    theta = np.linspace(-0.5, 0.5, model.n_parameters)
    expected = np.moveaxis(np.asarray(jax.jacfwd(model.rates)(jnp.asarray(theta))), -1, 0)
    np.testing.assert_allclose(model.slopes(theta), expected, rtol=1e-12)
