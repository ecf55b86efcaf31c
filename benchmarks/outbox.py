"""Rows per second through enqueue, claim, publish (no-op) and ack, beside plain SQL by hand.

The floor is what a skilled hand would write without the library: the same ids, JSON, batches,
commits and durability, the columns of the specification, the partial indexes that claims need. It
has no ordering keys, fences, counters of reclaims, wake-ups, kept leases, retention, metrics or
typed errors.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from statistics import median

from benchmarks.report import report
from lucius_outbox import Claimed, Dispatcher, DispatchSettings, Message, Store
from lucius_outbox.message import JsonValue

ROWS = 10_000
BATCH = 100
ROUNDS = 15  # commits wait for a disk, whose moods need more rounds than a processor's
LEASE = timedelta(seconds=30)

Work = Callable[[], Awaitable[None]]


def payload(number: int) -> JsonValue:
    return {
        "jobId": "job_0197f3c2d1e07000a000000000000001",
        "stepId": "step_01",
        "attempt_no": number,
        "input_ref": {"uri": "az://inbox/invoice.pdf"},
        "workspace_ref": {"uri": "az://workspace/lucius/acme/job_1/"},
    }


def messages(start: int, round_no: str) -> list[Message]:
    return [
        Message(
            "bench",
            "directives",
            payload(number),
            tenant_id="acme",
            dedupe_key=f"acme/{round_no}/{number}",
        )
        for number in range(start, start + BATCH)
    ]


async def dispatch_all(store: Store, concurrency: int) -> None:
    """Until every row has been published and acked."""
    settings = DispatchSettings(
        batch_size=BATCH, concurrency=concurrency, lease=LEASE, retention=None
    )
    published = 0
    all_published = asyncio.Event()

    async def publish(claims: Sequence[Claimed]) -> None:
        nonlocal published
        published += len(claims)
        if published == ROWS:
            all_published.set()

    async with Dispatcher(store, publish, settings):
        await all_published.wait()


async def compare(name: str, target: float, library: Work, floor: Work) -> None:
    """In turns, so that a noisy moment hits both."""
    rates: dict[Work, list[float]] = {library: [], floor: []}
    for _ in range(ROUNDS):
        for work, found in rates.items():
            start = time.perf_counter()
            await work()
            found.append(ROWS / (time.perf_counter() - start))
    ours, theirs = median(rates[library]), median(rates[floor])
    # Of neighbours in time, since the machine may be faster in one round than in another.
    ratio = median(a / b for a, b in zip(rates[library], rates[floor], strict=True))
    print(f"lucius_outbox    {ours:>10,.0f} rows/s   {1e6 / ours:6.1f} µs a row")
    print(f"plain SQL        {theirs:>10,.0f} rows/s   {1e6 / theirs:6.1f} µs a row")
    report(name, ratio, target, rows_per_second=ours, floor_rows_per_second=theirs)
