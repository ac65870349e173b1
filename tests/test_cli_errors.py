"""The command line: one clear line for whatever a user gets wrong, and behaviour as a process."""

import os
import subprocess
import sys

import pytest

import neuralmjp as nm
from command import SMALL, assert_refused, run_outside
from neuralmjp import cli
from neuralmjp.commands import describe
from neuralmjp.systems import named


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bogus"], "No such command 'bogus'"),
        (["--bogus"], "--bogus"),
        (["describe"], "Missing argument 'DATA'"),
        (["describe", "nothing.csv"], "nothing.csv: no such file"),
        (["describe", "."], "is a directory"),
        (["describe", "table.csv", "--bogus"], "--bogus"),
        (["describe", "table.csv", "--values", "z"], "no column 'z'; the columns are 'series', 'time', 'a', 'b'"),
        (["describe", "table.csv", "--time", "when"], "no column 'when'"),
        (["describe", "table.csv", "--json", "no/such/folder.json"], "no/such/folder.json"),
        (["describe", "table.csv", "--json", "."], "cannot read or write ."),
        (["describe", "table.csv", "--states", "two"], "--states"),
        (["simulate"], "Missing argument 'SYSTEM'"),
        (["simulate", "two-mode"], "Missing option '--out'"),
        (["simulate", "ratchet", "--out", "a.csv"], "no system 'ratchet'; there are flashing-ratchet"),
        (["simulate", "nothing.network", "--out", "a.csv"], "cannot read the reaction network nothing.network"),
        (["simulate", "bad.network", "--out", "a.csv"], "bad.network, line 1: "),
        (["simulate", "two-mode", "--out", "a.xyz"], "a.xyz: unknown kind of file '.xyz'"),
        (["simulate", "two-mode", "--out", "no/such/a.csv"], "no/such/a.csv: cannot be written"),
        (["simulate", "two-mode", "--out", "table.csv/a.csv"], "Not a directory"),
        (["simulate", "two-mode", "--out", "folder.csv"], "folder.csv: cannot be written"),
        (["simulate", "two-mode", "--out", "a.csv", "--truth", "./a.csv"], "--out and --truth both name a.csv"),
        (["simulate", "two-mode", "--out", "a.csv", "--set", "up"], "--set takes NAME=NUMBER"),
        (["simulate", "two-mode", "--out", "a.csv", "--set", "up=fast"], "got 'up=fast'"),
        (["simulate", "two-mode", "--out", "a.csv", "--set", "speed=1"], "two-mode has no parameter 'speed'"),
        (["simulate", "two-mode", "--out", "a.csv", "--set", "self=1"], "two-mode has no parameter 'self'"),
        (["simulate", "two-mode", "--out", "a.csv", "--set", "=1"], "two-mode has no parameter ''"),
        (["simulate", "two-mode", "--out", "a.csv", "--set", "up=-1"], "up must be positive, got -1"),
        (["simulate", "flashing-ratchet", "--out", "a.csv", "--set", "V=1e6"], "rates must be finite"),
        (["simulate", "two-mode", "--out", "a.csv", "--seed", "-1"], "seed must not be negative"),
        (["simulate", "two-mode", "--out", "a.csv", "--seed", "9" * 30], "seed must not be negative and must be below"),
        (["simulate", "two-mode", "--out", "a.csv", "--seed", "x"], "--seed"),
        (["simulate", "two-mode", "--out", "a.csv", "--series", "0"], "number of series must be at least 1"),
        (["simulate", "two-mode", "--out", "a.csv", "--series", "9" * 14], "not enough memory"),
        (["simulate", "two-mode", "--out", "a.csv", "--length", "0"], "at least 2 observations"),
        (["simulate", "two-mode", "--out", "a.csv", "--duration", "inf"], "duration must be positive and finite"),
        (["simulate", "ion-channel", "--out", "a.csv", "--duration", "nan"], "duration must be positive and finite"),
        (["simulate", "two-mode", "--out", "a.csv", "--grid", "square"], "--grid"),
        (["demo", "--out", "table.csv"], "cannot read or write table.csv"),
        (["demo", "--seed", "-1"], "seed must not be negative"),
    ],
)
def test_bad_input(run, table, tmp_path, words, message):
    (tmp_path / "bad.network").write_text("X -> -> @\n")
    (tmp_path / "folder.csv").mkdir()
    before = table.read_bytes()
    assert_refused(run(*words), message)
    assert table.read_bytes() == before
    assert not (tmp_path / "a.csv").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_closed_to_us(run, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    assert_refused(run("simulate", "two-mode", *SMALL, "--out", "closed/a.csv"), "closed/a.csv: cannot be written")
    assert_refused(run("demo", "--out", "closed/demo"), "closed/demo")


def failing(error):
    def fail(*arguments, **options):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (
            RuntimeError("boom\nand more"),
            1,
            "a fault in neuralmjp itself: RuntimeError: boom and more (NEURALMJP",
        ),
        (ValueError("not an InputError"), 1, "a fault in neuralmjp itself: ValueError"),
        (nm.InputError("two\nlines"), 2, "two lines"),
        (OSError(28, "No space left on device", "a.csv"), 2, "cannot read or write a.csv: No space left on device"),
        (OSError("odd"), 2, "cannot read or write: odd"),
        (MemoryError("Unable to allocate 9 TiB"), 2, "not enough memory: Unable to allocate 9 TiB"),
    ],
)
def test_every_fault_ends_in_one_line(run, table, monkeypatch, error, status, message):
    monkeypatch.delenv("NEURALMJP_DEBUG", raising=False)
    monkeypatch.setattr(describe, "run", failing(error))
    assert_refused(run("describe", table), message, status=status)


def test_the_help_of_the_command_is_named(run):
    assert_refused(run("fit", "a.csv", "--sates", "3"), "(see neuralmjp fit --help)")
    assert_refused(run("fits"), "(see neuralmjp --help)")


def test_interrupted(run, table, monkeypatch):
    monkeypatch.setattr(describe, "run", failing(KeyboardInterrupt()))
    assert_refused(run("describe", table), "interrupted", status=130)
    monkeypatch.setattr(cli, "app", failing(KeyboardInterrupt()))
    assert_refused(run("describe", table), "interrupted", status=130)


def test_debug_shows_where(table, monkeypatch):
    monkeypatch.setenv("NEURALMJP_DEBUG", "1")
    monkeypatch.setattr(describe, "run", failing(RuntimeError("boom")))
    monkeypatch.setattr(sys, "argv", ["neuralmjp", "describe", str(table)])
    with pytest.raises(RuntimeError, match="boom"):
        cli.main()


# ---- in a process of its own


def test_outside_bad_input(tmp_path):
    assert_refused(run_outside("describe", tmp_path / "nothing.csv"), "no such file")


def test_outside_simulate_prints_no_warnings(tmp_path):
    ended = run_outside("simulate", "two-mode", *SMALL, "--out", tmp_path / "a.csv", "--truth", tmp_path / "b.npz")
    assert (ended.status, ended.err) == (0, "")
    assert nm.read(tmp_path / "a.csv").equals(named("two-mode").simulate(3, 20, seed=0).data)


def test_outside_rates_that_overflow(tmp_path):
    ended = run_outside("simulate", "flashing-ratchet", "--set", "V=1e6", "--out", tmp_path / "a.csv")
    assert_refused(ended, "rates must be finite")


def test_outside_a_terminal_without_unicode(table):
    ended = run_outside("describe", table, PYTHONIOENCODING="ascii")
    assert (ended.status, ended.err) == (0, "")
    assert "2 series, 5 observations" in ended.out


def test_outside_a_reader_that_leaves(table):
    """As in `neuralmjp describe table.csv | head -1`: no traceback."""
    command = [sys.executable, "-m", "neuralmjp", "describe", str(table)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
