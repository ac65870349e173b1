"""Variational EM for switching diffusions (Koehs, Alt & Koeppl, NeurIPS 2021).

A hidden mode Z jumps between K states. It drives a hidden level Y, which is seen at scattered times through noise:

    dY = (A_z Y + b_z) dt + Q_z^(1/2) dW        X_i = Y(t_i) + N(0, R)

Theirs is the model, the posterior and the objective: jumps with rates that change in time and do not look at Y, a
linear drift of Y for each mode and time, moments of Y in each mode, backward multipliers that are reset at
observations, and variational EM for all parameters. Since the posterior's drift is linear and its rates do not look at
Y, the moments of Y in each mode close, jumps included, and the objective needs no others: it is a true bound.

Ours is how it is computed, worked out anew and not from their code. Time is cut into steps where the mode jumps first
and the level then moves by the exact law of its linear diffusion (`koehs_model`): for one mode the bound is the
log-likelihood, whatever the step. Instead of gradients with a line search, the posterior is found by sweeps that never
lower the bound (`koehs_sweep`). The level at the first observation has a broad Gaussian law that is not learned. Noise
and dispersion have floors, because a mode without noise that meets two observations makes the likelihood infinite.
"""

import time
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError
from ..mjp import mfpt, stationary_distribution, timescales
from ..mjp.precision import in_double_precision
from ..timeseries import TimeSeries
from .koehs_climb import Climbed, Progress, begin, climb, settled, swept_all
from .koehs_maximise import LEAST_NOISE
from .koehs_model import LEAST_DISPERSION, Parameters
from .koehs_start import start
from .koehs_steps import Grid, Scale, lay_out, scale_of

SCREENING = 15  # rounds that every start gets; the best goes on
RARE = 0.01  # share of the time: a mode with less tells little of its own drift
AT_FLOOR = 1.05
OF_STATES = ("rates", "initial", "drift", "offset", "dispersion")


@dataclass(frozen=True)
class KoehsPosterior:
    """What is known at the observations of some data.

    Attributes:
        probabilities: of the modes.
        level: mean of Y; `level_sd` its standard deviation.
        elbo: bound on the log-likelihood of the data.
    """

    probabilities: Float[np.ndarray, "row state"]
    level: Float[np.ndarray, "row feature"]
    level_sd: Float[np.ndarray, "row feature"]
    elbo: float

    @property
    def states(self) -> Int[np.ndarray, "row"]:
        return self.probabilities.argmax(1)


@dataclass(frozen=True)
class KoehsFit:
    """Parameters that the bound prefers, in the units of the data; states by the mean of the first feature in them.

    Attributes:
        drift, offset, dispersion: A_z, b_z and Q_z of dY = (A_z Y + b_z) dt + Q_z^(1/2) dW.
        noise: covariance R of the observations around Y.
        initial: law of the mode at the first observation.
        levels: mean of Y in each mode, over the data.
        elbo: the bound after each round of EM.
        warnings: what to know before the numbers are used.
    """

    rates: Float[np.ndarray, "state state"]
    drift: Float[np.ndarray, "state feature feature"]
    offset: Float[np.ndarray, "state feature"]
    dispersion: Float[np.ndarray, "state feature feature"]
    noise: Float[np.ndarray, "feature feature"]
    initial: Float[np.ndarray, "state"]
    levels: Float[np.ndarray, "state feature"]
    elbo: Float[np.ndarray, "round"]
    converged: bool
    message: str
    seconds: float
    time_unit: str
    warnings: tuple[str, ...]
    scaled: Parameters = field(repr=False)
    scale: Scale = field(repr=False)
    substeps: int = 4

    @cached_property
    def stationary_distribution(self) -> Float[np.ndarray, "state"]:
        return stationary_distribution(self.rates)

    @cached_property
    def timescales(self) -> Float[np.ndarray, "scale"]:
        return timescales(self.rates)

    @cached_property
    def mfpt(self) -> Float[np.ndarray, "state state"]:
        return np.asarray(mfpt(self.rates))

    @in_double_precision
    def posterior(self, data: TimeSeries) -> KoehsPosterior:
        """Modes and level at the observations of these or other data, by the E step alone."""
        _check_values(data, self.levels.shape[1])
        grid = lay_out(data, self.scale, self.substeps)
        swept = settled(self.scaled, grid.steps)
        if not np.isfinite(np.asarray(swept.bound)).all():
            raise InputError(
                "these data have no finite bound under the fit: look for values far from those it has seen"
            )
        law = np.exp(grid.at_observations(np.asarray(swept.nodes.log_law)))
        mean = grid.at_observations(np.asarray(swept.nodes.mean))
        spread = np.diagonal(grid.at_observations(np.asarray(swept.nodes.spread)), axis1=-2, axis2=-1)
        level = np.einsum("rk,rkd->rd", law, mean)
        variance = np.einsum("rk,rkd->rd", law, spread + (mean - level[:, None]) ** 2)
        return KoehsPosterior(
            probabilities=law / law.sum(1, keepdims=True),
            level=self.scale.mean + self.scale.spread * level,
            level_sd=self.scale.spread * np.sqrt(variance),
            elbo=float(swept.bound.sum()) + self.scale.log_density(data),
        )

    def probabilities(self, data: TimeSeries) -> Float[np.ndarray, "row state"]:
        return self.posterior(data).probabilities

    def states(self, data: TimeSeries) -> Int[np.ndarray, "row"]:
        """The most probable mode at each observation."""
        return self.posterior(data).states

    def reconstruction(self, data: TimeSeries) -> Float[np.ndarray, "row feature"]:
        """Posterior mean of Y at each observation."""
        return self.posterior(data).level


@in_double_precision
def fit_koehs(
    data: TimeSeries,
    n_states: int,
    *,
    seed: int = 0,
    substeps: int = 4,
    rounds: int = 1000,
    restarts: int = 4,
    progress: Progress = lambda *_: None,
) -> KoehsFit:
    """Fit rates, drift, dispersion and noise by variational EM.

    Args:
        data: values of one feature or a few; NaN is missing.
        n_states: number of modes.
        seed: of the starts.
        substeps: into which a median gap is cut; longer gaps have more. The mode may jump at every one.
        rounds: of EM at most, for the best start.
        restarts: starts in all; each is given a few rounds.
        progress: told what is being done, and how far it is.

    >>> from neuralmjp.systems import TwoMode
    >>> fit = fit_koehs(TwoMode().simulate(1, 300, seed=1).data, 2, substeps=2, rounds=30, restarts=1)
    >>> bool(fit.levels[0, 0] < 0 < fit.levels[1, 0])
    True
    """
    began = time.perf_counter()
    data.check_states(n_states)
    for name, value, least in (("substeps", substeps, 1), ("rounds", rounds, 3), ("restarts", restarts, 1)):
        if value < least:
            raise InputError(f"{name} must be at least {least}, got {value}")
    _check_values(data, data.n_features)
    scale = scale_of(data)
    grid = lay_out(data, scale, substeps)
    screened = []
    for attempt in range(restarts):
        theta = start(data, scale, n_states, attempt, seed)
        progress(f"start {attempt + 1} of {restarts}", 0.0)
        screened.append(climb(begin(theta, grid.steps), grid.steps, min(SCREENING, rounds), progress))
    climbed = max((one for one in screened if np.isfinite(one.at.bound)), key=lambda one: one.at.bound, default=None)
    if climbed is None:
        raise InputError("every start ended in numbers that are not finite: use fewer states or rescale the values")
    if not climbed.converged and rounds > len(climbed.trace):
        climbed = climb(climbed.at, grid.steps, rounds, progress, climbed.trace)
    return _collected(data, climbed, grid, scale, substeps, began)


def _collected(data: TimeSeries, climbed: Climbed, grid: Grid, scale: Scale, substeps: int, began: float) -> KoehsFit:
    """In the units of the data, states in order of their mean level."""
    theta, log_q = climbed.at.theta, climbed.at.log_q
    nodes = swept_all(theta, log_q, grid.steps).nodes
    law = np.exp(grid.at_observations(np.asarray(nodes.log_law)))
    mean = grid.at_observations(np.asarray(nodes.mean))
    levels = np.einsum("rk,rkd->kd", law, mean) / law.sum(0)[:, None]
    order = np.argsort(levels[:, 0])
    theta = theta._replace(**{name: getattr(theta, name)[order] for name in OF_STATES})
    theta = theta._replace(rates=theta.rates[:, order])
    unit, ratio = scale.spread, np.divide.outer(scale.spread, scale.spread)
    drift = np.asarray(theta.drift) * ratio / scale.gap
    return KoehsFit(
        rates=np.asarray(theta.rates) / scale.gap,
        drift=drift,
        offset=np.asarray(theta.offset) * unit / scale.gap - drift @ scale.mean,
        dispersion=np.asarray(theta.dispersion) * np.outer(unit, unit) / scale.gap,
        noise=np.asarray(theta.noise) * np.outer(unit, unit),
        initial=np.asarray(theta.initial),
        levels=scale.mean + unit * levels[order],
        elbo=np.array(climbed.trace) + scale.log_density(data),
        converged=climbed.converged,
        message="the bound settled" if climbed.converged else f"the bound still rose after {len(climbed.trace)} rounds",
        seconds=time.perf_counter() - began,
        time_unit=data.time_unit,
        warnings=_warnings(theta, law.mean(0)[order], np.ptp(data.times) / scale.gap),
        scaled=theta,
        scale=scale,
        substeps=substeps,
    )


def _warnings(theta: Parameters, shares: np.ndarray, duration: float) -> tuple[str, ...]:
    found = []
    for state, share in enumerate(shares):
        if share < RARE:
            found.append(f"state {state} holds {100 * share:.1f} % of the observations: use fewer states")
    for state, drift in enumerate(np.asarray(theta.drift)):
        if np.linalg.eigvals(drift).real.max() >= 0:
            found.append(f"the level in state {state} has no resting point: its drift is not stable")
    if np.linalg.eigvalsh(np.asarray(theta.noise)).min() < AT_FLOOR * LEAST_NOISE:
        found.append("the noise of the observations is at its floor of 1 % of the spread of the values")
    for state, dispersion in enumerate(np.asarray(theta.dispersion)):
        if np.linalg.eigvalsh(dispersion).min() < AT_FLOOR * LEAST_DISPERSION:
            found.append(f"the dispersion in state {state} is at its floor")
    return tuple(found)


def _check_values(data: TimeSeries, n_features: int) -> None:
    if data.n_features != n_features:
        raise InputError(f"the fit has {n_features} features, the data {data.n_features}: give the same columns")
    for name, column in zip(data.value_names, data.mask.T, strict=True):
        if not column.any():
            raise InputError(f"no value of {name} was observed: leave that column out")
    if data.n_observations == len(data):
        raise InputError("every series has one observation: a diffusion needs at least two")
