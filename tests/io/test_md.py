"""Molecular-dynamics trajectories: angles, distances and positions against MDTraj and by hand; broken files."""

import warnings

import numpy as np
import pytest

from neuralmjp.errors import InputError
from neuralmjp.io import md as reader
from neuralmjp.io import read
from neuralmjp.preprocess import sine_cosine

md = pytest.importorskip("mdtraj", reason="mdtraj, of the extra 'md', is not installed")

# A chain of two residues' backbones between caps, so that it has two phi and two psi.
ATOMS = [("ACE", "C")] + [(f"ALA{i}", name) for i in (0, 1) for name in ("N", "CA", "C")] + [("NME", "N")]


@pytest.fixture
def trajectory():
    topology = md.Topology()
    chain, residues = topology.add_chain(), {}
    for residue, name in ATOMS:
        if residue not in residues:
            residues[residue] = topology.add_residue(residue[:3], chain)
        topology.add_atom(name, md.element.get_by_symbol(name[0]), residues[residue])
    rng = np.random.default_rng(0)
    line = np.cumsum(np.full((len(ATOMS), 3), 0.08), axis=0)
    return md.Trajectory(line + rng.normal(scale=0.05, size=(50, len(ATOMS), 3)), topology, time=np.arange(50) * 0.1)


@pytest.fixture
def files(tmp_path, trajectory):
    trajectory[0].save(tmp_path / "atoms.pdb")
    trajectory.save(tmp_path / "run.xtc")
    return {"path": tmp_path / "run.xtc", "topology": tmp_path / "atoms.pdb"}


def message(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_backbone_angles(files, trajectory):
    data = read(**files)
    assert (data.names, data.time_unit) == (("run",), "ps")
    assert data.value_names == ("phi_2", "psi_2", "phi_3", "psi_3")
    assert data.times.tolist() == pytest.approx((np.arange(50) * 0.1).tolist(), rel=1e-9)  # not in single precision
    loaded = md.load(files["path"], top=files["topology"])
    np.testing.assert_allclose(data.values[:, [0, 2]], md.compute_phi(loaded)[1], atol=1e-6)
    np.testing.assert_allclose(data.values[:, [1, 3]], md.compute_psi(loaded)[1], atol=1e-6)


def test_sines_and_cosines(files):
    np.testing.assert_allclose(read(**files, features="sincos").values, sine_cosine(read(**files)).values, atol=1e-6)
    assert read(**files, features="sincos").value_names[:2] == ("sin_phi_2", "cos_phi_2")


def test_distances(files, trajectory):
    data = read(**files, features="distances:0-4,7-2")
    assert data.value_names == ("distance 0-4 (nm)", "distance 7-2 (nm)")
    expected = np.linalg.norm(trajectory.xyz[:, [0, 7]] - trajectory.xyz[:, [4, 2]], axis=-1)
    np.testing.assert_allclose(data.values, expected, atol=3e-3)  # XTC keeps thousandths


def test_positions_do_not_turn_with_the_molecule(files, trajectory, tmp_path):
    """Turning and shifting every frame changes nothing; a mirror image would."""
    still = read(**files, features="positions:CA,C")
    assert still.value_names[:4] == ("ACE1-C x (nm)", "ACE1-C y (nm)", "ACE1-C z (nm)", "ALA2-CA x (nm)")
    rng = np.random.default_rng(1)
    turns = np.linalg.qr(rng.normal(size=(50, 3, 3)))[0]
    turns *= np.linalg.det(turns)[:, None, None]
    trajectory.xyz = trajectory.xyz @ turns.astype(np.float32) + rng.normal(size=(50, 1, 3))
    trajectory.save(tmp_path / "turned.dcd")
    turned = read(tmp_path / "turned.dcd", topology=files["topology"], features="positions:CA,C")
    np.testing.assert_allclose(turned.values, still.values, atol=5e-3)


@pytest.mark.parametrize("suffix", [".dcd", ".trr", ".nc", ".pdb"])
def test_other_formats(files, trajectory, tmp_path, suffix):
    path = tmp_path / f"other{suffix}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NetCDF is written more slowly without a package of its own
        trajectory.save(path)
    data = read(path, topology=files["topology"], rate=10)
    np.testing.assert_allclose(data.gaps, 0.1, rtol=1e-6)
    np.testing.assert_allclose(np.cos(data.values), np.cos(read(**files).values), atol=0.1)


def test_pieces_make_no_difference(files, monkeypatch):
    whole = read(**files, features="distances:1-2")
    monkeypatch.setattr("neuralmjp.io.apart.SUFFIXES", ())  # in this process
    monkeypatch.setattr(reader, "_PIECE", 7 * 3 * len(ATOMS))
    assert read(**files, features="distances:1-2").equals(whole)


def test_several_files(files, trajectory, tmp_path):
    trajectory[:20].save(tmp_path / "more.xtc")
    data = read([files["path"], tmp_path / "more.xtc"], topology=files["topology"])
    assert (data.names, data.lengths.tolist()) == (("run", "more"), [50, 20])


def test_uneven_times_stay():
    assert reader.even(np.array([0.0, 1.0, 3.0])).tolist() == [0, 1, 3]
    late = 1e6 + 0.1 * np.arange(100)
    np.testing.assert_allclose(np.diff(reader.even(late.astype(np.float32).astype(float))), 0.1, rtol=1e-2)


REFUSED = {
    "no topology": ({"topology": None}, "does not name its atoms; give --topology, such as a .pdb"),
    "topology missing": ({"topology": "no.pdb"}, "no.pdb: no such file"),
    "unknown features": ({"features": "angles"}, "--features is dihedrals, sincos, distances:0-4,3-7 or positions:CA"),
    "no pairs": ({"features": "distances:1"}, "takes pairs of atoms, such as distances:0-4,3-7; got '1'"),
    "far atom": ({"features": "distances:0-99"}, "no atom 99; atoms are 0 to 7"),
    "unknown atom": ({"features": "positions:CA,XX"}, "no atom 'XX'"),
    "two atoms": ({"features": "positions:CA"}, "needs three atoms or more"),
    "columns": ({"values": "phi"}, "a molecular-dynamics file has no use for --values"),
    "unit": ({"time_unit": "frames"}, "times in 'ps' cannot be told in 'frames'"),
}


@pytest.mark.parametrize(("options", "what"), REFUSED.values(), ids=REFUSED)
def test_refused(files, options, what):
    assert what in message(**files | options)


def test_wrong_molecule(files, trajectory, tmp_path):
    trajectory.atom_slice([0, 1, 2]).save(tmp_path / "small.dcd")
    assert "not of the 8 atoms" in message(tmp_path / "small.dcd", topology=files["topology"])


@pytest.mark.parametrize("suffix", [".xtc", ".dcd", ".trr", ".nc"])
def test_not_a_trajectory(files, tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"this is no trajectory at all, but long enough to be looked at for a while" * 10)
    assert message(path, topology=files["topology"]).startswith(f"{path}: ")


def test_cut_short(files, capfd):
    content = files["path"].read_bytes()
    files["path"].write_bytes(content[: len(content) // 2 - 7])
    assert "is it cut short" in message(**files)
    assert capfd.readouterr() == ("", "")  # one line from us, none from the reader beneath


def test_missing_package(files, without):
    without("mdtraj")
    assert message(**files) == f"{files['path']}: a molecular-dynamics file needs mdtraj: pip install 'neuralmjp[md]'"


def test_nothing_is_printed(shared_data, capfd):
    """The reader of DCD files prints what it finds, below Python."""
    folder = shared_data / "adp_md"
    data = read(folder / "trajectory-0.dcd", topology=folder / "ala2.pdb")
    assert capfd.readouterr().out == ""
    assert (data.value_names, data.time_unit, data.n_observations) == (("phi", "psi"), "ps", 9999)
    assert (data.gaps == 1).all()
    assert (data.values[:, 0] < 0).mean() > 0.95  # the states with phi > 0 are never visited
