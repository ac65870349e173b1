"""To the top of a smooth hill within bounds, in few evaluations.

The curvature is measured first, by differences of the gradient. It sets the unit of every parameter, so that the hill
is round, and starts a quasi-Newton method, which near the top needs a handful of steps. What that does not finish
(ridges, parameters that run off to a bound, too many parameters to measure) is left to L-BFGS-B.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import minimize

Uphill = Callable[[np.ndarray], tuple[float, np.ndarray]]  # height and gradient

# A slope below this many nats per standard error is flat: the top is within 0.0001 nats.
FLAT = 1e-2
GOAL = FLAT / 100
CURVATURE_STEP = 1e-3
MOST_MEASURED = 200  # parameters whose curvature is measured one by one
FARTHEST = 2.0  # from the start of a round, in logarithms of rates and standard deviations of the data
MOST_BOXES = 30
MOST_NEWTON, LONGEST, MOST_SHORTENED = 30, 1.0, 6  # steps; their length, in the units of FARTHEST; trials for each
LEAST_CURVATURE = 1e-2  # in units of rough standard errors
LBFGS = {"maxiter": 500, "maxfun": 1000, "ftol": 1e-15, "gtol": GOAL}


def climb_hill(
    uphill: Uphill,
    start: Float[np.ndarray, "free"],
    bounds: Float[np.ndarray, "free 2"],
    curvature: Float[np.ndarray, "free free"] | None = None,
    goal: float = GOAL,
) -> tuple[Float[np.ndarray, "free"], float]:
    """The highest point found, and the steepest slope left there, in nats per rough standard error.

    Far from where it was measured the curvature is another: each round stays in a box around its start. For the first
    one it may be given, say by a part of the data.

    Args:
        goal: the slope to end at. Above the usual one, where it is no more exact itself, nothing is left to L-BFGS-B.
    """
    best, slope, held = start, np.zeros_like(start), np.zeros(len(start), dtype=bool)
    for _ in range(MOST_BOXES):
        box = np.clip(best[:, None] + [-FARTHEST, FARTHEST], bounds[:, :1], bounds[:, 1:])
        best, slope = _climb_in(box, uphill, best, curvature, goal)
        curvature = None
        edge = _outward(best, slope, box)
        held = edge & ((best <= bounds[:, 0]) | (best >= bounds[:, 1]))
        if (edge == held).all():
            break
    return best, _steepest(slope, held)


def _outward(place: np.ndarray, slope: np.ndarray, box: np.ndarray) -> Bool[np.ndarray, "free"]:
    """Which parameters rest on a side of the box that they would leave."""
    return ((place <= box[:, 0]) & (slope < 0)) | ((place >= box[:, 1]) & (slope > 0))


def _steepest(slope: np.ndarray, held: np.ndarray) -> float:
    return float(np.abs(slope[~held]).max(initial=0.0))


def _climb_in(
    box: np.ndarray, uphill: Uphill, start: np.ndarray, curvature: np.ndarray | None, goal: float
) -> tuple[np.ndarray, np.ndarray]:
    """The highest point found in a box, and the slope there in nats per rough standard error."""
    unit = np.ones(len(start))
    if len(start) <= MOST_MEASURED:
        if curvature is None:
            height, gradient, curvature = measured(uphill, start, box)
        else:
            height, gradient = uphill(start)
        unit = 1 / np.sqrt(np.clip(curvature.diagonal(), 1.0, 1e12))  # a flat direction: a unit of a logarithm
        round_hill = gradient * unit, curvature * unit[:, None] * unit, unit
        start, slope = _newton(box, uphill, start, height, *round_hill, goal)
        if goal > GOAL or _steepest(slope, _outward(start, slope, box)) < goal:
            return start, slope

    def downhill(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = uphill(x * unit)
        return -value, -gradient * unit

    bounds = box / unit[:, None]
    result = minimize(downhill, start / unit, jac=True, method="L-BFGS-B", bounds=bounds, options=LBFGS)
    best = np.where(result.x <= bounds[:, 0], box[:, 0], np.where(result.x >= bounds[:, 1], box[:, 1], result.x * unit))
    return np.clip(best, box[:, 0], box[:, 1]), -result.jac


def measured(
    uphill: Uphill, theta: np.ndarray, box: np.ndarray
) -> tuple[float, np.ndarray, Float[np.ndarray, "free free"]]:
    """Height, gradient, and minus the second derivatives."""
    height, here = uphill(theta)
    rows = np.empty((len(theta), len(theta)))
    for k in range(len(theta)):
        step = np.zeros_like(theta)
        step[k] = -CURVATURE_STEP if theta[k] + CURVATURE_STEP > box[k, 1] else CURVATURE_STEP
        rows[k] = (here - uphill(theta + step)[1]) / step[k]
    return height, here, (rows + rows.T) / 2


def _newton(
    box: np.ndarray,
    uphill: Uphill,
    place: np.ndarray,
    height: float,
    slope: np.ndarray,
    curvature: np.ndarray,
    unit: np.ndarray,
    goal: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Steps with a curvature that learns from the slopes it meets (BFGS), as long as they lead up.

    Slope and curvature are in units of rough standard errors; the box and the place are not.
    """
    values, vectors = np.linalg.eigh(curvature)
    curvature = (vectors * np.maximum(np.abs(values), LEAST_CURVATURE)) @ vectors.T
    for _ in range(MOST_NEWTON):
        free = ~_outward(place, slope, box)
        if _steepest(slope, ~free) < goal:
            break
        step = np.zeros_like(place)
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
        step *= min(1.0, LONGEST / np.abs(step * unit).max())
        for shortened in 4.0 ** -np.arange(MOST_SHORTENED):
            there = np.clip(place + shortened * step * unit, box[:, 0], box[:, 1])
            new_height, new_gradient = uphill(there)
            moved = (there - place) / unit
            if new_height >= height + 1e-4 * (slope @ moved):
                break
        else:
            break
        bent = slope - new_gradient * unit
        if moved @ bent > 1e-8 * (moved @ moved):
            pushed = curvature @ moved
            curvature = curvature + np.outer(bent, bent) / (moved @ bent)
            curvature = curvature - np.outer(pushed, pushed) / (moved @ pushed)
        place, height, slope = there, new_height, new_gradient * unit
    return place, slope
