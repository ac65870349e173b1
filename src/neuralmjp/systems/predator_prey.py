"""Lotka-Volterra: prey that breed, predators that eat them."""

from .reaction_network import Noise, Reaction, ReactionNetwork


def lotka_volterra(
    alpha: float = 5e-4,
    beta: float = 1e-4,
    delta: float = 1e-4,
    gamma: float = 5e-4,
    *,
    start: tuple[tuple[int, int], tuple[int, int]] = ((5, 20), (5, 20)),
    noise: Noise = "gaussian",
    noise_scale: float = 1.0,
) -> ReactionNetwork:
    """The paper's process: x -> x + 1 at alpha x, x - 1 at beta x y, y + 1 at delta x y, y - 1 at gamma y.

    Counts live in 0..59; a species that died out is born again at rate 1e-6 (Opper & Sanguinetti 2007).

    >>> lotka_volterra().parameters
    {'alpha': 0.0005, 'beta': 0.0001, 'delta': 0.0001, 'gamma': 0.0005}
    """
    prey, both = {"prey": 1}, {"prey": 1, "predator": 1}
    return ReactionNetwork(
        species=("prey", "predator"),
        reactions=(
            Reaction(prey, {"prey": 2}, "alpha"),
            Reaction(both, {"predator": 1}, "beta"),
            Reaction(both, {"prey": 1, "predator": 2}, "delta"),
            Reaction({"predator": 1}, {}, "gamma"),
        ),
        constants={"alpha": alpha, "beta": beta, "delta": delta, "gamma": gamma},
        largest=(59, 59),
        start=start,
        births_at_zero=1e-6,
        noise=noise,
        noise_scale=noise_scale,
        duration=1500.0,
        name="lotka-volterra",
    )
