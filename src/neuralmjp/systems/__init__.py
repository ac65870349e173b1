"""Processes with known truth: one definition each serves simulation and inference.

Names as the command line knows them are in `SYSTEMS`; importing this module loads none of them. `AlanineDipeptide`, by
molecular dynamics, has no known truth and is not among them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from .alanine_dipeptide import AlanineDipeptide
    from .brownian_folding import BrownianFolding
    from .datasets import Dataset, ion_channel_dataset, paper_dataset
    from .flashing_ratchet import FlashingRatchet
    from .ion_channel import IonChannel
    from .lattice import lattice_flow, sparse_generator
    from .library import birth_death, immigration_death, schloegl, sir, sis, telegraph
    from .network_file import parse_network, read_network
    from .predator_prey import lotka_volterra
    from .reaction_network import Reaction, ReactionNetwork
    from .sbml import SbmlNote, read_sbml
    from .system import Simulation, System
    from .two_mode import TwoMode

_HOMES = {
    "AlanineDipeptide": "alanine_dipeptide",
    "BrownianFolding": "brownian_folding",
    "Dataset": "datasets",
    "ion_channel_dataset": "datasets",
    "paper_dataset": "datasets",
    "FlashingRatchet": "flashing_ratchet",
    "IonChannel": "ion_channel",
    "lattice_flow": "lattice",
    "sparse_generator": "lattice",
    "birth_death": "library",
    "immigration_death": "library",
    "schloegl": "library",
    "sir": "library",
    "sis": "library",
    "telegraph": "library",
    "lotka_volterra": "predator_prey",  # a module of the same name would hide the function
    "parse_network": "network_file",
    "read_network": "network_file",
    "Reaction": "reaction_network",
    "ReactionNetwork": "reaction_network",
    "SbmlNote": "sbml",
    "read_sbml": "sbml",
    "Simulation": "system",
    "System": "system",
    "TwoMode": "two_mode",
}

# What the command line calls each system, and the public name that makes it.
SYSTEMS = {
    "flashing-ratchet": "FlashingRatchet",
    "lotka-volterra": "lotka_volterra",
    "two-mode": "TwoMode",
    "brownian-folding": "BrownianFolding",
    "ion-channel": "IonChannel",
    "birth-death": "birth_death",
    "immigration-death": "immigration_death",
    "sir": "sir",
    "sis": "sis",
    "schloegl": "schloegl",
    "telegraph": "telegraph",
}

__all__ = [
    "SYSTEMS",
    "AlanineDipeptide",
    "BrownianFolding",
    "Dataset",
    "FlashingRatchet",
    "IonChannel",
    "Reaction",
    "ReactionNetwork",
    "SbmlNote",
    "Simulation",
    "System",
    "TwoMode",
    "birth_death",
    "immigration_death",
    "ion_channel_dataset",
    "lattice_flow",
    "lotka_volterra",
    "named",
    "paper_dataset",
    "parse_network",
    "read_network",
    "read_sbml",
    "schloegl",
    "sir",
    "sis",
    "sparse_generator",
    "telegraph",
]


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def named(name: str) -> "System":
    """A system by its command-line name, with the paper's parameters; or a reaction network by the path of its file.

    Files that end in .xml or .sbml are read as SBML, others as text.

    >>> named("two-mode").parameters["up"]
    0.2
    """
    if name in SYSTEMS:
        return __getattr__(SYSTEMS[name])()
    if "." in name or "/" in name:
        return __getattr__("read_sbml" if name.endswith((".xml", ".sbml")) else "read_network")(name)
    raise InputError(f"no system {name!r}; there are {', '.join(SYSTEMS)}, or the path of a reaction-network file")
