"""VAMPnets: a network that names states such that their slow motion is seen best.

Through `deeptime` and PyTorch (extra `compare`). Mardt, Pasquali, Wu & Noe 2018,
https://doi.org/10.1038/s41467-017-02388-1
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float

from ..errors import InputError
from ..exact.metastable import inner_simplex
from ..timeseries import TimeSeries
from .chain import MarkovChain, make_chain
from .features import Features
from .lagged import Pairs, chosen_lag, held_out, lagged_pairs, propagator, vamp2

ROWS_AT_ONCE = 100_000


@dataclass(frozen=True)
class VampNet:
    """Memberships by a network with softmax outputs, trained to the highest VAMP-2 score.

    Of several short starts the one with the best score goes on: a start may miss a state that is rare. A part of the
    data is held out, in stretches of time; training ends where its score has not risen for `patience` passes.

    The score does not tell memberships from their mixtures. So they are spread out as in PCCA+, until the rows that lie
    farthest apart belong to one state each.

    Args:
        n_states: K, outputs of the network.
        lag: of the Markov model in the data's time unit; by default 20 median gaps (20 ps where frames are saved every
            picosecond), at most a tenth of a typical series.
        sets_lag: lag at which the network is trained; by default a tenth of the lag, and at least one gap: states that
            mix within the lag could not be told apart.
        angles: values are angles in radians.
        width: units of each hidden layer.
        depth: hidden layers.
        learning_rate: of Adam.
        batch: pairs per step; large, so that rare states are in every batch.
        passes: over the training pairs, at most.
        first_passes: of every start, before one is chosen.
        patience: passes without a better held-out score, after which training ends.
        validation: share of the data that is held out.
        starts: random starts.
        seed: of all that is random.
    """

    n_states: int
    lag: float | None = None
    sets_lag: float | None = None
    angles: bool = False
    width: int = 64
    depth: int = 2
    learning_rate: float = 3e-3
    batch: int = 10_000
    passes: int = 20
    first_passes: int = 4
    patience: int = 5
    validation: float = 0.2
    starts: int = 3
    seed: int = 0

    def fit(self, data: TimeSeries) -> MarkovChain:
        """Train, then estimate transitions between the states at the lag."""
        try:
            import torch
            from deeptime.decomposition.deep import VAMPNet as Estimator
        except ImportError:
            raise InputError("VAMPnets need deeptime and PyTorch: pip install 'neuralmjp[compare]'") from None
        features = Features.of(data, self.angles)
        rows = features(data).astype(np.float32)
        pairs = lagged_pairs(data, chosen_lag(data, self.lag))
        closer = lagged_pairs(data, self.sets_lag or max(pairs.lag / 10, float(np.median(data.gaps))))
        rng = np.random.default_rng(self.seed)
        held = held_out(data, closer, self.validation, rng)
        train, test = closer.some(~held), closer.some(held)
        with torch.random.fork_rng(devices=[]), one_thread():
            torch.manual_seed(self.seed)
            starts: list[Any] = [
                Estimator(self._network(rows.shape[1]), learning_rate=self.learning_rate) for _ in range(self.starts)
            ]
            for start in starts:
                for _ in range(self.first_passes):
                    self._pass(start, rows, train, rng)
            best = max(starts, key=lambda start: vamp2(outputs(start.lobe, rows), closer))
            self._train(best, rows, train, test, rng)
        network = best.lobe
        found = outputs(network, rows)
        spread = np.linalg.inv(found[inner_simplex(found)])

        def memberships(some: TimeSeries) -> Float[np.ndarray, "row state"]:
            spread_out = np.maximum(outputs(network, features(some).astype(np.float32)) @ spread, 0.0)
            return spread_out / spread_out.sum(1, keepdims=True)

        def scored(some: TimeSeries) -> float:
            return vamp2(memberships(some), lagged_pairs(some, pairs.lag))

        found = memberships(data)
        law = (found[pairs.first] + found[pairs.second]).mean(0) / 2
        matrix = propagator(found, pairs, reversible=True)
        return make_chain("VAMPnets", matrix, pairs.lag, data, memberships, scored, "VAMP-2", law=law)

    def _train(
        self,
        estimator: Any,
        rows: Float[np.ndarray, "row feature"],
        train: Pairs,
        test: Pairs,
        rng: np.random.Generator,
    ) -> None:
        """Until the held-out score no longer rises; then the network is as it was when that was best."""
        best, kept, waited = vamp2(outputs(estimator.lobe, rows), test), copy.deepcopy(estimator.lobe.state_dict()), 0
        for _ in range(self.passes - self.first_passes):
            self._pass(estimator, rows, train, rng)
            score = vamp2(outputs(estimator.lobe, rows), test)
            waited = 0 if score > best else waited + 1
            if score > best:
                best, kept = score, copy.deepcopy(estimator.lobe.state_dict())
            if waited >= self.patience:
                break
        estimator.lobe.load_state_dict(kept)

    def _pass(
        self, estimator: Any, rows: Float[np.ndarray, "row feature"], train: Pairs, rng: np.random.Generator
    ) -> None:
        """Every training pair once."""
        import torch

        n_batches = max(len(train.first) // self.batch, 1)
        for some in np.array_split(rng.permutation(len(train.first)), n_batches):
            estimator.partial_fit([torch.from_numpy(rows[side[some]]) for side in (train.first, train.second)])

    def _network(self, n_features: int) -> Any:
        from torch import nn

        sizes = [n_features, *[self.width] * self.depth]
        hidden = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ELU())]
        return nn.Sequential(*hidden, nn.Linear(sizes[-1], self.n_states), nn.Softmax(dim=1))


@contextmanager
def one_thread() -> Iterator[None]:
    """Small networks gain nothing from more threads, and where cores are busy they wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def outputs(lobe: Any, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row state"]:
    """Memberships of rows, which sum to 1."""
    import torch

    with torch.no_grad():
        parts = [lobe(part).numpy() for part in torch.from_numpy(rows).split(ROWS_AT_ONCE)]
    found = np.concatenate(parts).astype(float)
    return found / found.sum(1, keepdims=True)
