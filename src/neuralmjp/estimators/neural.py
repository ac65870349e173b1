"""The neural engine's estimator."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from ..arguments import require_seed, require_whole
from ..checks import require_series
from ..emissions import Gaussian, NeuralGaussian
from ..errors import InputError
from ..exact.fit import fit as exact_fit
from ..exact.fit import ordered
from ..exact.located import located
from ..exact.model import Model
from ..fitted import FittedMJP
from ..mjp.interval import LEVEL, Interval
from ..mjp.precision import in_double_precision
from ..priors import ParametricRates, rates_of
from ..priors.generator import SPREAD, GeneratorParameters
from ..programs import forgetting
from ..store import Store
from ..timeseries import TimeSeries
from ..training.config import Config, PosteriorName, Preset, preset
from ..training.run import Progress, Trained, train
from ..training.stream import Stream
from ..training.trained import USED_UP
from .assemble import assemble, unscaled
from .assumptions import Assumptions

Data = TimeSeries | Store | Stream
N_GENERATED = 1000  # draws of the generator behind its tables, as in the paper


@dataclass
class NeuralMJP(Assumptions):
    """Neural variational inference for a hidden jump process (Seifner & Sanchez 2023), without its bias by default.

    Args (beside those of `Assumptions`):
        posterior: "tilted", whose bound can reach the evidence, or "paper", the published model, emission included.
        preset: "quick" for a laptop, "paper" for the published sizes.
        config: a whole training configuration in place of posterior and preset; see `training.Config`.
        changes: choices of the configuration to change: {"steps": 2000}.
        refine: "exact" finishes rates and emission with the exact engine.
        restarts: runs side by side, of which the one with the highest bound is kept.
        seed: of starts, networks and batches.
        intervals: whether to compute them.

    >>> from neuralmjp import systems
    >>> data = systems.FlashingRatchet().simulate(100, seed=0).data
    >>> fitted = NeuralMJP(6, prior=systems.FlashingRatchet(), changes={"steps": 200}).fit(data)
    >>> fitted.engine, fitted.posterior, fitted.elbo <= fitted.log_likelihood + 0.1
    ('neural', 'tilted', True)
    """

    posterior: PosteriorName = "tilted"
    preset: Preset = "quick"
    config: Config | None = None
    changes: dict[str, Any] | None = None
    refine: Literal["exact"] | None = None
    restarts: int = 1
    seed: int = 0
    intervals: bool = True

    def configuration(self) -> Config:
        """Every choice of the training run."""
        chosen = preset(self.preset, self.posterior) if self.config is None else self.config
        return chosen.changed(**(self.changes or {}))

    def model(self, data: TimeSeries) -> Model:
        """What is assumed, spelled out for these data; the published model makes its Gaussians by a network."""
        made = super().model(data)
        published = self.configuration().posterior == "paper" and self.emission == "auto"
        return made._replace(emission=NeuralGaussian()) if published and isinstance(made.emission, Gaussian) else made

    def opened(self, data: Data, progress: Progress = lambda *_: None) -> TimeSeries | Stream:
        """What is trained on: data in memory as they are; a store on disk, looked through once."""
        require_seed(self.seed)
        require_whole(self.restarts, 1, "training has at least 1 start (restarts)")
        if isinstance(data, Store):
            return Stream.of(data, self.configuration(), self.seed, progress)
        if not isinstance(data, Stream):
            require_series(data)
        return data

    @forgetting
    def train(
        self,
        data: Data,
        progress: Progress = lambda *_: None,
        *,
        folder: Path | None = None,
        resume: bool = False,
    ) -> Trained:
        """Train the networks: the bound term by term, its history, the posterior of other data.

        Args:
            data: in memory, or a store (see `neuralmjp.io.open_store`), of which no more is held than a round sees.
            folder: where a checkpoint is kept while training.
            resume: go on from it.
        """
        opened = self.opened(data, progress)
        model = self.model(held(opened))
        if model.emission.hidden_level:
            raise InputError(
                f"the emission {model.emission.name} is for the exact engine; the neural one takes ornstein-uhlenbeck"
            )
        return train(
            opened,
            model,
            panel=self.panel,
            config=self.configuration(),
            restarts=self.restarts,
            seed=self.seed,
            folder=folder,
            resume=resume,
            progress=progress,
        )

    def fit_fetch(self, data: TimeSeries, progress: Progress = lambda *_: None) -> FittedMJP:
        """`fit`, under the name that deeptime uses."""
        return self.fit(data, progress)

    def fit(
        self,
        data: Data,
        progress: Progress = lambda *_: None,
        *,
        folder: Path | None = None,
        resume: bool = False,
    ) -> FittedMJP:
        """Train, and return the model that was learned; see `train` for folder and resume."""
        began = time.perf_counter()
        opened = self.opened(data, progress)
        trained = self.train(opened, progress, folder=folder, resume=resume)
        progress("intervals", 0.0)
        return replace(self.fitted(opened, trained), seconds=time.perf_counter() - began)

    @in_double_precision
    def fitted(self, data: TimeSeries | Stream, trained: Trained) -> FittedMJP:
        """The model that training found, with its exact likelihood and intervals; of a stream, from its sample."""
        sampled = sample_told(data)
        data, model = held(data), trained.setup.model
        standard = ordered(model, trained.parameters)
        parameters = unscaled(model, standard, trained.scaling.shift, trained.scaling.scale)
        if self.refine == "exact":
            found = exact_fit(data, model, panel=self.panel, restarts=1, seed=self.seed, start=parameters)
            found = replace(found, message=f"{trained.message}; then by the exact engine: {found.message}")
        else:
            found = located(
                data, model, parameters, panel=self.panel, converged=trained.settled, message=trained.message
            )
        generated = isinstance(trained.networks.prior, GeneratorParameters) and self.refine is None
        fitted = assemble(
            found,
            data,
            panel=self.panel,
            seed=self.seed,
            intervals=self.intervals and not generated,
            engine="neural",
            posterior=trained.setup.config.posterior,
            elbo=trained.elbo,
            restarts=trained.restarts,
            seconds=trained.seconds,
        )
        told = tuple(word for word in fitted.warnings if not word.startswith(("the fit stopped after", "state ")))
        # What the exact engine has carried to its top lacks no steps.
        trained_words = (word for word in trained.warnings if not (self.refine and word.startswith(USED_UP)))
        fitted = replace(fitted, warnings=(*trained_words, *told, *sampled))
        return with_generated_spread(fitted, trained, self.seed) if generated and self.intervals else fitted


def held(data: TimeSeries | Stream) -> TimeSeries:
    """What is in memory: all of it, or the sample of a stream."""
    return data if isinstance(data, TimeSeries) else data.sample


def sample_told(data: TimeSeries | Stream) -> tuple[str, ...]:
    """A word about what likelihood, bound and intervals are of, if that is not all the data."""
    if isinstance(data, TimeSeries) or data.sample.n_observations == data.n_observations:
        return ()
    return (
        f"trained on {data.n_observations} observations; likelihood, bound and intervals are of {len(data.sample)} "
        f"windows, {data.sample.n_observations} observations, drawn from them at random",
    )


def with_generated_spread(fitted: FittedMJP, trained: Trained, seed: int) -> FittedMJP:
    """Rates with the spread of the generator prior, as the paper reports them, and a word about what that is."""
    model = fitted.model.rate_model
    with jax.enable_x64(trained.setup.config.precision == "double"):
        prior = trained.networks.prior
        assert isinstance(prior, GeneratorParameters)
        drawn = np.asarray(prior.sample(N_GENERATED, jax.random.key(seed)), np.float64)
    samples = np.asarray(rates_of(model, drawn))
    tail = (1 - LEVEL) / 2

    def spread(mean: np.ndarray, values: np.ndarray) -> Interval:
        lower, upper = np.quantile(values, [tail, 1 - tail], axis=0)
        return Interval(mean, lower, upper)

    intervals = {"rates": spread(samples.mean(0), samples)}
    if isinstance(model, ParametricRates):
        intervals["parameters"] = spread(np.exp(drawn).mean(0), np.exp(drawn))
    word = "intervals show the spread of the generator prior, which is no posterior: they are far too narrow"
    return replace(
        fitted,
        rate_samples=samples,
        intervals=intervals,
        uncertainty=SPREAD,
        warnings=(*fitted.warnings, word),
    )
