"""Where the kernels of a dictionary lie: wherever data live, and nowhere else."""

import numpy as np
from jaxtyping import Float
from scipy.cluster.vq import kmeans2
from scipy.spatial import KDTree

from .emission import starting_centres

PER_AXIS = 24  # cells of a grid on the torus per angle; kernels for a single real value
MOST_CELLS = 1000  # of a whole grid; beyond, centres are found by k-means
LEAST_SHARE = 2e-5  # of the data that a cell must hold to be given a kernel
MOST_KERNELS = 200  # by k-means
WIDTH_PER_DISTANCE = 0.8  # of a kernel, per distance between neighbouring centres: 12 degrees for 15
ROWS_FOR_CENTRES = 20_000


def cells_with_data(angles: Float[np.ndarray, "row feature"]) -> tuple[Float[np.ndarray, "kernel feature"], float]:
    """Centres of those cells of a regular grid on the torus that hold data, and the width of a kernel; radians.

    For more angles than a grid can bear the centres are found by k-means, on the circles of all angles.
    """
    whole, n_angles = complete(angles), angles.shape[1]
    if PER_AXIS**n_angles > MOST_CELLS:
        circles, width = spread_centres(np.concatenate([np.cos(whole), np.sin(whole)], axis=1))
        return np.arctan2(circles[:, n_angles:], circles[:, :n_angles]), float(width[0])
    size = 2 * np.pi / PER_AXIS
    cells, counts = np.unique(np.floor(whole / size).astype(int) % PER_AXIS, axis=0, return_counts=True)
    centres = (cells[counts >= LEAST_SHARE * len(whole)] + 0.5) * size
    return np.where(centres > np.pi, centres - 2 * np.pi, centres), WIDTH_PER_DISTANCE * size


def spread_centres(
    values: Float[np.ndarray, "row feature"],
) -> tuple[Float[np.ndarray, "kernel feature"], Float[np.ndarray, "feature"]]:
    """Centres by k-means, and one width for all: that of the typical distance between neighbours."""
    whole = np.unique(complete(values), axis=0)
    rng = np.random.default_rng(0)
    some = whole[rng.permutation(len(whole))[:ROWS_FOR_CENTRES]]
    n_kernels = max(min(MOST_KERNELS, PER_AXIS ** values.shape[1], len(some) // 2), 2)
    first = starting_centres(some, n_kernels, rng)
    centres = kmeans2(some, first, minit="matrix", missing="warn")[0] if len(some) > n_kernels else first
    distance = KDTree(centres).query(centres, k=2)[0][:, 1]
    width = WIDTH_PER_DISTANCE * max(float(np.median(distance)), 1e-3)
    return centres, np.full(values.shape[1], width)


def complete(values: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "whole feature"]:
    """Rows without a hole; with holes filled by the mean of what is there, if no row is without."""
    whole = values[~np.isnan(values).any(1)]
    return whole if len(whole) > 1 else np.where(np.isnan(values), np.nanmean(values, axis=0), values)
