"""Data in parts, each of which is held out once: whole series, or contiguous blocks of long recordings."""

import numpy as np

from ..arguments import require_seed
from ..errors import InputError
from ..timeseries import TimeSeries

BLOCKS_PER_FOLD = 4  # of one recording, taken in turn, so that no fold is one end of it
SHORTEST_BLOCK = 25  # observations


def in_parts(data: TimeSeries, folds: int, seed: int) -> tuple[TimeSeries, np.ndarray]:
    """Series, or blocks of them where there are too few, and the fold to which each belongs.

    Blocks are of one length, so that all folds share compiled programs; what is left over at an end stays out.
    """
    if folds < 2:
        raise InputError(f"cross-validation needs at least 2 folds, got {folds}")
    require_seed(seed)
    wanted = folds * BLOCKS_PER_FOLD
    if len(data) >= wanted:
        return data, np.random.default_rng(seed).permutation(np.arange(len(data)) % folds)
    length = data.n_observations // wanted
    if length < SHORTEST_BLOCK:
        if len(data) >= folds:
            return data, np.arange(len(data)) % folds
        raise InputError(
            f"{data.n_observations} observations in {len(data)} series are too few for {folds} folds: ask for fewer"
        )
    blocks = data.windows(length, drop_tail=True)
    return blocks, np.arange(len(blocks)) % folds
