"""Series of unequal lengths, for tests of what holds them."""

from functools import partial

import numpy as np
from hypothesis import strategies as st

from neuralmjp.timeseries import TimeSeries


def series_of(*lengths: int, n_features: int = 1, seed: int = 0, missing: float = 0.0) -> TimeSeries:
    """Series of these lengths with random times and values, the first value of each always observed."""
    rng = np.random.default_rng(seed)
    times = [np.cumsum(rng.exponential(size=n)) for n in lengths]
    values = [rng.normal(size=(n, n_features)) for n in lengths]
    for x in values:
        x[1:][rng.random((len(x) - 1, n_features)) < missing] = np.nan
    joined = np.concatenate([[0], np.cumsum(lengths)])
    names = tuple(f"s{i}" for i in range(len(lengths)))
    value_names = tuple(f"x{i}" for i in range(n_features))
    return TimeSeries(np.concatenate(times), np.concatenate(values), joined, names, value_names)


def rows(data: TimeSeries) -> np.ndarray:
    """Times and values side by side."""
    return np.column_stack([data.times, data.values])


def hold_same_rows(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a[np.lexsort(a.T)], b[np.lexsort(b.T)], equal_nan=True)


# Makers of data rather than data, because the type checker that tests switch on draws random numbers.
ragged = st.builds(
    lambda lengths, **options: partial(series_of, *lengths, **options),
    st.lists(st.integers(1, 20), min_size=1, max_size=8).filter(lambda lengths: max(lengths) > 1),
    n_features=st.integers(1, 3),
    seed=st.integers(0, 2**32),
    missing=st.sampled_from([0.0, 0.5, 0.9]),
)
