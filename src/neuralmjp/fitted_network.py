"""A fitted reaction network: immutable, the same for every engine."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from .emissions.emission import Params
from .emissions.readings import Readings
from .mjp.interval import Interval
from .systems import ReactionNetwork


@dataclass(frozen=True)
class FittedNetwork:
    """Rate constants, how counts are read, and everything that follows from them, with intervals.

    Constants are per `time_unit`; `network` carries the values that were found.
    """

    engine: Literal["exact", "neural", "meanfield"]
    network: ReactionNetwork
    readings: Readings
    noise: Params  # what the readings have learned
    time_unit: str
    value_names: tuple[str, ...]
    log_likelihood: (
        float | None
    )  # exact, at these constants, whichever engine found them; None where the box is too large
    n_parameters: int
    n_observations: int
    converged: bool
    message: str
    intervals: dict[str, Interval]  # "parameters", in the order of `names`, and "emission.sd" or its like
    log_covariance: Float[np.ndarray, "constant constant"]  # of the logarithms of the constants; NaN where not known
    uncertainty: str  # how the intervals were made
    warnings: tuple[str, ...]
    seconds: float
    seed: int
    posterior: str = "exact"  # "tilted", "paper" or "coordinate" where a mean field found the constants
    elbo: float | None = None  # its bound on the log-likelihood
    restarts: tuple[float, ...] = ()
    truncated: float | None = None  # probability that the exact engine lost at the edges of its windows
    at_edge: dict[str, float] = field(default_factory=dict)  # posterior probability of the largest count, by species

    @property
    def names(self) -> tuple[str, ...]:
        """Of the rate constants."""
        return tuple(self.network.parameters)

    @property
    def constants(self) -> Float[np.ndarray, "constant"]:
        return np.array(list(self.network.parameters.values()))

    @property
    def parameters(self) -> dict[str, float]:
        return self.network.parameters

    @property
    def observed_network(self) -> ReactionNetwork:
        """The network without its own idea of noise, for simulating what is hidden."""
        return replace(self.network, noise="none", seen=None)
