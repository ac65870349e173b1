"""Questions and answers: here, and on a real cluster of several processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ensembles import pieces
from neuralmjp import InputError
from neuralmjp.ensembles import Kept, each_answer, opened, run_each
from neuralmjp.ensembles import cluster as clusters
from neuralmjp.ensembles.places import Here

NUMBERS = {f"power {n}": {"n": n} for n in range(6)}
POWERS = {f"power {n}": {"power": 2**n} for n in range(6)}


@pytest.fixture(scope="module")
def workers():
    with opened("local", 2) as place:
        yield place


@pytest.fixture(params=["here", "threads", "cluster"])
def place(request):
    if request.param == "cluster":
        return request.getfixturevalue("workers")
    return Here(2 if request.param == "threads" else 1)


def test_the_same_answers_everywhere(place):
    told = []
    found = run_each(pieces.powers, NUMBERS, 2, cluster=place, progress=lambda *x: told.append(x))
    assert found == POWERS
    assert list(found) == list(POWERS)
    assert told[-1] == ("done", 1.0)
    assert [share for _, share in told] == sorted(share for _, share in told)


def test_answers_come_one_by_one(place, tmp_path):
    """The quick one is there while the slow one is under way."""
    questions = {"slow": {"n": 1, "seconds": 1.5}, "quick": {"n": 2, "seconds": 0.0}}
    came = [(name, len(list(tmp_path.glob("done-1-*")))) for name, _ in each_answer(
        pieces.leaving_traces, questions, str(tmp_path), cluster=place
    )]  # fmt: skip
    assert came == ([("slow", 1), ("quick", 1)] if place == Here() else [("quick", 0), ("slow", 1)])


def test_what_cannot_be_answered_is_named(place):
    questions = {f"number {n}": {"n": n} for n in range(4)}
    with pytest.raises(InputError, match=r"^number 2: two is too many; ask for one$"):
        run_each(pieces.refusing, questions, cluster=place)
    found = run_each(pieces.refusing, questions, cluster=place, go_on=True)
    assert found["number 2"] == {"failed": "two is too many; ask for one"}
    assert found["number 3"] == {"n": 3}


def test_a_refusal_is_final_and_a_fault_is_tried_again(workers, tmp_path):
    assert run_each(pieces.failing, {"one": {"times": 2}}, str(tmp_path), cluster=workers) == {"one": {"tries": 3}}
    with pytest.raises(RuntimeError, match="a disk is full"):
        run_each(pieces.failing, {"one": {"times": 99}}, str(tmp_path), cluster=workers)
    assert len(list(tmp_path.iterdir())) == 6


def test_a_fault_here_keeps_its_name(tmp_path):
    with pytest.raises(RuntimeError, match="a disk is full") as fault:
        run_each(pieces.failing, {"one": {"times": 99}}, str(tmp_path))
    assert fault.value.__notes__ == ["while at: one"]


def test_what_kills_every_worker_is_given_up(workers):
    found = run_each(pieces.deadly, {"one": {}}, cluster=workers, go_on=True)
    assert found == {"one": {"failed": f"{clusters.LIVES + 1} workers died over it: out of memory?"}}


def test_workers_share_the_machine(workers):
    found = run_each(pieces.where, {"one": {}}, cluster=workers)["one"]
    assert found["process"] != os.getpid()
    assert found["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert int(found["OMP_NUM_THREADS"]) >= 1


def test_workers_of_another_version(workers, monkeypatch):
    monkeypatch.setattr(clusters, "__version__", "9.9")
    with pytest.raises(InputError, match=r"a worker has neuralmjp .*, this is 9.9: install the same on all machines"):
        run_each(pieces.powers, NUMBERS, 2, cluster=workers)


def test_workers_without_a_package(workers):
    with pytest.raises(InputError, match="one: a worker says: No module named 'no_such_package'; install the same"):
        run_each(pieces.missing, {"one": {}}, cluster=workers)


class TestKept:
    def test_nothing_is_worked_out_twice(self, place, tmp_path):
        traces, kept = tmp_path / "traces", Kept(tmp_path / "answers", {"data": "a"})
        traces.mkdir()
        questions = {f"{n}": {"n": n, "seconds": 0.0} for n in range(5)}
        some = dict(list(questions.items())[:3])
        run_each(pieces.leaving_traces, some, str(traces), cluster=place, kept=kept)
        found = run_each(pieces.leaving_traces, questions, str(traces), cluster=place, kept=kept)
        assert [one["square"] for one in found.values()] == [0, 1, 4, 9, 16]
        assert len(list(traces.glob("began-*"))) == 5

    def test_after_an_end_in_the_middle(self, place, tmp_path):
        kept = Kept(tmp_path, {})
        answers = each_answer(pieces.powers, NUMBERS, 2, cluster=place, kept=kept)
        name, _ = next(answers)
        answers.close()
        assert [path.name.rsplit("-", 1)[0] for path in tmp_path.iterdir()] == [name.replace(" ", "-")]
        assert run_each(pieces.powers, NUMBERS, 2, cluster=place, kept=kept) == POWERS

    def test_numbers_come_back_bit_by_bit(self, tmp_path):
        kept, rng = Kept(tmp_path, {"assumed": np.arange(3)}), np.random.default_rng(0)
        answer = {
            "x": rng.normal(size=(2, 3)) * 10.0 ** rng.integers(-300, 300, (2, 3)),
            "nothing": np.empty((0, 4)),
            "unknown": np.array([np.nan, np.inf, -np.inf]),
            "counts": np.arange(3),
            "which": np.array([True, False]),
            "words": ["a", None, 0.1],
        }
        kept.keep("one", {"start": answer["x"]}, answer)
        found = kept.find("one", {"start": answer["x"]})
        for name in ("x", "nothing", "unknown", "counts", "which"):
            np.testing.assert_array_equal(found[name], answer[name], strict=True)
        assert found["words"] == answer["words"]

    def test_another_question_has_another_answer(self, tmp_path):
        kept = Kept(tmp_path, {"data": "a"})
        kept.keep("one", {"n": 1}, {"x": 1})
        assert kept.find("one", {"n": 1}) == {"x": 1}
        assert kept.find("one", {"n": 2}) is None
        assert Kept(tmp_path, {"data": "b"}).find("one", {"n": 1}) is None

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", "7", '{"question": 1}', '{"array": "O", "values": [], "shape": [0]}']
    )
    def test_a_damaged_answer_is_none(self, tmp_path, text):
        kept = Kept(tmp_path, {})
        kept.keep("one", {}, {"x": 1})
        kept.file("one", {}).write_text(text)
        assert kept.find("one", {}) is None

    def test_what_failed_is_tried_again(self, tmp_path):
        kept = Kept(tmp_path, {})
        kept.keep("one", {}, {"failed": "no luck"})
        assert kept.find("one", {}) is None

    def test_what_cannot_be_kept(self, tmp_path):
        with pytest.raises(InputError, match="only where all choices are numbers, names or arrays"):
            Kept(tmp_path, {"emission": object()}).find("one", {})
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match="cannot be made"):
            Kept(tmp_path / "file" / "folder", {}).keep("one", {}, {"x": 1})


class TestRefused:
    @pytest.mark.parametrize("address", ["nowhere", "tcp://", "local:x", "http://host/path", "", "host:"])
    def test_no_address(self, address):
        with pytest.raises(
            InputError, match="a cluster is local, or the address of a scheduler such as tcp://host:8786"
        ):
            run_each(pieces.powers, NUMBERS, 2, cluster=address)

    def test_nobody_there(self, monkeypatch):
        monkeypatch.setattr(clusters, "PATIENCE", 1.0)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        with pytest.raises(
            InputError, match=rf"^no scheduler answers at tcp://127.0.0.1:{port} within 1 s.*dask sched"
        ):
            run_each(pieces.powers, NUMBERS, 2, cluster=f"tcp://127.0.0.1:{port}")

    def test_jobs_of_another_machine(self):
        with pytest.raises(InputError, match="jobs are for this machine"), opened("tcp://host:8786", 3):
            pass

    def test_without_the_package(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(InputError, match=r"a cluster needs distributed: pip install 'neuralmjp\[cluster\]'"):
            run_each(pieces.powers, NUMBERS, 2, cluster="local")


def module(name, *words):
    """A process of dask's; its words are thrown away."""
    command = [sys.executable, "-m", f"distributed.cli.{name}", *words]
    path = os.pathsep.join(path for path in sys.path if path)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}, **quiet)


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler and a worker that somebody else has started, and the scheduler's process."""
    file = tmp_path / "scheduler.json"
    first = module("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file)
    second = module("dask_worker", "--scheduler-file", file, "--nthreads", "1", "--no-dashboard", "--no-nanny")
    while not file.exists() or not file.read_text():
        assert first.poll() is None
        time.sleep(0.05)
    yield json.loads(file.read_text())["address"], first
    for process in (second, first):
        process.kill()
        process.wait()


def test_a_scheduler_elsewhere_and_its_end(scheduler, tmp_path):
    address, process = scheduler
    assert run_each(pieces.powers, NUMBERS, 2, cluster=address) == POWERS
    questions = {f"{n}": {"n": n, "seconds": 0.2} for n in range(20)}
    answers = each_answer(pieces.leaving_traces, questions, str(tmp_path), cluster=address)
    next(answers)
    process.kill()
    with pytest.raises(InputError, match=f"the scheduler at {address} is gone; start it, and the same again"):
        list(answers)


SCRIPT = """
import sys
from ensembles import pieces
from neuralmjp.ensembles import run_each
{guard}
    run_each(pieces.leaving_traces, {{"one": {{"n": 1, "seconds": 60}}}}, sys.argv[1], cluster="local")
"""


def script(folder: Path, guard: str) -> subprocess.Popen:
    """A script in a session of its own, as in a terminal."""
    path = folder / "script.py"
    path.write_text(SCRIPT.format(guard=guard))
    found = os.pathsep.join(path for path in sys.path if path)
    (folder / "traces").mkdir()
    return subprocess.Popen(
        [sys.executable, str(path), str(folder / "traces")],
        env=os.environ | {"PYTHONPATH": found},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_a_script_that_would_start_itself_again(tmp_path):
    _, words = script(tmp_path, "if True:").communicate(timeout=60)
    assert words.splitlines()[-1].endswith("must do its work below: if __name__ == '__main__':")


def test_an_interruption_closes_the_local_cluster(tmp_path):
    """Ctrl-C in a terminal reaches all its processes."""
    process = script(tmp_path, "if __name__ == '__main__':")
    while not (began := list((tmp_path / "traces").iterdir())):
        assert process.poll() is None
        time.sleep(0.05)
    worker = int(began[0].name.rsplit("-", 1)[1])
    os.killpg(process.pid, signal.SIGINT)
    _, words = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in words
    assert words.startswith("Traceback")
    assert words.count("Traceback") == 1
    for _ in range(100):
        if not Path(f"/proc/{worker}").exists():
            return
        time.sleep(0.05)
    pytest.fail("the worker lives on")
