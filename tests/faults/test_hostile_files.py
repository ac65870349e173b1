"""Files made to do harm: nothing is executed, nothing is written elsewhere, memory and time are bounded."""

import gzip
import json
import os
import pickle
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuralmjp import ExactMJP, FittedMJP, InputError, TimeSeries, systems
from neuralmjp.commands import report
from neuralmjp.io import read
from neuralmjp.report import Finding, Source, report_of
from neuralmjp.shapes import require_shape

READ_IN_BOUNDS = """
import resource, sys
from pathlib import Path
from neuralmjp import InputError
from neuralmjp.io import read
import neuralmjp.io.csv, neuralmjp.io.parquet, neuralmjp.io.npz, neuralmjp.systems.sbml
now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 30), now + (1 << 30)))
try:
    (read if not sys.argv[1].endswith(".xml") else neuralmjp.systems.sbml.read_sbml)(Path(sys.argv[1]))
except InputError as error:
    print(error)
"""


def refused(path) -> str:
    """What is said of a file by a process that may take 1 GiB and 20 s."""
    done = subprocess.run([sys.executable, "-c", READ_IN_BOUNDS, path], capture_output=True, text=True, timeout=20)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1, done.stdout
    return done.stdout


def npy(dtype: str, shape: str, data: bytes = b"", padding: int = 0) -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode() + b" " * padding + b"\n"
    start = (
        b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
        if len(header) < 65536
        else (b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little"))
    )
    return start + header + data


def npz(path, times: bytes, values: bytes = npy("<f8", "(3,)", bytes(24)), **others: bytes):
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in {"times": times, "values": values, **others}.items():
            packed.writestr(f"{name}.npy", content)
    return path


class TestBombs:
    def test_npz(self, tmp_path):
        path = tmp_path / "bomb.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            with packed.open("times.npy", "w", force_zip64=True) as member:
                member.write(npy("<f8", "(150000000,)"))
                for _ in range(1200):
                    member.write(bytes(1_000_000))
            packed.writestr("values.npy", npy("<f8", "(3,)", bytes(24)))
        assert path.stat().st_size < 5_000_000
        assert "would unpack to 12" in refused(path)

    def test_gzip_rows(self, tmp_path):
        path, rows = tmp_path / "bomb.csv.gz", b"0,0\n" * 250_000
        with gzip.open(path, "wb", compresslevel=9) as file:
            file.write(b"time,x\n")
            for _ in range(500):
                file.write(rows)
        assert "would unpack to" in refused(path)

    def test_gzip_line(self, tmp_path):
        path = tmp_path / "bomb.csv.gz"
        with gzip.open(path, "wb", compresslevel=9) as file:
            for _ in range(1000):
                file.write(b"x" * 1_000_000)
        assert "has a line of more than 4194304 bytes" in refused(path)

    def test_a_long_line_further_down(self, tmp_path):
        path = tmp_path / "bomb.csv.gz"
        with gzip.open(path, "wb", compresslevel=9) as file:
            file.write(b"time,x\n0,1\n")
            for _ in range(1000):
                file.write(b"x" * 1_000_000)
        refused(path)

    def test_parquet(self, tmp_path):
        path = tmp_path / "bomb.parquet"
        batch = pa.table({"time": pa.array(np.zeros(5_000_000)), "x": pa.array(np.zeros(5_000_000))})
        with pq.ParquetWriter(path, batch.schema, compression="zstd") as writer:
            for _ in range(20):
                writer.write_table(batch)
        assert path.stat().st_size < 1_000_000
        assert "would unpack to 1600000000" in refused(path)

    def test_hdf5(self, tmp_path):
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "bomb.h5", "w") as file:
            for name in ("times", "values"):
                file.create_dataset(name, (10**12,), "f8", chunks=(10**6,), compression="gzip")
        assert "memory" in refused(tmp_path / "bomb.h5")

    def test_xml(self, tmp_path):
        """A billion laughs: entities of entities."""
        pytest.importorskip("libsbml")
        lines = ['<!ENTITY a0 "ha">'] + [f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, 10)]
        text = f'<?xml version="1.0"?><!DOCTYPE x [{"".join(lines)}]><sbml>&a9;</sbml>'
        (tmp_path / "bomb.xml").write_text(text)
        refused(tmp_path / "bomb.xml")


class TestLies:
    @pytest.mark.parametrize(
        "times",
        [
            npy("<f8", "(1000000000000,)", bytes(24)),
            npy("<f8", "(-3,)", bytes(24)),
            npy("<f8", "(3, 0, 5)", bytes(24)),
            npy("|V1000000000", "(3,)", bytes(24)),
            npy("<f8", "(3,)", bytes(23)),
            npy("<f8", "(3,)", bytes(25)),
            npy("<f8", "(3,)", bytes(24), padding=20_000),
            npy("<f8", "(3,)", bytes(24), padding=200_000),
            npy("<f8", "(" * 500 + "3" + ")" * 500, bytes(24)),
            b"\x93NUMPY\x09\x00" + bytes(100),
            npy("|O", "(1,)", pickle.dumps([print])),
        ],
        ids=range(11),
    )
    def test_headers_of_arrays(self, tmp_path, times):
        with pytest.raises(InputError) as error:
            read(npz(tmp_path / "x.npz", times))
        assert "\n" not in str(error.value)

    def test_names_that_lead_elsewhere(self, tmp_path, monkeypatch):
        """Nothing is ever unpacked to a place that the file names."""
        monkeypatch.chdir(tmp_path)
        good = npy("<f8", "(3,)", np.arange(3.0).tobytes())
        path = npz(tmp_path / "x.npz", good, good, **{"../../up": good, "/tmp/neuralmjp-was-here": good})
        assert len(read(path)) == 1
        assert os.listdir(tmp_path) == ["x.npz"]
        assert not os.path.exists("/tmp/neuralmjp-was-here.npy")

    def test_a_checksum_that_is_wrong(self, tmp_path):
        good = npy("<f8", "(3,)", np.arange(3.0).tobytes())
        path = npz(tmp_path / "x.npz", good, good)
        path.write_bytes(path.read_bytes().replace(zlib.crc32(good).to_bytes(4, "little"), b"\x00\x01\x02\x03"))
        with pytest.raises(InputError, match="damaged"):
            read(path)


@pytest.fixture(scope="module")
def fitted():
    return ExactMJP(2, "gaussian", restarts=1).fit(systems.TwoMode().simulate(4, 12, seed=1).data)


class TestModels:
    def damaged(self, fitted, folder, **changes):
        fitted.save(folder)
        known = json.loads((folder / "model.json").read_text())
        (folder / "model.json").write_text(json.dumps(known | changes))
        with pytest.raises(InputError) as error:
            FittedMJP.load(folder)
        assert "\n" not in str(error.value)
        return str(error.value)

    def test_another_version(self, fitted, tmp_path):
        assert "not a fitted model of version 1; fit again" in self.damaged(fitted, tmp_path, version=2)

    def test_other_types(self, fitted, tmp_path):
        assert "seed is not int" in self.damaged(fitted, tmp_path, seed="<script>")
        assert "warnings is not str" in self.damaged(fitted, tmp_path, warnings=[1])
        assert "emission is not one with" in self.damaged(fitted, tmp_path, emission=[])

    def test_arrays_of_another_fit(self, fitted, tmp_path):
        assert "of two different fits" in self.damaged(fitted, tmp_path, arrays="0" * 64)

    def test_an_endless_description(self, fitted, tmp_path, monkeypatch):
        monkeypatch.setattr("neuralmjp.fitted_files.LARGEST_JSON", 100)
        assert "more than any that was written here" in self.damaged(fitted, tmp_path)

    def test_nested_without_end(self, fitted, tmp_path):
        fitted.save(tmp_path)
        (tmp_path / "model.json").write_text("[" * 100_000)
        with pytest.raises(InputError, match="is no JSON"):
            FittedMJP.load(tmp_path)

    def test_a_pickle_in_the_arrays(self, fitted, tmp_path):
        fitted.save(tmp_path)
        with open(tmp_path / "arrays.npz", "wb") as file:
            np.savez(file, theta=np.array([print], dtype=object), allow_pickle=True)
        with pytest.raises(InputError, match="holds Python objects"):
            FittedMJP.load(tmp_path)


NASTY = "<script>alert(1)</script>"
QUOTED = "\"'><img src=x onerror=alert(1)>"


class TestReports:
    @pytest.mark.parametrize("nasty", [NASTY, QUOTED, "</script><b>", "{title}", "]]>", "<!--"])
    def test_every_name_stays_text(self, nasty):
        """Series, values, units, labels, files, commands, settings, findings."""
        times, states = np.tile(np.arange(60.0), (2, 1)), np.arange(120).reshape(2, 60) // 7 % 2
        data = TimeSeries.from_arrays(
            times, 5.0 * states + np.sin(7.0 * times), time_unit=nasty, value_names=(nasty,), names=[nasty, f"{nasty}2"]
        )
        fitted = ExactMJP(2, "gaussian", restarts=1).fit(data)
        source = Source(
            data=f"{nasty}.csv",
            command=nasty,
            configuration={nasty: nasty},
            history=[{"step": 1.0, "objective": -2.0}, {"step": 2.0, "objective": -1.0}],
            findings=[Finding(None, nasty)],
        )
        page = report_of(fitted, data=data, source=source)
        assert "<script>alert" not in page
        assert "<img" not in page
        assert page.count("</script>") == page.count("<script") == 1

    def test_what_a_folder_says_of_itself(self, tmp_path):
        checks = {"checks": [{"check": NASTY, "passed": False, "sentence": NASTY}]}
        (tmp_path / "checks.json").write_text(json.dumps(checks))
        (found,) = report.checks_of(tmp_path)
        assert NASTY in found.words  # escaped where it is shown: above
        (tmp_path / "checks.json").write_text('{"checks": [{"check": 1}]}')
        assert "Not validated yet" in report.checks_of(tmp_path)[0].words


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (True, int),
        (1.5, int),
        (None, float),
        ("1", float),
        (10**30, int),
        (1e301, float),
        ([1, "x"], [int]),
        ({}, {"a": int}),
    ],
)
def test_shapes_that_differ(value, shape):
    with pytest.raises(ValueError, match="is not"):
        require_shape(value, shape)
