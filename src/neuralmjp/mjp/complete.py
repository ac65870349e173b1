"""Rates from paths that are known whole: the simplest inference there is, and the limit for every other."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import gamma

from ..errors import InputError
from .interval import LEVEL, Interval
from .paths import JumpPath


def rates_from_paths(paths: Sequence[JumpPath] | JumpPath, n_states: int, *, level: float = LEVEL) -> Interval:
    """Maximum likelihood from complete records: jumps from i to j divided by the time in i (Billingsley 1961).

    The interval is the exact one for a Poisson count, by gamma quantiles; a jump never seen has rate 0 with an upper
    limit, a state never visited has rate 0 and no upper limit (infinite).
    """
    paths = [paths] if isinstance(paths, JumpPath) else list(paths)
    if not paths or not 0 < level < 1:
        raise InputError("rates_from_paths needs at least one path and a level between 0 and 1")
    highest = max(int(path.states.max()) for path in paths)
    if highest >= n_states:
        raise InputError(f"the paths visit state {highest}: {n_states} states, 0 to {n_states - 1}, are too few")
    counts = np.sum([path.jump_counts(n_states) for path in paths], axis=0)
    time = np.sum([path.time_in_states(n_states) for path in paths], axis=0)[:, None]
    tail = (1 - level) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(time > 0, counts / time, 0.0)
        lower = np.where(counts > 0, gamma.ppf(tail, np.maximum(counts, 1)) / time, 0.0)
        upper = np.where(time > 0, gamma.isf(tail, counts + 1.0) / time, np.inf)
    off = ~np.eye(n_states, dtype=bool)
    return Interval(mean, np.where(off, lower, 0.0), np.where(off, upper, 0.0), level)
