"""Creates API keys, as a process of its own, when told to by a line.

python -m tests.security.key_process FILE NAME COUNT
"""

import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lucius_orchestrator.security.callers import Role
from lucius_orchestrator.security.keys import KeyFile


def main(path: str, name: str, count: str) -> None:
    keys = KeyFile(Path(path), partial(datetime.now, UTC))
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(count)):
        print(keys.create(f"{name}-{number}", None, frozenset({Role.READ})).secret)


if __name__ == "__main__":
    main(*sys.argv[1:])
