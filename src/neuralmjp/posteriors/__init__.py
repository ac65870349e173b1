"""Posteriors: the hidden process given the observations of a series."""

from .free import FreePosterior
from .tilted import TiltedPosterior, tilted_terms
from .transitions import Capacity, transition_matrices

__all__ = ["Capacity", "FreePosterior", "TiltedPosterior", "tilted_terms", "transition_matrices"]
