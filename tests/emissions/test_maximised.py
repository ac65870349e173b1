"""The M step: where it has a closed form nothing is better, elsewhere it never does harm; and where it starts from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from emissions.cases import CASES, example, observations
from neuralmjp import emissions
from neuralmjp.emissions.emission import starting_centres

CLOSED = ["gaussian", "gaussian-shared", "gaussian-full", "poisson", "categorical"]
IMPROVING = ["student-t", "mixture", "torus", "dictionary"]
NONE = ["ornstein-uhlenbeck", "neural", "neural-full", "custom"]
BEARS_HOLES = [name for name in CLOSED + IMPROVING if name != "gaussian-full"]


def problem(name, holes):
    case = CASES[name]
    seen = observations(case, *example(case, holes, n=40))
    weights = jnp.asarray(np.random.default_rng(2).dirichlet([1, 1], 40))

    def total(params):
        return (weights * jnp.maximum(case.emission.log_prob(params, seen), -1e6)).sum()

    if name == "categorical":  # every label readable, so that every weight can be met
        emission = emissions.Categorical(case.emission.labels, np.ones((2, 3)))
        return (
            emission,
            {"logits": np.zeros((2, 3))},
            seen,
            weights,
            lambda p: (weights * emission.log_prob(p, seen)).sum(),
        )
    return case.emission, case.params, seen, weights, total


@pytest.mark.parametrize(
    ("name", "holes"), [*[(n, False) for n in CLOSED], *[(n, True) for n in CLOSED if n in BEARS_HOLES]]
)
def test_closed_form_is_the_top(name, holes):
    emission, params, seen, weights, total = problem(name, holes)
    best = emission.maximised(params, seen, weights)
    slopes = jax.grad(total)(best)
    # The full covariance is widened by 1e-8 of the data's own, which moves it off the top by as much.
    assert max(float(jnp.abs(slope).max()) for slope in slopes.values()) < (1e-5 if name == "gaussian-full" else 1e-10)
    assert total(best) > total(params)


@pytest.mark.parametrize("name", IMPROVING)
def test_repeated_steps_never_do_harm(name):
    emission, params, seen, weights, total = problem(name, holes=True)
    values = [float(total(params))]
    for _ in range(20):
        params = emission.maximised(params, seen, weights)
        values.append(float(total(params)))
    assert (np.diff(values) > -1e-9).all()
    assert values[-1] > values[0] + 0.1


@pytest.mark.parametrize("name", NONE)
def test_no_closed_form(name):
    emission, params, seen, weights, _ = problem(name, holes=False)
    assert emission.maximised(params, seen, weights) is None


@pytest.mark.parametrize("name", [*CLOSED, *IMPROVING, "negative-binomial"])
def test_a_state_without_weight_stays_where_it_is(name):
    emission, params, seen, weights, _ = problem(name, holes=False)
    moved = emission.maximised(params, seen, weights.at[:, 1].set(0.0))
    for key, value in moved.items():
        assert np.isfinite(value).all()
        if key != "logits" and not key.startswith("shared"):
            np.testing.assert_array_equal(value[1], params[key][1])


def test_moments_of_the_negative_binomial():
    emission, params, seen, weights, _ = problem("negative-binomial", holes=False)
    found = emission.natural(emission.maximised(params, seen, weights))
    mean = np.average(seen.values[:, 1], weights=weights[:, 0])
    variance = np.average((seen.values[:, 1] - mean) ** 2, weights=weights[:, 0])
    np.testing.assert_allclose(found["mean"].value[0, 1], mean)
    np.testing.assert_allclose(found["size"].value[0, 1], mean**2 / max(variance - mean, 1e-3 * mean))


class TestStartingCentres:
    rng = np.random.default_rng(0)
    pair = np.concatenate([rng.normal((0, 0), 0.1, (50, 2)), rng.normal((5, -3), 0.1, (50, 2))])

    def test_one_signal_gets_evenly_spaced_levels(self):
        centres = starting_centres(np.linspace(0, 10, 2001)[:, None], 3, None)
        np.testing.assert_allclose(centres.ravel(), [0.05, 5.0, 9.95])

    def test_several_get_the_clusters(self):
        centres = starting_centres(self.pair, 2, None)
        np.testing.assert_allclose(centres[np.argsort(centres[:, 0])], [[0, 0], [5, -3]], atol=0.1)

    def test_no_complete_row(self):
        holes = self.pair.copy()
        holes[np.arange(100), np.arange(100) % 2] = np.nan
        assert np.isfinite(starting_centres(holes, 2, None)).all()

    def test_random_centres_are_rows(self):
        centres = starting_centres(self.pair, 2, np.random.default_rng(1))
        assert all((self.pair == centre).all(1).any() for centre in centres)

    def test_more_states_than_distinct_rows(self):
        assert starting_centres(np.zeros((10, 2)), 3, np.random.default_rng(1)).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("name", CASES)
def test_every_emission_starts_itself(name):
    case = CASES[name]
    rows, _, _ = example(case, holes=True, n=40)
    values = case.emission.codes(rows) if isinstance(case.emission, emissions.Categorical) else rows
    fixed, again = (case.emission.start(values, 2, None) for _ in range(2))
    varied = case.emission.start(values, 2, np.random.default_rng(7))
    for key, value in fixed.items():
        assert np.isfinite(value).all()
        assert np.isfinite(varied[key]).all()
        np.testing.assert_array_equal(value, again[key])
        assert value.shape == varied[key].shape == case.emission.learned(fixed)[key].shape
