"""The command line: what it writes, what it prints, and figures in between."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import neuralmjp as nm
from command import SMALL, Ended, assert_refused, run_outside
from neuralmjp.commands.show import histogram, number
from neuralmjp.systems import SYSTEMS, named

NETWORK = "0 -> X @ birth = 2\nX -> 0 @ death = 0.1\nduration 20\nunit day\n"


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
    species = getattr(named(name), "species", ())
    assert truth.value_names == (tuple(f"true_{one}" for one in species) or ("state",))


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
    assert "Truth beside what was found (per s)" in Path("shown/here/report.html").read_text()
    assert "Jump rates (per s), 95 % intervals" in ended.out
    rows, _, sentences = ended.out.partition("Read off")
    assert rows.count("→") == 6
    assert "exact: " in sentences
    assert "neural, first 5 s: " in sentences
    assert sentences.count("of 6 true rates are inside their 95 % intervals") == 2
