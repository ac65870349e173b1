"""Markov models at a lag, which the paper compares with as others print them: here on the same data as all else."""

import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from jaxtyping import Float

from ..baselines import GaussianMixtureVAE, MarkovStateModel, VampNet
from ..baselines.chain import MarkovChain, jumps_of
from ..fitted import FittedMJP
from ..mjp.interval import Interval
from ..timeseries import TimeSeries
from .state_methods import Runs
from .tables import Progress

MSM, VAMPNETS, GMVAE = "MSM (as here)", "VAMPnets (as here)", "GMVAE (as here)"
MAKERS: dict[str, Callable[..., Any]] = {
    MSM: lambda *n_states, **choices: MarkovStateModel(*n_states, samples=0, **choices),
    VAMPNETS: VampNet,
    GMVAE: GaussianMixtureVAE,
}
PACKAGES = {MSM: ("deeptime",), VAMPNETS: ("deeptime", "torch"), GMVAE: ()}  # of the extra `compare`


def installed(methods: Sequence[str], only: Sequence[str] | None) -> tuple[str, ...]:
    """Those that can run here, and those that are asked for by name: they say themselves what they miss."""
    return tuple(
        one for one in methods if one in (only or ()) or all(find_spec(name) for name in PACKAGES.get(one, ()))
    )


def by_chains(
    method: str,
    n_states: int,
    data: Sequence[TimeSeries],
    seeds: Sequence[int],
    progress: Progress,
    **choices: Any,
) -> Runs:
    """A fit by each seed, to the data set beside it."""
    began, models = time.perf_counter(), []
    for k, (one, seed) in enumerate(zip(data, seeds, strict=True)):
        progress(f"{k + 1} of {len(data)}", k / len(data))
        models.append(MAKERS[method](n_states, seed=seed, **choices).fit(one))
    chain: MarkovChain = models[-1]
    message = f"lag {chain.lag:g} {chain.time_unit}"
    return Runs(tuple(models), time.perf_counter() - began, message, tuple(data))


def estimate(found: Interval | Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """What a fitted process tells with an interval, and a chain without one."""
    return np.asarray(found.mean if isinstance(found, Interval) else found)


def passing_rates(model: FittedMJP | MarkovChain) -> Float[np.ndarray, "state state"]:
    """Rates whose passage times are the model's own: of a chain that looks once a lag, its jumps per lag."""
    if isinstance(model, FittedMJP):
        return model.rates
    return jumps_of(model.transition) / model.lag
