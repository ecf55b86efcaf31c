"""Runs a program that ends with whoever started it, who may be killed and stop nothing.

It holds the other end of a pipe on its standard input: whatever happens to the one who has this
end, the pipe breaks. Run by its path, since it needs nothing of the package; what it inherits, as
a lock on a file, the program inherits too.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

_GRACE_SECONDS = 10.0
_NOTHING_FOR_OTHERS = 0o077
"""The database of the Temporal server names tenants and jobs."""


def main(command: Sequence[str]) -> int:
    """The program's exit code."""
    program = subprocess.Popen(  # noqa: S603 - whoever starts this says what to run
        command, stdin=subprocess.DEVNULL, close_fds=False, umask=_NOTHING_FOR_OTHERS
    )
    signal.signal(signal.SIGTERM, lambda *_: program.terminate())
    threading.Thread(target=_end_with_input, args=(program,), daemon=True).start()
    return program.wait()


def _end_with_input(program: "subprocess.Popen[bytes]") -> None:
    while os.read(0, 1024):  # not by `sys.stdin`, whose lock would abort the exit of this process
        pass
    program.terminate()
    try:
        program.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        program.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
