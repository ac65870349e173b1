"""The exact engine's answer for a reaction network, as people use it."""

import numpy as np

from ..exact.lattice_fit import LatticeFit
from ..exact.lattice_report import lattice_information, lattice_intervals, lattice_warnings, log_covariance
from ..fitted_network import FittedNetwork
from ..mjp.precision import in_double_precision
from ..systems import ReactionNetwork


@in_double_precision
def assemble_network(
    fit: LatticeFit, network: ReactionNetwork, initial: str, *, seed: int, intervals: bool
) -> FittedNetwork:
    """The fitted network that people use, with intervals from the curvature of the likelihood."""
    constants = dict(zip(network.parameters, np.exp(fit.log_constants).tolist(), strict=True))
    readings, data = fit.likelihood.readings, fit.likelihood.data
    n = fit.packing.n_constants
    information = lattice_information(fit) if intervals else None
    at_edge = dict(zip(network.species, fit.evaluation.edges.tolist(), strict=True))
    return FittedNetwork(
        engine="exact",
        network=network.with_parameters(**constants),  # type: ignore[arg-type]
        readings=readings,
        noise=fit.noise,
        time_unit=data.time_unit,
        value_names=data.value_names,
        log_likelihood=fit.evaluation.total,
        n_parameters=len(fit.theta),
        n_observations=len(fit.likelihood.rows),
        converged=fit.converged,
        message=fit.message,
        intervals={} if information is None else lattice_intervals(fit, information),
        log_covariance=np.full((n, n), np.nan) if information is None else log_covariance(fit, information),
        uncertainty="none" if information is None else "observed information",
        warnings=lattice_warnings(fit, information, at_edge, network.largest),
        seconds=0.0,
        seed=seed,
        initial=initial,
        restarts=tuple(fit.restarts.tolist()),
        truncated=float(fit.evaluation.lost.sum()),
        at_edge=at_edge,
    )
