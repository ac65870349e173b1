"""How sharply the bound prefers its parameters."""

import numpy as np
from jaxtyping import Float

from .coordinate import Beliefs
from .problem import Problem, Theta, packed, score, settled, unpacked

STEP = 0.02  # relative change of a constant
SETTLED = 1e-6  # nats


def log_covariance(problem: Problem, theta: Theta, beliefs: list[Beliefs]) -> Float[np.ndarray, "constant constant"]:
    """Of the logarithms of the constants: the inverse curvature of the best bound, noise and constants together.

    Its slope is known where beliefs are settled, so that its curvature is a difference of slopes. NaN where the bound
    has no peak.
    """
    centre = packed(problem, theta)
    curvature = np.zeros((len(centre), len(centre)))
    for row, direction in enumerate(np.eye(len(centre))):
        ends = []
        for step in (-STEP, STEP):
            there = unpacked(problem, centre + step * direction, theta)
            after, _, _ = settled(problem, there, beliefs, SETTLED)
            ends.append(score(problem, there, after))
        curvature[row] = (ends[0] - ends[1]) / (2 * STEP)
    curvature = 0.5 * (curvature + curvature.T)
    n = len(theta.constants)
    if not (np.isfinite(curvature).all() and np.linalg.eigvalsh(curvature)[0] > 0):
        return np.full((n, n), np.nan)
    return np.linalg.inv(curvature)[:n, :n]
