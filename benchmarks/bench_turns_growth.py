"""CPU of `claim_in_turn` as the backlog grows from 10³ to 10⁶ pending directives.

One tenant has almost all of them, 50 tenants have a few; of three services one has no room. Both
ledgers give batches of 100, in turns. Takes about two minutes, and 3 GB below the folder for
temporary files.
"""

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.engine import submit_one
from benchmarks.report import report
from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger
from lucius_orchestrator.ports.ledger import Queue

TARGET = 1.5
SMALL, LARGE = 1_000, 1_000_000
ROUNDS, WARM_UP = 60, 5
TENANTS, OF_TENANT = 50, 2
SERVICES = ("embedding", "ocr", "sis")
ROOMS = {"embedding": 50, "ocr": 50, "sis": 0}
BATCH = sum(ROOMS.values())
_LEASE = timedelta(minutes=1)

_COPY = """
WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count - 1)
INSERT INTO lucius_outbox_messages
    (id, namespace, topic, dedupe_key, payload, next_attempt_at, created_at, updated_at, queue)
SELECT lower(hex(randomblob(16))), namespace, topic, :queue || n,
       replace(payload, :job_id, printf('job_%032x', n)), next_attempt_at + n, created_at,
       updated_at, :queue
FROM numbers, (SELECT * FROM lucius_outbox_messages WHERE seq = 1)
"""


class EvenTurns:
    """Gives each waiting queue the same."""

    def room(self, service: str) -> int:
        return ROOMS[service]

    def last(self, _service: str, _mode: Mode) -> Queue | None:
        return None

    def allot(self, service: str, waiting: Sequence[Queue]) -> Mapping[Queue, int]:
        each, more = divmod(ROOMS[service], len(waiting))
        return {queue: each + (n < more) for n, queue in enumerate(waiting)}


class Cost(NamedTuple):
    cpu: float
    seconds: float


def fill(path: Path, rows: int, job_id: str) -> None:
    """Multiply the one directive that is there."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    few = TENANTS * OF_TENANT * len(SERVICES)
    counts = {f"tenant-{n}": OF_TENANT for n in range(TENANTS)}
    counts["large"] = (rows - few) // len(SERVICES)
    for service in SERVICES:
        for tenant, count in counts.items():
            queue = f"{service}/{Mode.DEFAULT}/{tenant}"
            connection.execute(_COPY, {"count": count, "queue": queue, "job_id": job_id})
    connection.execute("DELETE FROM lucius_outbox_messages WHERE seq = 1")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


async def filled(path: Path, rows: int) -> SqliteLedger:
    ledger = await SqliteLedger.open(path)
    job_id = await submit_one(ledger)
    await ledger.close()
    fill(path, rows, job_id)
    return await SqliteLedger.open(path)


async def cost(ledger: SqliteLedger) -> Cost:
    """Of one batch, which is given back afterwards."""
    start, cpu = time.perf_counter(), time.process_time()
    claims = await ledger.claim_in_turn(EvenTurns(), _LEASE)
    found = Cost(time.process_time() - cpu, time.perf_counter() - start)
    assert len(claims) == BATCH, len(claims)
    await ledger.release(claims)
    return found


async def measure(folder: Path) -> list[tuple[Cost, Cost]]:
    """Of a batch from the small ledger and from the large one, in turns."""
    small = await filled(folder / "small.db", SMALL)
    large = await filled(folder / "large.db", LARGE)
    pairs = [(await cost(small), await cost(large)) for _ in range(ROUNDS)]
    await small.close()
    await large.close()
    return pairs[WARM_UP:]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pairs = asyncio.run(measure(Path(folder)))
    small, large = zip(*pairs, strict=True)
    cpu = [median(cost.cpu for cost in costs) for costs in (small, large)]
    report(
        "turns_growth",
        cpu[1] / cpu[0],
        TARGET,
        at_most=True,
        small_us_per_batch=cpu[0] * 1e6,
        large_us_per_batch=cpu[1] * 1e6,
        small_wall_us=median(cost.seconds for cost in small) * 1e6,
        large_wall_us=median(cost.seconds for cost in large) * 1e6,
    )


if __name__ == "__main__":
    main()
