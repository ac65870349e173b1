"""The command line: what it writes, what it prints, and one clear line for whatever a user gets wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import neuralmjp as nm
from neuralmjp import cli
from neuralmjp.commands import describe
from neuralmjp.commands.show import histogram, number
from neuralmjp.systems import SYSTEMS, named

NETWORK = "0 -> X @ birth = 2\nX -> 0 @ death = 0.1\nduration 20\nunit day\n"
SMALL = ("--series", 3, "--length", 20)


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(*words) -> Ended:
        monkeypatch.setattr(sys, "argv", ["neuralmjp", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return Ended(ended.value.code, *capsys.readouterr())

    return call


def run_outside(*words, **environment) -> Ended:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "neuralmjp", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def assert_refused(ended: Ended, *words: str, status: int = 2) -> None:
    assert ended.status == status
    assert ended.err.startswith("neuralmjp: ")
    assert ended.err.count("\n") == 1
    assert ended.err.endswith("\n")
    assert "Traceback" not in ended.out + ended.err
    for word in words:
        assert word in ended.err


@pytest.fixture
def table(tmp_path) -> Path:
    """Two series, two values, one value missing."""
    path = tmp_path / "table.csv"
    path.write_text("series,time,a,b\nx,0,1,5\nx,1,2,\nx,3,1,6\ny,0,2,5\ny,2,1,7\n")
    return path


# ---- help and version


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_help(run, words):
    ended = run(*words)
    assert (ended.status, ended.err) == (0, "")
    for command in ("demo", "simulate", "describe"):
        assert command in ended.out


@pytest.mark.parametrize("command", ["demo", "simulate", "describe"])
def test_help_of_a_command(run, command):
    ended = run(command, "--help")
    assert (ended.status, ended.err) == (0, "")
    assert "Usage: neuralmjp" in ended.out


def test_help_of_simulate_names_every_system(run):
    text = " ".join(run("simulate", "--help").out.split())
    for name in SYSTEMS:
        assert name in text


def test_version(run):
    assert run("--version") == Ended(0, f"neuralmjp {nm.__version__}\n", "")


def test_module_is_the_command():
    assert run_outside("--version") == Ended(0, f"neuralmjp {nm.__version__}\n", "")


# ---- simulate


@pytest.mark.parametrize("name", SYSTEMS)
def test_simulate_every_system(run, name):
    ended = run("simulate", name, *SMALL, "--seed", 7, "--out", "data.parquet", "--truth", "truth.parquet")
    assert (ended.status, ended.err) == (0, "")
    assert f"{name}: 3 series, 60 observations -> data.parquet" in ended.out
    expected = named(name).simulate(3, 20, seed=7)
    assert nm.read("data.parquet").equals(expected.data)
    truth = nm.read("truth.parquet")
    np.testing.assert_array_equal(truth.values, expected.states.reshape(60, -1))
    np.testing.assert_array_equal(truth.times, expected.data.times)
    assert truth.value_names == (("true_prey", "true_predator") if name == "lotka-volterra" else ("state",))


def test_simulate_a_network_file(run, tmp_path):
    (tmp_path / "births.network").write_text(NETWORK)
    ended = run("simulate", "births.network", *SMALL, "--set", "birth=3", "--out", "data.parquet")
    assert ended.status == 0
    data = nm.read("data.parquet")
    assert (data.value_names, data.time_unit) == (("X",), "day")
    assert "birth" in ended.out
    assert "births: 3 series" in ended.out
    assert data.equals(named("births.network").with_parameters(birth=3.0).simulate(3, 20, seed=0).data)


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "npz"])
def test_formats_hold_the_same_data_and_one_seed_gives_the_same_bytes(run, tmp_path, kind):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        assert run("simulate", "two-mode", *SMALL, "--seed", 4, "--out", f"{name}/data.{kind}").status == 0
    assert Path(f"first/data.{kind}").read_bytes() == Path(f"second/data.{kind}").read_bytes()
    assert nm.read(f"first/data.{kind}").equals(named("two-mode").simulate(3, 20, seed=4).data)
    assert run("simulate", "two-mode", *SMALL, "--seed", 5, "--out", f"second/data.{kind}").status == 0
    assert Path(f"first/data.{kind}").read_bytes() != Path(f"second/data.{kind}").read_bytes()


def test_set_changes_parameters(run):
    ended = run("simulate", "flashing-ratchet", *SMALL, "--set", "V=2", "--set", " r = 0.4 ", "--out", "data.csv")
    rows = [[cell.strip() for cell in line.split("│")] for line in ended.out.splitlines()]
    assert ["", "V", "2", ""] in rows
    assert ["", "r", "0.4", ""] in rows
    expected = named("flashing-ratchet").with_parameters(V=2.0, r=0.4).simulate(3, 20, seed=0).data
    assert nm.read("data.csv").equals(expected)


def test_the_filter_of_a_channel_can_be_set(run):
    assert run("simulate", "ion-channel", *SMALL, "--set", "cutoff=1000", "--out", "data.csv").status == 0
    expected = named("ion-channel").with_parameters(cutoff=1000.0).simulate(3, 20, seed=0).data
    np.testing.assert_array_equal(nm.read("data.csv").values, expected.values)


@pytest.mark.parametrize("grid", ["irregular", "shared", "regular"])
def test_grid_and_duration(run, grid):
    assert run("simulate", "two-mode", *SMALL, "--grid", grid, "--duration", 9, "--out", "data.csv").status == 0
    times = nm.read("data.csv").times.reshape(3, 20)
    assert 4 < times.max() <= 9
    assert (times == times[0]).all() == (grid != "irregular")
    assert np.allclose(np.diff(times), 9 / 19) == (grid == "regular")


def test_duration_of_a_recording(run):
    assert run("simulate", "ion-channel", "--series", 1, "--duration", 0.01, "--out", "data.csv").status == 0
    assert nm.read("data.csv").n_observations == 50


def test_true_rates_and_units_are_shown(run):
    out = run("simulate", "ion-channel", *SMALL, "--out", "data.csv").out
    assert "True rates (per s)" in out
    assert "stationary law  0.1963  0.07153  0.7321" in out
    assert "timescales      0.009702  0.0009905  (s)" in out


# ---- describe


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_describe_every_format(run, tmp_path, kind):
    data = nm.TimeSeries.from_arrays([[0.0, 1.0, 3.0], [0.0, 2.0, 5.0]], [[1.0, np.nan, 2.0], [2.0, 2.0, 7.0]])
    nm.write(data, tmp_path / f"data.{kind}")
    ended = run("describe", f"data.{kind}", "--json", "facts.json")
    assert (ended.status, ended.err) == (0, "")
    assert f"data.{kind}: 2 series, 6 observations" in ended.out
    assert json.loads(Path("facts.json").read_text()) == {
        "series": 2,
        "observations": 6,
        "missing_values": 1,
        "time_unit": "time unit",
        "length": {"smallest": 3, "median": 3, "mean": 3, "largest": 3},
        "gap": {"smallest": 1, "median": 2, "mean": 2, "largest": 3},
        "regular": False,
        "observed_time": 8,
        "values": {"value": {"missing": 1, "smallest": 1, "median": 2, "mean": 2.8, "largest": 7}},
    }


def test_describe_shows_missing_values_and_histograms(run, table):
    out = run("describe", table, "--time-unit", "ms").out
    rows = [[cell.strip() for cell in line.split("│")][1:-1] for line in out.splitlines()]
    assert ["a", "0", "1", "1", "1.4", "2"] in rows
    assert ["b", "1", "5", "5.5", "5.75", "7"] in rows
    assert ["observations per series", "2", "2.5", "2.5", "3"] in rows
    assert "gap between observations (ms)" in out
    lines = out.splitlines()
    after = lines.index("a")
    assert [line.split() for line in lines[after + 1 : after + 3]] == [["1", "█" * 40, "3"], ["2", "█" * 26 + "▋", "2"]]


def test_describe_chosen_columns(run, tmp_path):
    (tmp_path / "bare.csv").write_text("0,9,1\n0.5,8,2\n1.0,7,1\n")
    ended = run("describe", "bare.csv", "--no-header", "--time", 0, "--values", 2, "--json", "facts.json")
    assert ended.status == 0
    facts = json.loads(Path("facts.json").read_text())
    assert facts["regular"] is True
    assert list(facts["values"]) == ["column 2"]


def test_describe_a_column_without_any_value(run, tmp_path):
    (tmp_path / "gap.csv").write_text("time,a,b\n0,1,\n1,2,\n")
    ended = run("describe", "gap.csv", "--json", "facts.json")
    assert (ended.status, ended.err) == (0, "")
    assert json.loads(Path("facts.json").read_text())["values"]["b"] == {"missing": 2}


def test_describe_checks_states(run, table):
    assert "2 states: the data can bear them." in run("describe", table, "--states", 2).out
    assert_refused(run("describe", table, "--states", 9), "9 states")
    assert_refused(run("describe", table, "--states", 0), "0 states")


MARKUP = ("[red]", "[/]", "[bold]x[/bold]", ":smile:", "a:b:c", "back\\", "\\[x]")


def test_markup_in_names_is_shown_as_it_is(run, tmp_path):
    times, values = [[0.0, 1.0]] * len(MARKUP), np.arange(14.0 * len(MARKUP)).reshape(len(MARKUP), 2, -1)
    nm.write(nm.TimeSeries.from_arrays(times, values, names=MARKUP, value_names=MARKUP), tmp_path / "[red].npz")
    ended = run("describe", "[red].npz", "--time-unit", "[/]")
    assert (ended.status, ended.err) == (0, "")
    assert "[red].npz: 7 series" in ended.out
    assert "gap between observations ([/])" in ended.out
    rows = [line.split("│")[1].strip() for line in ended.out.splitlines() if "│" in line]
    for name in MARKUP:
        assert name in rows
        assert name in ended.out.splitlines()


def test_markup_in_an_error(run, tmp_path):
    (tmp_path / "bad.csv").write_text("series,time,a\n[/],0,1\n[/],0,1\n")
    assert_refused(run("describe", "bad.csv"), "bad.csv", "repeated")
    assert_refused(run("describe", "[/red].csv"), "[/red].csv")
    assert_refused(run("simulate", "[/red]", "--out", "a.csv"), "[/red]")


def test_long_paths_stay_in_one_piece(run, tmp_path):
    folder = tmp_path / ("folder-" * 20)
    folder.mkdir()
    out = run("simulate", "two-mode", *SMALL, "--out", folder / "data.csv", "--truth", folder / "truth.csv").out
    out += run("describe", folder / "data.csv").out
    assert out.count(str(folder / "data.csv")) == 2
    assert str(folder / "truth.csv") in out


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (3.0, "3"), (-1234567.0, "-1234567"), (1e7, "1e+07"), (0.12345, "0.1235"), (np.inf, "inf")],
)
def test_numbers(value, text):
    assert number(value) == text


def test_histogram_counts_everything():
    values = np.random.default_rng(0).normal(size=500)
    lines = histogram(values)
    assert len(lines) == 10
    assert sum(int(line.split()[-1]) for line in lines) == 500
    assert max(line.count("█") for line in lines) == 40


@given(arrays(float, st.integers(1, 60), elements=st.floats(-1e308, 1e308) | st.floats(1 - 1e-15, 1 + 1e-15)))
def test_histogram_of_any_values(values):
    assert sum(int(line.split()[-1]) for line in histogram(values)) == len(values)


# ---- demo


def test_demo(run):
    ended = run("demo", "--out", "shown/here", "--seed", 3)
    assert (ended.status, ended.err) == (0, "")
    assert Path("shown/here/demo.png").read_bytes().startswith(b"\x89PNG")
    data, truth = (nm.read(f"shown/here/{name}.csv") for name in ("channel", "channel-truth"))
    assert data.n_observations == truth.n_observations == 100_000
    assert set(np.unique(truth.values)) == {0, 1, 2}
    assert "figure: shown/here/demo.png   data: shown/here/channel.csv" in ended.out
    assert "Jump rates (per s), 95 % intervals" in ended.out
    assert ended.out.count("→") == 6


# ---- what goes wrong


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


def test_interrupted(run, table, monkeypatch):
    monkeypatch.setattr(describe, "run", failing(KeyboardInterrupt()))
    assert run("describe", table) == Ended(130, "", "")
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
