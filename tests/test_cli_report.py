"""`neuralmjp report`: one file from what a fit left behind."""

import json

from command import assert_refused


def test_from_fit_to_page(run, tmp_path):
    data, folder = tmp_path / "channel.csv", tmp_path / "run"
    assert run("simulate", "ion-channel", "--series", 1, "--length", 2000, "--seed", 3, "--out", data)[0] == 0
    assert run("fit", data, "--states", 3, "--time-unit", "s", "--restarts", 1, "--out", folder)[0] == 0
    assert json.loads((folder / "source.json").read_text())["data"] == str(data)
    status, out, error = run("report", folder)
    assert status == 0, error
    assert f"report -> {folder / 'report.html'}" in out
    page = (folder / "report.html").read_text()
    assert "3 states in channel.csv" in page
    assert "Hidden path" in page
    assert "(per s)" in page
    assert "Not validated yet" in page
    checks = [{"check": "residuals", "passed": False, "sentence": "too <wide>"}]
    (folder / "checks.json").write_text(json.dumps({"checks": checks}))

    data.rename(tmp_path / "moved.csv")
    status, out, _ = run("report", folder, "--out", tmp_path / "short.html")
    assert status == 0
    assert "without the hidden path" in out
    short = (tmp_path / "short.html").read_text()
    assert "Hidden path" not in short
    assert "residuals failed: too &lt;wide&gt;" in short
    assert "Do not rely on this fit yet" in short
    assert run("report", folder, tmp_path / "moved.csv")[0] == 0
    assert "3 states in moved.csv" in (folder / "report.html").read_text()


def test_refused(run, tmp_path):
    assert_refused(run("report", tmp_path / "nothing"), "nothing")


def test_a_reaction_network(run, tmp_path):
    births, folder = tmp_path / "births.csv", tmp_path / "births"
    assert run("simulate", "birth-death", "--series", 8, "--length", 6, "--seed", 1, "--out", births)[0] == 0
    assert run("fit", births, "--prior", "birth-death", "--out", folder)[0] == 0
    status, _, err = run("report", folder)
    assert (status, err) == (0, "")
    page = (folder / "report.html").read_text()
    assert "birth-death in births.csv" in page
    for words in ("Rate constants (per", "constants.csv", "2 more series are not in this page", "neuralmjp fit"):
        assert words in page
    assert page.count("<svg") == 1 + 6  # constants; the only species of six series
    assert "nan" not in page.lower().split("<script>")[0].replace("nanosecond", "")
