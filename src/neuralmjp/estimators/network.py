"""The estimator of reaction networks: one set of assumptions, three engines."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from ..arguments import require_seed, require_whole
from ..checks import require_series
from ..emissions.readings import Noise, Readings
from ..errors import InputError
from ..exact.lattice_fit import Progress, fit_lattice
from ..exact.lattice_likelihood import Likelihood
from ..exact.lattice_start import check_readable, crude_start
from ..fitted_network import MOST_CELLS, FittedNetwork, matched, require_small_box
from ..mjp.precision import in_double_precision
from ..programs import forgetting
from ..systems import ReactionNetwork, named
from ..timeseries import TimeSeries
from ..training.config import Config, PosteriorName, Preset
from ..training.coupled import CoupledTrained, coupled_preset
from .choices import Choices
from .coupled import Start, fitted_by_networks, fitted_by_sweeps, train_network
from .lattice import assemble_network

Engine = Literal["auto", "exact", "neural", "meanfield"]
NAMELESS = re.compile(r"(value(_\d+)?|\d+)?")  # names of columns that nobody named
MOST_WORK = 2e9  # cells times substeps of one evaluation, beyond which a fit takes hours
# The same for the exact likelihood of what a mean field found: some five seconds for each of several evaluations.
MOST_AFTERWARDS = {"cpu": 2e7, "gpu": 1e9}


@dataclass
class NetworkMJP(Choices):
    """Rate constants of a reaction network from noisy, scattered readings of its counts.

    Args:
        network: species, reactions and box, or the name of a known one such as "lotka-volterra"; the values of its
            constants are not used.
        engine: "exact" (the likelihood on the box of counts), "neural", "meanfield", or "auto": exact where affordable.
        noise: how counts are read; the network's own if not given. See `Readings`.
        noise_scale: the noise parameter of every value, if it is known; else it is learned.
        seen: for each value, a species or a sum such as "A+B"; if not given, the names of the data's values where they
            are species, else as the network says.
        initial: "flat": at the first observation of a series every cell of the box is as likely; "start": at time 0
            all counts in the network's `start` are, as in its simulations.
        start: constants to begin from, by name; moments of the data give them if not given. For the neural engine
            also a list of such, one for each restart.
        restarts: starts of which the best is kept.
        seed: of random starts and networks.
        intervals: whether to compute them.
        posterior, preset, config, changes: of the neural engine, as in `NeuralMJP`.

    >>> from neuralmjp import systems
    >>> network = systems.parse_network("0 -> X @ birth = 2\\nX -> 0 @ death = 0.1\\nduration 20")
    >>> fitted = NetworkMJP(network).fit(network.simulate(20, 20, seed=0).data)
    >>> found = fitted.intervals["parameters"]
    >>> fitted.converged, (found.lower < [2, 0.1]).tolist(), (found.upper > [2, 0.1]).tolist()
    (True, [True, True], [True, True])
    """

    network: ReactionNetwork
    engine: Engine = "auto"
    noise: Noise | None = None
    noise_scale: float | None = None
    seen: Sequence[str] | None = None
    initial: str = "flat"
    start: Start = None
    restarts: int = 1
    seed: int = 0
    intervals: bool = True
    posterior: PosteriorName = "tilted"
    preset: Preset = "quick"
    config: Config | None = None
    changes: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        network: Any = named(self.network) if isinstance(self.network, str) else self.network
        if not isinstance(network, ReactionNetwork):
            raise InputError(
                f"{getattr(network, 'name', repr(network))} is no reaction network: give one, such as "
                "systems.lotka_volterra(), or its name"
            )
        self.network = network

    def fit_fetch(self, data: TimeSeries, progress: Progress = lambda *_: None) -> FittedNetwork:
        """`fit`, under the name that deeptime uses."""
        return self.fit(data, progress)

    @forgetting
    @in_double_precision
    def fit(
        self,
        data: TimeSeries,
        progress: Progress = lambda *_: None,
        *,
        folder: Path | None = None,
        resume: bool = False,
    ) -> FittedNetwork:
        """Find the constants and the noise, and how well the data determine them.

        Args:
            folder: where the neural engine keeps a checkpoint while training.
            resume: go on from it.
        """
        began = time.perf_counter()
        engine, why = self.engine, ""
        if engine == "auto":
            engine, reason = self.choose(data)
            why = f"; {engine}, since {reason}"
        data, readings = self._checked(data)
        if engine != "exact":
            fitted = self._by_mean_field(engine, data, readings, progress, folder, resume)
            fitted = replace(fitted, message=f"{fitted.message}{why}")
            return replace(fitted, seconds=time.perf_counter() - began)
        require_small_box(self.network)
        found = fit_lattice(
            data,
            self.network,
            readings,
            initial=self.initial,
            start=self.one_start(),
            restarts=self.restarts,
            seed=self.seed,
            progress=progress,
        )
        if self.intervals:
            progress("intervals", 0.0)
        found = replace(found, message=f"{found.message}{why}")
        fitted = assemble_network(found, self.network, self.initial, seed=self.seed, intervals=self.intervals)
        return replace(fitted, seconds=time.perf_counter() - began)

    def configuration(self) -> Config:
        """Every choice of the neural engine's training."""
        chosen = coupled_preset(self.preset, self.posterior) if self.config is None else self.config
        return chosen.changed(**(self.changes or {}))

    @in_double_precision
    def choose(self, data: TimeSeries) -> tuple[Literal["exact", "neural"], str]:
        """The engine that "auto" takes for these data, and why."""
        return self._chosen(*self._checked(data))

    @forgetting
    @in_double_precision
    def train(
        self,
        data: TimeSeries,
        progress: Progress = lambda *_: None,
        *,
        folder: Path | None = None,
        resume: bool = False,
    ) -> CoupledTrained:
        """Train the neural engine: the bound term by term, its history, the posterior of other data."""
        data, readings = self._checked(data)
        return train_network(
            data,
            self.network,
            readings,
            config=self.configuration(),
            initial=self.initial,
            start=self.start,
            restarts=self.restarts,
            seed=self.seed,
            progress=progress,
            folder=folder,
            resume=resume,
        )

    @in_double_precision
    def fitted(self, data: TimeSeries, trained: CoupledTrained) -> FittedNetwork:
        """What training found, as people use it, with intervals; exact likelihood where the box is not too large."""
        data, readings = self._checked(data)
        tractable = self._affordable(data, readings)
        return fitted_by_networks(
            trained, data, tractable=tractable, initial=self.initial, seed=self.seed, intervals=self.intervals
        )

    def _by_mean_field(
        self,
        engine: Engine,
        data: TimeSeries,
        readings: Readings,
        progress: Progress,
        folder: Path | None,
        resume: bool,
    ) -> FittedNetwork:
        if engine == "meanfield":
            return fitted_by_sweeps(
                data,
                self.network,
                readings,
                initial=self.initial,
                start=self.one_start(),
                tractable=self._affordable(data, readings),
                seed=self.seed,
                intervals=self.intervals,
                progress=progress,
            )
        trained = self.train(data, progress, folder=folder, resume=resume)
        if self.intervals:
            progress("intervals", 1.0)
        return self.fitted(data, trained)

    def one_start(self) -> dict[str, float] | None:
        """The start of an engine that has no restarts."""
        if self.start is None or isinstance(self.start, dict):
            return self.start
        raise InputError("a list of starts, one for each restart, is for the neural engine; give one")

    def _checked(self, data: TimeSeries) -> tuple[TimeSeries, Readings]:
        """What is read, if the network could have given it."""
        require_seed(self.seed)
        require_whole(self.restarts, 1, "a fit has at least 1 start (restarts)")
        data, readings = self.observed(data)
        check_readable(data, readings, self.network.box)
        return data, readings

    def observed(self, data: TimeSeries) -> tuple[TimeSeries, Readings]:
        """The columns that are read, in order, and how."""
        require_series(data)
        columns = self._columns(data)
        names = tuple("+".join(self.network.species[s] for s in some) for some in columns)
        if len(set(names)) < len(names):
            raise InputError(f"seen are {', '.join(names)}: each of them can be one value only")
        noise = self.network.noise if self.noise is None else self.noise
        if self.noise is None and self.network.noise_scale == 0 and noise != "binomial":
            noise = "none"
        fixed = None if self.noise_scale is None else (float(self.noise_scale),) * len(columns)
        if fixed is not None and noise in ("none", "poisson"):
            raise InputError(f"{noise} readings have no noise parameter: leave the noise scale out")
        if fixed is not None and not (0 < fixed[0] < (1 if noise == "binomial" else np.inf)):
            allowed = "a chance of detection lies between 0 and 1" if noise == "binomial" else "noise must be positive"
            raise InputError(f"{allowed}, got {fixed[0]:g}")
        return matched(data, names), Readings(columns, noise, fixed)

    def _columns(self, data: TimeSeries) -> tuple[tuple[int, ...], ...]:
        """Positions of the species that each value shows."""
        species = self.network.species
        if self.seen is not None:
            shown = [tuple(part.strip() for part in each.split("+")) for each in self.seen]
        else:
            by_name = {one.lower(): one for one in species}
            named = [tuple(part.strip() for part in name.split("+")) for name in data.value_names]
            unknown = [part for some in named for part in some if part.lower() not in by_name]
            if not unknown:
                shown = [tuple(by_name[part.lower()] for part in some) for some in named]
            elif self.network.seen is None and not all(map(NAMELESS.fullmatch, data.value_names)):
                raise InputError(
                    f"no species is called {unknown[0]!r}, there are {', '.join(species)}: say what each value shows, "
                    f"such as --seen {','.join(species)} (seen=[...])"
                )
            else:
                shown = list(self.network.seen or [(one,) for one in species])
        for part in (part for some in shown for part in some):
            if part not in species:
                raise InputError(f"{part!r} is seen, but is not among the species {', '.join(species)}")
        return tuple(tuple(species.index(part) for part in some) for some in shown)

    def _chosen(self, data: TimeSeries, readings: Readings) -> tuple[Literal["exact", "neural"], str]:
        """The engine for these data, and why."""
        cells = int(np.prod(self.network.box, dtype=float))
        if cells > MOST_CELLS:
            return "neural", f"the box has {cells:.1e} cells, more than {MOST_CELLS:.0e} for the exact engine"
        work = self._work(data, readings)
        if work > MOST_WORK:
            return "neural", f"{work:.1e} cells x substeps are more than {MOST_WORK:.0e} for the exact engine"
        return "exact", f"the likelihood is tractable: {work:.1e} cells x substeps"

    def _affordable(self, data: TimeSeries, readings: Readings) -> bool:
        """Whether to take the exact likelihood of what a mean field found, and its intervals."""
        if np.prod(self.network.box, dtype=float) > MOST_CELLS:
            return False
        return self._work(data, readings) <= MOST_AFTERWARDS.get(jax.default_backend(), MOST_AFTERWARDS["gpu"])

    def _work(self, data: TimeSeries, readings: Readings) -> float:
        """Cells times substeps of one evaluation of the exact likelihood."""
        place = crude_start(data, self.network.events(), readings)
        return Likelihood(data, self.network, readings, self.initial).work(*place)
