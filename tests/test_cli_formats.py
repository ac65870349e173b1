"""Recordings and trajectories on the command line; how a file was read is remembered."""

import json

import numpy as np
import pytest

from command import assert_refused
from neuralmjp.io import read
from neuralmjp.systems import IonChannel

QUICK = ("--states", 2, "--emission", "gaussian", "--restarts", 1)


@pytest.fixture
def recording(tmp_path):
    """One number per line, 5 kHz."""
    values = IonChannel.paper("one-second").simulate(1, 2000, seed=0).data.values
    np.savetxt(tmp_path / "trace.txt", values)
    return tmp_path / "trace.txt"


def test_plain_columns(run, recording, tmp_path):
    assert run("describe", recording, "--rate", "5kHz", "--json", "facts.json").status == 0
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert (facts["time_unit"], facts["gap"]["median"]) == ("s", pytest.approx(2e-4))
    assert_refused(run("describe", recording), "or give --rate")


def test_the_reading_of_a_fit_is_remembered(run, recording, tmp_path):
    options = ("--rate", "5kHz", "--time-unit", "ms", "--decimate", 2)
    assert run("fit", recording, *options, *QUICK, "--out", "run").status == 0
    stored = json.loads((tmp_path / "run" / "columns.json").read_text())
    assert (stored["rate"], stored["decimate"], stored["topology"]) == ("5kHz", 2, None)
    assert run("decode", "run", recording, "--out", "path.parquet").status == 0
    decoded = read(tmp_path / "path.parquet")
    assert (decoded.n_observations, decoded.time_unit) == (1000, "ms")
    np.testing.assert_allclose(decoded.gaps, 0.4, rtol=1e-9)
    assert run("predict", "run", recording, "--steps", 2).status == 0
    assert run("decode", "run", recording, "--decimate", 1, "--out", "all.parquet").status == 0
    assert read(tmp_path / "all.parquet").n_observations == 2000


def test_options_of_other_files(run, table):
    assert_refused(run("describe", table, "--topology", "x.pdb"), "a table has no use for --topology; leave it out")
    assert_refused(run("describe", table, "--decimate", 0), "--decimate")


def test_a_real_patch_clamp_recording(run, shared_data, tmp_path):
    file = shared_data / "ion_channel" / "cluster.abf"
    assert run("describe", file, "--states", 2).status == 0
    assert run("fit", file, *QUICK, "--out", "run", "--json", "result.json").status == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["time_unit"] == "s"
    assert 50 < result["rates"]["mean"][0][1] < 500
    ended = run("decode", "run", file, "--out", "path.csv")
    assert "11695 observations decoded" in ended.out


def test_a_real_trajectory(run, shared_data, tmp_path):
    folder = shared_data / "adp_md"
    names = ("--topology", folder / "ala2.pdb")
    assert run("describe", folder / "trajectory-0.dcd", *names).status == 0
    ended = run("fit", folder / "trajectory-0.dcd", *names, "--thin", 5, *QUICK, "--out", "run")
    assert ended.status == 0
    assert "(per ps)" in ended.out
    ended = run("decode", "run", folder / "trajectory-1.dcd", "--out", "path.csv")
    assert "10000 observations decoded" in ended.out
