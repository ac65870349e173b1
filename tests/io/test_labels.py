"""States that are words: read in the order that is asked for, told by their words ever after."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command import assert_refused
from neuralmjp import InputError, TimeSeries, io, read

WORDS = ("well", "ill", "dead")
ROWS = "who,time,state\na,0,well\na,1, ill \na,2,\nb,0,ill\nb,1,NA\nb,3,dead\n"
CODES = [0, 1, np.nan, 1, np.nan, 2]


def frame() -> pd.DataFrame:
    states = ["well", "ill", None, "ill", None, "dead"]
    return pd.DataFrame({"series": list("aaabbb"), "time": [0.0, 1, 2, 0, 1, 3], "state": states})


class TestReading:
    @pytest.mark.parametrize("labels", ["well,ill,dead", " well, ill ,dead", WORDS, list(WORDS)])
    def test_csv(self, tmp_path, labels):
        (tmp_path / "x.csv").write_text(ROWS)
        data = read(tmp_path / "x.csv", series="who", labels=labels)
        np.testing.assert_array_equal(data.values[:, 0], CODES)
        assert data.value_names == ("state",)

    def test_the_order_is_the_users(self, tmp_path):
        (tmp_path / "x.csv").write_text(ROWS)
        data = read(tmp_path / "x.csv", series="who", labels="dead,ill,well")
        np.testing.assert_array_equal(data.values[:, 0], [2, 1, np.nan, 1, np.nan, 0])

    @pytest.mark.parametrize("kind", ["object", "category", "string"])
    def test_frames(self, kind):
        given = frame().astype({"state": kind})
        np.testing.assert_array_equal(TimeSeries.from_frame(given, labels=WORDS).values[:, 0], CODES)
        np.testing.assert_array_equal(read(given, labels="well,ill,dead").values[:, 0], CODES)

    def test_parquet_and_folders(self, tmp_path):
        (tmp_path / "parts").mkdir()
        table = pa.Table.from_pandas(frame())
        pq.write_table(table, tmp_path / "x.parquet")
        pq.write_table(table, tmp_path / "parts" / "0.parquet")
        for path in (tmp_path / "x.parquet", tmp_path / "parts"):
            np.testing.assert_array_equal(read(path, labels=WORDS).values[:, 0], CODES)
        store = io.open_store(tmp_path / "parts", labels=WORDS)
        np.testing.assert_array_equal(store.whole().values[:, 0], CODES)

    def test_missing_words_of_pandas(self, tmp_path):
        (tmp_path / "x.csv").write_text("time,state\n0,well\n1,nan\n2,NaN\n3,ill\n")
        np.testing.assert_array_equal(read(tmp_path / "x.csv", labels=WORDS).values[:, 0], [0, np.nan, np.nan, 1])
        codes = pd.DataFrame({"time": [0.0, 1, 2], "stage": [4.0, np.nan, 1.0]})
        np.testing.assert_array_equal(read(codes, labels="1,4").values[:, 0], [1, np.nan, 0])

    def test_numbers_may_be_labels_too(self, tmp_path):
        """Codes in an order that is not theirs; a word that stands for nothing elsewhere."""
        (tmp_path / "x.csv").write_text("time,stage\n0,4\n1,1\n2,None\n3,\n")
        data = read(tmp_path / "x.csv", labels="None,4,1")
        np.testing.assert_array_equal(data.values[:, 0], [1, 2, 0, np.nan])
        pq.write_table(pa.table({"time": [0.0, 1, 2], "stage": [4, 1, 4]}), tmp_path / "x.parquet")
        np.testing.assert_array_equal(read(tmp_path / "x.parquet", labels="1,4").values[:, 0], [1, 0, 1])


class TestRefusals:
    def test_an_unknown_word(self, tmp_path):
        (tmp_path / "x.csv").write_text(ROWS)
        wanted = r"x.csv, line 7, column 'state': 'dead' is none of the labels well, ill; add it to them, leave"
        with pytest.raises(InputError, match=wanted):
            read(tmp_path / "x.csv", series="who", labels="well,ill")

    def test_a_column_of_something_else(self, tmp_path):
        (tmp_path / "x.csv").write_text("time,age,state\n0,54,well\n1,55,ill\n")
        with pytest.raises(InputError, match=r"column 'age': '54' is none of the labels .* choose other columns with"):
            read(tmp_path / "x.csv", labels=WORDS)
        (tmp_path / "y.csv").write_text("0,wel\n1,ill\n")
        with pytest.raises(InputError, match="line 1, column 1: 'wel' is none of the labels"):
            read(tmp_path / "y.csv", labels=WORDS, header=False)
        pq.write_table(pa.table({"time": [0.0, 1], "state": [["well"], ["ill"]]}), tmp_path / "x.parquet")
        with pytest.raises(InputError, match="column 'state': holds list"):
            read(tmp_path / "x.parquet", labels=WORDS)
        periods = pd.DataFrame({"time": [0.0, 1], "state": pd.period_range("2024-01", periods=2, freq="M")})
        with pytest.raises(InputError, match="column 'state'"):
            read(periods, labels=WORDS)

    def test_words_without_labels_say_how_to_read_them(self, tmp_path):
        (tmp_path / "x.csv").write_text(ROWS)
        with pytest.raises(InputError, match=r"'well' is not a number; .*or words with --labels"):
            read(tmp_path / "x.csv", series="who")

    @pytest.mark.parametrize("labels", ["well,well", "well,,ill", "", [], ["a", " a "]])
    def test_labels_that_are_none(self, tmp_path, labels):
        (tmp_path / "x.csv").write_text(ROWS)
        with pytest.raises(InputError, match="labels are different words, such as well,ill,dead"):
            read(tmp_path / "x.csv", series="who", labels=labels)

    def test_formats_without_words(self, tmp_path):
        np.savez(tmp_path / "x.npz", times=[0.0, 1], values=[0.0, 1])
        with pytest.raises(InputError, match="has no use for --labels"):
            read(tmp_path / "x.npz", labels=WORDS)


@pytest.fixture
def patients(tmp_path):
    """People who fall ill, recover and die, by words; some were seen alive and no more."""
    rng = np.random.default_rng(0)
    lines = ["who,years,health"]
    moves = {0: [0.7, 0.25, 0.05], 1: [0.2, 0.5, 0.3]}
    for person in range(80):
        state, time = 0, 0.0
        while time < 6 and state < 2:
            known = "alive" if time > 0 and rng.random() < 0.1 else WORDS[state]
            lines.append(f"{person},{time:.3f},{known}")
            state, time = rng.choice(3, p=moves[state]), time + rng.uniform(0.5, 1.5)
        if state == 2:
            lines.append(f"{person},{time:.3f},dead")
    (tmp_path / "patients.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "mask.csv").write_text("0,1,1\n1,0,1\n0,0,0\n")
    return tmp_path


READING = ("--series", "who", "--time", "years", "--values", "health", "--time-unit", "year")
LABELS = ("--labels", "well,ill,dead,alive")
PANEL = ("--states", 3, "--prior", "mask.csv", "--exact-entry", "dead", "--censored", "alive=well,ill")


class TestCommands:
    def test_from_words_to_words(self, run, patients):
        told = run("fit", "patients.csv", *READING, *LABELS, *PANEL, "--out", "run", "--json", "words.json")
        assert told.status == 0, told.err
        assert "well → dead" in told.out
        found = json.loads((patients / "words.json").read_text())
        assert found["state_names"] == list(WORDS)
        self.same_as_numbers(run, patients, found)
        told = run("decode", "run", "patients.csv", "--labels", "dead,ill,well", "--out", "path.csv")
        assert_refused(told, "--labels dead,ill,well is not the order of the fit, well,ill,dead,alive: leave it out")
        told = run("decode", "run", "patients.csv", "--out", "path.csv", "--events", "spells.csv")
        assert told.status == 0, told.err
        spells = pd.read_csv("spells.csv")
        assert set(spells.name) == set(WORDS)
        assert "health_mean" not in spells
        told = run("predict", "run", "patients.csv", "--steps", 1, "--out", "ahead.csv")
        assert told.status == 0, told.err
        assert {f"health_p_{word}" for word in WORDS} < set(pd.read_csv("ahead.csv"))

    def same_as_numbers(self, run, patients, found):
        """The same table with codes of the usual kind has the same likelihood."""
        table = pd.read_csv("patients.csv")
        table["health"] = table.health.map({"well": 1, "ill": 2, "dead": 3, "alive": 99})
        table.to_csv("numbers.csv", index=False)
        panel = ("--states", 3, "--prior", "mask.csv", "--exact-entry", 3, "--censored", "99=1,2")
        assert run("fit", "numbers.csv", *READING, *panel, "--json", "numbers.json").status == 0
        numbers = json.loads((patients / "numbers.json").read_text())
        np.testing.assert_allclose(numbers["log_likelihood"], found["log_likelihood"], rtol=1e-10)
        np.testing.assert_allclose(numbers["rates"]["mean"], found["rates"]["mean"], rtol=1e-6)

    def test_names_that_are_given_win(self, run, patients):
        told = run("fit", "patients.csv", *READING, *LABELS, *PANEL, "--state-names", "fit,unfit,gone")
        assert told.status == 0, told.err
        assert "fit → gone" in told.out

    def test_select_and_compare_take_words_for_labels(self, run, patients):
        (patients / "two.csv").write_text("\n".join(["time,state", *(f"{t},{'ab'[t // 3 % 2]}" for t in range(600))]))
        told = run("select", "two.csv", "--labels", "a,b", "--states", 2)
        assert_refused(told, "the labels of the data name the states: there is no number of them to choose")
        told = run("compare", "two.csv", "--labels", "a,b", "--states", 2, "--emission", "gaussian")
        assert_refused(told, "--labels reads words, which are categorical observations")

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--exact-entry", "Dead"), "--exact-entry takes a label, one of well, ill, dead, alive; got 'Dead'"),
            (
                ("--censored", "alive=fine"),
                "--censored takes CODE=STATE,STATE, such as alive=well,ill, of labels, one of",
            ),
            (
                ("--censored", "alive"),
                "--censored takes CODE=STATE,STATE, such as alive=well,ill, of labels; got 'alive'",
            ),
            (("--emission", "gaussian"), "--labels reads words, which are categorical observations: leave out"),
        ],
    )
    def test_words_that_are_none(self, run, patients, words, said):
        assert_refused(run("fit", "patients.csv", *READING, *LABELS, "--states", 3, *words), said)

    def test_words_where_numbers_are_labels(self, run, patients):
        (patients / "numbers.csv").write_text("time,state\n0,1\n1,2\n2,1\n")
        told = run("fit", "numbers.csv", "--states", 2, "--exact-entry", "dead")
        assert_refused(told, "--exact-entry takes a label, a number as in the data, or a word of --labels; got 'dead'")
        told = run("fit", "patients.csv", *READING, *LABELS, "--prior", "birth-death")
        assert_refused(told, "--labels")
