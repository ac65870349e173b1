"""The molecule itself, its angles, and runs that are cut off."""

import sys

import numpy as np
import pytest

from command import assert_refused
from neuralmjp.commands import molecule as command
from neuralmjp.errors import InputError
from neuralmjp.io import read
from neuralmjp.systems.alanine_dipeptide import ATOMS, AlanineDipeptide, Conformation, backbone_angles

openmm = pytest.importorskip("openmm", reason="OpenMM, of the extra 'md', is not installed")

QUICK = AlanineDipeptide(frame=0.01)  # five steps


def test_angles_by_an_independent_witness(tmp_path):
    md = pytest.importorskip("mdtraj", reason="MDTraj, of the extra 'md', is not installed")
    (tmp_path / "molecule.pdb").write_text(AlanineDipeptide().pdb)
    frames = md.load(tmp_path / "molecule.pdb")
    rng = np.random.default_rng(0)
    shaken = md.Trajectory(frames.xyz + rng.normal(scale=0.05, size=(20, 22, 3)), frames.topology)
    expected = np.column_stack([md.compute_phi(shaken)[1], md.compute_psi(shaken)[1]])
    found = np.array([backbone_angles(one) for one in shaken.xyz])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_molecule_is_at_rest():
    """It is a minimum of the force field: no bond is far from where the field wants it."""
    start = AlanineDipeptide().start(0)
    assert len(ATOMS) == 22
    context, steps = AlanineDipeptide()._context(0, 0)
    context.setPositions(start.positions)
    energy = context.getState(getEnergy=True).getPotentialEnergy()._value
    assert energy == pytest.approx(-133.35, abs=0.5)  # kJ / mol
    assert steps == 500


def test_blocks_make_one_run():
    """The same seed gives the same frames, another one others; a block goes on from the one before."""
    start = QUICK.start(3)
    angles, end = QUICK.block(start, 6, seed=3, number=0)
    again, _ = QUICK.block(start, 6, seed=3, number=0)
    other, _ = QUICK.block(start, 6, seed=4, number=0)
    np.testing.assert_array_equal(angles, again)
    assert not np.array_equal(angles, other)
    assert angles.shape == (6, 2)
    assert (np.abs(angles) <= np.pi).all()
    following, _ = QUICK.block(end, 1, seed=3, number=1)
    assert np.abs(np.angle(np.exp(1j * (following[0] - angles[-1])))).max() < 0.3


def test_bonds_keep_their_lengths():
    _, end = QUICK.block(QUICK.start(1), 20, seed=1, number=0)
    carbon, hydrogen = ATOMS.index(("ALA", "CA")), ATOMS.index(("ALA", "HA"))
    assert np.linalg.norm(end.positions[carbon] - end.positions[hydrogen]) == pytest.approx(0.109, abs=1e-4)


def test_refused():
    with pytest.raises(InputError, match="not a whole number of steps"):
        AlanineDipeptide(frame=0.003).block(QUICK.start(0), 1, seed=0, number=0)
    with pytest.raises(InputError, match="must not be negative"):
        QUICK.start(-1)


@pytest.fixture
def quick(monkeypatch):
    """Frames and blocks that take no time, everything kept at once."""
    monkeypatch.setattr(command, "AlanineDipeptide", lambda: QUICK)
    monkeypatch.setattr(command, "BLOCK", 4)
    monkeypatch.setattr(command, "KEEP_EVERY", 0.0)


WORDS = ("simulate", "alanine-dipeptide", "--ns", 1e-4, "--seed", 5, "--out")


@pytest.mark.usefixtures("quick")
class TestCommand:
    def test_a_run(self, run, tmp_path):
        ended = run(*WORDS, "adp.npz")
        assert (ended.status, ended.err) == (0, "")
        data = read(tmp_path / "adp.npz")
        assert (data.value_names, data.time_unit, data.n_observations) == (("phi", "psi"), "ps", 10)
        assert [path.name for path in tmp_path.iterdir()] == ["adp.npz"]

    def test_cut_off_and_gone_on_with(self, run, tmp_path, monkeypatch):
        run(*WORDS, "whole.npz")
        block, blocks = AlanineDipeptide.block, []

        def dying(self, start, n_frames, *, seed, number):
            blocks.append(number)
            if len(blocks) == 3:
                raise KeyboardInterrupt
            return block(self, start, n_frames, seed=seed, number=number)

        monkeypatch.setattr(AlanineDipeptide, "block", dying)
        assert run(*WORDS, "cut.npz").status == 130
        assert not (tmp_path / "cut.npz").exists()
        assert_refused(run(*WORDS[:-2], 6, "--out", "cut.npz"), "another --seed")
        ended = run(*WORDS, "cut.npz")
        assert "8 of them from an earlier run" in ended.out
        assert blocks == [0, 1, 2, 2]
        assert read(tmp_path / "cut.npz").equals(read(tmp_path / "whole.npz"))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.npz", "whole.npz"]

    @pytest.mark.parametrize("left", [b"", b"not a file of arrays", None])
    def test_damaged_remains(self, run, tmp_path, left):
        if left is None:
            np.savez(tmp_path / "x.csv.partial.npz", angles=np.zeros(3))
        else:
            (tmp_path / "x.csv.partial.npz").write_bytes(left)
        assert_refused(run(*WORDS, "x.csv"), "x.csv.partial.npz", "is damaged; remove it to begin anew")

    @pytest.mark.parametrize(
        ("words", "what"),
        [
            (["--out", "x.csv"], "say how long"),
            (["--ns", "-1", "--out", "x.csv"], "say how long"),
            (["--ns", "nan", "--out", "x.csv"], "say how long"),
            (["--ns", "0.00001", "--out", "x.csv"], "no more than one frame"),
            (["--ns", "1", "--series", "3", "--set", "V=1", "--out", "x.csv"], "leave out --series, --set"),
        ],
    )
    def test_refused(self, run, words, what):
        assert_refused(run("simulate", "alanine-dipeptide", *words), what)

    def test_other_systems_have_no_nanoseconds(self, run):
        assert_refused(run("simulate", "two-mode", "--ns", 1, "--out", "x.csv"), "--ns is for alanine-dipeptide")

    def test_missing_package(self, run, monkeypatch):
        monkeypatch.setitem(sys.modules, "openmm", None)
        assert_refused(run(*WORDS, "x.csv"), "needs openmm: pip install 'neuralmjp[md]'")


def test_kept_state_is_numbers_alone(tmp_path):
    now = Conformation(np.ones((22, 3)), np.zeros((22, 3)))
    command.keep(tmp_path / "x.npz", QUICK, 2**53, [np.zeros((command.BLOCK, 2))], now)
    done, again = command.resume(tmp_path / "x.npz", QUICK, 2**53)
    assert len(done) == 1
    np.testing.assert_array_equal(again.positions, now.positions)
