"""Alanine dipeptide in implicit water: the small molecule on which methods for molecular dynamics are tried.

Amber ff99SB with OBC water, 300 K, by OpenMM. Its hidden states have no exact truth, so it is no `System`.
"""

from dataclasses import dataclass
from io import StringIO
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float64

from ..errors import InputError

_FIELD = ("amber99sb.xml", "amber99_obc.xml")
_PHI = (("ACE", "C"), ("ALA", "N"), ("ALA", "CA"), ("ALA", "C"))
_PSI = (("ALA", "N"), ("ALA", "CA"), ("ALA", "C"), ("NME", "N"))

# Built from bond lengths and angles, hydrogens added, and brought to a minimum of the force field. In angstroms.
_ATOMS = """\
ACE CH3 -0.054 -0.047 0.046
ACE H1 -0.422 -0.629 -0.799
ACE H2 -0.366 -0.521 0.977
ACE H3 -0.461 0.963 -0.002
ACE C 1.457 0.010 -0.006
ACE O 2.032 1.095 -0.091
ALA N 2.095 -1.159 0.049
ALA H 1.541 -2.001 0.106
ALA CA 3.554 -1.302 -0.019
ALA HA 3.997 -0.550 0.635
ALA CB 3.938 -2.680 0.535
ALA HB1 5.023 -2.782 0.552
ALA HB2 3.518 -3.465 -0.093
ALA HB3 3.560 -2.790 1.552
ALA C 4.120 -1.074 -1.441
ALA O 3.434 -1.288 -2.448
NME N 5.396 -0.667 -1.520
NME H 5.899 -0.524 -0.656
NME C 6.113 -0.416 -2.772
NME H1 6.149 -1.327 -3.370
NME H2 5.606 0.361 -3.343
NME H3 7.132 -0.092 -2.561
"""
ATOMS = [(residue, name) for residue, name, *_ in map(str.split, _ATOMS.splitlines())]


class Conformation(NamedTuple):
    """All that the future depends on, beside new random numbers."""

    positions: Float64[np.ndarray, "atom axis"]  # nm
    velocities: Float64[np.ndarray, "atom axis"]  # nm / ps


@dataclass(frozen=True)
class AlanineDipeptide:
    """Langevin dynamics of the 22 atoms, bonds to hydrogen fixed.

    Random numbers are drawn anew for every block of frames, from the seed and the block's number, so that a run that
    was cut off between two blocks goes on exactly as if it had not been.

    Example:
        >>> molecule = AlanineDipeptide(frame=0.01)
        >>> start = molecule.start(seed=1)
        >>> angles, end = molecule.block(start, 5, seed=1, number=0)
        >>> angles.shape, end.positions.shape
        ((5, 2), (22, 3))
    """

    temperature: float = 300.0  # K
    friction: float = 1.0  # per ps
    step: float = 0.002  # ps
    frame: float = 1.0  # ps between frames

    @property
    def pdb(self) -> str:
        """The molecule as the text of a PDB file: the topology of its trajectories."""
        return _pdb()

    def start(self, seed: int) -> Conformation:
        """The extended molecule at rest: let the first frames pass before anything is measured."""
        _check_seed(seed)
        rows = np.array([line.split()[2:] for line in _ATOMS.splitlines()], float)
        return Conformation(rows / 10, np.zeros_like(rows))

    def block(
        self, start: Conformation, n_frames: int, *, seed: int, number: int
    ) -> tuple[Float64[np.ndarray, "frame angle"], Conformation]:
        """Angles phi and psi in radians after each of the next frames, and where the molecule then is."""
        _check_seed(seed)
        context, steps = self._context(seed, number)
        context.setPositions(start.positions)
        context.setVelocities(start.velocities)
        if not start.velocities.any():
            context.setVelocitiesToTemperature(self.temperature, _word(seed, number, 1))
        angles = np.empty((n_frames, 2))
        for k in range(n_frames):
            context.getIntegrator().step(steps)
            positions = _array(context.getState(getPositions=True).getPositions(asNumpy=True))
            angles[k] = backbone_angles(positions)
        state = context.getState(getPositions=True, getVelocities=True)
        return angles, Conformation(_array(state.getPositions(asNumpy=True)), _array(state.getVelocities(asNumpy=True)))

    def _context(self, seed: int, number: int) -> tuple[Any, int]:
        openmm, app = _openmm()
        steps = round(self.frame / self.step)
        if steps < 1 or not np.isclose(steps * self.step, self.frame):
            raise InputError(f"a frame of {self.frame:g} ps is not a whole number of steps of {self.step:g} ps")
        pdb = app.PDBFile(StringIO(_pdb()))
        system = app.ForceField(*_FIELD).createSystem(
            pdb.topology, nonbondedMethod=app.NoCutoff, constraints=app.HBonds
        )
        integrator = openmm.LangevinMiddleIntegrator(self.temperature, self.friction, self.step)
        integrator.setRandomNumberSeed(_word(seed, number, 0))
        # For so few atoms the plain platform is seven times as fast as the parallel one, and keeps all digits.
        return openmm.Context(system, integrator, openmm.Platform.getPlatformByName("Reference")), steps


def backbone_angles(positions: Float[np.ndarray, "atom axis"]) -> Float64[np.ndarray, "angle"]:
    """Phi and psi of the 22 atoms, in radians from -pi to pi."""
    return np.array([_dihedral(positions[[ATOMS.index(atom) for atom in quad]]) for quad in (_PHI, _PSI)])


def _dihedral(points: Float[np.ndarray, "4 axis"]) -> float:
    """The angle between the planes of the first three and the last three points."""
    before, axis, after = np.diff(points, axis=0)
    left, right = np.cross(before, axis), np.cross(axis, after)
    return float(np.arctan2(np.linalg.norm(axis) * (before @ right), left @ right))


def _pdb() -> str:
    """The molecule as a PDB file, from which OpenMM finds its bonds."""
    residues = list(dict.fromkeys(residue for residue, _ in ATOMS))
    lines = []
    for number, line in enumerate(_ATOMS.splitlines(), 1):
        residue, name, *where = line.split()
        place = "".join(f"{float(x):8.3f}" for x in where)
        lines.append(f"ATOM  {number:5d}  {name:<3} {residue} A{residues.index(residue) + 1:4d}    {place}  1.00  0.00")
    return "\n".join([*lines, "TER", "END", ""])


def _openmm() -> tuple[Any, Any]:
    try:
        import openmm
        from openmm import app
    except ImportError:
        raise InputError("alanine-dipeptide needs openmm: pip install 'neuralmjp[md]'") from None
    return openmm, app


def _array(quantity: Any) -> Float64[np.ndarray, "atom axis"]:
    return np.array(quantity._value, np.float64)


def _word(*numbers: int) -> int:
    """Random bits that OpenMM takes for a seed: never 0, which it would replace by the time of day."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0]) % (2**31 - 2) + 1


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**63:
        raise InputError(f"a seed must not be negative and must be below 2^63, got {seed}")
