"""Fitted models on disk: one JSON file for what was assumed and found, one file of arrays. Nothing is pickled."""

import hashlib
import json
import platform
from collections.abc import Callable
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ._version import __version__
from .emissions.named import from_options, options_of
from .errors import DamagedFile, InputError
from .exact.evidence import Panel
from .exact.model import Model, Parameters
from .fitted import FittedMJP
from .mjp import Interval
from .mjp.interval import interval_or_unknown
from .npz_files import read_npz
from .priors import FreeRates, ParametricRates, RateModel, ReversibleRates
from .shapes import require_shape
from .whole_files import write_whole, write_whole_text

FORMAT = "neuralmjp fitted model"
FORMAT_VERSION = 1
DIGEST = "arrays"  # of the file of arrays, in the description
LARGEST_JSON = 1 << 26
Fit = TypeVar("Fit")
ESTIMATE = {"engine": str, "posterior": (str, None), "elbo": (float, None), "time_unit": str, "value_names": [str],
             "log_likelihood": float, "n_parameters": int, "n_observations": int, "converged": bool, "message": str,
             "uncertainty": str, "warnings": [str], "seconds": float, "seed": int,
             "restarts": [(float, None)]}  # fmt: skip
SHAPE = ESTIMATE | {"rate_model": {"kind": str}, "emission": {"name": str, "options": dict}, "initial": str,
                     "given": ([float], None), "rate_prior": ([float], None),
                     "panel": {"exact_entry": (float, None), "first_known": bool, "censored": list}}  # fmt: skip


def plain(value: Any) -> Any:
    """Numbers and arrays as JSON can hold them; what is infinite or undefined becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def summary(fitted: FittedMJP) -> dict[str, Any]:
    """The result as the command line's JSON: every quantity with mean, lower and upper, in the data's time unit."""
    rates = interval_or_unknown(fitted.intervals, "rates", fitted.rates)
    result: dict[str, Any] = {
        "engine": fitted.engine,
        "posterior": fitted.posterior,
        "time_unit": fitted.time_unit,
        "n_states": fitted.n_states,
        "state_names": list(fitted.state_names),
        "log_likelihood": fitted.log_likelihood,
        **({} if fitted.elbo is None else {"elbo": fitted.elbo}),
        "n_parameters": fitted.n_parameters,
        "n_observations": fitted.n_observations,
        "aic": fitted.aic,
        "bic": fitted.bic,
        "converged": fitted.converged,
        "message": fitted.message,
        "seconds": fitted.seconds,
        "rates": _entry(rates),
        "emission": {"name": fitted.emission.name},
        "uncertainty": fitted.uncertainty,
        "warnings": list(fitted.warnings),
        "restarts": list(fitted.restarts),
        "restart_timescales": list(fitted.restart_timescales),
        "versions": versions(),
        "seed": fitted.seed,
    }
    for name in ("stationary_distribution", "timescales", "mfpt"):
        try:
            result[name] = _entry(getattr(fitted, name))
        except InputError as reason:  # several closed classes: say why instead of a number
            result[name] = {"mean": None, "lower": None, "upper": None, "reason": fitted.told(str(reason))}
    if isinstance(fitted.model.rate_model, ParametricRates) and "parameters" in fitted.intervals:
        found = fitted.intervals["parameters"]
        result["parameters"] = {
            name: {"mean": found.mean[k], "lower": found.lower[k], "upper": found.upper[k]}
            for k, name in enumerate(fitted.model.rate_model.names)
        }
    for name, entry in fitted.emission.natural(fitted.parameters.emission).items():
        found = interval_or_unknown(fitted.intervals, f"emission.{name}", np.asarray(entry.value))
        result["emission"][name] = _entry(found)
    return plain(result)


def _entry(interval: Interval) -> dict[str, Any]:
    return {"mean": interval.mean, "lower": interval.lower, "upper": interval.upper}


def versions() -> dict[str, str]:
    """What made a result."""
    made_by = {"neuralmjp": __version__, "python": platform.python_version()}
    return made_by | {name: version(name) for name in ("jax", "numpy")}


def save(fitted: FittedMJP, folder: Path) -> None:
    """Write `model.json` and `arrays.npz`, and `result.json` for people and scripts."""
    arrays = {
        "theta": np.asarray(fitted.parameters.rates),
        "rates": fitted.rates,
        "initial": np.asarray(fitted.parameters.initial),
        "rate_samples": fitted.rate_samples,
        **{f"emission/{name}": np.asarray(value) for name, value in fitted.parameters.emission.items()},
    }
    for name, interval in fitted.intervals.items():
        arrays |= {f"interval/{name}/{part}": np.asarray(value) for part, value in _entry(interval).items()}
    description = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "engine": fitted.engine,
        "posterior": fitted.posterior,
        "elbo": fitted.elbo,
        "rate_model": _describe(fitted.model.rate_model),
        "emission": {"name": fitted.emission.name, "options": options_of(fitted.emission)},
        "initial": fitted.model.initial,
        "given": fitted.model.given,
        "rate_prior": fitted.model.rate_prior,
        "panel": {
            "exact_entry": fitted.panel.exact_entry,
            "first_known": fitted.panel.first_known,
            "censored": [[float(code), list(map(float, states))] for code, states in fitted.panel.censored.items()],
        },
        "time_unit": fitted.time_unit,
        "value_names": list(fitted.value_names),
        "state_names": list(fitted.state_names),
        "log_likelihood": fitted.log_likelihood,
        "n_parameters": fitted.n_parameters,
        "n_observations": fitted.n_observations,
        "converged": fitted.converged,
        "message": fitted.message,
        "uncertainty": fitted.uncertainty,
        "warnings": list(fitted.warnings),
        "seconds": fitted.seconds,
        "seed": fitted.seed,
        "restarts": list(fitted.restarts),
        "restart_timescales": list(fitted.restart_timescales),
        "versions": versions(),
    }
    write_folder(folder, arrays, description, summary(fitted))


def load(folder: Path) -> FittedMJP:
    """Read what `save` wrote."""
    return read_folder(folder, "fitted model", FORMAT, FORMAT_VERSION, _assembled)


def write_folder(folder: Path, arrays: dict[str, Any], description: dict[str, Any], result: dict[str, Any]) -> None:
    """The three files of a fit; the description, which says which arrays belong to it, is the last of them."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = BytesIO()
    np.savez(packed, **arrays)
    known = {**plain(description), DIGEST: hashlib.sha256(packed.getbuffer()).hexdigest()}
    write_whole(folder / "arrays.npz", lambda file: file.write(packed.getbuffer()))
    write_whole_text(folder / "result.json", json.dumps(result, indent=2) + "\n")
    write_whole_text(folder / "model.json", json.dumps(known, indent=2) + "\n")


def read_folder(
    folder: Path, what: str, form: str, number: int, assembled: Callable[[dict[str, Any], dict[str, np.ndarray]], Fit]
) -> Fit:
    """What `write_folder` wrote, assembled again; one line for anything else."""
    file = folder / "model.json"
    if not file.exists():
        why = "there is no model.json" if folder.is_dir() else "there is no such folder"
        raise InputError(
            f"{folder} holds no {what} that can be read: {why}; neuralmjp fit DATA --out {folder} writes it"
        )
    try:
        known = read_json(file)
        if not isinstance(known, dict) or (known.get("format"), known.get("version")) != (form, number):
            held = known.get("format") if isinstance(known, dict) else None
            if isinstance(held, str) and held != form:
                raise InputError(f"{file}: not a {what}, but a {held.removeprefix('neuralmjp ')!r}")
            raise InputError(f"{file}: not a {what} of version {number}; fit again with this version")
        arrays = read_npz(folder / "arrays.npz")
    except (OSError, DamagedFile) as error:
        raise InputError(f"{folder} holds no {what} that can be read: {error}") from None
    if known.get(DIGEST) not in (None, hashlib.sha256((folder / "arrays.npz").read_bytes()).hexdigest()):
        raise InputError(f"{folder}: model.json and arrays.npz are of two different fits; fit again")
    try:
        return assembled(known, arrays)
    except InputError:
        raise
    except Exception as error:  # whatever the parts of a model make of nonsense
        reason = " ".join(repr(error).split())[:200]
        raise InputError(f"{folder} holds a {what} with parts missing or damaged: {reason}") from None


def check_arrays(arrays: dict[str, np.ndarray]) -> None:
    """Raise `ValueError` unless all are numbers, and the bounds of an interval are of the shape of its middle."""
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise ValueError(f"{name} holds {array.dtype}, not numbers")
        if name.startswith("interval/") and array.shape != arrays[f"{name.rsplit('/', 1)[0]}/mean"].shape:
            raise ValueError(f"{name} has another shape than what it bounds")


def read_json(file: Path) -> Any:
    """What a small file of JSON says; `DamagedFile` where it is none."""
    if file.stat().st_size > LARGEST_JSON:
        raise DamagedFile(f"{file}: has {file.stat().st_size} bytes, more than any that was written here")
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{file}: is no JSON ({str(error)[:80] or type(error).__name__})") from None


def _assembled(known: dict[str, Any], arrays: dict[str, np.ndarray]) -> FittedMJP:
    require_shape(known, SHAPE)
    check_arrays(arrays)
    panel = known["panel"]
    rate_model = _make(known["rate_model"])
    emission = {name.removeprefix("emission/"): a for name, a in arrays.items() if name.startswith("emission/")}
    intervals: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        if name.startswith("interval/"):
            _, quantity, part = name.split("/")
            intervals.setdefault(quantity, {})[part] = array
    given, prior = known["given"], known["rate_prior"]
    # A function of parameters is not stored: the rates it gave are, as free ones.
    function = known["rate_model"]["kind"] == "parametric"
    theta = rate_model.nearest(arrays["rates"]) if function else arrays["theta"]
    kind = from_options(known["emission"]["name"], known["emission"]["options"])
    kind.natural(emission)  # fails here, not in use, if a parameter is missing
    n = rate_model.n_states
    shapes = arrays["initial"].shape, arrays["rates"].shape, arrays["rate_samples"].shape[1:], theta.shape
    if shapes != ((n,), (n, n), (n, n), (len(rate_model.names),)) or not np.isfinite(arrays["rates"]).all():
        raise ValueError(f"rates or the law at the start are not of {n} states")
    return FittedMJP(
        engine=known["engine"],
        model=Model(
            rate_model,
            kind,
            known["initial"],
            None if given is None else tuple(given),
            None if prior is None else tuple(prior),
        ),
        parameters=Parameters(theta, emission, arrays["initial"]),
        time_unit=known["time_unit"],
        value_names=tuple(known["value_names"]),
        log_likelihood=known["log_likelihood"],
        n_parameters=known["n_parameters"],
        n_observations=known["n_observations"],
        converged=known["converged"],
        message=known["message"],
        rate_samples=arrays["rate_samples"],
        intervals={name: Interval(p["mean"], p["lower"], p["upper"]) for name, p in intervals.items()},
        uncertainty=known["uncertainty"],
        warnings=tuple(known["warnings"]),
        seconds=known["seconds"],
        seed=known["seed"],
        panel=Panel(panel["exact_entry"], panel["first_known"], dict(panel["censored"])),
        restarts=tuple(np.nan if value is None else value for value in known["restarts"]),
        restart_timescales=tuple(np.nan if value is None else value for value in known.get("restart_timescales", ())),
        posterior=known["posterior"],
        elbo=known["elbo"],
        state_names=tuple(map(str, known.get("state_names", ()))),
    )


def _describe(model: RateModel) -> dict[str, Any]:
    """A rate model as data. A function of parameters is kept as the rates it gave: code is never stored."""
    if isinstance(model, FreeRates):
        return {"kind": "free", "parameters": model.parameters, "fixed": model.fixed}
    if isinstance(model, ReversibleRates):
        return {"kind": "reversible", "mask": model.allowed.astype(int)}
    return {"kind": "parametric", "names": model.names, "mask": model.allowed.astype(int)}


def _make(known: dict[str, Any]) -> RateModel:
    if known["kind"] == "free":
        return FreeRates.from_tables(np.array(known["parameters"]), np.array(known["fixed"], dtype=float))
    mask = np.array(known["mask"])
    if known["kind"] == "reversible":
        return ReversibleRates(len(mask), mask=mask)
    return FreeRates(len(mask), mask=mask)
