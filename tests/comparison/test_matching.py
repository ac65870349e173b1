"""States named alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralmjp.comparison.answer import Answer
from neuralmjp.comparison.matching import agreement, matched, overlap


@settings(deadline=None, max_examples=30)
@given(st.permutations(range(5)), st.integers(0, 2**20))
def test_any_other_naming_is_undone(names, seed):
    """Also with one observation in five in a wrong state."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(5), 40)
    wrong = rng.random(len(truth)) < 0.2
    seen = np.array(names)[np.where(wrong, rng.integers(0, 5, len(truth)), truth)]
    order = matched(truth, seen, 5)
    np.testing.assert_array_equal(order, names)
    assert agreement(truth, np.argsort(order)[seen]) > 0.7


def test_everything_is_renamed():
    law, passage = np.array([0.1, 0.2, 0.7]), np.arange(9.0).reshape(3, 3)
    one = Answer(np.array([2, 2, 0, 1]), law, np.array([3.0, 1.0]), passage)
    other = one.renamed(np.array([2, 0, 1]))  # the third becomes the first
    np.testing.assert_array_equal(other.states, [0, 0, 1, 2])
    np.testing.assert_array_equal(other.stationary_distribution, [0.7, 0.1, 0.2])
    assert other.mfpt[0, 1] == passage[2, 0]
    assert other.timescales is one.timescales


def test_an_answer_survives_json():
    one = Answer(np.array([1, 0]), np.array([0.5, 0.5]), np.array([np.inf]), np.array([[0.0, np.nan], [2.0, 0.0]]))
    back = Answer.from_json(one.to_json())
    np.testing.assert_array_equal(back.states, one.states)
    assert np.isnan(back.timescales).all()  # JSON holds no infinity
    assert back.mfpt[1, 0] == 2.0
    assert np.isnan(back.held_out)


def test_overlap_counts_pairs():
    table = overlap(np.array([0, 1, 1]), np.array([1, 1, 1]), 3)
    assert table.sum() == 3
    assert table[1, 1] == pytest.approx(2)
