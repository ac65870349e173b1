"""Emissions: the density of what is seen in each hidden state. One definition each, for every engine."""

from .categorical import Categorical
from .counts import NegativeBinomial, Poisson
from .dictionary import Dictionary, GaussianDictionary, Torus
from .diffusion import Diffusion
from .emission import Emission, Natural, Observations, reordered
from .gaussian import FullGaussian, Gaussian, SharedGaussian
from .heavy import GaussianMixture, StudentT
from .measured import Measured
from .memory import OrnsteinUhlenbeck
from .neural import CustomEmission, FullNeuralGaussian, NeuralGaussian
from .wrapped import Levels, Nuisance

__all__ = [
    "Categorical",
    "CustomEmission",
    "Dictionary",
    "Diffusion",
    "Emission",
    "FullGaussian",
    "FullNeuralGaussian",
    "Gaussian",
    "GaussianDictionary",
    "GaussianMixture",
    "Levels",
    "Measured",
    "Natural",
    "NegativeBinomial",
    "NeuralGaussian",
    "Nuisance",
    "Observations",
    "OrnsteinUhlenbeck",
    "Poisson",
    "SharedGaussian",
    "StudentT",
    "Torus",
    "reordered",
]
