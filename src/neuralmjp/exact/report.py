"""From the curvature at the top to intervals, samples of rates, and warnings in plain words."""

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import expit

from ..emissions import Categorical
from ..mjp import stationary_distribution
from ..mjp.interval import Interval, Z
from ..priors import FreeRates, ParametricRates, ReversibleRates, rates_of
from .doubts import hardly_determined, hardly_there
from .fit import ExactFit
from .information import Information
from .reseed import VISITED

N_SAMPLES = 1000


def rate_samples_of(
    fit: ExactFit, information: Information | None, seed: int
) -> Float[np.ndarray, "sample state state"]:
    """Rate matrices drawn from the normal approximation in the logarithms."""
    n_states = fit.model.rate_model.n_states
    if information is None:
        return np.empty((0, n_states, n_states))
    drawn = information.sample(N_SAMPLES, np.random.default_rng(seed))[:, fit.packing.rates]
    return np.asarray(rates_of(fit.model.rate_model, drawn))


def intervals_of(fit: ExactFit, information: Information | None) -> dict[str, Interval]:
    """Intervals for the rates, the parameters of a parametric model, and the emission."""
    if information is None:
        return {}
    model, which = fit.model.rate_model, fit.packing.rates
    shift, scale = fit.scaling.shift, fit.scaling.scale
    jumps = np.nonzero(model.allowed)
    kinds: dict[str, str] = {}

    def on_even_scales(theta):
        """Every quantity on the scale where its error is symmetric; notes which scale that is."""
        parameters = fit.packing.parameters(theta)
        values = {"rates": _log(rates_of(model, theta[which])[jumps])}
        if isinstance(model, ParametricRates):
            values["parameters"], kinds["parameters"] = theta[which], "positive"
        emission = fit.model.emission
        if emission.by_em_alone:
            return values  # taken as given: nothing is known of its errors
        for name, entry in emission.natural(emission.rescaled(parameters.emission, shift, scale)).items():
            kinds[f"emission.{name}"] = entry.kind
            values[f"emission.{name}"] = TO_EVEN[entry.kind](entry.value)
        return values

    compiled = on_even_scales if isinstance(fit.model.emission, Categorical) else jax.jit(on_even_scales)
    found = information.standard_errors(compiled)
    intervals = {"rates": _rate_intervals(fit, information, *found.pop("rates"))}
    for name, (value, error) in found.items():
        back = FROM_EVEN[kinds[name]]
        with np.errstate(invalid="ignore", over="ignore"):
            intervals[name] = Interval(back(value), back(value - Z * error), back(value + Z * error))
    return intervals


def _log(x):
    return x.__array_namespace__().log(x)


def _logit(p):
    """Log odds; infinite for probabilities of exactly 0 and 1."""
    xp = p.__array_namespace__()
    inside = (p > 0) & (p < 1)
    safe = xp.where(inside, p, 0.5)
    return xp.where(inside, xp.log(safe) - xp.log1p(-safe), xp.where(p > 0, np.inf, -np.inf))


TO_EVEN = {"positive": _log, "probability": _logit, "real": lambda x: x}
FROM_EVEN = {"positive": np.exp, "probability": expit, "real": lambda x: x}


def _rate_intervals(fit: ExactFit, information: Information, value: np.ndarray, error: np.ndarray) -> Interval:
    """On the log scale; on the plain one and from zero where the data allow zero; up to a limit where no jump shows."""
    model = fit.model.rate_model
    tables = [np.zeros((model.n_states, model.n_states)) for _ in range(3)]
    for table, numbers in zip(tables, (value, value - Z * error, value + Z * error), strict=True):
        table[model.allowed] = np.exp(numbers)
    mean, lower, upper = tables
    table, per_limit = np.full(mean.shape, -1), np.ones((model.n_states, 1))
    if isinstance(model, FreeRates):
        table = model.parameter_of
    elif isinstance(model, ReversibleRates):
        table, per_limit = model.parameter_of, 1 / stationary_distribution(mean)[:, None]  # a flow is s = p f
    for k, limit in zip(information.absent.which, information.absent.upper, strict=True):
        lower, upper = np.where(table == k, 0.0, lower), np.where(table == k, limit * per_limit, upper)
    may_be_zero = np.isin(table, information.may_be_zero)
    plain = mean + mean * np.log(np.where(may_be_zero, upper / np.where(mean > 0, mean, 1.0), 1.0))
    return Interval(mean, np.where(may_be_zero, 0.0, lower), np.where(may_be_zero, plain, upper))


def warnings_of(fit: ExactFit, information: Information | None) -> tuple[str, ...]:
    """What a careful reader should know, in plain words."""
    words = []
    if not fit.converged:
        words.append(f"the fit {fit.message}")
    if not isinstance(fit.model.emission, Categorical):  # labels name their states, and after death nobody looks
        top = fit.objective(fit.theta)
        time = np.asarray(top.time)
        for k in np.flatnonzero(time < VISITED * time.sum()):
            share = 100 * max(float(time[k] / time.sum()), 0.0)
            words.append(
                f"state {k} holds {share:.1g} % of the time: it has collapsed, or is very rare; try fewer states"
            )
        words += hardly_there(fit, top, thoroughly=information is not None)
    if information is not None:
        for k in information.absent.which:
            words.append(f"no sign of the jump {fit.model.rate_model.names[k]}: its rate is given as an upper limit")
        for name in np.array(fit.model.rate_model.names)[information.unidentified[fit.packing.rates]]:
            words.append(f"the data do not determine {name}: its interval is unbounded")
        rest = np.delete(information.unidentified, fit.packing.rates)
        if rest.any():
            words.append(f"the data do not determine {int(rest.sum())} numbers of the emission or the initial law")
        words += hardly_determined(fit, information)
    if len(fit.restarts) > 1:
        best = np.nanmax(fit.restarts)
        same = int((fit.restarts > best - 1.0).sum())
        if same < len(fit.restarts):
            words.append(f"{same} of {len(fit.restarts)} starts reached the best likelihood within 1 nat")
    return tuple(words)
