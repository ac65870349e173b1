"""The mathematics of Markov jump processes: pure functions on arrays, no model and no data above them.

generators      rates and generators, checks, structural zeros
structure       which states reach which; closed classes
exponential     exp(F t) and `propagate`
uniformisation  exp(F t) acting on a vector, for large sparse generators
master_equation rates that change with time
path_kl         divergence between two processes
processes       what a simulator needs to know of a process
simulate        exact simulation, one path or many series
bridges         paths conditioned on both ends
interval        a quantity with its range
complete        rates from paths that are known whole
stationary      stationary law, eigenvalues, timescales, dwell times, entropy production
passage         passage times, committors, reactive flux
"""

from .bridges import Bridges, sample_bridges
from .complete import rates_from_paths
from .exponential import propagate, transition_matrix
from .generators import check_generator, check_rates, exit_rates, generator_from_rates, masked, rates_from_generator
from .interval import Interval
from .master_equation import MasterSolution, solve_adaptively, solve_master_equation
from .passage import ReactiveFlux, committor_backward, committor_forward, mfpt, reactive_flux
from .path_kl import kl_rate, path_kl
from .paths import JumpPath
from .simulate import simulate_inhomogeneous, simulate_path, simulate_states
from .stationary import (
    eigenvalues,
    entropy_production,
    sojourn_times,
    stationary_distribution,
    stationary_distributions,
    timescales,
)
from .structure import closed_classes
from .uniformisation import Propagated, uniformised_action

__all__ = [
    "Bridges",
    "Interval",
    "JumpPath",
    "MasterSolution",
    "Propagated",
    "ReactiveFlux",
    "check_generator",
    "check_rates",
    "closed_classes",
    "committor_backward",
    "committor_forward",
    "eigenvalues",
    "entropy_production",
    "exit_rates",
    "generator_from_rates",
    "kl_rate",
    "masked",
    "mfpt",
    "path_kl",
    "propagate",
    "rates_from_generator",
    "rates_from_paths",
    "reactive_flux",
    "sample_bridges",
    "simulate_inhomogeneous",
    "simulate_path",
    "simulate_states",
    "sojourn_times",
    "solve_adaptively",
    "solve_master_equation",
    "stationary_distribution",
    "stationary_distributions",
    "timescales",
    "transition_matrix",
    "uniformised_action",
]
