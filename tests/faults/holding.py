"""What may be asked of every result, whatever the data: numbers, or a documented "unknown"; NaN nowhere else."""

import json

import numpy as np

from neuralmjp import InputError
from neuralmjp.fitted_files import summary


def check_interval(name, found):
    """Middles are numbers; bounds are in order, infinite or unknown where the data say nothing."""
    mean, lower, upper = (np.asarray(part, float) for part in (found.mean, found.lower, found.upper))
    assert not np.isnan(mean).any(), f"{name} is no number: {mean}"
    assert np.array_equal(np.isnan(lower), np.isnan(upper)), f"{name} has half an interval: {lower}, {upper}"
    known = ~np.isnan(lower)
    assert (lower[known] <= upper[known]).all(), f"{name} is upside down: {lower}, {upper}"
    finite = known & np.isfinite(mean)
    slack = 1e-9 * np.abs(mean[finite]) + 1e-300
    inside = (lower[finite] <= mean[finite] + slack) & (mean[finite] - slack <= upper[finite])
    assert inside.all(), f"{name} lies outside its interval: {mean} in {lower}, {upper}"


def check_result(fitted, data):
    """Rates, law, timescales, passage times, intervals, path and forecast of a fit."""
    assert np.isfinite(fitted.rates).all()
    assert (fitted.rates >= 0).all()
    assert np.isfinite(fitted.log_likelihood)
    for name, interval in fitted.intervals.items():
        check_interval(name, interval)
    for name in ("stationary_distribution", "timescales", "mfpt", "sojourn_times"):
        found = or_refused(lambda name=name: getattr(fitted, name))  # several closed classes have no single law
        if not isinstance(found, str):
            check_interval(name, found)
    decoded = fitted.decode(data)
    np.testing.assert_allclose(decoded.probabilities.sum(1), 1.0, atol=1e-6)
    assert ((decoded.states >= 0) & (decoded.states < fitted.n_states)).all()
    last = data.times[data.offsets[1:] - 1]
    ahead = fitted.predict(data, [one + np.array([1.0, 2.0]) * data.gaps.max() for one in last], samples=20)
    np.testing.assert_allclose(ahead.probabilities.sum(1), 1.0, atol=1e-6)
    assert np.isfinite(ahead.samples).all()
    json.dumps(summary(fitted), allow_nan=False)


def or_refused(work):
    """What it gives, or the one line that says why not."""
    line = ""
    try:
        return work()
    except InputError as error:
        line = str(error)
    assert line.strip()
    assert "\n" not in line
    return f"refused: {line}"


def outcome(estimator, make) -> str:
    """A result that holds, or one clear line; `make` makes the data."""
    data = or_refused(make)
    fitted = data if isinstance(data, str) else or_refused(lambda: estimator.fit(data))
    if isinstance(fitted, str):
        return fitted
    check_result(fitted, data)
    return f"fitted: {len(fitted.warnings)} warnings"
