"""A small data set, a model and fresh networks, as a training run would make them."""

from typing import NamedTuple

import jax
import numpy as np

from neuralmjp import NeuralMJP, Panel, TimeSeries
from neuralmjp.posteriors import Capacity
from neuralmjp.training.blocks import Block
from neuralmjp.training.config import Config
from neuralmjp.training.networks import Networks, Setup, make_networks
from neuralmjp.training.problem import Problem

TINY = Config(
    width=4, dynamics=(5,), initial_hidden=(5,), rates_hidden=(5,), batch=4, steps=12, round_steps=4, runge_kutta=2
)
PAPER = TINY.changed(posterior="paper", encoder="ode-rnn", embedded=False, reconstruction="expectation")


def series(lengths=(6, 3, 5, 1), seed=0, missing=0.0, n_features=1) -> TimeSeries:
    """Ragged series of irregular times around two levels."""
    rng = np.random.default_rng(seed)
    offsets = np.append(0, np.cumsum(lengths))
    times = np.concatenate([np.cumsum(rng.uniform(0.1, 0.6, n)) for n in lengths])
    values = rng.choice([-1.0, 1.5], (offsets[-1], 1)) + 0.5 * rng.normal(size=(offsets[-1], n_features))
    hidden = rng.random(values.shape) < missing
    hidden[offsets[:-1]] = False
    values[hidden] = np.nan
    names = tuple(f"s{i}" for i in range(len(lengths)))
    return TimeSeries(times, values, offsets, names, tuple(f"x{i}" for i in range(n_features)))


class World(NamedTuple):
    problem: Problem
    setup: Setup
    networks: Networks

    @property
    def block(self) -> Block:
        return self.problem.block


def world(config=TINY, data=None, n_states=2, seed=0, shaken=0.3, **assumed) -> World:
    """Networks whose every number is shaken, so that nothing is zero by being fresh; in double precision."""
    data = series() if data is None else data
    model = NeuralMJP(n_states, assumed.pop("emission", "gaussian"), **assumed).model(data)
    problem = Problem.of(data, model, Panel(), config.changed(precision="double"), 1, seed)
    setup = problem.setup()._replace(capacity=Capacity.of(64.0))
    networks = make_networks(setup, problem.starts[0], key=jax.random.key(seed))
    rng = np.random.default_rng(seed)
    networks = jax.tree.map(lambda x: x + shaken * rng.normal(size=x.shape), networks)
    return World(problem, setup, networks)
