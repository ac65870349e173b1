"""The command in a process of its own: `neuralmjp`, or `python -m neuralmjp`."""

import os
import sys
from contextlib import suppress
from typing import NoReturn

from .cli import main


def run() -> NoReturn:
    """Run a command, and leave at once when it is done.

    A thread of Arrow may still hold on to a file that was read (https://github.com/apache/arrow/issues/34314): if the
    interpreter were taken down around it, it would abort the process, after all work was done well. What others wait
    for is therefore done here.
    """
    status: object = 0
    try:
        main()
    except SystemExit as end:
        status = end.code
    if not status and "neuralmjp.training.mesh" in sys.modules:
        from .training.mesh import leave_hosts

        leave_hosts()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads any more
            stream.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    run()
