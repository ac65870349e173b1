"""Patch-clamp recordings in Axon Binary Format: sweeps, channels, units, and broken files."""

import struct
import subprocess
import sys
import warnings

import numpy as np
import pytest

from neuralmjp.errors import InputError
from neuralmjp.io import read, write

with np.printoptions():  # it changes how arrays are printed
    writer = pytest.importorskip("pyabf.abfWriter", reason="pyabf, of the extra 'ephys', is not installed")


@pytest.fixture
def sweeps():
    return np.random.default_rng(0).normal(scale=3.0, size=(3, 2000))


@pytest.fixture
def path(tmp_path, sweeps):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it writes, and notices that numbers are rounded
        writer.writeABF1(sweeps, str(tmp_path / "cell.abf"), 10_000, units="pA")
    return tmp_path / "cell.abf"


def message(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_sweeps_are_series(path, sweeps):
    data = read(path)
    assert data.names == ("sweep 0", "sweep 1", "sweep 2")
    assert (data.time_unit, data.value_names) == ("s", ("current (pA)",))
    np.testing.assert_allclose(data.gaps, 1e-4, rtol=1e-9)
    np.testing.assert_allclose(data.values.reshape(3, -1), sweeps, atol=4e-3)  # 16 bits over their range
    assert (np.diff(data.times[data.offsets[:-1]]) > 0).all()


def test_decimation(path):
    data = read(path, decimate=4)
    assert data.lengths.tolist() == [500, 500, 500]
    np.testing.assert_allclose(data.gaps, 4e-4, rtol=1e-9)


def test_the_channel(path):
    assert read(path, channel=0).equals(read(path, channel="0"))
    assert message(path, channel=7).startswith(f"{path}: no channel 7; there are 0 ")


def test_several_channels_must_be_chosen_from(path, monkeypatch):
    import pyabf

    class Two(pyabf.ABF):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self.adcNames, self.adcUnits = ["IN 0", "Vm"], ["pA", "mV"]

    monkeypatch.setattr(pyabf, "ABF", Two)
    monkeypatch.setattr("neuralmjp.io.apart.SUFFIXES", ())  # in this process
    assert message(path).endswith("has 2 channels; choose one with --channel: 0 'IN 0' in pA, 1 'Vm' in mV")
    assert read(path, channel="IN 0").value_names == ("current (pA)",)


@pytest.mark.parametrize("keep", [3, 4, 100, 2100, 6000])
def test_cut_short(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    assert message(path).startswith(f"{path}: ")


def test_a_header_that_promises_too_much(path):
    content = bytearray(path.read_bytes())
    content[10:14] = struct.pack("<i", 2**31 - 1)  # lActualAcqLength
    path.write_bytes(content)
    assert "is cut short" in message(path)


def test_not_abf(tmp_path):
    path = tmp_path / "x.abf"
    path.write_text("time,current\n0,1\n")
    assert message(path) == f"{path}: is not an Axon Binary file; give it the extension of what it is"


def test_options_of_other_files(path):
    assert "an .abf file has no use for --rate; leave it out" in message(path, rate="1kHz")
    np.testing.assert_allclose(read(path, time_unit="ms").times, 1e3 * read(path).times, rtol=1e-12)


def test_abf_is_not_written(path, tmp_path):
    with pytest.raises(InputError, match="such files are read, not written"):
        write(read(path), tmp_path / "out.abf")


def test_missing_package(path, without):
    without("pyabf")
    assert message(path) == f"{path}: an .abf file needs pyabf: pip install 'neuralmjp[ephys]'"


def test_a_real_recording(shared_data):
    data = read(shared_data / "ion_channel" / "cluster.abf")
    assert (data.n_observations, data.time_unit, data.value_names) == (11695, "s", ("current (pA)",))
    np.testing.assert_allclose(data.gaps, 1e-4, rtol=1e-6)
    assert -3 < data.values.mean() < 10


def test_arrays_are_printed_as_before(path):
    """In a process of its own, where the package is imported for the first time."""
    code = f"import numpy as np, neuralmjp\nneuralmjp.read({str(path)!r})\nprint(np.array([1 / 3]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[0.33333333]\n"
