"""Emissions: the density of what is seen in each hidden state. One definition each, for every engine."""

from .categorical import Categorical
from .counts import NegativeBinomial, Poisson
from .emission import Emission, Natural, Observations, reordered
from .gaussian import FullGaussian, Gaussian
from .heavy import GaussianMixture, StudentT
from .memory import OrnsteinUhlenbeck
from .neural import CustomEmission, NeuralGaussian

__all__ = [
    "Categorical",
    "CustomEmission",
    "Emission",
    "FullGaussian",
    "Gaussian",
    "GaussianMixture",
    "Natural",
    "NegativeBinomial",
    "NeuralGaussian",
    "Observations",
    "OrnsteinUhlenbeck",
    "Poisson",
    "StudentT",
    "reordered",
]
