"""Data sets that no method likes, by name."""

import numpy as np

from neuralmjp import TimeSeries

LEVELS = np.array([-1.0, 1.0])


def _steps(seed=0, n_series=2, length=30, stay=0.8):
    rng = np.random.default_rng(seed)
    flips = np.cumsum(rng.random((n_series, length)) > stay, axis=1) % 2
    return LEVELS[flips] + 0.3 * rng.normal(size=flips.shape)


def _series(values, times=None):
    values = np.asarray(values, float)
    times = np.tile(np.arange(values.shape[1], dtype=float), (len(values), 1)) if times is None else times
    return TimeSeries.from_arrays(times, values)


def constant():
    return _series(np.full((2, 20), 3.0))


def zeros():
    return _series(np.zeros((2, 20)))


def duplicated():
    return _series(np.tile(_steps(n_series=1), (3, 1)))


def outliers():
    values = _steps()
    values[0, 5], values[1, 9] = 1e12, -1e12
    return _series(values)


def tiny():
    return _series(1e-300 * _steps())


def huge():
    return _series(1e300 * _steps())


def offset():
    return _series(1e12 + _steps())


def gaps():
    """1e-9 beside 1e9, as far as the digits of a time allow: first tiny ones, then larger and larger ones."""
    each = np.concatenate([[0.0], np.full(9, 1e-9), 10.0 ** np.linspace(-9, 9, 10), np.full(10, 1e9)])
    return _series(_steps(length=len(each)), np.tile(np.cumsum(each), (2, 1)))


def tiny_gaps():
    return _series(_steps(), 1e-9 * np.tile(np.arange(30.0), (2, 1)))


def huge_gaps():
    return _series(_steps(), 1e9 * np.tile(np.arange(30.0), (2, 1)))


def single_jump():
    return _series(np.where(np.arange(20) < 10, -1.0, 1.0)[None] + 0.1 * np.random.default_rng(0).normal(size=(1, 20)))


def never_left():
    """One series in each level, without a jump."""
    return _series(LEVELS[:, None] + 0.1 * np.random.default_rng(0).normal(size=(2, 20)))


def one_observation():
    return _series([[1.0]])


def one_each():
    return _series(np.random.default_rng(0).normal(size=(5, 1)))


def two_values():
    """Noiseless: a spread of zero would be infinitely likely."""
    return _series(np.where(_steps() > 0, 1.0, 0.0))


def mostly_missing():
    values = _steps()
    values[np.random.default_rng(1).random(values.shape) < 0.9] = np.nan
    return _series(values)


def all_missing():
    return _series(np.full((2, 10), np.nan))


def one_series_missing():
    values = _steps()
    values[1] = np.nan
    return _series(values)


DATA = {one.__name__: one for one in (
    constant, zeros, duplicated, outliers, tiny, huge, offset, gaps, tiny_gaps, huge_gaps, single_jump, never_left,
    one_observation, one_each, two_values, mostly_missing, all_missing, one_series_missing)}  # fmt: skip
