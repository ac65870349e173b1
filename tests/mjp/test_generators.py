import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralmjp.errors import InputError
from neuralmjp.mjp import (
    check_generator,
    check_rates,
    exit_rates,
    generator_from_rates,
    masked,
    rates_from_generator,
)
from neuralmjp.mjp.generators import check_one

RATES = np.array([[0.0, 2.0, 0.5], [1.0, 0.0, 0.0], [3.0, 1e-12, 0.0]])
GENERATOR = np.array([[-2.5, 2.0, 0.5], [1.0, -1.0, 0.0], [3.0, 1e-12, -3.000000000001]])


def random_rates(shape, seed=0):
    rates = np.random.default_rng(seed).exponential(size=(*shape, 4, 4))
    rates[..., np.eye(4, dtype=bool)] = 0
    return rates


def with_entry(matrix, i, j, value):
    changed = np.array(matrix, dtype=float)
    changed[i, j] = value
    return changed


def test_generator_by_hand():
    np.testing.assert_array_equal(generator_from_rates(RATES), GENERATOR)
    np.testing.assert_array_equal(rates_from_generator(GENERATOR), RATES)
    np.testing.assert_array_equal(exit_rates(RATES), -np.diag(GENERATOR))


@pytest.mark.parametrize("xp", [np, jnp])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_round_trip(xp, shape):
    rates = xp.asarray(random_rates(shape))
    generator = generator_from_rates(rates)
    assert type(generator) is type(rates)
    assert generator.shape == rates.shape
    np.testing.assert_allclose(generator.sum(-1), 0, atol=1e-14)
    np.testing.assert_array_equal(rates_from_generator(generator), rates)


@pytest.mark.parametrize("xp", [np, jnp])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precision_is_kept(xp, dtype):
    rates = xp.asarray(RATES, dtype=dtype)
    assert generator_from_rates(rates).dtype == dtype
    assert rates_from_generator(rates).dtype == dtype
    assert masked(rates, np.ones((3, 3), bool)).dtype == dtype


@pytest.mark.parametrize("xp", [np, jnp])
def test_mask_leaves_exact_zeros(xp):
    mask = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=bool)
    full = xp.ones((2, 3, 3))
    expected = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    np.testing.assert_array_equal(masked(full, mask), np.broadcast_to(expected, (2, 3, 3)))


def test_masked_jumps_have_no_gradient():
    mask = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)
    gradient = jax.grad(lambda f: jnp.sin(masked(f, mask)).sum())(jnp.ones((3, 3)))
    np.testing.assert_allclose(gradient, np.cos(1.0) * mask)


def test_checks_return_float64():
    assert check_rates([[0, 2], [1, 0]]).dtype == np.float64
    np.testing.assert_array_equal(check_rates(jnp.asarray(RATES, jnp.float32)), RATES.astype(np.float32))
    np.testing.assert_array_equal(check_generator(GENERATOR.tolist()), GENERATOR)
    batch = random_rates((2, 3))
    np.testing.assert_array_equal(check_rates(batch), batch)


WRONG_RATES = {
    "not square": (np.zeros((2, 3)), r"rates must be square, K x K for K states; got shape \(2, 3\)"),
    "a vector": ([1.0, 2.0], "must be square"),
    "no states": (np.zeros((0, 0)), "must be square"),
    "words": ([["a", "b"], ["c", "d"]], "rates must be a table of numbers"),
    "ragged": ([[0.0, 1.0], [1.0]], "rates must be a table of numbers"),
    "nan": (with_entry(RATES, 2, 1, np.nan), "rates must be finite: from state 2 to state 1 it is nan"),
    "infinite": (with_entry(RATES, 0, 1, np.inf), "rates must be finite: from state 0 to state 1 it is inf"),
    "negative": (with_entry(RATES, 1, 2, -0.5), "rates must not be negative: from state 1 to state 2 it is -0.5"),
    "diagonal": (with_entry(RATES, 1, 1, 3.0), "zeros on the diagonal$"),
    "generator": (GENERATOR, r"zeros on the diagonal; this looks like a generator: pass rates_from_generator\(...\)"),
    "in a batch": (np.stack([RATES, with_entry(RATES, 2, 0, -1.0)]), "from state 2 to state 0 it is -1"),
}


@pytest.mark.parametrize(("rates", "message"), WRONG_RATES.values(), ids=WRONG_RATES)
def test_wrong_rates(rates, message):
    with pytest.raises(InputError, match=message) as caught:
        check_rates(rates)
    assert "\n" not in str(caught.value)


def test_jump_outside_mask():
    mask = RATES > 0
    np.testing.assert_array_equal(check_rates(RATES, mask), RATES)
    with pytest.raises(InputError, match=r"mask does not allow this jump: from state 1 to state 2 it is 0\.25"):
        check_rates(with_entry(RATES, 1, 2, 0.25), mask)


WRONG_GENERATORS = {
    "negative": (with_entry(GENERATOR, 0, 2, -0.5), "must not be negative: from state 0 to state 2 it is -0.5"),
    "row sum": (with_entry(GENERATOR, 1, 1, -1.1), "rows of a generator must sum to zero; row 1 does not"),
    "rates": (RATES, "rows of a generator must sum to zero; row 0 does not"),
    "absorbing row": (with_entry(np.zeros((2, 2)), 1, 1, -1e-9), "row 1 does not"),
    "nan": (with_entry(GENERATOR, 0, 0, np.nan), "generator must be finite: from state 0 to state 0"),
    "not square": (np.zeros((3, 2)), "generator must be square"),
}


@pytest.mark.parametrize(("generator", "message"), WRONG_GENERATORS.values(), ids=WRONG_GENERATORS)
def test_wrong_generator(generator, message):
    with pytest.raises(InputError, match=message):
        check_generator(generator)


def test_generator_in_single_precision_passes():
    rates = random_rates((10,)).astype(np.float32)
    assert check_generator(generator_from_rates(rates)).shape == (10, 4, 4)


def test_batch_where_one_matrix_is_needed():
    np.testing.assert_array_equal(check_one(RATES), RATES)
    with pytest.raises(InputError, match=r"one rate matrix is needed here, K x K; got a batch of shape \(2, 4, 4\)"):
        check_one(random_rates((2,)))
