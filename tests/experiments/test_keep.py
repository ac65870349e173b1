"""An experiment that was broken off goes on: the same numbers, and nothing is trained twice."""

import json
from pathlib import Path

import numpy as np
import pytest

from neuralmjp import InputError, NeuralMJP, systems
from neuralmjp.experiments import two_mode
from neuralmjp.experiments.runs import Placed, Told, train_there

TINY = {"width": 8, "batch": 4, "steps": 6, "round_steps": 2}
ONLY = [two_mode.ONE, two_mode.TILTED]


class Killed(BaseException):
    pass


def steps_of(folder: Path) -> list[int]:
    """That were trained, one entry for every round of every run."""
    return [json.loads(line)["step"] for line in (folder / "log.jsonl").read_text().splitlines()]


def test_a_killed_experiment_goes_on(tmp_path, monkeypatch):
    monkeypatch.setitem(two_mode.SIZES, "quick", two_mode.Size(1, 1, 1, 300, tilted=TINY))

    def kill(stage, share):
        if share > 0.5:
            raise Killed

    whole = two_mode.run("quick", 1, 0, only=ONLY)
    with pytest.raises(Killed):
        two_mode.run("quick", 1, 0, Placed(kill, tmp_path), only=ONLY)
    assert steps_of(tmp_path / "tilted") == [2, 4]
    again = two_mode.run("quick", 1, 0, Placed(lambda *_: None, tmp_path), only=ONLY)
    assert steps_of(tmp_path / "tilted") == [2, 4, 6]
    for one, other in zip(whole.tables[0].rows[0].lines, again.tables[0].rows[0].lines, strict=True):
        assert one.method == other.method
        for name, number in one.numbers.items():
            np.testing.assert_array_equal(number.mean, other.numbers[name].mean)


def test_every_fit_has_a_folder_of_its_own(tmp_path):
    told = Told(Placed(lambda *_: None, tmp_path), 2)
    places = [told.next(what) for what in ("irregular grid, paper's method", "Index collapse: two-mode")]
    assert [place.folder.name for place in places] == ["irregular-grid-paper-s-method", "index-collapse-two-mode"]
    assert Told(Placed(lambda *_: None), 1).next("x").folder is None


def test_devices_are_those_of_the_command():
    data, estimator = systems.TwoMode().simulate(8, 20, seed=0).data, NeuralMJP(2, changes=TINY)
    with pytest.raises(InputError, match="mesh asks for 1000 devices, but there are"):
        train_there(estimator, data, Told(Placed(lambda *_: None, mesh=1000), 1).next("x"))
    assert len(train_there(estimator, data, Told(lambda *_: None, 1).next("x")).restarts) == 1
