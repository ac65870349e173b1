"""The course of a training run as a table: the bound term by term, and the rates, after every round."""

import csv
from pathlib import Path

import numpy as np

from ..exact.fit import ordered
from ..mjp.precision import in_double_precision
from ..training.coupled import CoupledTrained
from ..training.run import Trained

TERMS = ("objective", "reconstruction", "path_kl", "initial_kl")  # means over a round, in nats per series


@in_double_precision
def write_history(trained: Trained | CoupledTrained, path: Path) -> None:
    """One row per round of the run that was kept; rate parameters by name, for states numbered as in the result."""
    with open(path, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["step", "seconds", *TERMS, *_names(trained)])
        for row in trained.history:
            rates = np.exp(_logs(trained, np.array(row["theta"])))
            table.writerow([row["step"], f"{row['seconds']:.3f}", *(row[name] for name in TERMS), *rates.tolist()])


def _names(trained: Trained | CoupledTrained) -> tuple[str, ...]:
    if isinstance(trained, CoupledTrained):
        return tuple(trained.network.parameters)
    return trained.setup.model.rate_model.names


def _logs(trained: Trained | CoupledTrained, theta: np.ndarray) -> np.ndarray:
    """Logarithms of the rate parameters, in the order of the result."""
    if isinstance(trained, CoupledTrained):
        return theta
    return np.asarray(ordered(trained.setup.model, trained.parameters._replace(rates=theta)).rates)
