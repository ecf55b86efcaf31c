"""A process that starts another again and again, which is killed."""

import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn


def keep_forking(live: Callable[[], NoReturn]) -> NoReturn:
    """One process after the other, each until it is killed. Forked, since imports would take longer
    than jobs do."""
    while True:
        process = os.fork()
        if not process:
            live()
        _, status = os.waitpid(process, 0)
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            sys.exit("a process ended by itself")
