"""Text tables: what they may look like, and what is said about those that are wrong."""

import gzip

import numpy as np
import pytest

from neuralmjp.errors import InputError
from neuralmjp.io import csv, read
from neuralmjp.timeseries import TimeSeries


@pytest.fixture
def table(tmp_path):
    """Writes text to data.csv and returns its path."""

    def write(text: str | bytes):
        path = tmp_path / "data.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


EXPECTED = TimeSeries.from_arrays([[0, 1, 2.5], [0, 3]], [[1, np.nan, 3], [4, 5]], names=["a", "b"], value_names=["x"])


class TestLayouts:
    """The same data in many dresses."""

    @pytest.mark.parametrize("delimiter", [",", ";", "\t", " ", "   ", " \t"])
    def test_delimiters(self, table, delimiter):
        text = "series,time,x\na,0,1\na,1,NA\na,2.5,3\nb,0,4\nb,3,5\n".replace(",", delimiter)
        assert read(table(text)).equals(EXPECTED)

    @pytest.mark.parametrize(
        "text",
        [
            "series,time,x\na,0,1\nb,0,4\na,1,\nb,3,5\na,2.5,3",  # interleaved, no last line break
            "x,Time,SERIES\n1,0,a\nNaN,1,a\n3,2.5,a\n4,0,b\n5,3,b\n",
            "\n\nseries,time,x\r\na,0,1\r\n\r\na,1,\r\na,2.5,3\r\nb,0,4\r\nb,3,5\r\n\r\n",
            '\ufeff"series", "time", x\n"a", 0, +1.0\na,1e0, null\na,2.5 , 3.\n"b",0,4\nb,.3e1,5\n',
            ",series,time,x\n0,a,0,1\n1,a,1,\n2,a,2.5,3\n3,b,0,4\n4,b,3,5\n",  # with the row index that pandas adds
        ],
    )
    def test_equal_data(self, table, text):
        assert read(table(text)).equals(EXPECTED)

    def test_interleaved_rows_keep_their_order(self, table):
        rng = np.random.default_rng(0)
        series = rng.integers(0, 5, 2000)
        lines = [f"s{s},{i},{x!r}" for i, (s, x) in enumerate(zip(series, rng.random(2000).tolist(), strict=True))]
        data = read(table("\n".join(["series,time,x", *lines])))
        assert list(data.names) == list(dict.fromkeys(f"s{s}" for s in series))
        for s in range(5):
            assert data[f"s{s}"].times.tolist() == np.flatnonzero(series == s).tolist()

    def test_runs_that_span_blocks(self, table, monkeypatch):
        monkeypatch.setattr(csv, "_BLOCK_BYTES", 64)
        lines = [f"{'ab'[i // 30 % 2]},{i},{i}" for i in range(120)]
        data = read(table("\n".join(["series,time,x", *lines])))
        assert data["a"].times.tolist() == [*range(30), *range(60, 90)]
        assert np.array_equal(data.times, data.values[:, 0])

    def test_chosen_columns(self, table):
        path = table("id,t,note,x,y\n7,0,hello,1,2\n7,1,,3,4\n")
        data = read(path, series="id", time="t", values="y, x", time_unit="ms")
        assert (data.names, data.value_names, data.time_unit) == (("7",), ("y", "x"), "ms")
        assert data.values.tolist() == [[2, 1], [4, 3]]
        assert read(path, series="id", time="t", values=["y", "x"], time_unit="ms").equals(data)

    def test_name_with_a_comma(self, table):
        assert read(table('time;"x,y"\n0;1\n1;2\n'), values="x,y").value_names == ("x,y",)

    def test_no_series_column(self, table):
        data = read(table("time,x,y\n0,1,2\n1,3,4\n"))
        assert (data.names, data.value_names) == (("0",), ("x", "y"))

    def test_no_header(self, table):
        path = table("0,1,5\n1,2,6\n")
        assert read(path, header=False).value_names == ("column 1", "column 2")
        chosen = read(table("7,1,5\n7,2,6\n"), header=False, series=0, values="2")
        assert (chosen.names, chosen.times.tolist(), chosen.values.ravel().tolist()) == (("7",), [1, 2], [5, 6])

    def test_names_of_series_are_text(self, table):
        assert read(table("series,time,x\n007,0,1\n007,1,1\nNA,0,1\n")).names == ("007", "NA")

    def test_gzip(self, tmp_path):
        path = tmp_path / "data.csv.gz"
        path.write_bytes(gzip.compress(b"time,x\n0,1\n1,2\n"))
        assert read(path).n_observations == 2
        path.write_bytes(gzip.compress(b"time,x\n0,1\n1,2\n" * 1000)[:-20])
        with pytest.raises(InputError, match="is not a whole gzip file; compress or copy it again"):
            read(path)
        path.write_bytes(b"time,x\n0,1\n1,2\n")
        with pytest.raises(InputError, match="is not a whole gzip file"):
            read(path)


# text, options, message after the path
BAD_TABLES = {
    "missing column": ("time,x\n0,1\n", {"values": "y"}, ": no column 'y'; the columns are 'time', 'x'"),
    "no time": (
        "t,x\n0,1\n",
        {},
        ": no column 'time'; name the column of times with --time, or give --rate; the columns are 't', 'x'",
    ),
    "no header": (
        "0.1,1\n0.2,2\n",
        {},
        ": no column 'time'; name the column of times with --time, or give --rate; the columns are '0.1', '1'; "
        "use --no-header if the first line holds data",
    ),
    "header in spite of header=False": (
        "time,x\n0,1\n1,2\n",
        {"header": False},
        ", line 1, column 0: 'time' is not a number; leave out --no-header if the first line names the columns",
    ),
    "position out of range": ("0,1\n", {"header": False, "values": 2}, ": no column 2; columns are 0 to 1"),
    "name without header": (
        "0,1\n",
        {"header": False, "time": "t"},
        ": 't' is no position; without a header columns are given by position from 0",
    ),
    "column twice": (
        "time,x\n0,1\n",
        {"values": "time,x"},
        ": one column is asked for twice among series, time and values; name different ones",
    ),
    "no values": ("series,time\na,1\n", {}, ": no column of values is left beside series and time; add one"),
    "repeated name": ("time,x,x\n0,1,2\n", {}, ": two columns are called 'x'; rename one"),
    "text": (
        "time,current\n0,1\n\n1,abc\n",
        {},
        ", line 4, column 'current': 'abc' is not a number; "
        "leave the cell empty if the value is missing, or choose other columns with --values",
    ),
    "long text": ("time,x\n0,1\n1," + "y" * 99 + "\n", {}, f", line 3, column 'x': '{'y' * 40}...' is not a number"),
    "text for a time": (
        "time,x\n0,1\nnoon,1\n",
        {},
        ", line 3, column 'time': 'noon' is not a number; every observation needs a time",
    ),
    "text among words": ("time x\n0  1\n1  abc\n", {}, ", line 3, column 'x': 'abc' is not a number"),
    "unsorted": (
        "series,time,x\na,0,1\nb,0,1\na,2,1\nb,1,1\na,1,1\n",
        {},
        ", line 6, column 'time': time 1.0 comes after 2.0; sort each series by time",
    ),
    "unsorted without series": (
        "id,time,x\n1,0,1\n1,1,1\n2,0,1\n",
        {"values": "x"},
        ", line 4, column 'time': time 0.0 comes after 1.0; sort each series by time, "
        "or name the column of series with --series",
    ),
    "repeated time": (
        "series,time,x\na,0,1\nb,0,1\nb,0.5,1\nb,0.5,1\n",
        {},
        ", line 5, column 'time': time 0.5 is repeated; keep one observation per time in each series",
    ),
    "negative time": (
        "time,x\n-0.5,1\n0,1\n",
        {},
        ", line 2, column 'time': time -0.5 is negative; shift the times so that none is below 0",
    ),
    "infinite time": ("time,x\n0,1\ninf,1\n", {}, ", line 3, column 'time': time inf is not finite"),
    "missing time": ("time,x\n0,1\n,1\n", {}, ", line 3, column 'time': the time is missing; every observation"),
    "infinite value": (
        "time,x,y\n0,1,2\n1,1,-inf\n",
        {},
        ", line 3, column 'y': the value is -inf; leave it empty (NaN) if it is missing",
    ),
    "all missing": (
        "series,time,x\na,0,1\na,1,\nb,0,\nb,1,NA\n",
        {},
        ", line 4: every value of series 'b' is missing; leave the series out",
    ),
    "no series name": (
        "series,time,x\na,0,1\n,1,1\n",
        {},
        ", line 3, column 'series': the series is not named; fill in the cell",
    ),
    "odd series name": (b"series,time,x\na\x07,0,1\na\x07,1,1\n", {}, r": the name 'a\x07' among series is not one"),
    "header only": ("time,x\n", {}, ": the table has no rows of data; write or copy it again"),
    "blanks": ("\n\n  \n", {}, ": holds nothing but blank lines; write or copy it again"),
    "decimal commas": (
        "time;x\n0,5;1\n",
        {},
        ", line 2, column 'time': '0,5' has a comma; write numbers with a decimal point, such as 0.5",
    ),
    "decimal commas of values": (
        "time;x\n0;1\n1;-1,5e3\n",
        {},
        ", line 3, column 'x': '-1,5e3' has a comma; write numbers with a decimal point, such as -1.5e3",
    ),
    "decimal commas without a header": (
        "0,5;1\n1,5;2\n",
        {},
        ": no column 'time'; name the column of times with --time, or give --rate; the columns are '0,5', '1'; "
        "use --no-header if the first line holds data",
    ),
    "header and blanks": ("time,x\n\n\n", {}, ": the table has no rows of data; write or copy it again"),
    "one observation": (
        "time,x\n0,1\n",
        {},
        ": a rate needs at least two observations of a series, and no series has more than one",
    ),
    "too many fields": (
        "time,x\n0,1\n1,2\n\n2,3,4\n",
        {},
        ", line 5: 3 columns, but the first line has 2; check for missing or extra delimiters",
    ),
    "too few fields": ("time,x\n0,1\n1\n", {}, ", line 3: 1 column, but the first line has 2"),
    "too many words": ("time x\n0 1\n1 2 3\n", {}, ", line 3: 3 columns, but the first line has 2"),
    "Latin-1": (b"series,time,x\na,0,1\nM\xfcller,1,1\n", {}, ", line 3: not UTF-8 text; save the file as UTF-8"),
    "Latin-1 header": (b"time,gr\xf6\xdfe\n0,1\n", {}, ", line 1: not UTF-8 text; save the file as UTF-8"),
    "UTF-16": ("time,x\n0,1\n".encode("utf-16"), {}, ", line 1: not UTF-8 text; save the file as UTF-8"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_message_names_file_line_and_column(case, table):
    text, options, expected = BAD_TABLES[case]
    path = table(text)
    with pytest.raises(InputError) as caught:
        read(path, **options)
    assert str(caught.value).startswith(f"{path}{expected}")
    assert "\n" not in str(caught.value)


def test_line_number_far_into_the_file(table):
    lines = [f"{i},1" for i in range(200_000)]
    lines[150_000] = "150000,?"
    with pytest.raises(InputError, match=r"line 150002, column 'x': '\?' is not a number"):
        read(table("\n".join(["time,x", *lines])))


def test_row_that_no_block_holds(table, monkeypatch):
    monkeypatch.setattr(csv, "_BLOCK_BYTES", 16)
    with pytest.raises(InputError, match=r"not a readable table .* check the quotes and delimiters"):
        read(table("time,x\n0,1\n1,0.0000000000000000000000000001\n"))


class TestRealFiles:
    """Files that other people wrote."""

    def test_panel(self, shared_data):
        data = read(shared_data / "panel" / "cav.csv", series="PTNUM", time="years", values="state", time_unit="years")
        assert len(data) == 622
        assert data.n_observations == 2846
        assert data.names[0] == "100002"
        assert set(data.values.ravel()) == {1, 2, 3, 4}
        data.check_states(4)

    def test_panel_without_its_columns_named(self, shared_data):
        path = shared_data / "panel" / "cav.csv"
        with pytest.raises(
            InputError, match=r"no column 'time'; name the column of times with --time, or give --rate; .*'years'"
        ):
            read(path)
        with pytest.raises(InputError, match=r"line 9, column 'years': .* name the column of series with --series"):
            read(path, time="years", values="state")
        with pytest.raises(InputError, match=r"line 2, column 'pdiag': 'IHD' is not a number; .* --values"):
            read(path, series="PTNUM", time="years")

    @pytest.mark.parametrize(
        ("file", "open_channels"), [("1channel_outfinaltest10", 1), ("3channels_outfinaltest1", 3)]
    )
    def test_ion_channel(self, shared_data, file, open_channels):
        data = read(shared_data / "ion_channel" / f"{file}.csv", header=False, time_unit="s")
        assert data.values.shape == (99999, 2)
        assert data.values[:, 1].max() == open_channels
        assert np.allclose(data.gaps, 1e-4)
