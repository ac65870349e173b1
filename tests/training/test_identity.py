"""What differs between a checkpoint and what is asked for now, in one line."""

from pathlib import Path

import pytest

from neuralmjp import InputError
from neuralmjp.training.identity import require_same


def refusal(known, now):
    with pytest.raises(InputError) as refused:
        require_same(known, now, Path("run"))
    return str(refused.value)


def test_the_same():
    require_same({"config": {"width": 8}}, {"config": {"width": 8}}, Path("run"))


def test_names_and_values():
    said = refusal({"config": {"width": 8, "steps": 9}}, {"config": {"width": 16, "steps": 9}})
    assert "another config (width 8, now 16): use the same" in said


def test_long_values_are_shown_where_they_differ():
    allowed = [[True] * 9] * 9
    said = refusal({"model": ["FreeRates", 3, allowed]}, {"model": ["FreeRates", 4, allowed]})
    old, new = said.split("(")[1].split(")")[0].split(", now ")
    assert old.startswith('["FreeRates", 3,')
    assert new.startswith('["FreeRates", 4,')
    late = refusal({"model": [*range(100), "a"]}, {"model": [*range(100), "b"]})
    assert '"a"' in late
    assert '"b"' in late
