"""Fitted reaction networks on disk: one JSON file for what was assumed and found, one of arrays. Nothing is pickled."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from .emissions.readings import Readings
from .errors import InputError
from .fitted_files import ESTIMATE, check_arrays, plain, read_folder, versions, write_folder
from .fitted_network import FittedNetwork
from .mjp.interval import Interval, interval_or_unknown
from .shapes import require_shape
from .systems import Reaction, ReactionNetwork

FORMAT = "neuralmjp fitted network"
FORMAT_VERSION = 1
# Kept in the JSON file as they are; everything else has a form of its own.
PLAIN = ("engine", "time_unit", "value_names", "log_likelihood", "n_parameters", "n_observations", "converged",
         "message", "uncertainty", "warnings", "seconds", "seed", "initial", "posterior", "elbo", "restarts",
         "truncated", "at_edge")  # fmt: skip
LISTS = ("value_names", "warnings", "restarts")
SHAPE = ESTIMATE | {"initial": str, "truncated": (float, None), "at_edge": dict, "network": dict,
                    "readings": {"columns": list, "noise": str}}  # fmt: skip


def summary(fitted: FittedNetwork) -> dict[str, Any]:
    """The result as the command line's JSON: every quantity with mean, lower and upper, in the data's time unit."""
    found = interval_or_unknown(fitted.intervals, "parameters", fitted.constants)
    emission: dict[str, Any] = {"name": fitted.readings.noise}
    for name, interval in fitted.noise_intervals().items():
        emission[name] = {"mean": interval.mean, "lower": interval.lower, "upper": interval.upper}
    return plain(
        {
            "engine": fitted.engine,
            "posterior": fitted.posterior,
            "network": fitted.network.name,
            "time_unit": fitted.time_unit,
            "log_likelihood": fitted.log_likelihood,
            **({} if fitted.elbo is None else {"elbo": fitted.elbo}),
            "n_parameters": fitted.n_parameters,
            "n_observations": fitted.n_observations,
            "converged": fitted.converged,
            "message": fitted.message,
            "seconds": fitted.seconds,
            "parameters": {
                name: {"mean": found.mean[k], "lower": found.lower[k], "upper": found.upper[k]}
                for k, name in enumerate(fitted.names)
            },
            "emission": emission,
            "uncertainty": fitted.uncertainty,
            "warnings": list(fitted.warnings),
            "restarts": list(fitted.restarts),
            "truncated": fitted.truncated,
            "at_edge": fitted.at_edge,
            "versions": versions(),
            "seed": fitted.seed,
        }
    )


def save(fitted: FittedNetwork, folder: Path) -> None:
    """Write `model.json` and `arrays.npz`, and `result.json` for people and scripts."""
    description = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "network": _described(fitted.network),
        "readings": {name: getattr(fitted.readings, name) for name in ("columns", "noise", "fixed")},
        **{name: getattr(fitted, name) for name in PLAIN},
        "versions": versions(),
    }
    arrays = {"log_covariance": fitted.log_covariance}
    arrays |= {f"noise/{name}": np.asarray(value) for name, value in fitted.noise.items()}
    for name, interval in fitted.intervals.items():
        arrays |= {
            f"interval/{name}/{part}": np.asarray(getattr(interval, part)) for part in ("mean", "lower", "upper")
        }
    write_folder(folder, arrays, description, summary(fitted))


def load(folder: Path) -> FittedNetwork:
    """Read what `save` wrote."""
    return read_folder(folder, "fitted network", FORMAT, FORMAT_VERSION, _assembled)


def _assembled(known: dict[str, Any], arrays: dict[str, np.ndarray]) -> FittedNetwork:
    require_shape(known, SHAPE)
    check_arrays(arrays)
    readings = known["readings"]
    fixed = None if readings["fixed"] is None else tuple(readings["fixed"])
    how = Readings(tuple(tuple(column) for column in readings["columns"]), readings["noise"], fixed)
    noise = {name.removeprefix("noise/"): array for name, array in arrays.items() if name.startswith("noise/")}
    how.natural(noise)  # fails here, not in use, if a parameter is missing
    parts: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        if name.startswith("interval/"):
            _, quantity, part = name.split("/")
            parts.setdefault(quantity, {})[part] = array
    others: dict[str, Any] = {name: tuple(known[name]) if name in LISTS else known[name] for name in PLAIN}
    return FittedNetwork(
        network=_network(known["network"]),
        readings=how,
        noise=noise,
        intervals={name: Interval(each["mean"], each["lower"], each["upper"]) for name, each in parts.items()},
        log_covariance=arrays["log_covariance"],
        **others,
    )


def _described(network: ReactionNetwork) -> dict[str, Any]:
    """A network as data; code is never stored."""
    for reaction in network.reactions:
        if reaction.propensity is not None:
            raise InputError(
                f"the reaction at {reaction.constant} has a propensity of its own, and functions cannot be stored: "
                "keep the constants (fitted.parameters) beside your code instead"
            )
    described = {each.name: getattr(network, each.name) for each in fields(network)}
    described["reactions"] = [[r.consumed, r.produced, r.constant] for r in network.reactions]
    return described


def _network(known: dict[str, Any]) -> ReactionNetwork:
    seen = known["seen"]
    changed = {
        "species": tuple(known["species"]),
        "reactions": tuple(Reaction(*each) for each in known["reactions"]),
        "largest": tuple(known["largest"]),
        "start": tuple((low, high) for low, high in known["start"]),
        "seen": None if seen is None else tuple(tuple(some) for some in seen),
    }
    return ReactionNetwork(**{**known, **changed})
