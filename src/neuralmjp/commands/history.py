"""The course of a training run as a table: the bound term by term, and the rates, after every round."""

import csv
from pathlib import Path

import numpy as np

from ..exact.fit import ordered
from ..mjp.precision import in_double_precision
from ..training.run import Trained

HISTORY_FILE = "history.csv"
TERMS = ("objective", "reconstruction", "path_kl", "initial_kl")  # means over a round, in nats per series


@in_double_precision
def write_history(trained: Trained, path: Path) -> None:
    """One row per round of the run that was kept; rate parameters by name, for states numbered as in the result."""
    model = trained.setup.model
    with open(path, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["step", "seconds", *TERMS, *model.rate_model.names])
        for row in trained.history:
            then = trained.parameters._replace(rates=np.array(row["theta"]))
            rates = np.exp(np.asarray(ordered(model, then).rates))
            table.writerow([row["step"], f"{row['seconds']:.3f}", *(row[name] for name in TERMS), *rates.tolist()])
