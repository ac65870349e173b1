"""Data whose truth is known: channels with Gaussian or heavy noise, one with two closed states that look alike."""

from functools import cache

import jax
import numpy as np

from neuralmjp import ExactMJP, TimeSeries, mjp

PLAIN = (((0, 0.05), (0.1, 0)), (0.0, 4.0))
# Closed for long, closed briefly, open: two states cannot say both.
AGGREGATED = (((0, 0, 0.02), (0, 0, 0.3), (0.05, 0.15, 0)), (0.0, 0.0, 4.0))


def channel(world=PLAIN, n=2000, seed=0, noise=None, times=None) -> TimeSeries:
    """One recording at times 0, 1, 2, ...; noise of unit scale."""
    rates, levels = (np.asarray(part, dtype=float) for part in world)
    rng = np.random.default_rng(seed)
    times = np.arange(float(n)) if times is None else times
    law = np.full(len(levels), 1 / len(levels))
    states = mjp.simulate_states(rates, times, initial=law, key=jax.random.key(seed), n_series=1)[0]
    return TimeSeries.from_arrays(times, levels[states] + (noise or rng.normal)(size=len(times)))


@cache
def fitted_to(name: str):
    """A two-state Gaussian model, and the data: right, of an aggregated process, or with heavy noise."""
    heavy = np.random.default_rng(1).standard_t
    data = {
        "right": lambda: channel(),
        "aggregated": lambda: channel(AGGREGATED),
        "heavy": lambda: channel(noise=lambda size: heavy(3, size=size)),
    }[name]()
    return ExactMJP(2, emission="gaussian", restarts=1).fit(data), data
