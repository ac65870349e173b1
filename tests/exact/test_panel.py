"""Panel data: deaths at known times, states known to be one of a set, first states known; and R's msm as witness."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import logsumexp

import neuralmjp as nm
from exact.test_enumeration import engine, generator, paths
from neuralmjp import ExactMJP, InputError, Panel, TimeSeries
from neuralmjp.emissions import Categorical, Gaussian
from neuralmjp.exact.evidence import Scaling, make_evidence
from neuralmjp.exact.model import Model, Parameters
from neuralmjp.priors import FreeRates

# Well, ill, dead; who is well or ill may be read as the other.
RATES = np.array([[0, 0.9, 0.2], [0.5, 0, 0.7], [0, 0, 0]])
THETA = np.log(RATES[RATES > 0])
READS = np.array([[0.9, 0.1, 0], [0.25, 0.75, 0], [0, 0, 1]])
EMISSION = Categorical((1.0, 2.0, 3.0), READS > 0)
PARAMS = {"logits": np.array([[0, np.log(1 / 9), 0], [np.log(1 / 3), 0, 0], [0, 0, 0]])}
LAW = np.array([0.7, 0.3, 0.0])
SICK_OR_WELL, NOT_WELL = 90.0, 91.0

DATA = TimeSeries.from_arrays(
    [[0.0, 0.8, 1.5, 2.2], [0.0, 0.6, 1.9, np.nan], [1.0, 1.7, 2.0, 4.0], [0.0, 1.1, np.nan, np.nan]],
    [[1, 2, SICK_OR_WELL, 3], [2, 1, 1, np.nan], [1, np.nan, NOT_WELL, NOT_WELL], [1, 3, np.nan, np.nan]],
)
PANEL = Panel(exact_entry=3.0, censored={SICK_OR_WELL: (1.0, 2.0), NOT_WELL: (2.0, 3.0)})


def densities(values, first_known):
    """(T, K): what each state says about each label, death left out."""
    table = {1.0: READS[:, 0], 2.0: READS[:, 1], 3.0: READS[:, 2], SICK_OR_WELL: [1, 1, 0], NOT_WELL: [0, 1, 1]}
    rows = [np.ones(3) if np.isnan(v) else np.asarray(table[v], float) for v in values]
    if first_known:
        rows[0] = np.eye(3)[int(values[0]) - 1]
    with np.errstate(divide="ignore"):
        return np.log(rows)


def by_hand(data, law, first_known=False):
    """Sum over all sequences of states seen; a death at t after state i has density sum_r P_ir(t) f_rD."""
    total = 0.0
    for series in data:
        values, times = series.values[:, 0], series.times
        dies = values[-1] == 3
        logs = densities(values, first_known)[: -1 if dies else None]
        states, weights = paths(RATES, law, logs, times[: len(logs)])
        if dies:
            into = expm(generator(RATES) * (times[-1] - times[-2])) @ RATES[:, 2]
            with np.errstate(divide="ignore"):
                weights = weights + np.log(into)[states[:, -1]]
        total += logsumexp(weights)
    return total


def ours(panel, initial="given", data=DATA):
    model = Model(FreeRates(3, mask=RATES > 0), EMISSION, initial, tuple(LAW.tolist()) if initial == "given" else None)
    parameters = Parameters(THETA, PARAMS, np.zeros(3))
    packing, evaluate = engine(model, parameters, data, panel)
    return evaluate(packing.vector(parameters))[2]


def test_deaths_and_censored_states():
    assert ours(PANEL) == pytest.approx(by_hand(DATA, LAW), abs=1e-10)


def test_first_state_known():
    known = Panel(exact_entry=3.0, first_known=True, censored=PANEL.censored)
    assert ours(known) == pytest.approx(by_hand(DATA, LAW, first_known=True), abs=1e-10)
    # Without a law, series are conditioned on the state that is known.
    assert ours(known, "known") == pytest.approx(by_hand(DATA, np.ones(3), first_known=True), abs=1e-10)


def test_without_exact_entry_death_is_a_state_like_any_other():
    seen = TimeSeries.from_arrays([0.0, 0.8, 2.0], [1.0, 2.0, 3.0])
    _, weights = paths(RATES, LAW, densities(seen.values[:, 0], False), seen.times)
    assert ours(Panel(), data=seen) == pytest.approx(logsumexp(weights), abs=1e-10)


def test_dead_from_the_start():
    """A series whose first row is death enters nothing: it is in that state."""
    data = TimeSeries.from_arrays([[0.0, 1.0], [0.5, np.nan]], [[1.0, 2.0], [3.0, np.nan]])
    alive = TimeSeries.from_arrays([0.0, 1.0], [1.0, 2.0])
    known = Panel(exact_entry=3.0, first_known=True)
    assert ours(known, "known", data) == pytest.approx(ours(known, "known", alive), abs=1e-12)


class TestErrors:
    def laid(self, times, values, panel, emission=EMISSION):
        data = TimeSeries.from_arrays(times, values, names=("Ann",))
        return make_evidence(data, emission, 3, Scaling(np.zeros(1), np.ones(1)), panel)

    def test_life_after_death(self):
        with pytest.raises(InputError, match="series 'Ann' goes on after time 1, when it entered the absorbing state"):
            self.laid([[0.0, 1.0, 2.0]], [[1.0, 3.0, 3.0]], Panel(exact_entry=3.0))

    def test_unknown_states(self):
        with pytest.raises(InputError, match="no state has the label 7; labels are 1, 2, 3"):
            self.laid([[0.0, 1.0]], [[1.0, 2.0]], Panel(exact_entry=7.0))
        with pytest.raises(InputError, match="no state has the label 8"):
            self.laid([[0.0, 1.0]], [[1.0, 9.0]], Panel(censored={9.0: (1.0, 8.0)}))

    def test_first_state_missing(self):
        with pytest.raises(InputError, match="series 'Ann' begins with nan, which is no state"):
            self.laid([[0.0, 1.0]], [[np.nan, 2.0]], Panel(first_known=True))

    def test_no_labels(self):
        with pytest.raises(InputError, match="are for categorical observations"):
            self.laid([[0.0, 1.0]], [[1.0, 2.0]], Panel(first_known=True), Gaussian())

    def test_jump_that_the_mask_forbids(self):
        data = TimeSeries.from_arrays([[0.0, 1.0, 2.0], [0.0, 1.0, 2.5]], [[1, 1, 2], [1, 2, 1]], names=("Ann", "Bob"))
        with pytest.raises(InputError, match=r"series 'Bob', time 2\.5: this observation cannot happen"):
            ExactMJP(2, mask=[[0, 1], [0, 0]]).fit(data)


# ---- R's msm 1.7 on 622 heart-transplant patients, shared/data/README.md


@pytest.fixture
def patients(shared_data):
    return nm.read(shared_data / "panel" / "cav.csv", series="PTNUM", time="years", values="state", time_unit="year")


SEEN = [[0, 1, 0, 1], [1, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]]
SEEN_RATES = np.array([0.127876, 0.042485, 0.225106, 0.342585, 0.040277, 0.130622, 0.306451])
HIDDEN = [[0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]
HIDDEN_RATES = np.array([0.089731, 0.041302, 0.257277, 0.034873, 0.306658])
MISREAD = [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
MISREAD_RATES = np.array([0.026860, 0.174123, 0.062885, 0.114146])


def test_states_seen_as_in_r(patients):
    fitted = ExactMJP(4, mask=SEEN, panel=Panel(exact_entry=4.0)).fit(patients)
    assert -2 * fitted.log_likelihood == pytest.approx(3968.797881, abs=1e-3)
    np.testing.assert_allclose(fitted.rates[np.array(SEEN) > 0], SEEN_RATES, rtol=1e-3)
    assert fitted.converged
    assert fitted.warnings == ()
    assert fitted.score(patients) == pytest.approx(fitted.log_likelihood, abs=1e-8)


def test_likelihood_at_the_estimates_of_r(patients):
    """R's rounded estimates of the misclassification model, put into our likelihood."""
    misread = np.zeros((4, 4))
    misread[np.array(MISREAD) > 0] = MISREAD_RATES
    table = misread + np.diag(1 - misread.sum(1))
    emission = Categorical((1.0, 2.0, 3.0, 4.0), table > 0)
    logits = np.where(table > 0, np.log(np.where(table > 0, table, 1.0) / table.diagonal()[:, None]), 0.0)
    parameters = Parameters(np.log(HIDDEN_RATES), {"logits": logits}, np.zeros(4))
    model = Model(FreeRates(4, mask=HIDDEN), emission, "known")
    packing, evaluate = engine(model, parameters, patients, Panel(exact_entry=4.0, first_known=True))
    assert -2 * evaluate(packing.vector(parameters))[2] == pytest.approx(3933.743074, abs=1e-4)


def test_misread_states_no_worse_than_r(patients):
    """R stopped 0.005 before the top, along a flat direction: one rate is 5 % off ours."""
    model = ExactMJP(4, mask=HIDDEN, misread=MISREAD, panel=Panel(exact_entry=4.0, first_known=True))
    fitted = model.fit(patients)
    assert 3933.743074 - 0.01 <= -2 * fitted.log_likelihood <= 3933.743074 + 1e-3
    np.testing.assert_allclose(fitted.rates[np.array(HIDDEN) > 0], HIDDEN_RATES, rtol=0.06)
    found = fitted.intervals["emission.probability"].mean
    np.testing.assert_allclose(found[np.array(MISREAD) > 0], MISREAD_RATES, rtol=0.03)
    assert fitted.converged


def people(seed=0, n=150):
    """Visits of the process above until death, whose time is known."""
    rng, times, states = np.random.default_rng(seed), [], []
    for _ in range(n):
        t, z, path = 0.0, 0, [(0.0, 0)]
        while z != 2:
            t += rng.exponential(1 / RATES[z].sum())
            z = int(rng.choice(3, p=RATES[z] / RATES[z].sum()))
            path.append((t, z))
        grid = np.arange(0.0, min(t, 6.0), 0.5)
        seen = [path[np.searchsorted([at for at, _ in path], g, side="right") - 1][1] + 1 for g in grid]
        ended = t <= 6.0
        times.append([*grid, t] if ended else grid)
        states.append([*seen, 3] if ended else seen)
    return TimeSeries.from_arrays(times, states, time_unit="year")


def test_a_state_of_exact_entry_is_never_left():
    """Without a mask it could be left at once, and the density of its entry has no bound."""
    data = people()
    fitted = ExactMJP(3, panel=Panel(exact_entry=3)).fit(data)
    assert not fitted.model.rate_model.allowed[2].any()
    found = fitted.intervals["rates"]
    inside = (found.lower <= RATES) & (found.upper >= RATES)
    assert inside[RATES > 0].sum() >= 3
    free = 1 - np.eye(3, dtype=int)
    for choices in ({"mask": free}, {"prior": FreeRates(3)}, {"prior": "reversible"}):
        with pytest.raises(InputError, match="state 2 is entered at a known time, so it must never be left"):
            ExactMJP(3, panel=Panel(exact_entry=3), **choices).fit(data)


def test_censored_codes_are_no_states():
    """The automatic emission does not count them."""
    data = people()
    values = data.values.copy()
    values[1:20:7] = 99
    hidden = TimeSeries(data.times, values, data.offsets, data.names, data.value_names)
    fitted = ExactMJP(3, panel=Panel(exact_entry=3, censored={99: (1, 2)})).fit(hidden)
    assert fitted.emission.name == "categorical"
