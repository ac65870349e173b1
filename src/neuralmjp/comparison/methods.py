"""The methods that can be compared, each as a function of the same question."""

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..baselines.chain import MarkovChain
from ..errors import InputError
from ..fitted import FittedMJP
from ..timeseries import TimeSeries
from .answer import Answer

STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Question:
    """What every method is asked; each heeds what it knows of.

    Attributes:
        train: what is fitted.
        test: what is held out; None if nothing is.
        whole: whose observations are given states.
        emission, prior, initial: of the engines of this library and of the published model.
        lag: of Markov models that look at pairs of times; None for their own choice.
        angles: values are angles in radians.
        more: choices by name, for one method alone.
    """

    train: TimeSeries
    test: TimeSeries | None
    whole: TimeSeries
    n_states: int
    seed: int = 0
    emission: str = "auto"
    prior: str = "free"
    initial: str = "free"
    lag: float | None = None
    angles: bool = False
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def assumed(self) -> dict[str, Any]:
        """For the engines of this library."""
        emission = "torus" if self.angles and self.emission == "auto" else self.emission
        return {"emission": emission, "prior": self.prior, "initial": self.initial, "seed": self.seed} | self.more

    @property
    def lagged(self) -> dict[str, Any]:
        """For Markov models at a lag."""
        return {"lag": self.lag, "angles": self.angles, "seed": self.seed} | self.more


def by_exact(asked: Question) -> Answer:
    from ..estimators import ExactMJP

    return from_process(ExactMJP(asked.n_states, intervals=False, **asked.assumed).fit(asked.train), asked)


def by_networks(asked: Question) -> Answer:
    from ..estimators import NeuralMJP

    return from_process(NeuralMJP(asked.n_states, intervals=False, **_trained(asked.assumed)).fit(asked.train), asked)


def as_published(asked: Question) -> Answer:
    """Gaussians with full covariance, in sines and cosines where values are angles."""
    from ..estimators import NeuralMJP
    from ..preprocess import sine_cosine

    choices: dict[str, Any] = _trained(asked.assumed) | {"posterior": "paper"}
    if asked.angles:
        # Densities in other values do not compare, hence no test.
        asked = replace(asked, train=sine_cosine(asked.train), test=None, whole=sine_cosine(asked.whole))
        choices |= {"emission": "gaussian-full"}
    return from_process(NeuralMJP(asked.n_states, intervals=False, **choices).fit(asked.train), asked)


def by_koehs(asked: Question) -> Answer:
    from ..baselines import fit_koehs

    if asked.angles:
        raise InputError("a switching diffusion knows no angles: leave out koehs")
    fit = fit_koehs(asked.train, asked.n_states, seed=asked.seed, **asked.more)
    held_out = float("nan") if asked.test is None else fit.posterior(asked.test).elbo / asked.test.n_observations
    return Answer(
        fit.states(asked.whole),
        fit.stationary_distribution,
        fit.timescales,
        fit.mfpt,
        held_out,
        warnings=(*fit.warnings, *(() if asked.test is None else ("held-out likelihood: its lower bound",))),
    )


def by_msm(asked: Question) -> Answer:
    from ..baselines import MarkovStateModel

    return from_chain(MarkovStateModel(asked.n_states, samples=0, **asked.lagged).fit(asked.train), asked)


def by_vampnet(asked: Question) -> Answer:
    from ..baselines import VampNet

    return from_chain(VampNet(asked.n_states, **asked.lagged).fit(asked.train), asked)


def by_gmvae(asked: Question) -> Answer:
    from ..baselines import GaussianMixtureVAE

    return from_chain(GaussianMixtureVAE(asked.n_states, **asked.lagged).fit(asked.train), asked)


def by_hmm(asked: Question) -> Answer:
    """A lag is so many observations per step."""
    from ..baselines import GaussianHMM

    choices: dict[str, Any] = {"angles": asked.angles, "seed": asked.seed}
    if asked.lag is not None:
        choices["every"] = max(round(asked.lag / float(np.median(asked.train.gaps))), 1)
    choices |= asked.more
    chain = GaussianHMM(asked.n_states, **choices).fit(asked.train)
    comparable = asked.test is not None and not asked.angles and choices.get("every", 1) == 1
    return from_chain(chain, asked, chain.score(asked.test) if comparable and asked.test is not None else float("nan"))


METHODS: dict[str, Callable[[Question], Answer]] = {
    "exact": by_exact,
    "neural": by_networks,
    "paper": as_published,
    "koehs": by_koehs,
    "msm": by_msm,
    "vampnet": by_vampnet,
    "gmvae": by_gmvae,
    "hmm": by_hmm,
}
DEFAULT = ("exact", "neural", "msm", "hmm")


def answer(method: str, asked: Question) -> Answer:
    """One fit, with what it took."""
    began = time.perf_counter()
    found = METHODS[method](asked)
    seconds = time.perf_counter() - began
    return replace(found, seconds=seconds, megabytes=peak_memory())


def peak_memory() -> float:
    """The most memory that this process has held, in megabytes."""
    if STATUS.exists():  # on Linux the other count begins with what the process held that started this one
        (line,) = [line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) / 2**10
    unit = 2**20 if sys.platform == "darwin" else 2**10  # what the system counts memory in
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def from_process(fitted: FittedMJP, asked: Question) -> Answer:
    held_out = float("nan")
    if asked.test is not None:
        judged = fitted
        if len(asked.train) == 1 and fitted.model.initial == "free":  # where one series began says nothing of others
            judged = replace(fitted, model=fitted.model._replace(initial="stationary"))
        held_out = judged.score(asked.test) / asked.test.n_observations
    return Answer(
        fitted.decode(asked.whole).states,
        np.asarray(fitted.stationary_distribution.mean),
        np.asarray(fitted.timescales.mean),
        np.asarray(fitted.mfpt.mean),
        held_out,
        warnings=fitted.warnings,
    )


def from_chain(chain: MarkovChain, asked: Question, held_out: float = float("nan")) -> Answer:
    return Answer(
        chain.states(asked.whole),
        chain.stationary_distribution,
        chain.timescales,
        chain.mfpt,
        held_out,
        warnings=(f"lag {chain.lag:.4g} {asked.train.time_unit}", *chain.warnings),
    )


def _trained(choices: dict[str, Any]) -> dict[str, Any]:
    """What is no choice of the estimator is one of the training."""
    from ..estimators import NeuralMJP

    own = NeuralMJP(2).get_params()
    changes = {name: value for name, value in choices.items() if name not in own}
    kept = {name: value for name, value in choices.items() if name in own}
    return kept | ({"changes": changes} if changes else {})
