"""Several optima: the likeliest is not always the one with the slowest jumps. Both are told."""

import numpy as np
from jaxtyping import Float

from ..errors import InputError
from ..mjp import timescales
from ..timeseries import TimeSeries

SEEN_OFTEN = 10  # a relaxation is believed if the record lasts so many of it
SLOWER = 1.25  # times as slow is worth a word


def slowest_times(rates: Float[np.ndarray, "start state state"], data: TimeSeries) -> Float[np.ndarray, "start"]:
    """Slowest relaxation that each start ended with; NaN where there is none that the record could show."""
    found = []
    for one in rates:
        try:
            found.append(float(np.asarray(timescales(one)).max()))
        except (InputError, np.linalg.LinAlgError):
            found.append(np.nan)
    times = np.array(found)
    with np.errstate(invalid="ignore"):
        return np.where(times * SEEN_OFTEN <= data.gaps.sum(), times, np.nan)


def slowness_told(
    reached: Float[np.ndarray, "start"], slowest: Float[np.ndarray, "start"], time_unit: str
) -> tuple[str, ...]:
    """A word where another start is clearly slower than the likeliest."""
    if len(slowest) < 2 or np.isnan(reached).all() or np.isnan(slowest).all():
        return ()
    best, slow = int(np.nanargmax(reached)), int(np.nanargmax(slowest))
    if not slowest[slow] > SLOWER * slowest[best]:
        return ()
    return (
        f"likelihood and slowness disagree: the likeliest of {len(reached)} starts relaxes in {slowest[best]:.3g} "
        f"{time_unit}, another one, {reached[best] - reached[slow]:.3g} nats below, in {slowest[slow]:.3g} {time_unit}",
    )
