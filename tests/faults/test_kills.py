"""A fit that is killed again and again, at random moments, ends with the same numbers as one that nobody touched."""

import contextlib
import random
import signal
import subprocess
import time

import pytest

from faults.runs import make_data, numbers, started, steps_done


class Undisturbed:
    """A fit that nobody touches: its numbers and steps."""

    def __init__(self, folder):
        self.data, self.out = make_data(folder), folder / "undisturbed"
        process = started(self.data, self.out)
        assert process.communicate()[1] == ""
        assert process.returncode == 0
        self.steps, self.numbers = steps_done(self.out), numbers(self.out)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return Undisturbed(tmp_path_factory.mktemp("kills"))


def killed_fit(fit, out, kills, rng):
    """Kill a fit so many times, each time resuming; returns the steps done at each kill, and lets it end."""
    targets = sorted(rng.randrange(fit.steps) for _ in range(kills - 1))
    moments = []
    for target in [*targets, fit.steps]:  # the last one while intervals are computed, or files written
        process = started(fit.data, out, "--resume")
        while steps_done(out) < target and process.poll() is None:
            time.sleep(0.002)
        # A moment later: in the middle of a round, of a file, of a rename.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0.0, 0.1) if target < fit.steps else rng.uniform(0.0, 4.0))
        process.kill()
        process.communicate()
        moments.append(steps_done(out))
        assert process.returncode in (0, -signal.SIGKILL)
    process = started(fit.data, out, "--resume")
    assert process.communicate()[1] == ""
    assert process.returncode == 0
    return moments


def check(fit, out, kills, seed):
    moments = killed_fit(fit, out, kills, random.Random(seed))
    assert numbers(out) == fit.numbers
    assert not list(out.rglob("*.part"))
    print(f"\n{kills} kills, after steps {moments} of {fit.steps}: the same numbers")
    return moments


def test_killed_four_times(undisturbed, tmp_path):
    moments = check(undisturbed, tmp_path / "run", 4, seed=0)
    assert any(0 < step < undisturbed.steps for step in moments)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 7))
def test_killed_thirty_times(undisturbed, tmp_path, seed):
    """Six fits, five kills each."""
    check(undisturbed, tmp_path / "run", 5, seed)
