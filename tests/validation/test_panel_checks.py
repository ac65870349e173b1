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


def test_prevalence_by_hand():
    data = TimeSeries.from_arrays(
        [[5.0, 6.0, 8.0], [0.0, 1.0, 2.0], [0.0, 1.0, np.nan]], [[1, 2, 2], [1, 1, 3], [2, 2, np.nan]]
    )
    fitted = ExactMJP(3, mask=(ILL > 0).astype(int), intervals=False).fit(data)
    found = prevalence(fitted, data, np.array([0.0, 1.5, 2.5]))
    assert found.at_risk.tolist() == [3, 2, 2]
    np.testing.assert_allclose(found.observed, [[2 / 3, 1 / 3, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]])
    np.testing.assert_allclose(found.expected.mean[1], expm(fitted.generator * 1.5)[0], atol=1e-8)


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
    found = prevalence(fitted, data, np.arange(0, 19, 2.0))
    np.testing.assert_allclose(found.at_risk, theirs[:, 4])
    np.testing.assert_allclose(found.observed * found.at_risk[:, None], theirs[:, :4])
    np.testing.assert_allclose(found.expected.mean * found.at_risk[:, None], theirs[:, 5:9], rtol=1e-4)
