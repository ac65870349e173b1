"""Which numbers of an emission are its spread: fixed at first, so that states find their places, and learned later."""

import numpy as np

from ..emissions import Emission, NeuralGaussian
from ..emissions.emission import Params
from ..emissions.wrapped import Wrapped

SPREADS = ("log_sd", "log_diagonal", "lower", "log_scale")
SHARED_SPREAD = "shared_log_sd"


def places_only(emission: Emission, params: Params) -> Params:
    """1 for what may be learned while the spread is fixed, 0 for the spread."""
    if isinstance(emission, Wrapped):
        still = {name: np.zeros(np.shape(value), bool) for name, value in params.items()}  # hum waits, too
        return emission.outer(places_only(emission.base, emission.inner(params)), still)
    free = {name: np.full(np.shape(value), name not in (*SPREADS, SHARED_SPREAD)) for name, value in params.items()}
    if isinstance(emission, NeuralGaussian):
        n = emission.n_features(len(params["shared_last_bias"]))  # means first, then their spread
        free["shared_last"][:, n:] = free["shared_last_bias"][n:] = False
    return free


def with_even_spread(emission: Emission, params: Params) -> Params:
    """Starting values whose spread is the same in every state and stays so while only places are learned."""
    if isinstance(emission, Wrapped):
        return emission.outer(with_even_spread(emission.base, emission.inner(params)), params)
    if isinstance(emission, NeuralGaussian):
        n = emission.n_features(len(params["shared_last_bias"]))
        last = np.array(params["shared_last"])
        last[:, n:] = 0.0
        return {**params, "shared_last": last}
    return {
        name: np.broadcast_to(np.mean(value, axis=0), np.shape(value)) if name in SPREADS else value
        for name, value in params.items()
    }
