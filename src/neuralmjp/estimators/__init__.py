"""Estimators: an object that says what to assume; `fit` returns the fitted model."""

from .exact import ExactMJP
from .network import NetworkMJP
from .neural import NeuralMJP

__all__ = ["ExactMJP", "NetworkMJP", "NeuralMJP"]
