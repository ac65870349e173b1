"""What every estimator assumes of the hidden process: states, emission, rates, the law at the start."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..arguments import numbers_of, require_whole
from ..checks import require_series
from ..emissions import Categorical, Emission
from ..emissions.hum import with_nuisance
from ..emissions.named import named_emission
from ..emissions.wrapped import Levels, levels_of
from ..errors import InputError
from ..exact.evidence import Panel, state_of
from ..exact.model import Model
from ..mjp.structure import require_one_class
from ..mjp.types import ArrayLike
from ..priors import FreeRates, RateModel, ReversibleRates, system_rates
from ..systems import SYSTEMS, ReactionNetwork, System, named
from ..timeseries import TimeSeries
from .choices import Choices

NOTHING_SPECIAL = Panel()


def require_states(n: object) -> None:
    """Raise unless there is something to jump between."""
    require_whole(n, 2, "a process that jumps has at least 2 states")


@dataclass
class Assumptions(Choices):
    """Choices that all engines share.

    Args:
        n_states: K.
        emission: a name (see `emissions.named.NAMES`, or "auto") or an `Emission`.
        prior: "free", "reversible", a system (or its name) whose parameters are to be found, or any `RateModel`.
        mask: (K, K) of 0 and 1: which jumps may happen; with "free" and "reversible".
        initial: law at the first observation of a series: "free", "stationary", or K probabilities. Where the first
            state of every series is seen, "free" conditions on it.
        misread: (K, C) of 0 and 1: which labels each state can show; for categorical observations.
        levels: the level of each state, if several look alike: (0, 0, 1). Then jumps between states of one level are
            left out, unless a mask says otherwise: they leave no trace of their own.
        hum: frequency of the mains in the signal: "50Hz", or a number per time unit; tuned by the fit.
        harmonics: of the hum, itself counted.
        drift: half-waves of a baseline that wanders over the recording; 0 for none.
        panel: exact entry times, first states known, censored labels.
    """

    n_states: int
    emission: str | Emission = "auto"
    prior: str | System | RateModel = "free"
    mask: ArrayLike | None = None
    initial: Literal["free", "stationary"] | ArrayLike = "free"
    misread: ArrayLike | None = None
    panel: Panel = NOTHING_SPECIAL
    levels: Sequence[int] | None = None
    hum: str | float | None = None
    harmonics: int = 3
    drift: int = 0

    def model(self, data: TimeSeries) -> Model:
        """What is assumed, spelled out for these data."""
        require_series(data)
        require_states(self.n_states)
        if not isinstance(self.panel, Panel):
            raise InputError(f"panel is a Panel, such as Panel(exact_entry=3); got {self.panel!r}")
        emission = self.emission
        if isinstance(emission, str):
            ignore = tuple(float(label) for label in self.panel.censored)
            disturbed = self.hum is not None or bool(self.drift)  # then a rail is no longer one value
            emission = named_emission(
                emission, data, self.n_states, misread=self.misread, ignore=ignore, clipped=not disturbed
            )
        elif not isinstance(emission, Emission):
            raise InputError(f"an emission is a name or an Emission, got {emission!r}")
        elif self.misread is not None:
            raise InputError("misread goes with an emission by name; an Emission holds its own table of readings")
        if self.levels is not None:
            emission = Levels(emission, self.levels)
            if len(emission.levels) != self.n_states:
                raise InputError(f"{len(emission.levels)} levels are given, but {self.n_states} states are asked for")
        if self.hum is not None or self.drift:
            emission = with_nuisance(
                emission, data, self.n_states, hum=self.hum, harmonics=self.harmonics, drift=self.drift
            )
        if not (isinstance(emission, Categorical) or data.n_observations > 10 * self.n_states**2):
            data.check_states(self.n_states)
        rate_model = self._rate_model(levels_of(emission), self._last(emission))
        if isinstance(emission, Categorical) and len(emission.readable) != self.n_states:
            raise InputError(f"the emission is for {len(emission.readable)} states, but {self.n_states} are asked for")
        first_seen = isinstance(emission, Categorical) and (
            self.panel.first_known
            or (emission.is_exact and np.isin(data.values[data.offsets[:-1], 0], emission.labels).all())
        )
        if isinstance(self.initial, str):
            if self.initial not in ("free", "stationary"):
                raise InputError(
                    f"initial must be free, stationary or {self.n_states} probabilities, got {self.initial!r}"
                )
            if self.initial == "stationary":
                require_one_class(rate_model.allowed.astype(float), "the stationary initial law")
            initial = "known" if self.initial == "free" and first_seen else self.initial
            return Model(rate_model, emission, initial)
        law = numbers_of(self.initial, "the initial law")
        if law.shape != (self.n_states,) or (law < 0).any() or abs(law.sum() - 1) > 1e-6:
            raise InputError(f"an initial law holds {self.n_states} probabilities that sum to one")
        return Model(rate_model, emission, "given", tuple(law.tolist()))

    def _last(self, emission: Emission) -> int | None:
        """The state that is entered at a known time and never left, if there is one."""
        entry = self.panel.exact_entry
        return None if entry is None or not isinstance(emission, Categorical) else state_of(emission, entry)

    def _rate_model(self, levels: Levels | None, last: int | None) -> RateModel:
        prior, mask = self.prior, self.mask
        if mask is None and levels is not None:
            mask = levels.between_levels.astype(int)
        elif mask is None and last is not None and prior == "free":
            mask = 1 - np.eye(self.n_states, dtype=int)
            mask[last] = 0
        if self.mask is not None and not isinstance(prior, str):
            raise InputError("a mask goes with free or reversible rates by name; a rate model holds its own")
        if isinstance(prior, str) and prior in SYSTEMS:
            prior = named(prior)
        if isinstance(prior, ReactionNetwork):
            raise InputError(
                f"{prior.name} is a reaction network: it counts individuals in place of hidden states; fit it by "
                "NetworkMJP(network)"
            )
        if isinstance(prior, System):
            prior = system_rates(prior)
        elif prior == "free":
            prior = FreeRates(self.n_states, mask=mask)
        elif prior == "reversible":
            prior = ReversibleRates(self.n_states, mask=mask)
        elif not isinstance(prior, RateModel):
            raise InputError(f"no rate model {prior!r}; there are free, reversible, or a system, or a RateModel")
        if prior.n_states != self.n_states:
            raise InputError(f"the rate model has {prior.n_states} states, but {self.n_states} are asked for")
        if last is not None and prior.allowed[last].any():
            to = int(np.flatnonzero(prior.allowed[last])[0])
            raise InputError(
                f"state {last} is entered at a known time, so it must never be left: forbid the jump {last} -> {to}"
            )
        return prior
