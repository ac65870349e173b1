"""Small sound files of every kind that is read, for others to break."""

import shutil
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from neuralmjp import ExactMJP, NetworkMJP, NeuralMJP, Panel, systems, write
from neuralmjp.io.folders import write_parts
from neuralmjp.timeseries import TimeSeries
from neuralmjp.training import run
from neuralmjp.training.checkpoints import Checkpoints
from neuralmjp.training.config import Config
from neuralmjp.training.loop import State, start_state
from neuralmjp.training.problem import Problem, in_precision
from neuralmjp.training.run import Ledger, train

TINY = Config(width=4, batch=4, steps=12, round_steps=4)
BIRTHS = "0 -> X @ birth = 2\nX -> 0 @ death = 0.2\nbox X 20\nstart X 1..3\nnoise gaussian 1.0\nduration 20\nunit s\n"
SBML = """<?xml version="1.0" encoding="UTF-8"?>
<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1"><model id="m" timeUnits="second">
<listOfCompartments><compartment id="cell" size="1" constant="true"/></listOfCompartments>
<listOfSpecies><species id="X" compartment="cell" initialAmount="10" hasOnlySubstanceUnits="true"
 boundaryCondition="false" constant="false"/></listOfSpecies>
<listOfParameters><parameter id="k" value="0.5" constant="true"/></listOfParameters>
<listOfReactions><reaction id="die" reversible="false" fast="false"><listOfReactants>
<speciesReference species="X" stoichiometry="1" constant="true"/></listOfReactants>
<kineticLaw><math xmlns="http://www.w3.org/1998/Math/MathML"><apply><times/><ci>k</ci><ci>X</ci></apply></math>
</kineticLaw></reaction></listOfReactions></model></sbml>
"""


def signal() -> TimeSeries:
    return systems.TwoMode().simulate(4, 12, seed=1).data


def training(folder: Path) -> Any:
    data = signal()
    return train(data, NeuralMJP(2, "gaussian").model(data), panel=Panel(), config=TINY, folder=folder)


@cache
def beginning() -> tuple[State, Ledger, Problem]:
    """What such a training begins with."""
    data = signal()
    with in_precision(TINY):
        problem = Problem.of(data, NeuralMJP(2, "gaussian").model(data), Panel(), TINY, 1, 0)
        setup = problem.setup()
        state = start_state(problem.networks(setup, jax.random.split(jax.random.key(0), 1)), TINY)
        return state, Ledger.fresh(1, setup.capacity), problem


def resumed(folder: Path) -> Any:
    """What a training in this folder would go on from."""
    with in_precision(TINY):
        return run._resumed(Checkpoints(folder), *beginning())


def make_tables(folder: Path) -> None:
    data = signal()
    for name in ("data.csv", "data.tsv", "data.csv.gz", "data.parquet", "data.npz"):
        write(data, folder / name)
    write(data, folder / "data.zarr")
    write_parts([data[:1], data[1:]], folder / "parts")
    np.savetxt(folder / "plain.txt", data.values[:40])
    np.savez(folder / "frames.npz", data.values[:20], data.values[20:])
    (folder / "mask.csv").write_text("0,1\n1,0\n")
    (folder / "births.network").write_text(BIRTHS)
    (folder / "births.xml").write_text(SBML)


def make_recordings(folder: Path) -> None:
    """What libraries in C read: HDF5, ABF, trajectories."""
    import h5py
    import mdtraj as md
    import pyabf.abfWriter

    write(signal(), folder / "data.h5")
    with h5py.File(folder / "data.mat", "w", userblock_size=512) as file:
        for name, values in (("times", np.arange(20.0)), ("values", np.sin(np.arange(20.0)))):
            file.create_dataset(name, data=values[None]).attrs["MATLAB_class"] = np.bytes_("double")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sweeps = np.random.default_rng(0).normal(scale=3.0, size=(2, 2000))
        pyabf.abfWriter.writeABF1(sweeps, str(folder / "cell.abf"), 10_000, units="pA")
        topology = md.Topology()
        chain = topology.add_chain()
        for residue, atoms in (("ACE", "C"), ("ALA", "N CA C"), ("NME", "N")):
            home = topology.add_residue(residue, chain)
            for atom in atoms.split():
                topology.add_atom(atom, md.element.get_by_symbol(atom[0]), home)
        places = np.cumsum(np.full((5, 3), 0.08), axis=0) + np.random.default_rng(0).normal(scale=0.05, size=(20, 5, 3))
        moving = md.Trajectory(places, topology, time=np.arange(20) * 0.1)
        moving[0].save(folder / "atoms.pdb")
        for name in ("run.dcd", "run.xtc", "run.trr", "run.nc", "run.pdb"):
            moving.save(folder / name)


def make_models(folder: Path) -> None:
    data = signal()
    ExactMJP(2, "gaussian", restarts=1).fit(data).save(folder / "model")
    births = systems.parse_network(BIRTHS)
    counts = births.simulate(5, 10, seed=1).data
    NetworkMJP(births).fit(counts).save(folder / "network")
    shutil.copytree(folder / "model", folder / "run")
    write(data, folder / "run" / "data.csv")
    (folder / "run" / "columns.json").write_text('{"series": "series", "time": "time", "values": "y", "header": true}')
    source = {"data": str(folder / "run" / "data.csv"), "command": "neuralmjp fit"}
    (folder / "run" / "source.json").write_text(str(source).replace("'", '"'))
    checks = '{"passed": true, "checks": [{"check": "one", "passed": true, "sentence": "well"}], "data": "x"}'
    (folder / "run" / "checks.json").write_text(checks)
    (folder / "run" / "history.csv").write_text("step,seconds,objective\n1,1.0,-3.0\n2,2.0,-2.0\n")
    training(folder / "training")
