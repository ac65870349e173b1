"""Loaded by each worker of a local cluster first: Ctrl-C in a terminal is for the process that started them."""

import signal


def dask_setup(_: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
