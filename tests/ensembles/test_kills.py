"""Workers that are killed while they work: everything is answered, and what was answered is not worked out again."""

import os
import random
import signal
import time
from collections import Counter

import pytest

from ensembles import pieces
from neuralmjp.ensembles import Kept, each_answer, opened, run_each


def busy(place):
    """Processes of the workers that are at something; none if that is so for some seconds."""
    for _ in range(50):
        pids = place.client.run(os.getpid, on_error="ignore")
        found = [pids[worker] for worker, tasks in place.client.processing().items() if tasks and worker in pids]
        if found:
            return found
        time.sleep(0.1)
    return []


def killed(folder, *, questions, workers, kills, seconds, seed=0):
    """Kill a random busy worker now and then; what was asked, began and was known at each kill."""
    traces, kept, rng = folder / "traces", Kept(folder / "answers", {}), random.Random(seed)
    traces.mkdir()
    asked = {f"{n}": {"n": n, "seconds": seconds} for n in range(questions)}
    moments = set(rng.sample(range(2, questions - workers), kills))
    found, before = {}, []
    with opened("local", workers) as place:
        for name, answer in each_answer(pieces.leaving_traces, asked, str(traces), cluster=place, kept=kept):
            found[name] = answer
            if len(found) in moments:
                victim = rng.choice(busy(place))
                known = {path.name.rsplit("-", 1)[0] for path in kept.folder.iterdir()}
                runs = Counter(path.name.split("-")[1] for path in traces.glob("began-*"))
                os.kill(victim, signal.SIGKILL)
                before.append((known, runs))
    assert len(before) == kills
    runs = Counter(path.name.split("-")[1] for path in traces.glob("began-*"))
    assert {name: answer["square"] for name, answer in found.items()} == {f"{n}": n * n for n in range(questions)}
    for known, then in before:
        assert all(runs[name] == then[name] for name in known)
    assert set(runs) == set(found)
    assert (
        sum(runs.values()) <= questions + 2 * kills
    )  # at most what a worker was at, and what it began in the meantime
    again = sum(runs.values()) - questions
    print(
        f"\n{questions} questions, {workers} workers, {kills} killed: {len(found)} answers, {sum(runs.values())} runs; "
        f"begun again {again}, answered before a kill {[len(known) for known, _ in before]}, none of these run again"
    )
    return again


def test_one_of_three_workers_is_killed(tmp_path):
    assert killed(tmp_path, questions=15, workers=3, kills=1, seconds=0.5) >= 1


def test_workers_killed_between_rounds():
    """What all share reaches those that are left and those that come anew."""
    questions = {f"{n}": {"n": n} for n in range(4)}
    with opened("local", 2) as place:
        for _ in range(4):
            os.kill(next(iter(place.client.run(os.getpid, on_error="ignore").values())), signal.SIGKILL)
            assert run_each(pieces.powers, questions, 2, cluster=place)["3"] == {"power": 8}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_many_are_killed(tmp_path, seed):
    assert killed(tmp_path, questions=200, workers=4, kills=20, seconds=0.5, seed=seed) >= 10
