"""Prevalence and Pearson's test: by hand, on a wrong model, and beside R's msm."""

import subprocess
from io import StringIO
from shutil import which

import numpy as np
import pytest
from scipy.linalg import expm

import neuralmjp as nm
from exact.test_information import simulated
from neuralmjp import ExactMJP, InputError, Panel, TimeSeries
from neuralmjp.validation import pearson, prevalence
from validation.worlds import fitted_to

LIVES = np.array([[0, 0.2, 0.03], [0.1, 0, 0.25], [0, 0, 0]])  # per year: the tutorial's well, ill, dead
SHORT_AND_LONG, SIMILAR = (0.3, 3.0), (0.5, 2.0)  # gaps between visits
ILL = np.array([[0, 0.3, 0.05], [0.2, 0, 0.25], [0, 0, 0]])


def people(n=150, seed=0, stayers=False):
    """Seen six times, at gaps of some quarters of a year; the third state is for ever. Half of them may never move."""
    rng = np.random.default_rng(seed)
    paths, times = [], []
    for person in range(n):
        rates = ILL * (0 if stayers and person % 2 else 1 + 5 * stayers)
        gaps, state = rng.integers(1, 9, size=6) / 4, 0
        path = [state]
        for gap in gaps:
            law = expm((rates - np.diag(rates.sum(1))) * gap)[state]
            path.append(state := int(rng.choice(3, p=law / law.sum())))
        stop = path.index(2) + 1 if 2 in path else 7
        paths.append(np.array(path[:stop], dtype=float) + 1)
        times.append(np.concatenate([[0], np.cumsum(gaps)])[:stop])
    return TimeSeries.from_arrays(times, paths, time_unit="year")


def lives(seed, gaps, rates=LIVES, n=300, noticed=True):
    """Well at first, visited six times more; the time of death is known, or death is found at the next visit."""
    rng = np.random.default_rng(seed)
    times, paths = [], []
    for _ in range(n):
        visits = np.append(0.0, np.cumsum(rng.uniform(*gaps, 6)))
        jumps, states = [0.0], [0]
        while rates[states[-1]].any() and jumps[-1] < visits[-1]:
            leaving = rates[states[-1]]
            jumps.append(jumps[-1] + rng.exponential(1 / leaving.sum()))
            states.append(int(rng.choice(3, p=leaving / leaving.sum())))
        seen = np.array(states)[np.searchsorted(jumps, visits, side="right") - 1]
        alive = int((seen != 2).sum())
        if alive < 7:
            visits = np.append(visits[:alive], jumps[-1] if noticed else visits[alive])
        times.append(visits)
        paths.append(seen[: alive + 1] + 1.0)
    return TimeSeries.from_arrays(times, paths, time_unit="year")


def fit_to(data, noticed=True):
    return ExactMJP(3, mask=(LIVES > 0).astype(int), panel=Panel(exact_entry=3 if noticed else None)).fit(data)


def failures(gaps, seeds, noticed=True):
    """How many right models fail."""
    sets = [lives(seed, gaps, noticed=noticed) for seed in seeds]
    return sum(prevalence(fit_to(data, noticed), data).verdict.passed is not True for data in sets)


def test_prevalence_by_hand():
    """Who died at 2 counts for the chance that follow-up goes on: two others are left, one until 3."""
    data = TimeSeries.from_arrays(
        [[5.0, 6.0, 8.0], [0.0, 1.5, 2.0], [0.0, 1.0, np.nan], [0.0, 4.0]],
        [[1, 2, 2], [1, 1, 3], [2, 2, np.nan], [1, 1]],
    )
    fitted = ExactMJP(3, mask=(ILL > 0).astype(int), intervals=False).fit(data)
    found = prevalence(fitted, data, np.array([0.0, 1.5, 2.5, 3.5, 4.5]))
    np.testing.assert_allclose(found.at_risk, [4, 3, 3, 1.5, 0])
    shares = [[3 / 4, 1 / 4, 0], [2 / 3, 1 / 3, 0], [1 / 3, 1 / 3, 1 / 3], [2 / 3, 0, 1 / 3], [0, 0, 0]]
    np.testing.assert_allclose(found.observed, shares)
    np.testing.assert_allclose(found.expected.mean[1], expm(fitted.generator * 1.5)[0], atol=1e-8)
    # At 2.5 the living were visited at 1 and at 0; each stands for some who died.
    one, two = expm(fitted.generator * 1.0)[0], expm(fitted.generator * 0.0)[0]
    weights = 1 / np.array([1 - one[2], 1 - two[2]])
    np.testing.assert_allclose(found.expected_last[2], weights @ [one, two] / weights.sum(), atol=1e-8)
    assert not found.compared.any()
    assert found.verdict.passed is None
    for_ever = prevalence(fitted, data, found.times, ends=np.inf)
    assert for_ever.at_risk.tolist() == [4, 3, 3, 2, 1]
    known = prevalence(fitted, data, found.times, ends=np.array([3.0, 3.0, 1.0, 4.0]))
    assert known.at_risk.tolist() == [4, 3, 3, 1, 0]


def test_who_is_visited_on_in_an_absorbing_state_leaves_as_others_do():
    data = TimeSeries.from_arrays([[0.0, 1, 2], [0.0, 1, 2, 4], [0.0, 1, 4]], [[1, 3, 3], [1, 1, 2, 2], [1, 2, 2]])
    fitted = ExactMJP(3, mask=(ILL > 0).astype(int), intervals=False).fit(data)
    assert prevalence(fitted, data, np.array([1.5, 3.0])).at_risk.tolist() == [3, 2]


@pytest.mark.statistical
@pytest.mark.parametrize("noticed", [True, False])
def test_right_models_pass_where_follow_up_ends_at_different_times(noticed):
    """When the dead counted for ever, 56 % of such data failed (25 % if death is found at a visit).

    Of 300 right models (times of death known) and 120 (found at visits) none failed: fewer than one in 40 would.
    """
    assert failures(SHORT_AND_LONG, range(4), noticed) == 0


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("noticed", [True, False])
@pytest.mark.parametrize("gaps", [SHORT_AND_LONG, SIMILAR])
def test_right_models_hardly_ever_fail(gaps, noticed):
    """Where 1 % of right models fail, three or more of 60 would with probability 0.02."""
    assert failures(gaps, range(100, 160), noticed) < 3


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_wrong_death_rate_is_seen(factor):
    """A model of people who die half or twice as fast: 11 or 12 of 12 such models were caught, in three designs."""
    wrong = LIVES * [1, 1, factor]
    caught = [
        prevalence(fit_to(lives(seed + 50, SHORT_AND_LONG, wrong)), lives(seed, SHORT_AND_LONG)).verdict
        for seed in range(3)
    ]
    assert sum(one.passed is False for one in caught) >= 2


def test_verdicts_call_states_by_their_names():
    """By names that could be taken for numbers, too: what is told already is not told again."""
    data = people(60)
    fitted = ExactMJP(3, mask=(ILL > 0).astype(int)).fit(data)
    assert prevalence(fitted, data).names == ("label 1", "label 2", "label 3")
    assert "last seen as label " in prevalence(fitted, data).verdict.sentence
    named = fitted.named("1", "2", "3 (dead)")
    for found in (prevalence(named, data), pearson(named, data, simulations=50)):
        assert found.labels == ("1", "2", "3")
        assert found.names == named.state_names
        assert "label" not in found.verdict.sentence
        assert named.told(found.verdict.sentence) == found.verdict.sentence


def test_the_band_allows_for_jumps_that_may_never_happen():
    """Draws of the rates alone, in which they always do, would have a narrower one."""
    chain = np.diag(np.full(4, 0.3), 1) + np.diag(np.full(4, 0.4), -1)
    data = simulated(chain, 6, 20, 1.0, seed=0)
    fitted = ExactMJP(5, "categorical").fit(data)
    assert fitted.unseen.any()
    starts = np.bincount(data.values[data.offsets[:-1], 0].astype(int), minlength=5) / 6
    found = prevalence(fitted, data, np.array([5.0])).expected
    drawn = np.quantile([starts @ nm.mjp.transition_matrix(one, 5.0) for one in fitted.rate_samples], [0.025, 0.975], 0)
    assert (found.upper - found.lower).sum() > 1.02 * (drawn[1] - drawn[0]).sum()
    assert (found.lower <= found.mean).all()
    assert (found.mean <= found.upper).all()


@pytest.mark.statistical
def test_a_right_model_of_people():
    """Pearson's test would reject one right model in twenty."""
    data = people()
    fitted = ExactMJP(3, mask=(ILL > 0).astype(int)).fit(data)
    assert prevalence(fitted, data).verdict.passed
    found = pearson(fitted, data, simulations=50)
    assert found.p_value > 0.05
    np.testing.assert_allclose(found.observed.sum(-1), found.expected.sum(-1))


def test_people_of_two_kinds_are_seen():
    """Half move six times as fast, half never: no single rate foresees both short and long gaps."""
    data = people(200, stayers=True)
    fitted = ExactMJP(3, mask=(ILL > 0).astype(int)).fit(data)
    found = pearson(fitted, data, simulations=50)
    assert found.verdict.passed is False
    assert "not those of the model" in found.verdict.sentence
    assert prevalence(fitted, data).verdict.passed is False


def test_deaths_at_known_times_are_given_a_visit():
    data = people(60)
    fitted = ExactMJP(3, mask=(ILL > 0).astype(int), panel=Panel(exact_entry=3)).fit(data)
    found = pearson(fitted, data, simulations=50)
    assert found.observed.sum() == data.n_observations - len(data)
    assert 0 < found.p_value <= 1


def test_labels_alone():
    with pytest.raises(InputError, match="seen exactly"):
        prevalence(*fitted_to("right"))


SCRIPT = """
suppressMessages(library(msm))
cav <- read.csv("{path}")
Q <- rbind(c(0,.25,0,.25),c(.166,0,.166,.166),c(0,.25,0,.25),c(0,0,0,0))
m <- msm(state ~ years, subject=PTNUM, data=cav, qmatrix=Q, deathexact=4, gen.inits=TRUE, method="BFGS",
         control=list(fnscale=4000,maxit=10000,reltol=1e-16))
p <- prevalence.msm(m, times=seq(0,18,2))
write.table(cbind(p$Observed, p$Expected), sep=",", row.names=FALSE, col.names=FALSE)
"""


@pytest.mark.slow
def test_prevalence_as_in_msm(shared_data, tmp_path):
    path = shared_data / "panel" / "cav.csv"
    if which("Rscript") is None or not path.exists():
        pytest.skip("needs R with the package msm, and the heart-transplant data panel/cav.csv")
    script = tmp_path / "prevalence.R"
    script.write_text(SCRIPT.format(path=path))
    done = subprocess.run(["Rscript", str(script)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"R cannot run msm: {done.stderr[-200:]}")
    theirs = np.loadtxt(StringIO(done.stdout), delimiter=",")
    data = nm.read(path, series="PTNUM", time="years", values="state")
    mask = np.array([[0, 1, 0, 1], [1, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]])
    fitted = ExactMJP(4, mask=mask, panel=Panel(exact_entry=4)).fit(data)
    found = prevalence(fitted, data, np.arange(0, 19, 2.0), ends=np.inf)
    np.testing.assert_allclose(found.at_risk, theirs[:, 4])
    np.testing.assert_allclose(found.observed * found.at_risk[:, None], theirs[:, :4])
    np.testing.assert_allclose(found.expected.mean * found.at_risk[:, None], theirs[:, 5:9], rtol=1e-4)
