"""Maximum likelihood: EM from several starts, then a gradient to the top."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..arguments import require_seed
from ..emissions import Dictionary, reordered
from ..emissions.wrapped import levels_of
from ..errors import InputError
from ..mjp import stationary_distribution
from ..mjp.precision import in_double_precision
from ..priors import FreeRates, ReversibleRates, rates_of
from ..timeseries import TimeSeries
from .blocks import MOST_AT_ONCE, Blocks, cut_into_blocks
from .climb import FLAT, climb_hill
from .decode import Prepared, require_possible
from .em import EMResult, run_em
from .evidence import Laid, Panel, Scaling, emission_values, make_evidence
from .labels import Labels, lay_out_labels
from .model import Model, Parameters, log_prior, value_and_gradient
from .packing import Packing
from .reseed import reseeded
from .settle import TRIAL, kernels_shown, settled, with_densities
from .slowness import slowest_times
from .starts import HIDDEN_RESTARTS, em_emission, labellings, refined, starting_point
from .transitions import halving_needed

EM_ITERATIONS = 60
LOSS = 1e3  # nats that an impossible step seems to lose
# EM from several starts runs on at most this many observations; the gradient sees all of them.
EM_OBSERVATIONS = 200_000
FASTEST_PER_GAP = 1e3  # no rate above this many jumps per shortest gap,
MOST_PER_GAP = 1e12  # nor above this many per longest
FEWEST_JUMPS = 1e-3  # no rate below this many jumps in all the time observed

Progress = Callable[[str, float], None]


Observed = Laid | Labels | Blocks  # a data set, as one of the ways to its likelihood needs it


class Height(NamedTuple):
    """The log posterior at one place."""

    value: float
    gradient: Float[np.ndarray, "free"]
    log_likelihood: float
    jumps: Float[np.ndarray, "state state"]  # expected, given the data
    time: Float[np.ndarray, "state"]


@dataclass(frozen=True)
class ExactFit:
    """The top that was found, in standardised values."""

    model: Model
    parameters: Parameters
    scaling: Scaling
    laid: Observed
    packing: Packing
    log_likelihood: float  # of the data as given
    at_bound: np.ndarray  # which free numbers rest on a bound
    converged: bool
    message: str
    restarts: Float[np.ndarray, "start"]  # log-likelihood that EM reached from each start
    slowest: Float[np.ndarray, "start"] = field(default_factory=lambda: np.array([]))  # relaxation that each ended with

    @property
    def theta(self) -> Float[np.ndarray, "free"]:
        return self.packing.vector(self.parameters)

    def objective(self, theta: Float[np.ndarray, "free"]) -> Height:
        """Log posterior with its gradient, of the standardised data."""
        return objective(self.model, self.packing, self.laid, theta)

    @property
    def rates(self) -> Float[np.ndarray, "state state"]:
        return np.asarray(rates_of(self.model.rate_model, self.parameters.rates))


@in_double_precision
def fit(
    data: TimeSeries,
    model: Model,
    *,
    panel: Panel,
    restarts: int,
    seed: int,
    start: Parameters | None = None,
    progress: Progress = lambda *_: None,
) -> ExactFit:
    """Find the maximum of the likelihood (or of the posterior, with a prior on rates).

    Args:
        start: parameters in the units of the data to climb from; without it, EM finds a start. An emission that is
            learned by EM alone is then taken as it is.
    """
    require_seed(seed)
    scaling = Scaling.of(model.emission, data.values)
    n_states = model.rate_model.n_states
    if start is None:
        starts = _starts(data, model, panel, scaling, restarts, seed)
        found, reached, rates = _em(data, model, panel, scaling, starts, progress, restarts)
    else:
        found, reached, rates = standardised(model, start, scaling), np.array([]), None
    laid = observed(data, model, scaling, panel)
    if model.emission.by_em_alone:
        found = ordered(model, found)
        laid = with_densities(laid, model, found)
    packing = Packing(model, found)
    bounds = bounds_of(model, packing, data)
    theta = np.clip(packing.vector(found), bounds[:, 0], bounds[:, 1])
    if not np.isfinite(objective(model, packing, laid, theta).value):
        whole = make_evidence(data, model.emission, n_states, scaling, panel)
        require_possible(Prepared(model, found, whole), data)
    best, flat, message = climb(model, packing, laid, theta, bounds, progress)
    parameters = ordered(model, packing.parameters(best))
    theta = packing.vector(parameters)
    at_bound = (theta <= bounds[:, 0] + 1e-6) | (theta >= bounds[:, 1] - 1e-6)
    likelihood = objective(model, packing, laid, theta).log_likelihood
    height, slowest = likelihood + laid.log_scale, np.array([]) if rates is None else slowest_times(rates, data)
    return ExactFit(model, parameters, scaling, laid, packing, height, at_bound, flat, message, reached, slowest)


def standardised(model: Model, parameters: Parameters, scaling: Scaling) -> Parameters:
    """Parameters for standardised values, given those for values in the data's units."""
    emission = model.emission.rescaled(parameters.emission, -scaling.shift / scaling.scale, 1 / scaling.scale)
    return parameters._replace(emission={name: np.asarray(value) for name, value in emission.items()})


def observed(data: TimeSeries, model: Model, scaling: Scaling, panel: Panel) -> Observed:
    """A data set for the way to its likelihood that suits it: labels, more than fits at once, all else."""
    special = lay_out_labels(data, model, panel)
    if not model.emission.hidden_level:  # what it hands from block to block is more than a law
        special = special or cut_into_blocks(data, model, scaling, panel)
    return special or make_evidence(data, model.emission, model.rate_model.n_states, scaling, panel)


def objective(model: Model, packing: Packing, laid: Observed, theta: Float[np.ndarray, "free"]) -> Height:
    """Log posterior, its gradient with respect to the free numbers, and what comes with them."""
    parameters = packing.parameters(theta)
    if isinstance(laid, Laid):
        halving = halving_needed(np.asarray(rates_of(model.rate_model, parameters.rates)), laid.layout.gaps)
        found = value_and_gradient(model, parameters, laid.evidence, laid.layout.aligned, halving)
    else:
        found = laid.evaluate(model, parameters)
    prior, slope = log_prior(model, parameters)
    likelihood, gradient = float(found.log_likelihood), packing.vector(found.gradient) + packing.vector(slope)
    return Height(likelihood + prior, gradient, likelihood, np.asarray(found.jumps), np.asarray(found.time))


def _starts(
    data: TimeSeries, model: Model, panel: Panel, scaling: Scaling, restarts: int, seed: int
) -> list[Parameters]:
    """The deterministic start in every numbering of its states that matters, then random ones."""
    values = (emission_values(model.emission, data.values, panel) - scaling.shift) / scaling.scale
    rate_model = model.rate_model
    emission = em_emission(model.emission, not np.isnan(values).any()) or model.emission
    ways = [(None, order) for order in _labellings(model, panel)]
    ways += [(np.random.default_rng((seed, k)), None) for k in range(1, restarts)]
    starts = []
    for rng, order in ways:
        params, rates = starting_point(data, emission, values, rate_model.allowed, rng, order)
        starts.append(Parameters(_free(rate_model).nearest(rates), params, np.zeros(rate_model.n_states)))
    return starts


def _labellings(model: Model, panel: Panel) -> list[np.ndarray | None]:
    """Numberings of the states to start from: one where their names are known, or EM cannot choose among them."""
    emission = model.emission
    named = getattr(emission, "labelled", False) or getattr(emission, "named_states", False) or panel != Panel()
    if named or levels_of(emission) is not None or emission.by_em_alone:
        return [None]
    return [None, *labellings(model.rate_model.allowed, model.given)[1:]]


def _free(rate_model) -> FreeRates:
    """Free rates for the jumps a model can make: what EM fits before the model's own form is imposed."""
    if isinstance(rate_model, FreeRates) and rate_model.closed_form:
        return rate_model
    return FreeRates(rate_model.n_states, mask=rate_model.allowed.astype(int))


def _em(
    data: TimeSeries,
    model: Model,
    panel: Panel,
    scaling: Scaling,
    starts: list[Parameters],
    progress: Progress,
    restarts: int,
) -> tuple[Parameters, Float[np.ndarray, "start"], Float[np.ndarray, "start state state"] | None]:
    """Run EM from all starts as one batch and keep the best, in the model's own parameters.

    Also the log-likelihood and the rates that each start came to; the numberings of one start count as one.
    """
    if model.emission.by_em_alone:
        return _em_alone(data, model, panel, scaling, starts, progress)
    emission = em_emission(model.emission, not np.isnan(data.values).any())
    close = getattr(emission, "labelled", False) and (restarts == 1 or getattr(emission, "is_exact", False))
    if emission is None or close:  # no closed form, or what the labels say is close already
        best, reached, each = starts[0], np.array([]), None
    else:
        progress("EM", 0.0)
        some = _subset(data, min(EM_OBSERVATIONS * max(restarts, HIDDEN_RESTARTS) // len(starts), EM_OBSERVATIONS))
        simple = model._replace(rate_model=_free(model.rate_model), emission=emission, rate_prior=None)
        laid = make_evidence(some, emission, model.rate_model.n_states, scaling, panel)
        stacked = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x, float) for x in leaves]), *starts)
        result = run_em(simple, stacked, laid.evidence, laid.layout.aligned, iterations=EM_ITERATIONS)
        again, moved = reseeded(simple, result.parameters, laid.evidence)
        if moved.any():
            progress("EM, dead states moved", 0.5)
            result = _better(
                result, run_em(simple, again, laid.evidence, laid.layout.aligned, iterations=EM_ITERATIONS)
            )
        reached = result.log_likelihood[-1] + laid.log_scale
        if not np.isfinite(reached).any():
            require_possible(Prepared(simple, jax.tree.map(lambda x: x[0], stacked), laid), some)
        best = jax.tree.map(lambda x: np.asarray(x)[int(np.nanargmax(reached))], result.parameters)
        each = np.asarray(rates_of(simple.rate_model, np.asarray(result.parameters.rates)))
        numberings = len(starts) - restarts + 1
        told = [int(np.nan_to_num(reached[:numberings], nan=-np.inf).argmax()), *range(numberings, len(starts))]
        reached, each = reached[told], each[told]
    rates = np.asarray(rates_of(_free(model.rate_model), best.rates))
    params = refined(model.emission, best.emission, float(np.median(data.gaps)))
    return Parameters(model.rate_model.nearest(rates), params, best.initial), reached, each


def _better(first: EMResult, second: EMResult) -> EMResult:
    """Of each start the likelier end."""
    wins = second.log_likelihood[-1] > first.log_likelihood[-1]

    def chosen(a, b):
        return jnp.where(jnp.asarray(wins).reshape(-1, *(1,) * (a.ndim - 1)), b, a)

    parameters = jax.tree.map(chosen, first.parameters, second.parameters)
    return EMResult(parameters, np.maximum(first.log_likelihood[-1], second.log_likelihood[-1])[None])


def _em_alone(
    data: TimeSeries, model: Model, panel: Panel, scaling: Scaling, starts: list[Parameters], progress: Progress
) -> tuple[Parameters, Float[np.ndarray, "start"], Float[np.ndarray, "start state state"] | None]:
    """EM to its end from the best of all starts, on all the data that fit at once.

    Rates in detailed balance stay so. Those of other forms are free here, and take their own form in the climb.
    """
    emission, free, own = model.emission, _free(model.rate_model), model.rate_model
    assert isinstance(emission, Dictionary)
    rate_model = own if isinstance(own, ReversibleRates) else free
    simple = model._replace(rate_model=rate_model, rate_prior=None)
    laid = make_evidence(_subset(data, MOST_AT_ONCE), emission, own.n_states, scaling, panel)
    shown = kernels_shown(emission, starts[0].emission, laid.evidence.seen)
    starts = [start._replace(rates=rate_model.nearest(np.asarray(rates_of(free, start.rates)))) for start in starts]
    tried = [settled(simple, start, laid, shown, most_steps=TRIAL) for start in starts] if len(starts) > 1 else []
    reached = np.array([one.log_likelihood for one in tried]) + laid.log_scale
    best = tried[int(np.nanargmax(reached))].parameters if tried else starts[0]
    best = settled(simple, best, laid, shown, progress=lambda share: progress("EM", share)).parameters
    each = np.stack([np.asarray(rates_of(rate_model, one.parameters.rates)) for one in tried]) if tried else None
    return best._replace(rates=own.nearest(np.asarray(rates_of(rate_model, best.rates)))), reached, each


def _subset(data: TimeSeries, most: int) -> TimeSeries:
    """At most `most` observations: evenly chosen series, or the middle of one recording in windows."""
    if data.n_observations <= most:
        return data
    pieces = data.windows(max(int(data.lengths.max()) // 64, 64))
    keep = np.linspace(0, len(pieces) - 1, max(len(pieces) * most // data.n_observations, 1))
    return pieces[np.unique(keep.round().astype(int))]


def bounds_of(model: Model, packing: Packing, data: TimeSeries) -> Float[np.ndarray, "free 2"]:
    """Rates stay between what would show nothing in the data and what no gap could resolve."""
    bounds = np.tile([-np.inf, np.inf], (len(packing.free), 1))
    if isinstance(model.rate_model, FreeRates):
        gaps = data.gaps
        fastest = min(FASTEST_PER_GAP / gaps.min(), MOST_PER_GAP / gaps.max())
        bounds[packing.rates] = np.log([FEWEST_JUMPS / gaps.sum(), fastest])
    else:
        bounds[packing.rates] = [-50.0, 50.0]
    return bounds


def climb(
    model: Model, packing: Packing, laid: Observed, start: np.ndarray, bounds: np.ndarray, progress: Progress
) -> tuple[np.ndarray, bool, str]:
    """Uphill within bounds, in units of rough standard errors; judged by the slope that is left at its end."""
    count, lowest = 0, 0.0

    def uphill(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal count, lowest
        count += 1
        progress("gradient", count / 100)
        try:
            value, gradient = objective(model, packing, laid, theta)[:2]
        except InputError:  # rates too fast for any gap
            value, gradient = -np.inf, np.zeros_like(theta)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return lowest - LOSS, np.zeros_like(theta)  # the optimiser turns back from a cliff, but not from infinity
        lowest = min(lowest, value)
        return value, gradient

    best, steepest = climb_hill(uphill, start, bounds)
    flat = steepest < FLAT
    verdict = "converged" if flat else "stopped before the top"
    return best, flat, f"{verdict}: steepest slope {steepest:.1e} nats per standard error, {count} evaluations"


def ordered(model: Model, parameters: Parameters) -> Parameters:
    """States in their lasting order: by first emission mean, or by stationary probability where there is none.

    Only where states are interchangeable: a mask, a known rate or law, a parametric model or labels name their own.
    """
    if not _interchangeable(model):
        return parameters
    rates = np.asarray(rates_of(model.rate_model, parameters.rates))
    order = model.emission.order(parameters.emission, rates.sum(1))
    if order is None:
        order = np.argsort(-stationary_distribution(rates), kind="stable")
    emission = reordered(parameters.emission, order)
    initial = np.asarray(parameters.initial)[order]
    return Parameters(model.rate_model.nearest(rates[np.ix_(order, order)]), emission, initial - initial[0])


def _interchangeable(model: Model) -> bool:
    """Renumbering the states of any solution gives another, just as likely."""
    rate_model, n_states = model.rate_model, model.rate_model.n_states
    if model.initial == "given" or getattr(model.emission, "named_states", False):
        return False
    levels = levels_of(model.emission)
    if isinstance(rate_model, FreeRates) and levels is not None:
        return rate_model.closed_form and bool((rate_model.allowed == levels.between_levels).all())
    if isinstance(rate_model, FreeRates):
        return rate_model.n_parameters == n_states * (n_states - 1)
    return isinstance(rate_model, ReversibleRates) and int(rate_model.allowed.sum()) == n_states * (n_states - 1)
