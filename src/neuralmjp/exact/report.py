"""From the curvature at the top to intervals, samples of rates, and warnings in plain words."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import expit
from scipy.stats import norm

from ..fitted import LEVEL, Interval
from ..priors import FreeRates, ParametricRates, RateModel, rates_of
from .fit import ExactFit
from .information import Information
from .model import expectations
from .transitions import halving_needed

N_SAMPLES = 1000
Z = float(norm.isf((1 - LEVEL) / 2))
RULE_OF_THREE = 3.0  # events that 95 of 100 records of their kind would have shown at least one of


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
        values = {"rates": jnp.log(model.rates(theta[which])[jumps])}
        if isinstance(model, ParametricRates):
            values["parameters"], kinds["parameters"] = theta[which], "positive"
        emission = fit.model.emission
        for name, entry in emission.natural(emission.rescaled(parameters.emission, shift, scale)).items():
            kinds[f"emission.{name}"] = entry.kind
            values[f"emission.{name}"] = TO_EVEN[entry.kind](entry.value)
        return values

    found = information.standard_errors(on_even_scales)
    intervals = {"rates": _rate_intervals(fit, information, *found.pop("rates"))}
    for name, (value, error) in found.items():
        back = FROM_EVEN[kinds[name]]
        with np.errstate(invalid="ignore", over="ignore"):
            intervals[name] = Interval(back(value), back(value - Z * error), back(value + Z * error))
    return intervals


def _logit(p):
    """Log odds, with probabilities of exactly 0 and 1 kept out of the derivative."""
    inside = (p > 0) & (p < 1)
    safe = jnp.where(inside, p, 0.5)
    return jnp.where(inside, jnp.log(safe) - jnp.log1p(-safe), jnp.where(p > 0, jnp.inf, -jnp.inf))


TO_EVEN = {"positive": jnp.log, "probability": _logit, "real": lambda x: x}
FROM_EVEN = {"positive": np.exp, "probability": expit, "real": lambda x: x}


def _rate_intervals(fit: ExactFit, information: Information, value: np.ndarray, error: np.ndarray) -> Interval:
    """On the log scale; a rate at zero gets an upper limit from the time during which the jump did not happen."""
    model = fit.model.rate_model
    tables = [np.zeros((model.n_states, model.n_states)) for _ in range(3)]
    for table, numbers in zip(tables, (value, value - Z * error, value + Z * error), strict=True):
        table[model.allowed] = np.exp(numbers)
    mean, lower, upper = tables
    absent = absent_jumps(fit)
    if absent.any():
        limit = RULE_OF_THREE / np.maximum(_time_in_states(fit), 1e-300)
        upper = np.where(absent, limit[:, None], upper)
        lower = np.where(absent, 0.0, lower)
    vague = _vague(model, information, fit.packing.rates)
    return Interval(mean, np.where(vague, 0.0, lower), np.where(vague, np.inf, upper))


def absent_jumps(fit: ExactFit) -> np.ndarray:
    """Jumps that the data show no sign of: their rates rest on the lower bound."""
    model = fit.model.rate_model
    absent = np.zeros((model.n_states, model.n_states), dtype=bool)
    if isinstance(model, FreeRates):
        theta = fit.theta[fit.packing.rates]
        low = fit.at_bound[fit.packing.rates] & (theta < np.median(theta))
        table = model.parameter_of
        absent = (table >= 0) & low[np.maximum(table, 0)]
    return absent


def _vague(model: RateModel, information: Information, which: np.ndarray) -> np.ndarray:
    vague = np.zeros((model.n_states, model.n_states), dtype=bool)
    if isinstance(model, FreeRates):
        table = model.parameter_of
        vague = (table >= 0) & information.unidentified[which][np.maximum(table, 0)]
    return vague


def _time_in_states(fit: ExactFit) -> np.ndarray:
    halving = halving_needed(fit.rates, fit.laid.layout.gaps)
    expected = expectations(fit.model, fit.parameters, fit.laid.evidence, fit.laid.layout.aligned, halving)
    return np.asarray(expected.time)


def warnings_of(fit: ExactFit, information: Information | None) -> tuple[str, ...]:
    """What a careful reader should know, in plain words."""
    words = []
    if not fit.converged:
        words.append(f"the fit {fit.message}")
    for i, j in np.argwhere(absent_jumps(fit)):
        words.append(f"no sign of the jump {i} -> {j}: its rate is given as an upper limit")
    if information is not None:
        for name in np.array(fit.model.rate_model.names)[information.unidentified[fit.packing.rates]]:
            words.append(f"the data do not determine {name}: its interval is unbounded")
        rest = np.delete(information.unidentified, fit.packing.rates)
        if rest.any():
            words.append(f"the data do not determine {int(rest.sum())} numbers of the emission or the initial law")
    if len(fit.restarts) > 1:
        best = np.nanmax(fit.restarts)
        same = int((fit.restarts > best - 1.0).sum())
        if same < len(fit.restarts):
            words.append(f"{same} of {len(fit.restarts)} starts reached the best likelihood within 1 nat")
    return tuple(words)
