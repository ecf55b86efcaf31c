"""A process that writes a journal until it is killed: `python -m ... <folder> <manner>`.

It prints the number of each group once that is flushed, and goes on without waiting.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from servicebus_emulator.broker.records import Enqueued, Record
from servicebus_emulator.journal import Journal
from servicebus_emulator.messages import Message

GROUP = 8
LIVE = 3 * GROUP


def enqueued(value: int) -> Record:
    message = Message.build(bytes([value % 251]) * 20_000, message_id=str(value))
    return Enqueued("queue", value, message, value, None, 0, 0, None, None)


def live(end: int) -> Iterator[Record]:
    return (enqueued(value) for value in range(max(0, end - LIVE), end))


def main(folder: Path, manner: str) -> None:
    journal = Journal(folder)
    start = max(
        (one.sequence_number + 1 for one in journal.load() if isinstance(one, Enqueued)), default=0
    )
    for end in range(start + GROUP, sys.maxsize, GROUP):
        for value in range(end - GROUP, end):
            journal.record(enqueued(value))
        journal.flush()
        print(end, flush=True)
        if manner == "compact":
            journal.compact(live(end))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
