"""Reaction networks by mean fields: from what was found to the fitted network that people use."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from ..baselines.opper_sanguinetti import fit_mean_field
from ..emissions.emission import Params
from ..emissions.readings import Readings
from ..errors import InputError
from ..exact.lattice_fit import located
from ..exact.lattice_start import crude_start
from ..fitted_network import FittedNetwork
from ..mjp.interval import LEVEL, Interval, Z
from ..priors.generator import SPREAD, GeneratorParameters
from ..systems import ReactionNetwork
from ..timeseries import TimeSeries
from ..training.config import Config
from ..training.coupled import CoupledTrained, train_coupled
from ..training.run import Progress
from .lattice import assemble_network

Start = dict[str, float] | Sequence[dict[str, float]] | None  # of the constants; several: one for each restart
N_GENERATED = 1000  # draws of the generator behind its intervals, as in the paper
SCATTER = 0.5  # of the logarithms of constants between restarts


def train_network(
    data: TimeSeries,
    network: ReactionNetwork,
    readings: Readings,
    *,
    config: Config,
    initial: str,
    start: Start,
    restarts: int,
    seed: int,
    progress: Progress = lambda *_: None,
    folder: Path | None = None,
    resume: bool = False,
) -> CoupledTrained:
    """Train a neural mean field from crude starting values, scattered for all restarts but the first."""
    logs, noise = crude_start(data, network.events(), readings)
    scatter = SCATTER * np.random.default_rng(seed).normal(size=(restarts, len(logs)))
    scatter[0] = 0.0
    if isinstance(start, dict):
        logs = np.log([start[name] for name in network.parameters])
    elif start is not None:
        if len(start) != restarts:
            raise InputError(
                f"there are {len(start)} starts for {restarts} restarts: give one for each, or one for all"
            )
        logs, scatter = np.log([[one[name] for name in network.parameters] for one in start]), 0 * scatter
    return train_coupled(
        data,
        network,
        readings,
        [(one, noise) for one in logs + scatter],
        config=config,
        first=network.start if initial == "start" else None,
        seed=seed,
        folder=folder,
        resume=resume,
        progress=progress,
    )


def fitted_by_networks(
    trained: CoupledTrained, data: TimeSeries, *, initial: str, tractable: bool, seed: int, intervals: bool
) -> FittedNetwork:
    """What training found, with its exact likelihood and the intervals of that where the box is not too large."""
    logs = trained.theta(trained.best)
    fitted = _fitted(
        data,
        trained.network,
        trained.setup.readings,
        logs,
        trained.noise,
        initial=initial,
        tractable=tractable,
        seed=seed,
        intervals=intervals,
        converged=trained.settled,
        message=trained.message,
    )
    found = replace(
        fitted, engine="neural", posterior=trained.setup.config.posterior, elbo=trained.elbo, restarts=trained.restarts
    )
    refused = trained.refused[trained.best]
    if refused:
        word = f"{refused} of {trained.steps} training steps were refused: their result was not finite"
        found = replace(found, warnings=(*found.warnings, word))
    prior = trained.networks.prior
    if intervals and isinstance(prior, GeneratorParameters):
        drawn = np.exp(np.asarray(prior.sample(N_GENERATED, jax.random.key(seed)), np.float64))
        lower, upper = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        word = "intervals show the spread of the generator prior, which is no posterior: they are far too narrow"
        return replace(
            found,
            intervals={"parameters": Interval(drawn.mean(0), lower, upper)},
            uncertainty=SPREAD,
            warnings=(*found.warnings, word),
        )
    if intervals and not tractable and trained.information:
        covariance = np.linalg.pinv(trained.information[trained.best])
        n = len(logs)
        found = _with_covariance(found, logs, covariance[:n, :n])
        return replace(found, uncertainty="outer products of the bound's gradients")
    return found


def fitted_by_sweeps(
    data: TimeSeries,
    network: ReactionNetwork,
    readings: Readings,
    *,
    initial: str,
    start: dict[str, float] | None,
    tractable: bool,
    seed: int,
    intervals: bool,
    progress: Progress = lambda *_: None,
) -> FittedNetwork:
    """Opper & Sanguinetti's variational EM; its intervals are those of its own bound."""
    choices: dict[str, Any] = {"initial": initial, "start": start, "intervals": intervals, "progress": progress}
    found = fit_mean_field(data, network, readings, **choices)
    logs = np.log(list(found.constants.values()))
    fitted = _fitted(
        data,
        network,
        readings,
        logs,
        found.noise,
        initial=initial,
        tractable=tractable,
        seed=seed,
        intervals=False,
        converged=found.converged,
        message=f"{found.message} after {found.rounds} rounds of EM",
    )
    fitted = replace(fitted, engine="meanfield", posterior="coordinate", elbo=found.elbo)
    if not intervals:
        return fitted
    return replace(_with_covariance(fitted, logs, found.log_covariance), uncertainty=found.uncertainty)


def _fitted(
    data: TimeSeries,
    network: ReactionNetwork,
    readings: Readings,
    logs: Float[np.ndarray, "constant"],
    noise: Params,
    *,
    initial: str,
    tractable: bool,
    seed: int,
    intervals: bool,
    converged: bool,
    message: str,
) -> FittedNetwork:
    """A fitted network at these parameters, by the exact likelihood where there is one."""
    there: Any = network.with_parameters(**dict(zip(network.parameters, np.exp(logs).tolist(), strict=True)))
    if tractable:
        fit = located(data, there, readings, noise, initial=initial, converged=converged, message=message)
        found = assemble_network(fit, there, initial, seed=seed, intervals=intervals)
        # The engine's own word for how it ended is its message already.
        return replace(found, warnings=tuple(word for word in found.warnings if message not in word))
    unknown = np.full((len(logs), len(logs)), np.nan)
    learned = readings.learned(noise)
    return FittedNetwork(
        engine="neural",
        network=there,
        readings=readings,
        noise=noise,
        time_unit=data.time_unit,
        value_names=data.value_names,
        log_likelihood=None,
        n_parameters=len(logs) + int(sum(np.sum(free) for free in learned.values())),
        n_observations=data.n_observations,
        converged=converged,
        message=message,
        intervals={},
        log_covariance=unknown,
        uncertainty="none",
        warnings=() if converged else (f"the fit {message}",),
        seconds=0.0,
        seed=seed,
        initial=initial,
    )


def _with_covariance(
    fitted: FittedNetwork, logs: Float[np.ndarray, "constant"], covariance: Float[np.ndarray, "constant constant"]
) -> FittedNetwork:
    """Intervals that are symmetric in the logarithms; unbounded where nothing is known."""
    error = np.sqrt(np.where(np.diag(covariance) >= 0, np.diag(covariance), np.inf))
    error = np.where(np.isnan(error), np.inf, error)
    with np.errstate(over="ignore"):
        interval = Interval(np.exp(logs), np.exp(logs - Z * error), np.exp(logs + Z * error))
    return replace(fitted, intervals={**fitted.intervals, "parameters": interval}, log_covariance=covariance)
