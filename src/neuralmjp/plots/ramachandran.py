"""Two angles of a molecule, coloured by how probable a state is there."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from ..errors import InputError
from ..timeseries import TimeSeries

MOST_POINTS = 20_000  # drawn; more only thicken the ink


def plot_ramachandran(
    data: TimeSeries,
    probability: Float[np.ndarray, "observation"],
    ax: Axes,
    *,
    degrees: bool = False,
    seed: int = 0,
) -> Axes:
    """Draw observations of two angles, phi across and psi up, the darker the more probable the state is there.

    Args:
        data: two values, phi and psi, in radians.
        probability: of one state at each observation.
        ax: where to draw; it is returned.
        degrees: the angles are in degrees.
        seed: of the choice of observations, where there are too many to draw.
    """
    if data.n_features != 2:
        raise InputError(f"a Ramachandran plot shows two angles, the data have {data.n_features} values")
    angles = data.values if degrees else np.rad2deg(data.values)
    angles = (angles + 180) % 360 - 180
    rows = np.random.default_rng(seed).permutation(len(angles))[:MOST_POINTS]
    rows = rows[np.argsort(probability[rows])]  # the probable ones on top
    ax.scatter(*angles[rows].T, c=probability[rows], s=2, cmap="Blues", vmin=0, vmax=1, linewidths=0, rasterized=True)
    ax.set(xlim=(-180, 180), ylim=(-180, 180), xticks=[-180, 0, 180], yticks=[-180, 0, 180], aspect="equal")
    ax.set_xlabel("phi (°)")
    ax.set_ylabel("psi (°)")
    return ax
