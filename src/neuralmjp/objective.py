"""The evidence lower bound as named terms, one number per series."""

from typing import NamedTuple

from jaxtyping import Array, Float


class Terms(NamedTuple):
    """What an objective is made of, in nats per series."""

    reconstruction: Float[Array, "series"]  # expected log density of the observations
    path_kl: Float[Array, "series"]  # of the posterior's paths from the prior's
    initial_kl: Float[Array, "series"]  # of their laws at the start

    @property
    def elbo(self) -> Float[Array, "series"]:
        """Never above the log evidence of a series."""
        return self.reconstruction - self.path_kl - self.initial_kl

    def weighed(self, kl_weight: Float[Array, ""] | float) -> Float[Array, "series"]:
        """The bound with its divergences weighed, for a warm-up."""
        return self.reconstruction - kl_weight * (self.path_kl + self.initial_kl)
