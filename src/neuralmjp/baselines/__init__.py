"""Classical methods to compare with, and tools in their own right. Nothing here uses the neural engine.

opper_sanguinetti   variational EM for reaction networks, species by species
forecasting         what its posterior says of later times
koehs               variational EM for switching diffusions (sweep: the E step; maximise: the M step; climb: the rounds)
msm                 Markov state models: cells, counts, PCCA+
vampnet             VAMPnets: a network names the states
gmvae               Gaussian-mixture autoencoders: clusters first, then transitions
hmm                 hidden Markov models in discrete time
chain               what these return: states at a lag, time scales, passage times (features, lagged: what they look at)
"""

from .chain import ChapmanKolmogorov, MarkovChain
from .forecasting import MeanFieldForecast, forecast
from .gmvae import GaussianMixtureVAE
from .hmm import GaussianHMM
from .koehs import KoehsFit, KoehsPosterior, fit_koehs
from .msm import MarkovStateModel
from .opper_sanguinetti import MeanFieldFit, MeanFieldPosterior, fit_mean_field, posterior
from .problem import Settings
from .vampnet import VampNet

__all__ = [
    "ChapmanKolmogorov",
    "GaussianHMM",
    "GaussianMixtureVAE",
    "KoehsFit",
    "KoehsPosterior",
    "MarkovChain",
    "MarkovStateModel",
    "MeanFieldFit",
    "MeanFieldForecast",
    "MeanFieldPosterior",
    "Settings",
    "VampNet",
    "fit_koehs",
    "fit_mean_field",
    "forecast",
    "posterior",
]
