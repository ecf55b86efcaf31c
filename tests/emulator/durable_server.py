"""An emulator with a data folder, as a process that can be killed.

python durable_server.py FOLDER PORT
"""

import asyncio
import sys
from pathlib import Path

from servicebus_emulator.broker import QueueSettings
from servicebus_emulator.journal import Journal
from servicebus_emulator.server import Emulator

QUEUE = "work"


async def main(folder: Path, port: int) -> None:
    journal = Journal(folder, compaction_floor=20_000)
    emulator = Emulator(journal=journal)
    if not emulator.broker.queues():
        settings = QueueSettings(
            lock_duration=5_000,
            max_delivery_count=1_000,
            requires_duplicate_detection=True,
            duplicate_window=3_600_000,
        )
        emulator.broker.create_queue(QUEUE, settings)
    await emulator.start(port=port)
    print(emulator.connection_string, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
