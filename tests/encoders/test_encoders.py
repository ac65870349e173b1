"""Every encoder through one list: what a summary may know, padding, noise, gradients."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralmjp.encoders import ODERNN, Encoded, GRUEncoder, Inputs, StateSpace
from neuralmjp.encoders.taped import Tape, taped_scan

WIDTH, N_FEATURES = 6, 3
ENCODERS = {
    "gru": lambda key: GRUEncoder(N_FEATURES, WIDTH, key=key),
    "ode-rnn": lambda key: ODERNN(N_FEATURES, WIDTH, key=key, hidden=(7,), steer=1.0),
    "ode-rnn of order 4": lambda key: ODERNN(N_FEATURES, WIDTH, key=key, hidden=(7,), steer=1.0, order=4),
    "state-space": lambda key: StateSpace(N_FEATURES, WIDTH, key=key),
}
LENGTHS = np.array([5, 3])
encode = eqx.filter_jit(lambda encoder, inputs, key: encoder(inputs, key=key))


def some_inputs(length=5, seed=0) -> Inputs:
    rng = np.random.default_rng(seed)
    valid = np.arange(5) < LENGTHS[:, None]
    features = np.where(valid[..., None], rng.normal(size=(2, 5, N_FEATURES)), 0.0)
    gaps = np.where(np.arange(5) < LENGTHS[:, None] - 1, rng.uniform(0.05, 0.2, (2, 5)), 0.0)
    more = ((0, 0), (0, length - 5))
    return Inputs(
        jnp.asarray(np.pad(features, (*more, (0, 0)))),
        jnp.asarray(np.pad(gaps, more)),
        jnp.asarray(1.1 - gaps.sum(1)),
        jnp.asarray(np.pad(valid, more)),
    )


INPUTS = some_inputs()


@pytest.fixture(params=ENCODERS, scope="module")
def encoder(request):
    return ENCODERS[request.param](jax.random.key(0))


@pytest.fixture(scope="module")
def encoded(encoder) -> Encoded:
    return encode(encoder, INPUTS, None)


class TestEveryEncoder:
    def test_shapes(self, encoder, encoded):
        assert encoder.width == WIDTH
        assert encoded.before.shape == (2, 5, WIDTH)
        assert encoded.whole.shape == (2, WIDTH)

    @pytest.mark.parametrize("changed", range(5))
    def test_a_summary_knows_what_comes_after_and_nothing_else(self, encoder, encoded, changed):
        other = encode(encoder, INPUTS._replace(features=INPUTS.features.at[0, changed].add(1.0)), None)
        moved = np.abs(other.before - encoded.before).max(-1)
        assert (moved[0, changed:] == 0).all()
        assert (moved[0, :changed] > 1e-6).all()
        assert (moved[1] == 0).all()
        assert np.abs(other.whole - encoded.whole)[0].max() > 1e-6
        np.testing.assert_array_equal(other.whole[1], encoded.whole[1])

    def test_padding_is_never_read(self, encoder, encoded):
        wild = INPUTS._replace(features=jnp.where(INPUTS.valid[..., None], INPUTS.features, 99.0))
        other = encode(encoder, wild, None)
        np.testing.assert_allclose(other.before[1, :3], encoded.before[1, :3], atol=1e-12)
        np.testing.assert_allclose(other.whole, encoded.whole, atol=1e-12)

    def test_more_padding_changes_nothing(self, encoder, encoded):
        longer = encode(encoder, some_inputs(9), None)
        np.testing.assert_allclose(longer.before[0, :5], encoded.before[0], atol=1e-12)
        np.testing.assert_allclose(longer.before[1, :3], encoded.before[1, :3], atol=1e-12)
        np.testing.assert_allclose(longer.whole, encoded.whole, atol=1e-12)

    def test_series_do_not_see_each_other(self, encoder, encoded):
        alone = encode(encoder, jax.tree.map(lambda x: x[1:], INPUTS), None)
        np.testing.assert_allclose(alone.whole[0], encoded.whole[1], atol=1e-12)

    def test_everything_is_learned(self, encoder):
        def total(encoder):
            found = encoder(INPUTS, key=None)
            return (found.before**2).sum() + (found.whole**2).sum()

        for leaf in jax.tree.leaves(eqx.filter_jit(eqx.filter_grad(total))(encoder)):
            assert np.isfinite(leaf).all()
            assert (np.asarray(leaf) != 0).any()

    def test_gradient_against_differences(self, encoder):
        """Of a compiled program, along a random direction."""
        rng = np.random.default_rng(3)
        weights = jnp.asarray(rng.normal(size=(2, 5, WIDTH)) * np.asarray(INPUTS.valid)[..., None])

        @eqx.filter_jit
        @eqx.filter_value_and_grad
        def value(encoder):
            found = encoder(INPUTS, key=None)
            return (weights * found.before).sum() + (found.whole**2).sum()

        way = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), eqx.filter(encoder, eqx.is_array))
        _, slope = value(encoder)
        along = sum(jax.tree.leaves(jax.tree.map(lambda a, b: (a * b).sum(), slope, way)))
        ends = [value(eqx.apply_updates(encoder, jax.tree.map(lambda x, h=h: h * x, way)))[0] for h in (1e-6, -1e-6)]
        assert float(along) == pytest.approx(float(ends[0] - ends[1]) / 2e-6, rel=1e-5)


class TestSteer:
    def test_noise_with_a_key_alone(self):
        encoder = ENCODERS["ode-rnn"](jax.random.key(0))
        still = encode(encoder, INPUTS, None)
        np.testing.assert_array_equal(encode(encoder, INPUTS, None).whole, still.whole)
        moved = [encode(encoder, INPUTS, jax.random.key(k)).whole for k in (1, 2)]
        assert np.abs(moved[0] - still.whole).max() > 0
        assert np.abs(moved[0] - moved[1]).max() > 0

    @pytest.mark.parametrize("name", ["gru", "state-space"])
    def test_other_encoders_have_none(self, name):
        encoder = ENCODERS[name](jax.random.key(0))
        np.testing.assert_array_equal(
            encode(encoder, INPUTS, jax.random.key(1)).whole, encode(encoder, INPUTS, None).whole
        )

    def test_none_where_it_is_switched_off(self):
        encoder = ODERNN(N_FEATURES, WIDTH, key=jax.random.key(0), hidden=(7,), steer=0.0)
        np.testing.assert_array_equal(
            encode(encoder, INPUTS, jax.random.key(1)).whole, encode(encoder, INPUTS, None).whole
        )


LIVELY = ODERNN(N_FEATURES, WIDTH, key=jax.random.key(0), hidden=(7,))
LIVELY = eqx.tree_at(lambda e: e.drift.weights, LIVELY, [5 * w for w in LIVELY.drift.weights])


def carried(order, span):
    """The summary between two observations, which are this far apart."""
    encoder = ODERNN(N_FEATURES, WIDTH, key=jax.random.key(0), hidden=(7,), order=order)
    encoder = eqx.tree_at(lambda e: e.drift.weights, encoder, LIVELY.drift.weights)
    both, features = jnp.ones((1, 2), bool), jnp.ones((1, 2, N_FEATURES))
    return encode(encoder, Inputs(features, jnp.array([[span, 0.0]]), jnp.zeros(1), both), None).before[0, 0]


def finely(span):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, h, _: LIVELY.drift(h)),
        diffrax.Dopri8(),
        0.0,
        span,
        None,
        carried(4, 0.0),
        stepsize_controller=diffrax.PIDController(rtol=1e-12, atol=1e-12),
    ).ys[0]


class TestOdeRnn:
    @pytest.mark.parametrize(("order", "tolerance"), [(2, 1e-4), (4, 1e-6)])
    def test_against_a_fine_solution(self, order, tolerance):
        fine = finely(0.03)
        assert np.abs(fine - carried(4, 0.0)).max() > 0.01
        np.testing.assert_allclose(carried(order, 0.03), fine, atol=tolerance)

    @pytest.mark.parametrize("order", [2, 4])
    def test_order_of_convergence(self, order):
        """The error of one step falls with the power order + 1."""
        errors = [np.abs(carried(order, span) - finely(span)).max() for span in (0.02, 0.01)]
        assert np.log2(errors[0] / errors[1]) == pytest.approx(order + 1, abs=0.5)

    def test_longer_gaps_move_the_summary(self):
        encoder = ENCODERS["ode-rnn"](jax.random.key(0))
        encoder = eqx.tree_at(lambda e: e.drift.biases[-1], encoder, encoder.drift.biases[-1] + 1.0)
        longer = INPUTS._replace(gaps=2 * INPUTS.gaps)
        assert np.abs(encode(encoder, longer, None).whole - encode(encoder, INPUTS, None).whole).max() > 1e-3
        later = INPUTS._replace(after=INPUTS.after + 0.5)
        assert np.abs(encode(encoder, later, None).before - encode(encoder, INPUTS, None).before).max() > 1e-3


LAYERS = {
    "first": (jnp.asarray(np.random.default_rng(0).normal(size=(3, 4))), jnp.full(4, 0.1)),
    "gain": (jnp.full(4, 1.3), jnp.full(4, -0.2)),
    "second": (jnp.asarray(np.random.default_rng(1).normal(size=(4, 3))), jnp.full(3, 0.3)),
}


class TestTapedScan:
    """Against the derivative of a plain scan."""

    @staticmethod
    def step(tape, state, row):
        for _ in range(2):  # every layer is used twice
            state = jnp.tanh(tape.linear("second", tape.scaled("gain", jnp.tanh(tape.linear("first", state)))) + row)
        return state, state**2

    def objective(self, scan, layers, state, along):
        last, out = scan(layers, state, along)
        return (last**3).sum() + (jnp.arange(1.0, 6.0)[:, None, None] * out).sum()

    @pytest.mark.parametrize("unroll", [1, 2, 5])
    def test_gradient_is_that_of_a_plain_scan(self, unroll):
        rng = np.random.default_rng(2)
        state, along = jnp.asarray(rng.normal(size=(2, 3))), jnp.asarray(rng.normal(size=(5, 2, 3)))

        def taped(layers, state, along):
            return taped_scan(self.step, layers, state, along, unroll=unroll)

        def plain(layers, state, along):
            return jax.lax.scan(lambda s, row: self.step(Tape(layers), s, row), state, along, reverse=True)

        results = [
            jax.jit(jax.value_and_grad(lambda *x, s=scan: self.objective(s, *x), argnums=(0, 1, 2)))(
                LAYERS, state, along
            )
            for scan in (taped, plain)
        ]
        for one, two in zip(*map(jax.tree.leaves, results), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)

    def test_under_vmap(self):
        """As restarts side by side are."""
        rng = np.random.default_rng(2)
        state, along = jnp.asarray(rng.normal(size=(2, 3))), jnp.asarray(rng.normal(size=(5, 2, 3)))
        two = jax.tree.map(lambda x: jnp.stack([x, 1.1 * x]), LAYERS)

        def slope(layers):
            def taped(layers, state, along):
                return taped_scan(self.step, layers, state, along, unroll=1)

            return jax.grad(lambda layers: self.objective(taped, layers, state, along))(layers)

        together = jax.vmap(slope)(two)
        for k in range(2):
            alone = slope(jax.tree.map(lambda x, k=k: x[k], two))
            for one, other in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
                np.testing.assert_allclose(other[k], one, rtol=1e-10)
