"""Interruption by Ctrl-C or by the system: the round in progress is finished and saved first."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """Somebody asked for an end, and this is a good moment."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number  # as a shell tells it


@dataclass
class Interruption:
    """What was asked so far. While it is `patient`, the end comes at the next `check`, else at once."""

    patient: bool = True
    number: int | None = None

    def check(self) -> None:
        if self.number is not None:
            raise Interrupted(self.number)

    def ask(self, number: int, _: Any = None) -> None:
        """A signal has come; the next one ends the process as if nobody had listened."""
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        self.number = number
        if not self.patient:
            self.check()


@contextmanager
def listening(patient: bool = True) -> Iterator[Interruption]:
    """Signals are noted, not obeyed at once. In a thread nothing is changed: signals go to the main one."""
    asked = Interruption(patient)
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, asked.ask) for number in SIGNALS}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
