"""Names for the numbers of an emission, by state, value and label, as tables show them."""

from collections.abc import Sequence

from .categorical import Categorical
from .emission import Emission
from .wrapped import SHARED


def place_words(
    emission: Emission,
    name: str,
    at: tuple[int, ...],
    shape: tuple[int, ...],
    value_names: Sequence[str],
    state_names: Sequence[str],
) -> tuple[str, str]:
    """Which number, and whose: the state, or the place in a list that states share.

    >>> from .gaussian import Gaussian
    >>> place_words(Gaussian(), "mean", (1, 0), (3, 2), ("phi", "psi"), ("closed", "open", "blocked"))
    ('mean phi', 'state open')
    >>> place_words(Gaussian(), "shared_sd", (1,), (2,), ("phi", "psi"), ("closed", "open"))
    ('sd psi', 'all states')
    """
    words = name.removeprefix(SHARED).replace("_", " ")
    if name.startswith(SHARED) and shape == (len(value_names),):
        return " ".join([words, *([value_names[at[0]]] if len(value_names) > 1 else [])]), "all states"
    owner = f"{at[0] + 1}" if name.startswith(SHARED) else f"state {state_names[at[0]]}"
    known = [f"{label:g}" for label in emission.labels] if isinstance(emission, Categorical) else value_names
    rest = [(k, n) for k, n in zip(at[1:], shape[1:], strict=True) if n > 1]
    # Where as many numbers stand side by side as there are values or labels, each belongs to one of them.
    return " ".join([words, *(known[k] if n == len(known) else str(k) for k, n in rest)]), owner
