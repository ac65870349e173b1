"""Where work is done: in this process, in a few threads of it, or on a cluster."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

Question = dict[str, Any]  # numbers, names, arrays
Answer = dict[str, Any]
Function = Callable[[Any, Question], Answer]  # of what all share, and of one question
Tell = Callable[[str], None]


class End(NamedTuple):
    """How one piece of work ended: with an answer, or with an error."""

    answer: Answer | None
    error: Exception | None = None


@runtime_checkable
class Place(Protocol):
    """Answers questions, several at a time, in any order."""

    def ends(
        self, function: Function, questions: Mapping[str, Question], shared: Any, tell: Tell
    ) -> Iterator[tuple[str, End]]:
        """Each question by its name, as soon as it has ended; `tell` takes words about what is under way."""
        ...


@dataclass(frozen=True)
class Here:
    """This process; with several jobs, in threads, for functions that do little but wait for processes of their own."""

    jobs: int = 1

    def ends(
        self, function: Function, questions: Mapping[str, Question], shared: Any, tell: Tell
    ) -> Iterator[tuple[str, End]]:
        if self.jobs > 1 and len(questions) > 1:
            yield from self._in_threads(function, questions, shared, tell)
            return
        for name, question in questions.items():
            tell(name)
            yield name, attempted(function, shared, question)

    def _in_threads(
        self, function: Function, questions: Mapping[str, Question], shared: Any, tell: Tell
    ) -> Iterator[tuple[str, End]]:
        pool = ThreadPoolExecutor(self.jobs)
        try:
            names = {pool.submit(attempted, function, shared, question): name for name, question in questions.items()}
            tell(", ".join(list(questions)[: self.jobs]))
            for future in as_completed(names):
                yield names[future], future.result()
                tell(", ".join(name for one, name in names.items() if one.running()))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def attempted(function: Function, shared: Any, question: Question) -> End:
    try:
        return End(function(shared, question))
    except Exception as error:
        return End(None, error)


@contextmanager
def opened(cluster: str | Place | None, jobs: int | None = None) -> Iterator[Place]:
    """A place to work: here (None), on the cores of this machine ("local"), or where a scheduler has its workers.

    Args:
        cluster: None, "local", or the address of a running `dask scheduler`; a place that is open stays so.
        jobs: pieces of work at a time here, or workers of a local cluster; by default 1 here, and a worker per core.
    """
    if cluster is None:
        yield Here(jobs or 1)
    elif isinstance(cluster, str):
        from .cluster import connected

        with connected(cluster, jobs) as place:
            yield place
    else:
        yield cluster


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sharing(threads: int) -> dict[str, str]:
    """Environment of a process that is one of several on a machine: so many threads, and GPU memory as it is needed."""
    few = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    as_needed = "XLA_PYTHON_CLIENT_PREALLOCATE"
    return {**few, as_needed: os.environ.get(as_needed, "false")}
