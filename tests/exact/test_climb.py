"""To the top of hills whose top is known."""

import numpy as np
import pytest

from neuralmjp.exact import climb
from neuralmjp.exact.climb import FLAT, climb_hill

WIDE = np.array([[-50.0, 50.0]] * 3)


class Hill:
    """Height and gradient of a function, with a count of how often it was asked."""

    def __init__(self, height, gradient):
        self.height, self.gradient, self.count = height, gradient, 0

    def __call__(self, x):
        self.count += 1
        return float(self.height(x)), np.asarray(self.gradient(x), float)


def quadratic(top=(1.0, -2.0, 0.5)):
    """A narrow ridge across the axes: standard errors from 0.01 to 10."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    curvature = turn @ np.diag([1e4, 1.0, 1e-2]) @ turn.T
    return Hill(lambda x: -0.5 * (x - top) @ curvature @ (x - top), lambda x: -curvature @ (x - top))


def counts(n=(30.0, 5.0, 1000.0), time=(10.0, 80.0, 3.0)):
    """Poisson counts with logarithms of rates: the top is log(n / time)."""
    n, time = np.array(n), np.array(time)
    return Hill(lambda x: (n * x - time * np.exp(x)).sum(), lambda x: n - time * np.exp(x)), np.log(
        np.maximum(n, 1e-9) / time
    )


def test_quadratic_in_few_evaluations():
    hill = quadratic()
    best, steepest = climb_hill(hill, np.zeros(3), WIDE)
    assert steepest < FLAT
    np.testing.assert_allclose(best, [1.0, -2.0, 0.5], atol=1e-3)
    assert hill.count < 25


def test_far_from_the_top_it_goes_box_by_box():
    hill, top = counts()
    best, steepest = climb_hill(hill, np.array([-6.0, 4.0, 0.0]), WIDE)
    assert steepest < FLAT
    np.testing.assert_allclose(best, top, atol=1e-4)


def test_what_runs_off_rests_on_its_bound():
    hill, top = counts(n=(30.0, 0.0, 1000.0))
    bounds = np.array([[-9.0, 9.0]] * 3)
    best, steepest = climb_hill(hill, np.zeros(3), bounds)
    assert steepest < FLAT
    np.testing.assert_allclose(best[[0, 2]], top[[0, 2]], atol=1e-4)
    assert best[1] < -6.0  # the slope left there is of a hundredth of a count


def test_a_bound_that_cuts_the_hill():
    hill, top = counts()
    bounds = np.array([[-9.0, 0.5], [-9.0, 9.0], [-9.0, 9.0]])
    best, steepest = climb_hill(hill, np.zeros(3), bounds)
    assert best[0] == 0.5
    assert steepest < FLAT
    np.testing.assert_allclose(best[1:], top[1:], atol=1e-4)


def test_cliffs_are_turned_back_from():
    """A step too far seems to lose a thousand nats, without a slope to tell the way."""
    hill, top = counts()

    def broken(x):
        value, gradient = hill(x)
        return (value, gradient) if (x < top + 0.2).all() else (-1e4, np.zeros(3))

    best, steepest = climb_hill(broken, top - [1.5, 1.0, 0.5], WIDE)
    assert steepest < FLAT
    np.testing.assert_allclose(best, top, atol=1e-4)


def test_too_many_parameters_to_measure(monkeypatch):
    monkeypatch.setattr(climb, "MOST_MEASURED", 2)
    hill, top = counts()
    best, _ = climb_hill(hill, np.zeros(3), WIDE)
    np.testing.assert_allclose(best, top, atol=1e-3)


@pytest.mark.parametrize("start", [[-1.2, 1.0], [1.5, -1.0], [-0.5, 2.5]])
def test_a_curved_ridge(start):
    """Rosenbrock's valley upside down."""

    def gradient(x):
        return [400 * x[0] * (x[1] - x[0] ** 2) + 2 * (1 - x[0]), -200 * (x[1] - x[0] ** 2)]

    hill = Hill(lambda x: -100 * (x[1] - x[0] ** 2) ** 2 - (1 - x[0]) ** 2, gradient)
    best, steepest = climb_hill(hill, np.array(start), WIDE[:2])
    assert steepest < FLAT
    np.testing.assert_allclose(best, [1.0, 1.0], atol=1e-2)
