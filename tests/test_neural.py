"""The neural engine's estimator: the exact engine's answers, by another way."""

from dataclasses import replace

import equinox as eqx
import numpy as np
import pytest
from scipy.stats import norm

from exact.test_information import TWO, log_errors, simulated
from exact.test_recovery import RATES
from neuralmjp import ExactMJP, FittedMJP, InputError, NeuralMJP, TimeSeries
from neuralmjp.priors import FreeRates
from neuralmjp.systems import FlashingRatchet
from training.worlds import TINY

Z = norm.isf(0.025)
SHORT = {"width": 8, "batch": 32, "round_steps": 50}
LEVELS = simulated(TWO, 12, 40, 0.3, seed=0, levels=[1.5, -1.0], noise=0.5)  # state 0 is the high one
THREE = simulated(RATES, 120, 20, 0.3, seed=2, levels=[-2.0, 0.0, 2.0], noise=0.8)
RATCHET = FlashingRatchet().simulate(300, 50, grid="irregular", seed=4).data


@pytest.fixture(scope="module")
def quick():
    """A few steps: what is tested with it must hold for any parameters."""
    return NeuralMJP(2, "gaussian", changes={**SHORT, "steps": 100}).fit(LEVELS)


class TestFittedModel:
    def test_says_what_it_is(self, quick):
        assert isinstance(quick, FittedMJP)
        assert (quick.engine, quick.posterior, quick.uncertainty) == ("neural", "tilted", "observed information")
        assert quick.message == "stopped after 100 steps: the limit of 100 steps"
        assert not quick.converged
        assert quick.seconds > 0
        assert quick.restarts == (quick.elbo,)

    def test_the_bound_is_one(self, quick):
        assert quick.elbo <= quick.log_likelihood
        assert quick.log_likelihood == pytest.approx(quick.score(LEVELS), abs=1e-6)
        assert quick.log_likelihood <= ExactMJP(2, "gaussian", intervals=False).fit(LEVELS).log_likelihood + 1e-6

    def test_states_come_in_the_order_of_their_means(self, quick):
        mean = quick.parameters.emission["mean"].ravel()
        assert mean[0] < mean[1]
        np.testing.assert_allclose(mean, [-1.0, 1.5], atol=0.3)

    def test_saved_and_loaded(self, quick, tmp_path):
        quick.save(tmp_path)
        again = FittedMJP.load(tmp_path)
        np.testing.assert_array_equal(again.rates, quick.rates)
        assert (again.engine, again.posterior, again.elbo) == ("neural", "tilted", quick.elbo)
        np.testing.assert_allclose(again.decode(LEVELS).probabilities, quick.decode(LEVELS).probabilities, rtol=1e-10)

    def test_decodes(self, quick):
        decoded = quick.decode(LEVELS)
        assert ((LEVELS.values[:, 0] > 0.25) == decoded.states).mean() > 0.9

    def test_fit_fetch_and_progress(self, quick):
        told = []
        again = NeuralMJP(2, "gaussian", changes={**SHORT, "steps": 100}).fit_fetch(
            LEVELS, lambda stage, share: told.append((stage, share))
        )
        np.testing.assert_array_equal(again.rates, quick.rates)
        assert [(words.split(":")[0], share) for words, share in told] == [
            ("training", 0.5),
            ("training", 1.0),
            ("intervals", 0.0),
        ]
        assert "training: bound -" in told[0][0]

    def test_without_intervals(self):
        fitted = NeuralMJP(2, "gaussian", changes={**SHORT, "steps": 100}, intervals=False).fit(LEVELS)
        assert fitted.uncertainty == "none"
        assert len(fitted.rate_samples) == 0

    def test_other_units(self, quick):
        """Of time and of values: the same networks, other numbers."""
        other = LEVELS.__class__(
            60 * LEVELS.times, 5 + 10 * LEVELS.values, LEVELS.offsets, LEVELS.names, LEVELS.value_names
        )
        fitted = NeuralMJP(2, "gaussian", changes={**SHORT, "steps": 100}).fit(other)
        np.testing.assert_allclose(60 * fitted.rates, quick.rates, rtol=1e-2)
        assert fitted.elbo == pytest.approx(quick.elbo - 480 * np.log(10), abs=0.5)


class TestChoices:
    def test_get_and_set(self):
        estimator = NeuralMJP(3, posterior="paper", seed=4)
        assert NeuralMJP(**estimator.get_params()) == estimator
        assert estimator.set_params(preset="paper").configuration().width == 256
        with pytest.raises(InputError, match="NeuralMJP has no parameter 'steps'"):
            estimator.set_params(steps=3)

    def test_configuration(self):
        assert NeuralMJP(2, changes={"steps": 7}).configuration().steps == 7
        assert NeuralMJP(2, config=TINY, changes={"steps": 7}).configuration() == replace(TINY, steps=7)
        with pytest.raises(InputError, match="a training configuration has no 'stepps'"):
            NeuralMJP(2, changes={"stepps": 7}).configuration()

    def test_the_published_emission(self):
        """Mean and spread from a network, unless one asks for plain numbers."""
        named = {
            (posterior, emission): NeuralMJP(2, emission, posterior=posterior).model(LEVELS).emission.name
            for posterior in ("tilted", "paper")
            for emission in ("auto", "gaussian")
        }
        assert named.pop(("paper", "auto")) == "neural"
        assert set(named.values()) == {"gaussian"}
        labels = TimeSeries(LEVELS.times, 1.0 * (LEVELS.values > 0), LEVELS.offsets, LEVELS.names, LEVELS.value_names)
        assert NeuralMJP(2, posterior="paper").model(labels).emission.name == "categorical"

    def test_a_known_rate_stays_known(self):
        fitted = NeuralMJP(2, "gaussian", prior=FreeRates(2, fixed={(0, 1): 0.8}), changes={**SHORT, "steps": 50}).fit(
            LEVELS
        )
        assert fitted.rates[0, 1] == 0.8

    def test_structural_zeros_stay(self):
        mask = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
        fitted = NeuralMJP(3, "gaussian", mask=mask, changes={**SHORT, "steps": 50}).fit(THREE)
        np.testing.assert_array_equal(fitted.rates > 0, np.array(mask) == 1)

    def test_interrupted_and_resumed(self, tmp_path, quick):
        def stop(stage, share):
            raise KeyboardInterrupt

        estimator = NeuralMJP(2, "gaussian", changes={**SHORT, "steps": 100})
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(LEVELS, stop, folder=tmp_path)
        again = estimator.fit(LEVELS, folder=tmp_path, resume=True)
        np.testing.assert_array_equal(again.rates, quick.rates)
        assert again.elbo == quick.elbo


def test_finished_by_the_exact_engine():
    """From wherever training stopped, to the optimum that the exact engine finds by itself."""
    fitted = NeuralMJP(2, "gaussian", changes={**SHORT, "steps": 100}, refine="exact").fit(LEVELS)
    exact = ExactMJP(2, "gaussian").fit(LEVELS)
    assert fitted.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-3)
    np.testing.assert_allclose(fitted.rates, exact.rates, rtol=1e-2)
    np.testing.assert_allclose(fitted.intervals["rates"].upper, exact.intervals["rates"].upper, rtol=2e-2)
    assert fitted.converged
    assert fitted.engine == "neural"
    assert "stopped after 100 steps: the limit of 100 steps; then by the exact engine" in fitted.message


def test_the_papers_model():
    """It says what its intervals are not."""
    changes = {**TINY.as_dict(), "steps": 20, "round_steps": 10, "posterior": "paper", "encoder": "ode-rnn"}
    changes |= {"quadrature": 6, "two_step": True, "prior": "generator", "drop_last": True, "noise_sd": 0.01}
    fitted = NeuralMJP(2, "gaussian", posterior="paper", changes=changes).fit(LEVELS)
    assert (fitted.posterior, fitted.uncertainty) == ("paper", "spread of the generator prior")
    assert any("no posterior: they are far too narrow" in word for word in fitted.warnings)
    spread = fitted.intervals["rates"]
    assert (spread.lower <= spread.upper).all()
    assert len(fitted.rate_samples) == 1000


@pytest.fixture(scope="module")
def three():
    estimator = NeuralMJP(3, "gaussian", changes={"steps": 1500, "width": 16})
    trained = estimator.train(THREE)
    return trained, estimator.fitted(THREE, trained), ExactMJP(3, "gaussian").fit(THREE)


class TestThreeStates:
    def test_the_bound_comes_near_the_evidence(self, three):
        """Within half a nat per series at the same parameters, and never above; most of it is the network's work."""
        trained, fitted, _ = three
        gap = (fitted.log_likelihood - fitted.elbo) / len(THREE)
        assert 0 <= gap < 0.5
        head = trained.networks.posterior.head
        silent = eqx.tree_at(
            lambda n: (n.posterior.head.weights[-1], n.posterior.head.biases[-1]),
            trained.networks,
            (0 * head.weights[-1], 0 * head.biases[-1]),
        )
        alone = replace(trained, all_networks=(silent,)).evaluate(THREE)
        unaided = float(np.asarray(alone.terms.elbo).sum()) + trained.log_scale
        assert (fitted.log_likelihood - unaided) / len(THREE) > 10 * gap

    def test_no_series_is_above_its_evidence(self, three):
        trained, fitted, _ = three
        bounds = np.asarray(trained.evaluated.terms.elbo, float)
        scale = trained.log_scale / len(THREE)
        for k in range(0, len(THREE), 17):
            assert bounds[k] + scale <= fitted.score(THREE[k]) + 1e-3

    def test_the_posterior_comes_near_the_smoothed_states(self, three):
        trained, fitted, _ = three
        order = np.argsort(trained.parameters.emission["mean"].ravel())
        found = np.asarray(trained.evaluated.marginals)[..., order].reshape(-1, 3)
        assert np.abs(found - fitted.decode(THREE).probabilities).mean() < 0.02

    @pytest.mark.statistical
    def test_rates_are_those_of_the_exact_engine(self, three):
        """Within 3 of its standard errors: both see the same data, so that this is no matter of chance."""
        _, fitted, exact = three
        off = ~np.eye(3, dtype=bool)
        apart = np.log(fitted.rates[off] / exact.rates[off]) / log_errors(exact.intervals["rates"])[off]
        assert np.isfinite(log_errors(exact.intervals["rates"])[off]).sum() >= 5
        assert (np.abs(apart) < 3).all()
        assert 0 <= exact.log_likelihood - fitted.log_likelihood < 1.0
        upper = exact.intervals["rates"].upper[off]
        np.testing.assert_allclose(fitted.intervals["rates"].upper[off], upper, rtol=0.2)

    def test_states_are_in_order(self, three):
        assert (np.diff(three[1].parameters.emission["mean"].ravel()) > 0).all()

    def test_the_history_rises(self, three):
        trained, *_ = three
        objective = [entry["objective"] for entry in trained.history]
        assert objective[-1] > objective[0] + 0.5


@pytest.mark.statistical
def test_flashing_ratchet():
    """V, r and b within 3 standard errors of the exact fit to the same 300 series."""
    ratchet = FlashingRatchet()
    exact = ExactMJP(6, prior=ratchet).fit(RATCHET).intervals["parameters"]
    fitted = NeuralMJP(6, prior=ratchet, changes={"steps": 600, "width": 8}).fit(RATCHET)
    errors = (exact.upper - exact.lower) / (2 * Z)
    assert (np.abs(fitted.intervals["parameters"].mean - exact.mean) < 3 * errors).all()
    assert fitted.elbo == pytest.approx(fitted.log_likelihood, abs=1e-3)  # states are seen without noise
    assert fitted.posterior == "tilted"


@pytest.mark.slow
@pytest.mark.statistical
def test_restarts_side_by_side():
    """The quick preset as it is, two runs: it stops by itself, and both find the same optimum."""
    fitted = NeuralMJP(3, "gaussian", restarts=2).fit(THREE)
    exact = ExactMJP(3, "gaussian").fit(THREE)
    assert fitted.converged
    assert "the bound no longer rises" in fitted.message
    assert np.ptp(fitted.restarts) < 0.5 * len(THREE)
    assert 0 <= fitted.log_likelihood - fitted.elbo < 0.5 * len(THREE)
    assert exact.log_likelihood - fitted.log_likelihood < 5
