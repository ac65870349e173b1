"""Colours that stay apart for colour-blind readers and in print (Okabe & Ito 2008)."""

STATES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
TRACE = "#8C8C8C"
TRUTH = "#000000"
FUTURE = "#EDEDED"  # behind what was not given


def state_colour(state: int) -> str:
    """Colour of a state; colours repeat after eight."""
    return STATES[state % len(STATES)]
