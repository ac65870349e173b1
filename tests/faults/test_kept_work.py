"""Signals, full disks, closed folders and two fits at once: what was saved stays, and one line says what to do."""

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import jax.numpy as jnp
import pytest

from command import Ended, assert_refused
from faults.runs import make_data, numbers, started, steps_done
from neuralmjp import InputError, NeuralMJP, systems
from neuralmjp.training.checkpoints import FOLDER, Checkpoints
from neuralmjp.training.interrupt import Interrupted, listening
from neuralmjp.training.lock import locked

TREE = {"a": jnp.arange(3.0)}
TINY = {"width": 4, "batch": 4, "steps": 12, "round_steps": 4}


def ended(process) -> Ended:
    out, err = process.communicate(timeout=120)
    return Ended(process.returncode, out, err)


def under_way(process, out, step=1):
    """Wait until a fit has saved something."""
    while steps_done(out) < step:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


class TestACommand:
    def test_asked_to_stop_out_of_room_and_two_at_once(self, tmp_path):
        """One fit, stopped by everything in turn, ends as one that nobody touched."""
        data, out, alone = make_data(tmp_path), tmp_path / "run", tmp_path / "alone"
        first = started(data, out)
        under_way(first, out)
        first.send_signal(signal.SIGTERM)
        line = "interrupted: the same command with --resume goes on from here"
        assert_refused(ended(first), line, status=143)

        again = started(data, out, "--resume")
        under_way(again, out, steps_done(out) + 1)
        again.send_signal(signal.SIGSTOP)  # so that it has not ended before the other one has begun
        assert_refused(ended(started(data, out, "--resume")), f"in use by another fit, process {again.pid}")
        again.send_signal(signal.SIGINT)
        again.send_signal(signal.SIGCONT)
        assert_refused(ended(again), line, status=130)

        again, before = started(data, out, "--resume"), steps_done(out)
        under_way(again, out, before + 1)
        resource.prlimit(again.pid, resource.RLIMIT_FSIZE, (4096, 4096))  # as if the disk were full
        assert_refused(ended(again), "cannot be written (File too large)", "is safe", "--resume goes on")
        assert before < steps_done(out) < 600
        assert not list(out.rglob("*.part"))

        assert ended(started(data, out, "--resume")).status == 0
        assert ended(started(data, alone)).status == 0
        assert numbers(out) == numbers(alone)


class TestFullDisk:
    @pytest.mark.parametrize("call", ["fsync", "replace"])
    def test_the_last_checkpoint_stays(self, tmp_path, monkeypatch, call):
        kept = Checkpoints(tmp_path)
        kept.save(TREE, {"step": 1}, step=1)

        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(os, call, full)
            with pytest.raises(InputError, match=r"step 2 cannot be written \(No space left.*step 1 is safe") as error:
                kept.save(TREE, {"step": 2}, step=2)
        assert "\n" not in str(error.value)
        assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == ["000001.npz", "index.json"]
        kept.save(TREE, {"step": 3}, step=3)
        assert Checkpoints(tmp_path).load(TREE, dict)[1] == {"step": 3}

    def test_a_fit_keeps_the_model_before_it(self, tmp_path, monkeypatch):
        data = systems.TwoMode().simulate(4, 10, seed=1).data
        fitted = NeuralMJP(2, "gaussian", changes=TINY).fit(data)
        fitted.save(tmp_path)
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            fitted.save(tmp_path)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


class TestClosedFolders:
    def test_refused_before_any_work(self, tmp_path):
        data = systems.TwoMode().simulate(4, 10, seed=1).data
        (tmp_path / "file").write_text("no folder")
        with pytest.raises(InputError, match=r"cannot be written .*; choose another folder"):
            NeuralMJP(2, "gaussian", changes=TINY).fit(data, folder=tmp_path / "file")

    @pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
    def test_a_folder_closed_to_us(self, tmp_path):
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(InputError, match="cannot be written"), locked(tmp_path / "closed"):
            pass

    def test_no_permission(self, tmp_path, monkeypatch):
        def closed(*_):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr(os, "open", closed)
        with pytest.raises(InputError, match="Permission denied"), locked(tmp_path):
            pass


HOLDER = """
import sys, time
from pathlib import Path
from neuralmjp.training.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


class TestLock:
    def test_a_dead_process_holds_nothing(self, tmp_path):
        holder = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdout=subprocess.PIPE, text=True)
        with holder:
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(InputError, match=f"in use by another fit, process {holder.pid}"), locked(tmp_path):
                pass
            holder.kill()
            holder.wait()
        with locked(tmp_path):
            pass

    def test_whoever_holds_it_may_enter_again(self, tmp_path):
        with locked(tmp_path):
            with locked(tmp_path / "x" / ".."):
                pass
            refused = []

            def other_thread():
                try:
                    with locked(tmp_path):
                        pass
                except InputError as error:
                    refused.append(str(error))

            thread = threading.Thread(target=other_thread)
            thread.start()
            thread.join()
            assert len(refused) == 1
        with locked(tmp_path):
            pass


class TestSignals:
    @pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_wait_for_a_good_moment(self, number, status):
        before = signal.getsignal(number)
        with listening() as asked:
            asked.check()
            signal.raise_signal(number)
            assert signal.getsignal(number) is signal.SIG_DFL  # the second one ends at once
            with pytest.raises(Interrupted) as stopped:
                asked.check()
        assert stopped.value.status == status
        assert signal.getsignal(number) is before

    def test_at_once_where_nothing_is_to_be_saved(self):
        with listening(patient=False), pytest.raises(Interrupted):
            signal.raise_signal(signal.SIGTERM)

    def test_in_a_thread_nothing_is_changed(self):
        def look():
            with listening():
                seen.append(signal.getsignal(signal.SIGTERM))

        seen = []
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert seen == [signal.getsignal(signal.SIGTERM)]
