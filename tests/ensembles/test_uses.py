"""Selection, comparison and bootstrap on a local cluster: the same numbers as without."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from command import assert_refused
from ensembles.test_kills import busy
from exact.test_information import TWO, simulated
from neuralmjp import ExactMJP, InputError, write
from neuralmjp.commands.select import told
from neuralmjp.comparison import compare
from neuralmjp.emissions import Gaussian
from neuralmjp.ensembles import opened
from neuralmjp.validation import select
from validation.worlds import channel


@pytest.fixture(scope="module")
def workers():
    with opened("local", 2) as place:
        yield place


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "channel.csv"
    write(channel(n=600), path)
    return path


@pytest.mark.parametrize("states", ["2", pytest.param("2..5", marks=pytest.mark.slow)])
def test_select(run, recording, tmp_path, states):
    options = ("--states", states, "--folds", 2, "--restarts", 1, "--emission", "gaussian")
    files = [tmp_path / "here.json", tmp_path / "cluster.json"]
    for file, more in zip(files, ([], ["--cluster", "local"]), strict=True):
        ended = run("select", recording, *options, "--json", file, *more)
        assert ended.status == 0, ended.err
    here, cluster = (json.loads(file.read_text()) for file in files)
    assert here == cluster


@pytest.mark.slow
def test_a_selection_whose_workers_are_killed(workers, monkeypatch):
    """One as soon as a fold is done, one in the middle, one when the folds are done: the same numbers."""
    monkeypatch.setattr("neuralmjp.ensembles.cluster.COUNT", 0.0)  # told at every look
    data, choices, moments = channel(n=1000), {"folds": 3, "restarts": 1, "emission": "gaussian"}, [0.1, 0.5, 0.9]
    here = select(data, (2, 3), **choices)

    def kill(what, share):
        under_way = "to do" in what and not what.startswith("0 ")
        if under_way and moments and share >= moments[0] and (at_work := busy(workers)):
            moments.pop(0)
            os.kill(random.Random(0).choice(at_work), signal.SIGKILL)

    there = select(data, (2, 3), **choices, cluster=workers, progress=kill)
    assert not moments
    assert told(here, 0) == told(there, 0)


def test_a_selection_goes_on_where_it_was(tmp_path):
    data, told = channel(n=400), []
    choices = {"folds": 2, "restarts": 1, "emission": "gaussian", "folder": tmp_path}
    first = select(data, (2,), **choices)
    files = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) == 3
    again = select(data, (2,), **choices, progress=lambda *x: told.append(x))
    assert again.fitted.log_likelihood == first.fitted.log_likelihood
    np.testing.assert_array_equal(again.fitted.rates, first.fitted.rates)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files
    assert {what for what, _ in told} == {"done"}
    with pytest.raises(InputError, match="answers are kept only where"):
        select(data, (2,), **{**choices, "emission": Gaussian()})


def test_compare(run, recording, tmp_path):
    options = ("--states", 2, "--methods", "hmm,koehs", "--set", "koehs.no=1", "--jobs", 2)
    out, files = tmp_path / "compared", [tmp_path / "here.json", tmp_path / "cluster.json"]
    for file, more in zip(files, ([], ["--cluster", "local", "--out", out]), strict=True):
        ended = run("compare", recording, *options, "--json", file, *more)
        assert ended.status == 0, ended.err
    here, cluster = (json.loads(file.read_text()) for file in files)
    assert here["failures"] == cluster["failures"]
    assert len(here["failures"]) == 1
    for one, other in zip(here["table"], cluster["table"], strict=True):
        assert one["section"] == other["section"] == "cost" or one == other
    assert len(list((out / "answers").glob("hmm-*.json"))) == 1


def test_refused(run, recording):
    for command in ("compare", "select"):
        assert_refused(run(command, recording, "--states", "2", "--cluster", "nowhere"), "a cluster is local, or")
    jobs = run("compare", recording, "--states", 2, "--jobs", 2, "--cluster", "tcp://localhost:1")
    assert_refused(jobs, "jobs are for this machine")


def test_a_limit_holds_on_a_cluster(workers):
    found = compare(channel(n=400), 2, ["hmm"], limit=0.01, cluster=workers)
    assert list(found.failures()) == ["hmm, run 1 of 1: given up after 0.01 s"]


def test_bootstrap(workers, tmp_path, monkeypatch):
    monkeypatch.setattr("neuralmjp.exact.alternatives.FEWEST", 4)
    data = simulated(TWO, 10, 20, 0.5, seed=0)
    estimator = ExactMJP(2)
    fitted = estimator.fit(data)
    here = estimator.bootstrap(data, fitted, 4)
    there = estimator.bootstrap(data, fitted, 4, cluster=workers.client.scheduler.address, folder=tmp_path)
    np.testing.assert_array_equal(here.rate_samples, there.rate_samples)
    np.testing.assert_array_equal(here.intervals["rates"].lower, there.intervals["rates"].lower)
    files = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    more = estimator.bootstrap(data, fitted, 6, folder=tmp_path)
    np.testing.assert_array_equal(more.rate_samples[:4], here.rate_samples)
    assert len(list(tmp_path.iterdir())) == 6
    assert all((tmp_path / name).stat().st_mtime_ns == then for name, then in files.items())


CALL = """
import numpy as np
from neuralmjp import TimeSeries
from neuralmjp.comparison import compare
times = np.arange(500.0)
compare(TimeSeries.from_arrays(times, np.sin(times)), 2, ["exact", "neural"], jobs=2)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_fits_end_with_whoever_asked(number):
    path = os.pathsep.join(path for path in sys.path if path)
    process = subprocess.Popen(
        [sys.executable, "-c", CALL], env=os.environ | {"PYTHONPATH": path}, stderr=subprocess.DEVNULL
    )
    while len(fits := children(process.pid)) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(20) != 0
    for _ in range(200):
        if not any(alive(pid) for pid in fits):
            return
        time.sleep(0.05)
    pytest.fail(f"{[pid for pid in fits if alive(pid)]} live on")


def children(pid):
    lines = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in lines.splitlines() if "comparison.worker" in line]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return not state.strip().startswith("Z") and state.strip() != ""
