"""Sentences of ours in other names of the states, and no other word of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuralmjp.naming import renamed

NUMBERS, NAMES = ("0", "1", "2"), ("well", "ill", "dead <for ever>")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("state 2 holds 0.1 % of the time", "state dead <for ever> holds 0.1 % of the time"),
        ("the levels of states 0 and 1 lie 1 apart", "the levels of states well and ill lie 1 apart"),
        ("no sign of the jump 0->1: its rate", "no sign of the jump well->ill: its rate"),
        ("hardly determine 0->1=1->2, 1<->0: 2", "hardly determine well->ill=ill->dead <for ever>, ill<->well: 2"),
        ("do not determine log weight 1: its", "do not determine log weight ill: its"),
        ("2 closed classes, {1}, {0, 2}; treat", "2 closed classes, {ill}, {well, dead <for ever>}; treat"),
        ("1 of 2 starts; state 12, state 1.", "1 of 2 starts; state 12, state ill."),
        ("one state will do; 0.0->1.0, {a, 1}", "one state will do; 0.0->1.0, {a, 1}"),
    ],
)
def test_where_states_are_meant(words, expected):
    assert renamed(words, NUMBERS, NAMES) == expected
    assert renamed(expected, NAMES, NUMBERS) == words


@given(st.permutations(NUMBERS))
def test_names_that_are_numbers_of_others(order):
    """All at once, or a name that was given would be taken for another number."""
    words = "state 0 is not state 1, nor 2->0"
    assert renamed(words, NUMBERS, order) == "state {} is not state {}, nor {}->{}".format(*order, order[0])
