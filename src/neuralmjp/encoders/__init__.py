"""Encoders: what the future of a series says, read backwards in time."""

from .encoder import Encoded, Encoder, Inputs
from .gru import GRUEncoder
from .mlp import MLP
from .ode_rnn import ODERNN
from .state_space import StateSpace

__all__ = ["MLP", "ODERNN", "Encoded", "Encoder", "GRUEncoder", "Inputs", "StateSpace"]
