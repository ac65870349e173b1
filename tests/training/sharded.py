"""Run in a process of its own, with 8 devices made of the processor: the same training on one of them and on all.

python sharded.py tilted paper counts    -> JSON: by name and number of devices, what was found
"""

import json
import sys

import jax
import numpy as np

from neuralmjp import NetworkMJP, NeuralMJP, systems

SMALL = {"steps": 20, "round_steps": 10, "batch": 16, "width": 8}
PAPER = {**SMALL, "dynamics": (8,), "initial_hidden": (8,), "rates_hidden": (8,), "quadrature": 16}


def trained(name: str, mesh: int):
    ratchet, predators = systems.FlashingRatchet(), systems.lotka_volterra()
    if name == "counts":
        changes = {**SMALL, "mesh": mesh, "polish": False}
        estimator = NetworkMJP(predators, engine="neural", changes=changes)
        return estimator.train(predators.simulate(16, 8, seed=0).data)
    data = ratchet.simulate(64, 20, seed=0).data
    if name == "paper":
        return NeuralMJP(6, prior=ratchet, posterior="paper", changes={**PAPER, "mesh": mesh}).train(data)
    return NeuralMJP(6, prior=ratchet, changes={**SMALL, "mesh": mesh}, restarts=2).train(data)


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)  # before anything is computed
    found = {"devices": jax.device_count()}
    for name in sys.argv[1:]:
        for mesh in (1, 8):
            one = trained(name, mesh)
            rounds = [[row["objective"], row["path_kl"], *row["theta"]] for run in one.histories for row in run]
            found[f"{name}, {mesh}"] = [*one.restarts, *np.ravel(rounds).tolist()]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
