"""How the paper trains on each of its data sets: appendices "Training instabilities and index collapse", "Optimizers".

The preset "paper" holds what is the same for all: Adam at 1e-3, times 0.8 every 50 epochs, batches of 64.
"""

from typing import Any

from ..training.config import preset

# Against index collapse, where emissions are Gaussian. For how long the spread is fixed the paper does not say.
SCHEDULES: dict[str, Any] = {"curriculum": (10, 3000, 5000), "fixed_spread": 2000}
SLOWLY: dict[str, Any] = {"learning_rate": 1e-4, "model_learning_rate": 1e-4}
CHANNEL: dict[str, Any] = {**SLOWLY, "decay_epochs": 200, "prior_learning_rate": 5e-4}
RATES: dict[str, dict[str, Any]] = {
    "two-mode": {"decay": 1.0},
    "lotka-volterra-single": {"decay": 1.0},
    "brownian-folding": {**SLOWLY, "decay_epochs": 100, "batch": 32},
    "ion-channel-one-second": {**CHANNEL, "batch": 10},
    "ion-channel-full": CHANNEL,
    "adp": {"window": 100},
}
LONGER: dict[str, dict[str, Any]] = {"adp": {"curriculum": (10, 3000, 10_000)}}
# Mean and covariance of its Gaussians are outputs of a network: by its learning rates plain numbers would hardly move.
EMISSION, FULL_EMISSION = "neural", "neural-full"  # a diagonal covariance, and a full one (alanine dipeptide)
SCHEDULED = 0.9  # share of the steps before schedules end, where there are fewer steps than they take


def trained_as_published(
    data_set: str, changes: dict[str, Any], schedules: dict[str, Any] = SCHEDULES
) -> dict[str, Any]:
    """What the paper changes for a data set, then what the caller does; schedules end before training does.

    >>> trained_as_published("two-mode", {"steps": 100})
    {'decay': 1.0, 'curriculum': (10, 33, 56), 'fixed_spread': 22, 'steps': 100}
    """
    own = {name: LONGER.get(data_set, {}).get(name, value) for name, value in schedules.items()}
    steps = changes.get("steps", preset("paper", "paper").steps)
    longest = max(sum(own.get("curriculum", ())[1:]), own.get("fixed_spread", 0))
    share = 1.0 if longest <= steps else SCHEDULED * steps / longest
    return {**RATES[data_set], **{name: _shortened(value, share) for name, value in own.items()}, **changes}


def _shortened(value: int | tuple[int, int, int], share: float) -> int | tuple[int, ...]:
    """Steps of a schedule; the number of observations that a curriculum begins with stays."""
    if isinstance(value, tuple):
        return (value[0], *(max(int(n * share), 1) for n in value[1:]))
    return max(int(value * share), 1)
