"""Emissions by the names people type."""

from typing import Any

import numpy as np

from ..arguments import numbers_of
from ..errors import InputError
from ..mjp.types import ArrayLike
from ..timeseries import TimeSeries
from .categorical import Categorical
from .clipped import Clipped, rails_of
from .counts import NegativeBinomial, Poisson
from .dictionary import GaussianDictionary, Torus
from .diffusion import Diffusion
from .emission import Emission
from .gaussian import FullGaussian, Gaussian, Independent, SharedGaussian
from .heavy import GaussianMixture, StudentT
from .measured import Measured
from .memory import OrnsteinUhlenbeck
from .neural import FullNeuralGaussian, NeuralGaussian
from .wrapped import Levels, Nuisance

PLAIN: dict[str, type[Emission]] = {
    "gaussian": Gaussian,
    "gaussian-full": FullGaussian,
    "gaussian-shared": SharedGaussian,
    "student-t": StudentT,
    "poisson": Poisson,
    "negative-binomial": NegativeBinomial,
    "mixture": GaussianMixture,
    "neural": NeuralGaussian,
    "neural-full": FullNeuralGaussian,
    "ornstein-uhlenbeck": OrnsteinUhlenbeck,
    "torus": Torus,
    "dictionary": GaussianDictionary,
    "diffusion": Diffusion,
    "measured": Measured,
}
NAMES = ("categorical", *PLAIN)


def named_emission(
    name: str,
    data: TimeSeries,
    n_states: int,
    *,
    misread: ArrayLike | None = None,
    ignore: tuple[float, ...] = (),
    clipped: bool = True,
) -> Emission:
    """An emission by name; `auto` looks at the data.

    Args:
        name: one of `NAMES`, or auto.
        data: what it is for; the labels of a categorical emission are those found here, sorted.
        n_states: K.
        misread: (K, C) table of 0 and 1: which labels each state can show.
        ignore: labels that are no states (censored).
        clipped: look whether the signal was clipped, and read values at a rail as there or beyond.
    """
    if misread is not None and name not in ("auto", "categorical"):
        raise InputError(f"a table of misreadings is for categorical observations, not for {name}")
    if name == "auto":
        name = automatic(data, n_states, labelled=misread is not None, ignore=ignore)
    if name == "categorical":
        return categorical(data, n_states, misread, ignore)
    if name not in PLAIN:
        raise InputError(f"no emission {name!r}; there are {', '.join(NAMES)}")
    if name == "torus":
        return Torus.of(data.values)
    plain = PLAIN[name]()
    if clipped and isinstance(plain, Independent) and (rails := rails_of(data.values)) is not None:
        return Clipped(*rails, plain)
    return plain


def automatic(data: TimeSeries, n_states: int, *, labelled: bool = False, ignore: tuple[float, ...] = ()) -> str:
    """Categorical where values, less those to ignore, are as few whole numbers as there are states; else Gaussian."""
    if labelled:
        return "categorical"
    seen = data.values[data.mask]
    seen = seen[~np.isin(seen, ignore)] if ignore else seen
    few = data.n_features == 1 and len(np.unique(seen[:100_000])) <= n_states and (seen == np.round(seen)).all()
    return "categorical" if few else "gaussian"


def categorical(data: TimeSeries, n_states: int, misread: ArrayLike | None, ignore: tuple[float, ...]) -> Categorical:
    """Labels of the data, sorted; the states themselves if there are as many and no misreading is declared."""
    if data.n_features != 1:
        raise InputError(f"categorical observations are one column of labels, the data have {data.n_features}")
    labels = np.unique(data.values[data.mask])
    labels = tuple(float(label) for label in labels if label not in ignore)
    if len(labels) > 1000:
        raise InputError(f"the column {data.value_names[0]!r} holds {len(labels)} different labels: is it a signal?")
    if misread is None:
        shows: Any = np.eye(n_states) if len(labels) == n_states else np.ones((n_states, len(labels)))
        return Categorical(labels, shows)
    shows = numbers_of(misread, "the table of misreadings")
    if shows.shape != (n_states, len(labels)):
        size = " x ".join(map(str, shows.shape)) or "one number"
        raise InputError(
            f"the table of misreadings is {size}, but there are {n_states} states and {len(labels)} labels"
        )
    # A state shows its own label whether or not the table says so.
    return Categorical(labels, shows.astype(bool) | np.eye(*shows.shape, dtype=bool))


def options_of(emission: Emission) -> dict[str, Any]:
    """What is needed, beside the name, to make the same emission again."""
    if isinstance(emission, Clipped):
        return {"clipped": {"low": list(emission.low), "high": list(emission.high)}}
    if isinstance(emission, Levels):
        return {**options_of(emission.base), "levels": list(emission.levels)}
    if isinstance(emission, Nuisance):
        own = {key: getattr(emission, key) for key in ("hum", "harmonics", "drift", "span")}
        return {**options_of(emission.base), "nuisance": {**own, "span": list(emission.span)}}
    if isinstance(emission, Categorical):
        return {"labels": list(emission.labels), "shows": emission.readable.astype(int).tolist()}
    if isinstance(emission, GaussianMixture):
        return {"n_components": emission.n_components}
    if isinstance(emission, NeuralGaussian):
        return {"hidden": list(emission.hidden)}
    if isinstance(emission, Torus):
        return {"period": emission.period}
    return {}


def from_options(name: str, options: dict[str, Any]) -> Emission:
    """The emission that `options_of` describes."""
    if "nuisance" in options:
        own = options["nuisance"]
        base = from_options(name, {key: v for key, v in options.items() if key != "nuisance"})
        return Nuisance(base, own["hum"], own["harmonics"], own["drift"], (own["span"][0], own["span"][1]))
    if "levels" in options:
        base = from_options(name, {key: v for key, v in options.items() if key != "levels"})
        return Levels(base, tuple(options["levels"]))
    if name == "categorical":
        return Categorical(tuple(options["labels"]), options["shows"])
    if "clipped" in options:  # a file holds null for no rail
        low, high = options["clipped"]["low"], options["clipped"]["high"]
        ends = [-np.inf if end is None else end for end in low], [np.inf if end is None else end for end in high]
        low, high = (tuple(float(end) for end in each) for each in ends)
        return Clipped(low, high, SharedGaussian() if name == "gaussian-shared" else Gaussian())
    if name not in PLAIN:
        raise InputError(f"an emission of the kind {name!r} cannot be loaded: it was code, not data")
    return PLAIN[name](**{key: tuple(v) if isinstance(v, list) else v for key, v in options.items()})
