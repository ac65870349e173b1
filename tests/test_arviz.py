"""Samples of the rates for people who work with ArviZ."""

import numpy as np
import pytest

from neuralmjp import ExactMJP
from neuralmjp.systems import FlashingRatchet


@pytest.mark.filterwarnings("ignore::FutureWarning")  # ArviZ announces its next version when it is imported
def test_arviz_holds_the_rate_samples():
    ratchet = FlashingRatchet()
    fitted = ExactMJP(6, prior=ratchet).fit(ratchet.simulate(100, 20, seed=0).data)
    rates = fitted.to_arviz()["posterior"]["rates"]
    np.testing.assert_array_equal(np.asarray(rates)[0], fitted.rate_samples)
