"""A place of many processes: `dask.distributed`, on this machine or on those of a running scheduler.

What crosses the wire is dask's: pickles between processes that trust each other. Files are another matter, see `kept`.
"""

import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from .._version import __version__
from ..errors import InputError
from ..io.extras import needed
from .places import End, Function, Question, Tell, attempted, cores, sharing

PATIENCE = 10.0  # seconds in which a scheduler must answer
LOOK = 0.05  # seconds between looks for answers
COUNT = 1.0  # seconds between counts of the workers
RETRIES = 2  # of what ended with an error that is not about the input: another machine may do better
LIVES = 5  # workers of a local cluster that may die over one question
ADDRESS = re.compile(r"([a-z]+://)?[^\s:/]+(:[^\s:/]+)*:\d+|([a-z]+://)?\[[0-9A-Fa-f:.%]+\]:\d+")


@dataclass(frozen=True)
class Cluster:
    """The workers of a scheduler. Their answers are fetched as soon as they are there: a worker that dies later takes
    none of them along, and what it was at is done again by another."""

    client: Any
    address: str

    def ends(
        self, function: Function, questions: Mapping[str, Question], shared: Any, tell: Tell
    ) -> Iterator[tuple[str, End]]:
        from distributed import as_completed

        run, client = uuid4().hex, self.client
        self._hand_out(shared, run)
        names = {
            client.submit(_worked, function, run, question, __version__, key=(run, name), retries=RETRIES): name
            for name, question in questions.items()
        }
        ready, counted = as_completed(list(names), loop=client.loop, with_results=True, raise_errors=False), 0.0
        try:
            while not ready.is_empty():
                batch = ready.next_batch(block=False)
                ends = [(names.pop(future), self._end(future, result)) for future, result in batch]
                for future, _ in batch:
                    future.release()  # or a worker that dies now would have it worked out again
                yield from ends
                if time.monotonic() - counted > COUNT and client.status == "running":
                    counted = time.monotonic()
                    with suppress(OSError):
                        tell(f"{len(names)} to do, {len(client.nthreads())} workers")
                if not batch:
                    time.sleep(LOOK)
        finally:
            if client.status == "running":
                with suppress(OSError):
                    client.cancel(list(names))
                    client.unregister_worker_plugin(run)

    def _hand_out(self, shared: Any, run: str) -> None:
        """To every worker once, also to those that come later or anew.

        As a plugin, because scattered data are lost with the workers that hold them, and both these and results of
        other tasks draw work to where they are, while other workers idle.
        """
        from distributed import WorkerPlugin

        plugin: Any = WorkerPlugin()
        plugin.shared = shared
        for last in (False, False, True):
            try:
                self.client.register_plugin(plugin, name=run)
            except OSError:  # a worker has died in the meantime
                if last or self.client.status != "running":
                    raise self._gone() from None
                time.sleep(COUNT)
            else:
                return

    def _end(self, future: Any, result: Any) -> End:
        """From what dask says of a task."""
        from distributed import KilledWorker

        if future.status == "finished":
            return result
        error = result[1] if isinstance(result, tuple) else result
        if isinstance(error, KilledWorker):
            error = InputError(f"{error.allowed_failures + 1} workers died over it: out of memory?")
        elif isinstance(error, ModuleNotFoundError):
            error = InputError(f"a worker says: {error}; install the same on all machines")
        elif future.status != "error":
            error = self._gone()
        return End(None, error)

    def _gone(self) -> InputError:
        return InputError(f"the scheduler at {self.address} is gone; start it, and the same again")


def _worked(function: Function, run: str, question: Question, version: str) -> End:
    """On a worker: an answer, or what is wrong with the question; other errors go up, for another try."""
    from distributed import get_worker

    if version != __version__:
        different = f"a worker has neuralmjp {__version__}, this is {version}: install the same on all machines"
        return End(None, InputError(different))
    plugin: Any = get_worker().plugins[run]
    end = attempted(function, plugin.shared, question)
    if end.error is not None and not isinstance(end.error, InputError):
        raise end.error
    return end


@contextmanager
def connected(cluster: str, jobs: int | None = None) -> Iterator[Cluster]:
    """The workers of a cluster; a local one is started, and goes when the work is done or broken off."""
    if cluster != "local" and not ADDRESS.fullmatch(cluster):
        raise InputError(f"a cluster is local, or the address of a scheduler such as tcp://host:8786; got {cluster!r}")
    if cluster != "local" and jobs is not None:
        raise InputError(f"jobs are for this machine: the scheduler at {cluster} has as many as it has workers")
    distributed = needed("distributed", "cluster", "a cluster")
    with ExitStack() as open_things:
        where = open_things.enter_context(_local(jobs or cores())) if cluster == "local" else cluster
        try:
            client = distributed.Client(where, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"no scheduler answers at {cluster} within {PATIENCE:g} s ({reason}); start one with: dask scheduler"
            ) from None
        open_things.enter_context(client)
        yield Cluster(client, cluster)


@contextmanager
def _local(workers: int) -> Iterator[Any]:
    """A scheduler in this process, and so many workers with a process each."""
    from distributed import LocalCluster

    environment = {"distributed.nanny.pre-spawn-environ": sharing(max(cores() // workers, 1))}
    try:
        with needed("dask.config", "cluster", "a cluster").set(environment):
            local = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                memory_limit=0,  # the machine's own: a fit that fits in its memory is not ended
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                scheduler_kwargs={"allowed_failures": LIVES, "dashboard": False},
                preload=[f"{__package__}.deaf"],
            )
    except RuntimeError:
        raise InputError(
            "no worker could be started on this machine; a script that uses cluster='local' "
            "must do its work below: if __name__ == '__main__':"
        ) from None
    with local:
        yield local
