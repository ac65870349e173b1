"""The recurrence as one kernel, interpreted where there is no card, against the scan."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralmjp import InputError
from neuralmjp.encoders import ODERNN, Encoded, GRUEncoder, Inputs, encoder, fused, kernels
from neuralmjp.training.config import Config

WIDTH, N_FEATURES, N_SERIES, LENGTH = 16, 3, 20, 4  # 20 series: padded to a whole number of rows
MAKERS = {
    "gru": partial(GRUEncoder, N_FEATURES, WIDTH),
    "ode-rnn": partial(ODERNN, N_FEATURES, WIDTH, hidden=(32, 16), steer=0.0),
    "ode-rnn of order 4": partial(ODERNN, N_FEATURES, WIDTH, hidden=(16,), steer=0.0, order=4),
}


def some_inputs() -> Inputs:
    rng = np.random.default_rng(0)
    valid = np.arange(LENGTH) < rng.integers(1, LENGTH + 1, N_SERIES)[:, None]
    features = np.where(valid[..., None], rng.normal(size=(N_SERIES, LENGTH, N_FEATURES)), 0.0)
    gaps = np.where(valid, rng.uniform(0.05, 0.4, (N_SERIES, LENGTH)), 0.0)
    return Inputs(
        jnp.asarray(features), jnp.asarray(gaps), jnp.asarray(rng.uniform(0, 0.3, N_SERIES)), jnp.asarray(valid)
    )


def made(name: str, kernel: bool, key: jax.Array):
    """With biases and gains that are not those of the start."""
    one = MAKERS[name](key=key, kernel=kernel)
    leaves, tree = jax.tree.flatten(one)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(
        tree, [x + 0.2 * jax.random.normal(k, x.shape) for x, k in zip(leaves, keys, strict=True)]
    )


def objective(one, inputs: Inputs) -> jax.Array:
    found: Encoded = one(inputs, key=None)
    weights = jnp.arange(1.0, WIDTH + 1)
    return (weights * found.whole**3).sum() + (found.before**2 @ weights).sum()


@pytest.fixture
def card(monkeypatch):
    """As if there were one, in any precision."""
    monkeypatch.setattr(encoder, "on_card", lambda _: True)
    monkeypatch.setattr(fused, "fused_scan", partial(fused.fused_scan, interpreted=True))


@pytest.mark.parametrize("name", MAKERS)
def test_value_and_gradient_are_those_of_the_scan(card, name):
    """Of two encoders side by side, as restarts are."""
    keys = jax.random.split(jax.random.key(1), 2)
    both = []
    for kernel in (True, False):
        encoders = jax.vmap(partial(made, name, kernel))(keys)
        both.append(jax.jit(jax.vmap(jax.value_and_grad(objective), in_axes=(0, None)))(encoders, some_inputs()))
    for one, other in zip(*map(jax.tree.leaves, both), strict=True):
        assert np.abs(other).max() > 0
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


@pytest.mark.parametrize("name", MAKERS)
def test_rounding_what_products_read_changes_little(card, monkeypatch, name):
    """As a card does it: sixteen bits ahead and back."""
    one, found = made(name, True, jax.random.key(1)), []
    for rounded in (False, True):
        if rounded:
            monkeypatch.setattr(kernels.Shapes, "read", lambda _, __, back: kernels.BACK if back else kernels.AHEAD)
        found.append(jax.value_and_grad(objective)(one, some_inputs()))
    for a, b in zip(*map(jax.tree.leaves, found), strict=True):
        assert 0 < np.abs(a - b).max() < 2e-2 * np.abs(a).max()


@pytest.mark.parametrize("name", MAKERS)
def test_its_program_can_be_made_for_a_card(monkeypatch, name):
    """Forward and backward, restarts side by side; whether it is quick there is for benchmarks/recurrence.py to say."""
    monkeypatch.setattr(encoder, "on_card", lambda _: True)
    with jax.enable_x64(False):
        encoders = jax.vmap(partial(made, name, True))(jax.random.split(jax.random.key(1), 2))
        single = jax.tree.map(lambda x: x if x.dtype == bool else x.astype(jnp.float32), (encoders, some_inputs()))
        both = jax.jit(jax.vmap(jax.value_and_grad(objective), in_axes=(0, None)))
        program = both.trace(*single).lower(lowering_platforms=("cuda",)).as_text()
    assert program.count("custom_call @__gpu$xla.gpu.triton") == 2
    assert "f16" in program
    assert "bf16" in program


def test_the_kernel_runs_on_a_card_alone(monkeypatch):
    """And in single precision: what judges a fit when training has ended is the scan, in double."""

    def refused(*_, **__):
        raise AssertionError("there is no card")

    monkeypatch.setattr(fused, "fused_scan", refused)
    one = made("gru", True, jax.random.key(0))
    single = jax.tree.map(lambda x: x if x.dtype == bool else x.astype(jnp.float32), (one, some_inputs()))
    assert np.isfinite(single[0](single[1], key=None).whole).all()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert one(some_inputs(), key=None).whole.dtype == jnp.float64
    with pytest.raises(AssertionError, match="no card"):
        single[0](single[1], key=None)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"width": 48}, "widths of 16, 32, 64, 128 or 256, got 48"),
        ({"encoder": "ode-rnn", "dynamics": (256, 512)}, "got 512"),
        ({"encoder": "state-space"}, "ode-rnn and gru"),
        ({"precision": "double"}, "single precision"),
        ({"mesh": 2}, "one device"),
    ],
)
def test_what_the_kernel_cannot_do_is_told(changes, words):
    with pytest.raises(InputError, match=words):
        Config(kernel=True, **changes)


def test_what_it_can():
    assert Config(kernel=True, dynamics=(100,)).same_run() == Config(dynamics=(100,)).same_run()
