"""Draws docs/figures/tilted_posterior.png: `python docs/figures/tilted_posterior.py [FILE]`.

Two hidden states, fourteen noisy observations, known rates: the potential, the rates it makes, and the bound.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from neuralmjp import mjp
from neuralmjp.plots.palette import TRACE, TRUTH, state_colour
from neuralmjp.posteriors.tilted import tilted_terms

RATES = np.array([[0.0, 0.15], [0.2, 0.0]])
LEVELS, NOISE = np.array([0.0, 1.0]), 0.8


class Example(NamedTuple):
    """One short series, and what it says of each state by itself."""

    path: mjp.JumpPath
    times: np.ndarray
    values: np.ndarray
    log_b: np.ndarray  # log density of each observation in each state
    moves: np.ndarray  # transitions of the prior over each gap


def example() -> Example:
    rng = np.random.default_rng(4)
    path = mjp.simulate_path(RATES, 12.0, initial=0, key=jax.random.key(5))
    times = np.sort(rng.uniform(0.0, 12.0, 14))
    states = path.states[np.searchsorted(path.jump_times, times, side="right")]
    values = LEVELS[states] + NOISE * rng.normal(size=14)
    log_b = -(((values[:, None] - LEVELS) / NOISE) ** 2) / 2 - np.log(NOISE * np.sqrt(2 * np.pi))
    return Example(path, times, values, log_b, np.asarray(mjp.transition_matrix(RATES, np.diff(times))))


def after(one: Example, *, next_only: bool) -> np.ndarray:
    """Log likelihood of what follows each observation, from each state; of the next observation alone if asked."""
    found = np.zeros_like(one.log_b)
    for i in range(len(one.times) - 2, -1, -1):
        further = 0.0 if next_only else found[i + 1]
        found[i] = np.log(one.moves[i] @ np.exp(one.log_b[i + 1] + further))
    return found


def over_time(one: Example, known: np.ndarray, fine: np.ndarray, *, next_only: bool) -> np.ndarray:
    """The potential at any time: carried back from the next observation by exp(F t)."""
    ahead = np.searchsorted(one.times, fine, side="left")
    ends = one.log_b[ahead] + (0.0 if next_only else known[ahead])
    back = np.asarray(mjp.transition_matrix(RATES, one.times[ahead] - fine))
    return np.log(np.einsum("tzy,ty->tz", back, np.exp(ends)))


def bound(one: Example, share: float) -> float:
    """The bound with this share of the correction that the network should learn."""
    correction = share * (after(one, next_only=False) - after(one, next_only=True))
    valid = jnp.ones((1, len(one.times)), bool)
    arrays = [jnp.asarray(x[None], jnp.float32) for x in (one.log_b, one.moves)]
    law = jnp.log(jnp.asarray(mjp.stationary_distribution(RATES), jnp.float32))
    terms = tilted_terms(arrays[0], arrays[1], law, jnp.asarray(correction[None], jnp.float32), valid).terms
    return float(terms.elbo[0])


def evidence(one: Example) -> float:
    """The exact log-likelihood."""
    last = one.log_b[0] + after(one, next_only=False)[0]
    return float(np.log(mjp.stationary_distribution(RATES) @ np.exp(last)))


def draw(one: Example, file: Path) -> None:
    figure = Figure(figsize=(7.2, 7.6), layout="constrained")
    seen, potential, rate, gap = figure.subplots(4, 1, height_ratios=(1, 1, 1, 1.1))
    fine = np.linspace(one.times[0], one.times[-1], 600)
    path = one.path.states[np.searchsorted(one.path.jump_times, fine, side="right")]
    seen.step(fine, LEVELS[path], color=TRUTH, linewidth=1, label="hidden path")
    seen.plot(one.times, one.values, "o", color=TRACE, label="observed")
    seen.set_ylabel("value")
    seen.margins(y=0.15)
    kinds = {"next observation alone": (True, "--", 1), "all that follows": (False, "-", 0)}
    for name, (next_only, line, colour) in kinds.items():
        phi = over_time(one, after(one, next_only=False), fine, next_only=next_only)
        difference = phi[:, 1] - phi[:, 0]
        style = {"linestyle": line, "color": state_colour(colour), "label": name}
        potential.plot(fine, difference, **style)
        rate.plot(fine, RATES[0, 1] * np.exp(difference), **style)
    rate.axhline(RATES[0, 1], color=TRACE, linewidth=1, linestyle=":", label="prior")
    potential.set_ylabel("phi(1, t) - phi(0, t)")
    rate.set(ylabel="rate 0 → 1", xlabel="time")
    shares = np.linspace(-0.5, 2.0, 51)
    gap.plot(shares, [bound(one, share) for share in shares], color=state_colour(0), label="bound")
    gap.axhline(evidence(one), color=TRUTH, linewidth=1, linestyle=":", label="evidence")
    gap.set(xlabel="share of the right correction", ylabel="nats")
    for ax in (seen, potential, rate):
        for time in one.times:
            ax.axvline(time, color=TRACE, linewidth=0.5, alpha=0.6)
        ax.set_xlim(fine[0], fine[-1])
    for ax in (seen, potential, rate, gap):
        ax.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        ax.spines[["top", "right"]].set_visible(False)
    gap.ticklabel_format(useOffset=False)
    figure.savefig(file, dpi=90)


if __name__ == "__main__":
    draw(example(), Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
